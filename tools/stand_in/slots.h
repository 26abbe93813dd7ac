/* slots.h - the sessions of the stand-in's engine, and the choice of one for a prompt. Not locked:
 * the engine holds its lock. */
#ifndef TOOLS_STAND_IN_SLOTS_H
#define TOOLS_STAND_IN_SLOTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/session.h"

enum { SLOTS_MAX = 64 };

struct stand_in_job;

struct stand_in_slot {
    struct session *session; /* NULL until first used */
    uint64_t used;           /* time of last use, in uses of any slot */
    size_t known;            /* `next` is the token after the first `known` tokens; 0: none */
    uint32_t next;
    /* The question that has the slot, whose session then belongs to a worker; NULL: free. */
    struct stand_in_job *job;
    const uint32_t *ids; /* [n], the question's tokens so far; left: how many it may add */
    size_t n, left;
};

struct stand_in_slots {
    struct batch *batch; /* of all sessions; NULL: an oracle, so there are none */
    size_t context, n;   /* n: limit on the number of slots */
    enum kvcache kv;
    uint64_t clock;
    struct stand_in_slot slot[SLOTS_MAX];
};

/* Open the first session. n: number of slots; 0: as many as fit into 512 MiB, 4 to SLOTS_MAX. */
int stand_in_slots_open(struct stand_in_slots *s, size_t n, struct err *err);
void stand_in_slots_close(struct stand_in_slots *s);

/* Return a free slot for prompt[n], or NULL. NULL means that none is free, that the wanted one is
 * busy, or that one that will soon be free shares so much that waiting is cheaper than
 * computing. */
struct stand_in_slot *stand_in_slots_choose(struct stand_in_slots *s, const uint32_t *prompt,
                                            size_t n, long wanted);
/* Return the number of tokens of prompt[n] that need not be computed again, and rewind the session
 * to them. The last token is computed again unless the one after it is known. */
size_t stand_in_slots_enter(struct stand_in_slot *slot, const uint32_t *prompt, size_t n);

#endif
