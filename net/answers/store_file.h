/* store_file.h - the file under store.h: header, lock, whole appends, and the new file of a
 * compaction. It knows bytes and records, no answers. Messages go to *err; store.c decides what
 * becomes of them. */
#ifndef NET_ANSWERS_STORE_FILE_H
#define NET_ANSWERS_STORE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "net/answers/prefix_key.h"
#include "net/answers/store.h"

struct err;

struct store_file {
    int fd;     /* -1 when not open */
    char *path; /* with symbolic links followed */
    bool writable;
    dev_t dev;
    ino_t ino;
};

struct store_record {
    struct prefix_key key;
    uint32_t id;
};

/* Open path, or create it; check the header and cut off a torn tail, *torn bytes. ERR_ARG,
 * ERR_FORMAT, ERR_IO, ERR_NOMEM. */
int store_file_open(struct store_file *f, const char *path, size_t *torn, struct err *err);
void store_file_close(struct store_file *f);

/* Take the lock, waiting for at most ms milliseconds. False: failed, see *err. *moved is set when
 * the path meanwhile leads to another file, which is open then. */
bool store_file_lock(struct store_file *f, unsigned ms, bool *moved, struct err *err);
void store_file_unlock(struct store_file *f);
/* True when the path now leads to another store, which is open then. Needs no lock. */
bool store_file_moved(struct store_file *f);

/* Return the number of whole records in the file; 0 when it cannot be found out. */
uint64_t store_file_records(const struct store_file *f);
/* Read up to n records from number `at` on, and return how many were read. bad[i]: the checksum
 * does not match. */
size_t store_file_read(const struct store_file *f, uint64_t at, struct store_record *out, bool *bad,
                       size_t n);
/* Append n records (at most STORE_FILE_BATCH), all or none. With the lock. A torn tail is cut off
 * before, *torn bytes. ERR_IO, ERR_FORMAT (the file has lost its header). */
int store_file_append(struct store_file *f, const struct store_record *r, size_t n, size_t *torn,
                      struct err *err);

/* Create a new file beside f for a compaction, to which store_file_append writes. With f's lock; f
 * stays as it is until store_file_replace. */
int store_file_begin(struct store_file *made, const struct store_file *f, struct err *err);
/* Sync made, rename it over f, and make it f. After an error made is removed. */
int store_file_replace(struct store_file *f, struct store_file *made, struct err *err);
/* Close and remove the new file of a compaction. */
void store_file_discard(struct store_file *made);

enum {
    STORE_FILE_BATCH = 256,
    STORE_FILE_NAMES = 100 /* names tried for the new file: STORE.PROCESS.NUMBER.new */
};

#endif
