/* draft.h - guesses which tokens come next, so that one pass can evaluate several.
 *
 * A draft is used for speed alone, so any guess will do. Two sources: lookup finds where
 * the last ids of the text occurred before, and takes what followed there; cloud takes what the
 * cloud has sent beyond the token that it was asked for. How long a draft is depends on what became
 * of the ones before it: a row that is not needed costs a part of a pass. */
#ifndef ROUTER_DECODE_DRAFT_H
#define ROUTER_DECODE_DRAFT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cloud_port;
struct err;

/* The sources, as bits. */
enum draft_kind { DRAFT_OFF = 0, DRAFT_LOOKUP = 1, DRAFT_CLOUD = 2, DRAFT_BOTH = 3 };

enum { DRAFT_MOST = 64 };    /* ids of the longest draft */
enum { DRAFT_DEFAULT = 15 }; /* the same unless the options say another: a pass of 16 rows */

/* Parse "off", "lookup", "cloud" or "both". False: it is none of these. */
bool draft_parse(enum draft_kind *out, const char *name);

struct draft_pace {      /* of one source */
    size_t length;       /* of the next draft */
    size_t misses;       /* drafts in a row of which nothing stood */
    size_t pause;        /* passes to go without one */
    size_t right, tried; /* of the cloud: ids that stood; the same and those that ended a draft */
};

struct draft {
    enum draft_kind kinds;
    size_t most;                    /* ids of a draft, at most DRAFT_MOST */
    const struct cloud_port *cloud; /* or NULL; borrowed */
    struct draft_pace pace[2];      /* of lookup; of cloud */
    /* The latest draft: its source, or NULL; ids of it that were evaluated, behind the first
     * `from`; those that became part of the text, if only until a roll-back. */
    struct draft_pace *latest;
    size_t from, made, stood;
    uint64_t pass_ns; /* time of the latest pass; 0: not known */
    uint64_t until;   /* when to go on without the draft that is coming; 0: none is awaited */
    size_t late;      /* waits in a row that did not bring it in time */
};

void draft_open(struct draft *d, enum draft_kind kinds, size_t most,
                const struct cloud_port *cloud);
/* Write at most min(room, d->most) ids that may follow ids[n] behind them, and return how many. */
size_t draft_make(struct draft *d, uint32_t *ids, size_t n, size_t room);
/* Begin, continue or end the wait for such ids, which are on the way. True: go on waiting. */
bool draft_awaits(struct draft *d, uint32_t *ids, size_t n, size_t room);
/* Learn from what became of the latest draft, if there is one, which is over. */
void draft_learn(struct draft *d);

#endif
