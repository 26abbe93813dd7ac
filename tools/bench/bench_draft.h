/* bench_draft.h - writes a text that is known beforehand through the decoding loop, with drafts.
 *
 * The model computes everything that it would for a text of its own, but the ids that follow are
 * planted: they repeat the second half of the prompt, or nothing at all. */
#ifndef TOOLS_BENCH_BENCH_DRAFT_H
#define TOOLS_BENCH_BENCH_DRAFT_H

#include <stdbool.h>
#include <stddef.h>

#include "router/decode/decode.h"

struct bench_draft;
struct engine;

/* Open what a text takes beside its session. ERR_ARG, ERR_NOMEM. */
int bench_draft_open(struct bench_draft **out, const struct engine *e, struct err *err);
void bench_draft_close(struct bench_draft *d); /* NULL is fine */

/* Write n tokens after the first `prompt` >= 2 tokens of the session, which are kept. Tokens past
 * half of the prompt repeat nothing in either case. ERR_STOP, ERR_ARG (context), ERR_NOMEM. */
int bench_draft_write(struct bench_draft *d, struct decode_stats *stats, struct session *s,
                      size_t prompt, size_t n, enum draft_kind kind, bool repeats, struct err *err);

/* Return the id of rank `draw` of 0 to 1 where, as in a text, the frequency of an id falls with
 * its rank (Zipf's law). */
uint32_t bench_draft_id(double draw, size_t vocab);

#endif
