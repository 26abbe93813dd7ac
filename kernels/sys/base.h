/* base.h - what every folder shares: status codes, error text, checked sizes, arrays that grow. */
#ifndef KERNELS_SYS_BASE_H
#define KERNELS_SYS_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Every function that can fail returns OK or one of these, and nothing else. */
enum {
    OK = 0,
    ERR_NOMEM = -1,  /* out of memory */
    ERR_IO = -2,     /* a system call failed; msg has strerror */
    ERR_FORMAT = -3, /* a file or a reply is malformed */
    ERR_ARG = -4,    /* the user asked for something impossible */
    ERR_NET = -5,    /* no usable answer from the server: retry, or stay local */
    ERR_REMOTE = -6, /* the server refused for good (401, 403, 404) */
    ERR_STOP = -7,   /* the user interrupted */
    ERR_TEXT = -8,   /* the server rejected this text (400, 413, 422); it may accept others */
};

struct err {
    char msg[512]; /* one line, no newline, for a person */
};

/* Write msg (err may be NULL) and return code, so that the caller can
 *     return err_set(err, ERR_FORMAT, "%s: bad magic", path);
 * Whatever is not harmless (text.h), such as control characters in a path or in a file's strings,
 * is replaced by '?', so that msg is always one harmless line. */
int err_set(struct err *err, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* Checked arithmetic for every number that a file or a reply states: *out = a op b. Returns false
 * and leaves *out untouched when the result does not fit. */
bool size_add(size_t *out, size_t a, size_t b);
bool size_mul(size_t *out, size_t a, size_t b);
/* Set *out to n rounded up to a multiple of align, which is a power of two. */
bool size_align(size_t *out, size_t n, size_t align);
/* True when [at, at + len) lies inside [0, total). */
bool size_within(size_t at, size_t len, size_t total);

/* Make room for element n of an array that has room for *cap, by doubling it, and return it,
 * perhaps at another place. NULL: out of memory; the array stays as it was. */
void *array_grow(void *array, size_t *cap, size_t n, size_t each);

#endif
