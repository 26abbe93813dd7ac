/* view.h - the session as the decoding loop sees it: a text of some length, and what is known about
 * the tokens after its prefixes.
 *
 * A pass evaluates some ids and leaves a row for each: the hidden state from which the token after
 * it is computed. Rows belong to prefixes of the session's ids, of which the text may be a part:
 * the rest is a draft, which was evaluated because the text may come to say the same. Then no
 * evaluation is needed for it, and else the session is rewound. */
#ifndef ROUTER_DECODE_VIEW_H
#define ROUTER_DECODE_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { VIEW_ROWS = 65 }; /* most rows of a pass that are kept: a token and a draft */

struct view_row { /* what has been computed from a row */
    bool picked, scored;
    uint32_t id;  /* the local model's own token; valid if picked */
    float score;  /* the router's, or that of the logits; valid if scored */
    float *extra; /* what a router reads besides (router_look), valid if picked; NULL */
};

struct view {
    size_t length;   /* ids of the text */
    size_t reached;  /* most ids that the text has had since the latest pass */
    size_t base;     /* and how many it had then; those after them were a draft */
    size_t pass;     /* length of the prefix of the latest pass's first row */
    size_t first, n; /* prefixes of first to first + n - 1 ids have rows */
    bool held;       /* hidden states and logits of the rows can still be had */
    float *extra;    /* that of rows; NULL: the router reads no more than hidden states */
    struct view_row rows[VIEW_ROWS];
};

#endif
