/* draft.h - guesses which tokens come next, so that one pass can evaluate several.
 *
 * A draft is used for speed alone (view.h), so any guess will do. Two sources: lookup finds where
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
    uint32_t *ids;                  /* [cap]: the text, and what has been drafted after it */
    size_t cap;
    struct draft_pace pace[2]; /* of lookup; of cloud */
    struct draft_pace *latest; /* whose draft was made, or NULL */
};

/* Make room for texts of up to `context` ids. ERR_NOMEM. */
int draft_open(struct draft *d, enum draft_kind kinds, size_t most, const struct cloud_port *cloud,
               size_t context, struct err *err);
void draft_close(struct draft *d); /* all zero is fine */
/* Write at most min(room, d->most) ids that may follow text[n] and then id, and return how many. */
size_t draft_make(struct draft *d, const uint32_t *text, size_t n, uint32_t id, size_t room,
                  uint32_t *out);
/* Return how many ids that draft_make would take the cloud has sent. *more: further ones are on the
 * way. */
size_t draft_sent(struct draft *d, const uint32_t *text, size_t n, uint32_t id, size_t room,
                  bool *more);
/* Say what became of the latest draft: `made` of its ids were evaluated, and `stood` became part of
 * the text. */
void draft_learn(struct draft *d, size_t made, size_t stood);

#endif
