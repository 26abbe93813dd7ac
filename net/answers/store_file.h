/* store_file.h - the file under store.h: header, lock, whole appends, the new file of a compaction.
 *
 * Knows bytes and records, no answers. Messages go to *err; store.c decides who reads them. */
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
    int fd;     /* -1: not open */
    char *path; /* without symbolic links */
    bool writable;
    dev_t dev;
    ino_t ino;
};

struct store_record {
    struct prefix_key key;
    uint32_t id;
};

/* *torn: bytes of a torn tail that were cut off. */
int store_file_open(struct store_file *f, const char *path, size_t *torn, struct err *err);
void store_file_close(struct store_file *f);

/* Take the lock, waiting for at most ms milliseconds; false with *err where that fails. *moved is
 * set where the path by now leads to another file, which is open then. */
bool store_file_lock(struct store_file *f, unsigned ms, bool *moved, struct err *err);
void store_file_unlock(struct store_file *f);
/* Without the lock: true where another file has taken the path, which is open then. */
bool store_file_moved(struct store_file *f);

/* Whole records in the file. 0 where that is not to be learnt. */
uint64_t store_file_records(const struct store_file *f);
/* Up to n records from number `at` on; returns how many. bad[i]: the checksum does not match. */
size_t store_file_read(const struct store_file *f, uint64_t at, struct store_record *out, bool *bad,
                       size_t n);
/* With the lock: append n records (at most STORE_FILE_BATCH), all or none. A torn tail is cut off
 * before, *torn its bytes. ERR_IO, ERR_FORMAT (the file has lost its header). */
int store_file_append(struct store_file *f, const struct store_record *r, size_t n, size_t *torn,
                      struct err *err);

/* Compaction, with the lock: a new file beside the old one, into which store_file_append writes,
 * and which replaces it. f stays what it was until store_file_replace. */
int store_file_begin(struct store_file *made, const struct store_file *f, struct err *err);
/* Syncs made, renames it over f, and makes it f. On error made is removed. */
int store_file_replace(struct store_file *f, struct store_file *made, struct err *err);
void store_file_discard(struct store_file *made);

enum {
    STORE_FILE_BATCH = 256,
    STORE_FILE_NAMES = 100 /* tried for the new file: STORE.PROCESS.NUMBER.new */
};

#endif
