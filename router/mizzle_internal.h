/* mizzle_internal.h - structs of the public interface as they arrive, from older and newer headers.
 */
#ifndef ROUTER_MIZZLE_INTERNAL_H
#define ROUTER_MIZZLE_INTERNAL_H

#include "router/mizzle.h"

struct decode_stats;
struct decode_token;
struct err;

/* Copy what the caller's struct holds into *out, which holds the defaults. ERR_ARG where in is
 * NULL, its size makes no sense, or it asks for what this library does not know. */
int mizzle_read_options(struct mizzle_options *out, const struct mizzle_options *in,
                        struct err *err);
int mizzle_read_prompt(struct mizzle_prompt *out, const struct mizzle_prompt *in, struct err *err);

/* Write as much as the caller's struct has room for; code is one of ERR_* or -MIZZLE_BUSY. Both
 * take NULL. */
void mizzle_write_error(struct mizzle_error *out, int code, const char *line);
void mizzle_write_stats(struct mizzle_stats *out, const struct decode_stats *s, double start_ms);
/* False where stats are given, but without a size that makes sense. */
bool mizzle_has_room(const struct mizzle_stats *stats);

#endif
