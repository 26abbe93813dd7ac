/* answer_file.h - the bytes of a store or a recording: its lines (answer_line.h), the lock, and the
 * new file of a compaction. It knows lines, no answers.
 *
 * The file is append-only. Lines are appended whole, by one write(2), under an fcntl lock that the
 * system drops when a process dies. A killed writer or a full disk leaves at most a torn line at
 * the end; the next process that opens or appends cuts it off and reports it. What damaged lines
 * cost is decided by who reads.
 *
 * A process may open a file only once, because fcntl locks belong to the process. */
#ifndef NET_ANSWERS_ANSWER_FILE_H
#define NET_ANSWERS_ANSWER_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

struct err;

enum answer_use {
    ANSWER_STORE,  /* written if that is allowed; processes share it */
    ANSWER_RECORD, /* written */
    ANSWER_REPLAY, /* a recording that is only read */
};

struct answer_file {
    enum answer_use use;
    int fd; /* -1 when not open */
    char *path;
    bool writable;
    dev_t dev;
    ino_t ino;
    uint64_t read; /* bytes of the lines read so far, */
    size_t lines;  /* which are so many */
    bool skipping; /* they end within a line of which nothing is wanted */
    size_t torn;   /* bytes of a torn line that answer_file_note has not reported */
};

/* Open path, or create it, readable by its owner alone, and look at its first bytes; a file that
 * can be written is locked as below. One that is not to be replayed must be this user's, a store
 * that is only read may be root's, and nobody else may write it or have planted a link to it
 * (atomic_file.h). *f is always fit for answer_file_close. Nothing is changed
 * yet. ERR_FORMAT: the file is something else, or of another version; one that is empty or torn at
 * its beginning is fine if it can be written. ERR_ARG (not a regular file), ERR_IO, ERR_NOMEM. */
int answer_file_open(struct answer_file *f, const char *path, enum answer_use use, unsigned ms,
                     struct err *err);
void answer_file_close(struct answer_file *f);

/* Take the lock, waiting for at most ms milliseconds; the path may meanwhile lead to another file,
 * which is open then. ERR_IO. */
int answer_file_lock(struct answer_file *f, unsigned ms, struct err *err);
void answer_file_unlock(struct answer_file *f);
/* True when the path now leads to another store, which is open then, with none of its lines read.
 * Needs no lock. */
bool answer_file_moved(struct answer_file *f);

/* Cut off a torn tail, and write an empty store's first line. With the lock. ERR_IO. */
int answer_file_cut(struct answer_file *f, struct err *err);

/* Give the lines that have not been read to take, each without its LF; the first one of a store is
 * left out, and all that do not lie within the last `most` bytes are. A line beyond ANSWER_LINE may
 * be given in part, with an n beyond it. When take fails, its line is the next to be read; *err
 * then has path and number. ERR_IO, and what take returns. */
typedef int answer_file_take(void *arg, size_t number, const char *p, size_t n, struct err *err);
int answer_file_read(struct answer_file *f, uint64_t most, answer_file_take *take, void *arg,
                     struct err *err);
/* Return the size in bytes; 0 when it cannot be found out. */
uint64_t answer_file_size(const struct answer_file *f);

/* Append whole lines, all or none; they count as read if all before are. With the lock, after
 * answer_file_cut. ERR_IO. */
int answer_file_append(struct answer_file *f, const char *lines, size_t n, struct err *err);
/* Put a new store in the place of f (atomic_file.h): its first line, and the lines that fill
 * writes. With the lock, which success releases; then no line has been read. On error the old file
 * stays open. ERR_IO, ERR_NOMEM. */
int answer_file_replace(struct answer_file *f, void (*fill)(void *arg, FILE *to), void *arg,
                        struct err *err);

/* Give the line about a torn tail, once. False: there is none. */
bool answer_file_note(struct answer_file *f, struct err *note);

#endif
