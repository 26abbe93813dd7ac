/* tuning.h - how the products of each type of weights are walked (kernels/tune.h).
 *
 * What memory likes cannot be known beforehand, so the first passes of one row try several ways,
 * for each type by itself: the pass's products are timed by the processor time of all threads, and
 * the way with the least time of TUNING_TURNS passes stays. It ends by itself after TUNING_PASSES
 * passes, changes no bit, and is left out where the user has fixed a way (kernels_pick). */
#ifndef MODEL_TUNING_H
#define MODEL_TUNING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/panels.h"
#include "kernels/tune.h"

struct kernels;

enum {
    TUNING_WAYS = 7,  /* tried for each slot */
    TUNING_TURNS = 4, /* passes that try the same way */
    TUNING_PASSES = TUNING_WAYS * TUNING_TURNS,
    TUNING_HEAD = P_TYPES, /* slot of the output head; the others are those of enum ptype */
    TUNING_SLOTS
};

/* The matrices of a type, or the output head. */
struct tuning_slot {
    struct tune now;              /* in force */
    struct tune way[TUNING_WAYS]; /* [0] is the processor family's */
    uint64_t least[TUNING_WAYS];  /* ns of processor time of the best pass; 0: not tried */
    _Atomic uint64_t ns;          /* of this pass, so far */
    size_t passes;                /* that were timed; TUNING_PASSES: the choice is made */
};

struct tuning {
    struct tuning_slot slot[TUNING_SLOTS];
    bool fixed; /* nothing is tried */
};

/* Begin with the ways of k; `head` is the type of the output head. */
void tuning_open(struct tuning *t, const struct kernels *k, enum ptype head);

/* Return the time at which a product of a slot begins, for tuning_ends; 0 where it is not timed,
 * because the pass has another number of rows than one or the choice is made. Several threads may
 * time products of one slot at once. */
uint64_t tuning_begins(const struct tuning *t, size_t slot, size_t rows);
void tuning_ends(struct tuning *t, size_t slot, uint64_t began);

/* End a pass of so many rows, of the slots [first, last), when no product runs: remember the time
 * of one row and go on to the next way, or choose. Slots without a timed product are left alone. */
void tuning_pass(struct tuning *t, size_t first, size_t last, size_t rows);

/* True when the way of this slot is chosen. */
bool tuning_chosen(const struct tuning_slot *s);

#endif
