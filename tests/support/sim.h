/* sim.h - a cloud without a network. Its answers depend only on the prefix; when they arrive
 * depends on a trace of random numbers. Its clock moves only when a call is checked or awaited.
 * Replies arrive late, out of order, twice, or are lost and sent again. It also checks that the
 * router uses it correctly. */
#ifndef TESTS_SUPPORT_SIM_H
#define TESTS_SUPPORT_SIM_H

#include "model/batch_internal.h"
#include "net/cloud_port.h"
#include "tests/support/tiny.h"

struct sampler;

/* True when the logits of the last token have been computed. */
static inline bool has_logits(const struct session *s)
{
    return s->pass == s->batch->pass && s->kept && batch_logits_at(s->batch, s->row + s->kept - 1);
}

enum { SIM_CALLS = 16, SIM_PACKETS = 256, SIM_MEMO = 8, SIM_LOG = 2048 };

struct sim_call {
    uint64_t number; /* 0: this slot is free */
    uint64_t key;    /* hash of the prefix */
    size_t n, tokens;
    uint32_t ids[2 * TINY_CONTEXT];
    bool arrived, told, heard; /* reply has come; done said so; take returned it */
    int rc;
    uint32_t id;
    struct sim *sim;
};

struct sim_truth { /* what the cloud answers; shares are in percent of all prefixes */
    uint64_t seed;
    unsigned agree; /* the answer is the edge's own */
    unsigned odd;   /* of the rest: end-of-text or an invalid id */
    unsigned fault, refused, unfit, store;
    size_t tokens; /* most tokens of one reply */
    size_t room;   /* size of the memo, at most SIM_MEMO; the oldest answer is dropped */
};

struct sim {
    struct sim_truth truth;
    uint64_t trace; /* seed of the network's behaviour */
    uint64_t delay; /* the longest delay of a reply */
    const struct session *session;
    bool drafts;          /* tokens may be evaluated early, so the session does not show progress */
    bool late_head;       /* the head must be unread when the newest prefix is requested, unless an
                             earlier request has asked for its token, too */
    struct session *edge; /* a second copy of model and sampler, for what the edge would say */
    struct sampler *sampler;
    size_t size;
    uint32_t secret;         /* no request may have this id; 0: none is kept */
    const _Atomic int *stop; /* nonzero: take returns ERR_STOP */

    uint64_t clock, draws, number;
    struct sim_call calls[SIM_CALLS];
    struct {
        uint64_t due, number;
    } packets[SIM_PACKETS];
    size_t live, npackets, last_commit;
    size_t longest, reach; /* longest prefix requested since the last commit; and before it */
    struct {
        uint64_t key, due; /* when the reply has got this far */
        uint32_t id;
    } memo[SIM_MEMO];
    size_t nmemo;
    uint64_t asked[SIM_LOG], committed[SIM_LOG]; /* hashes of key and token count, in order */
    struct {
        uint64_t key; /* of its prefix */
        size_t n, tokens;
    } reaches[SIM_LOG]; /* [nasked]: what each request asked for */
    size_t nasked, ncommitted, ndropped, nstale, retries;
    uint64_t begun;           /* the pass before this text */
    size_t unread;            /* requests for which late_head was checked */
    size_t charged, comes;    /* tokens of committed calls; times a look found one on its way */
    size_t idle, seen_length; /* checks of a call without any work in between */
    int seen_logits;
    size_t looked; /* 1 + length of the session at the last look, without other questions since */
};

/* Make s usable as a cloud port. */
void sim_port(struct cloud_port *out, struct sim *s);
/* Begin a new text: commits start again. */
void sim_text(struct sim *s);

#endif
