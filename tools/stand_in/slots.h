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
    struct stand_in_job *job; /* the question that has the slot; NULL: free */
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

/* Return a free slot for prompt[n], or NULL if none is free or the wanted one is busy. */
struct stand_in_slot *stand_in_slots_choose(struct stand_in_slots *s, const uint32_t *prompt,
                                            size_t n, long wanted);
/* Make the slot's session hold the longest prefix of prompt[n] that any session has, a busy one,
 * too, and return its length. The last token is computed again unless the one after it is known.
 * For the thread that computes. */
size_t stand_in_slots_enter(const struct stand_in_slots *s, struct stand_in_slot *slot,
                            const uint32_t *prompt, size_t n);

#endif
