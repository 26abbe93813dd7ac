/* answer_file.h - the cloud's answers in a file of JSON lines, which only grows:
 *
 *   {"mizzle_answers":3,"model":"NAME","tokenizer":"16 hex digits","n":41,
 *    "prefix":"32 hex digits","id":17,"crc":"8 hex digits"}
 *
 * on one line: after a prefix of n tokens with this hash, this model of this tokenizer continues
 * with this id. The hash is the first half of a SHA-256 over the tokenizer's fingerprint and the
 * ids, in 8 and 4 bytes each. NAME is also NAME@FINGERPRINT/KV (answers_port.c). crc is the CRC-32
 * of what stands before it. The file holds no text, no token of a prompt and no API key. Lines of
 * other models are left alone.
 *
 * Processes may share the file, each of which opens it once. A line is appended by one write(2),
 * under an fcntl lock that the system drops when a process dies; the others read it at their next
 * miss. A killed writer or a full disk leaves at most a torn last line, which the next one to open
 * or append cuts off and reports. Nothing is cut from a file that cannot be read. A damaged line
 * costs its answer. A file at its limit is renamed to FILE.old, which is read, too, and FILE begins
 * anew, as it does when it has been removed. */
#ifndef NET_ANSWERS_ANSWER_FILE_H
#define NET_ANSWERS_ANSWER_FILE_H

#include "kernels/sys/atomic_file.h"
#include "kernels/sys/base.h"
#include "net/answers/answers.h"

/* In bytes: the longest and the shortest line, and the usual limit of a file. */
enum { ANSWER_FILE_LINE = 8192, ANSWER_FILE_LEAST_LINE = 128, ANSWER_FILE_LIMIT = 64 << 20 };

/* The hash of a prefix. With 2^32 answers, two prefixes share one with a probability of 2^-65. */
struct prefix_key {
    uint64_t hi, lo;
};

struct answer_file {
    /* Set by the caller; all else begins as zero. */
    int fd;         /* -1: there is no file, and the functions below do nothing */
    uint64_t limit; /* bytes */
    bool offline;   /* only read */
    uint64_t tokenizer;
    void (*take)(void *arg, const struct prefix_key *k, uint32_t id); /* gets the answers */
    void *arg;

    char path[ATOMIC_FILE_NAME], old[ATOMIC_FILE_NAME + 4]; /* old: with ".old" behind it */
    char *model, *head;  /* the model's name, and how its lines begin; NULL before it is named */
    char *other;         /* the first line of another model; or NULL */
    bool finds;          /* `other` becomes the line that says which model to name */
    bool ours;           /* it has lines of the model */
    uint64_t read, rest; /* bytes of the lines read so far; behind them, when that was */
    bool old_read, impatient; /* so was FILE.old; the last wait for the lock was in vain */
    /* For answer_file_note. */
    size_t torn, damaged; /* bytes; lines */
    struct err trouble;   /* the latest one, */
    bool untold;          /* which has not been reported */
};

/* Open path, or create it, readable by its owner alone, and look at its first bytes. It must be
 * this user's, and nobody else may write it or have planted a link to it (atomic_file.h); offline
 * it must only be there. ERR_FORMAT: it is something else, or of another version, and is left as it
 * is; ERR_ARG (not a regular file), ERR_IO, ERR_NOMEM. *f is always fit for answer_file_close. */
int answer_file_open(struct answer_file *f, const char *path, struct err *err);
void answer_file_close(struct answer_file *f);
/* Name the model, as answers_server does, and read the file. */
int answer_file_server(struct answer_file *f, const char *model, struct err *err);

/* Give the answers that have not been read yet. */
void answer_file_read(struct answer_file *f);
/* Append an answer; may read. False: it is not in the file. */
bool answer_file_append(struct answer_file *f, const struct prefix_key *k, size_t n, uint32_t id);
/* Give one line that a person should see, each once. False: there is none. */
bool answer_file_note(struct answer_file *f, struct err *note);

#endif
