/* sim.h - a cloud without a network: answers depend on the prefix alone, when they come depends on
 * a trace of random numbers. Its clock moves when it is looked at or waited for, never by itself.
 * Replies are late, out of order, lost and sent again, and come twice. It checks how it is used. */
#ifndef TESTS_SUPPORT_SIM_H
#define TESTS_SUPPORT_SIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/session.h"
#include "router/cloud_port.h"
#include "tests/support/tiny.h"

struct sampler;

enum { SIM_CALLS = 16, SIM_PACKETS = 256, SIM_MEMO = 8, SIM_LOG = 2048 };

struct sim_call {
    uint64_t number; /* 0: free */
    uint64_t key;    /* of the prefix */
    size_t n, tokens;
    uint32_t ids[TINY_CONTEXT];
    bool arrived, told, heard;
    int rc;
    uint32_t id;
    struct sim *sim;
};

struct sim_truth { /* shares in percent */
    uint64_t seed;
    unsigned agree; /* says what the edge says */
    unsigned odd;   /* of the rest: end-of-text or an id that is none */
    unsigned fault, refused, unfit, store;
    size_t tokens; /* of one reply at most */
    size_t room;   /* of the memo, at most SIM_MEMO; the oldest answer goes first */
};

struct sim {
    struct sim_truth truth;
    uint64_t trace; /* seed of what the network does */
    uint64_t delay; /* the longest */
    size_t window;  /* calls that may be out */
    const struct session *session;
    bool late_head;       /* the head must not have been read when the newest token is asked for */
    struct session *edge; /* the same model and sampler once more: what the edge would say */
    struct sampler *sampler;
    size_t size;
    const _Atomic int *stop; /* take gives up */

    uint64_t clock, draws, number;
    struct sim_call calls[SIM_CALLS];
    struct {
        uint64_t due, number;
    } packets[SIM_PACKETS];
    size_t live, npackets, most, last_commit;
    size_t longest, reach; /* prefix asked for since the last commit; and before, since another */
    struct {
        uint64_t key, due; /* when the reply that holds it has come so far */
        uint32_t id;
    } memo[SIM_MEMO];
    size_t nmemo;
    uint64_t asked[SIM_LOG], committed[SIM_LOG]; /* keys and numbers of tokens, in order */
    size_t nasked, ncommitted, ndropped, nstale, retries;
    size_t charged, comes;    /* tokens of committed calls; looks at one that is on its way */
    size_t idle, seen_length; /* looks at the call without any work between them */
    int seen_logits;
};

void sim_teller(struct cloud_port *out, struct sim *s);
/* A new text: commits begin anew. */
void sim_text(struct sim *s);

#endif
