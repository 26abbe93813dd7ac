/* slots.h - the sessions of the stand-in's engine, and which of them a prompt goes to. Not
 * locked: the engine does that. */
#ifndef TOOLS_STAND_IN_SLOTS_H
#define TOOLS_STAND_IN_SLOTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/session.h"

enum { SLOTS_MAX = 64 };

struct stand_in_job;

struct stand_in_slot {
    struct session *session; /* NULL until first needed */
    uint64_t used;           /* when, in uses of any slot */
    /* The question that has the slot (its session is then not to be looked at); NULL: free. */
    struct stand_in_job *job;
    const uint32_t *ids; /* [n] its tokens so far; left: how many more it may get */
    size_t n, left;
};

struct stand_in_slots {
    const struct model *model; /* NULL: no sessions, nothing is kept */
    struct pool *pool;
    size_t context, n; /* n: how many there may be */
    enum kvcache kv;
    uint64_t clock;
    struct stand_in_slot slot[SLOTS_MAX];
};

/* Opens the first one; n 0: as many as fit into 512 MiB, 4 to SLOTS_MAX. */
int stand_in_slots_open(struct stand_in_slots *s, size_t n, struct err *err);
void stand_in_slots_close(struct stand_in_slots *s);

/* The free slot for prompt[n], or NULL: none is free, or the one that is wanted or will soon be
 * free shares so much that waiting costs less than computing. */
struct stand_in_slot *stand_in_slots_choose(struct stand_in_slots *s, const uint32_t *prompt,
                                            size_t n, long wanted);
/* How many tokens of prompt[n] the slot need not compute again; rewinds its session to them. The
 * last token is computed again unless its logits are still there. */
size_t stand_in_slots_enter(struct stand_in_slot *slot, const uint32_t *prompt, size_t n);

#endif
