/* mizzle_internal.h - reads and writes the structs of the public interface, whose callers may have
 * been built with older or newer headers. */
#ifndef ROUTER_MIZZLE_INTERNAL_H
#define ROUTER_MIZZLE_INTERNAL_H

#include "router/mizzle.h"

struct decode_stats;
struct err;

/* Set *out to the defaults and copy the fields of *in that the caller's struct has. ERR_ARG if in
 * is NULL, if its size is invalid, or if fields that this library does not know are not zero. */
int mizzle_read_options(struct mizzle_options *out, const struct mizzle_options *in,
                        struct err *err);
int mizzle_read_prompt(struct mizzle_prompt *out, const struct mizzle_prompt *in, struct err *err);

/* Write as many fields as the caller's struct has room for; NULL is fine. code is one of ERR_* or
 * -MIZZLE_BUSY. A struct whose size is invalid is not written; stats must have been checked with
 * mizzle_has_room. */
void mizzle_write_error(struct mizzle_error *out, int code, const char *line);
void mizzle_write_stats(struct mizzle_stats *out, const struct decode_stats *s, double start_ms);
/* True if stats is NULL or has a valid size. */
bool mizzle_has_room(const struct mizzle_stats *stats);

#endif
