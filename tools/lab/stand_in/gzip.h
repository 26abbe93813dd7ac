/* gzip.h - compresses bytes (RFC 1952). */
#ifndef TOOLS_LAB_STAND_IN_GZIP_H
#define TOOLS_LAB_STAND_IN_GZIP_H

#include <stdbool.h>
#include <stddef.h>

struct buf;

/* Append the gzip of p[n] to out; equal input gives equal bytes. False: out of memory. */
bool gzip_add(struct buf *out, const char *p, size_t n);

#endif
