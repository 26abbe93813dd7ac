/* decode.h - the loop: the small model writes, the router decides, the cloud is asked.
 *
 * In step: each routed token is asked for and waited for. Ahead: while the cloud is asked the small
 * model goes on behind its own guess, with up to `ahead` requests out. What the cloud confirms
 * stands; else the text goes back to the place, and what came behind it was never shown. Both write
 * the same text, token for token, for a cloud whose answer depends on the prefix alone: scores and
 * edge tokens depend on the prefix alone as well, bit for bit, and what is shown, counted against a
 * limit or fed to the breaker is so in the order of the text. */
#ifndef ROUTER_DECODE_H
#define ROUTER_DECODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/session.h"
#include "net/http/traffic.h"
#include "router/gate.h"
#include "router/policy.h"

struct err;
struct router;
struct sampler;
struct cloud_port;
struct tokenizer;

enum source { SOURCE_EDGE, SOURCE_CLOUD, SOURCE_FALLBACK };
enum finish { FINISH_EOS, FINISH_LENGTH, FINISH_STOP, FINISH_ERROR };

const char *source_name(enum source s); /* "edge", "cloud", "fallback" */
const char *finish_name(enum finish f); /* "eos", "length", "stop", "error" */

struct decode_token {
    size_t pos; /* 0 for the first token of the answer */
    uint32_t id;
    enum source source;
    float score;   /* raw, 0..1; NaN where nothing is measured: policies always and never */
    bool has_edge; /* the head was read; ahead also for a guess */
    uint32_t edge_id;
    double ms;               /* since the token before (the first: since the start) */
    bool eog;                /* ends the text; no bytes to show */
    enum gate_reason reason; /* fallback: why; else GATE_OPEN */
    const char *fault;       /* the same as one line, or NULL */
};

struct decode_options {
    enum policy policy;
    float threshold;
    size_t ahead;        /* requests out at once; 0: in step */
    struct gate *gate;   /* limits and breaker, kept from text to text; NULL: no limits */
    bool cloud_required; /* a fault ends the run with its error; limits do not */
    size_t max_tokens;
    uint64_t seed;            /* of the random policy */
    uint64_t step_ns;         /* an evaluation lasts at least this long: a slower machine, for
                                 experiments; 0: as long as it takes */
    const char *const *stops; /* stop strings, NULL-ended, or NULL */
    const _Atomic int *stop;  /* interrupted by the user, or NULL */
    /* Called while the prompt is read: so many of its tokens are done. May be NULL. */
    void (*reading)(void *arg, size_t done, size_t all);
    /* Called for each token in order; false ends the text (finish "stop"). May be NULL. */
    bool (*emit)(void *arg, const struct decode_token *t);
    void *arg;
};

struct decode_stats {
    size_t tokens, cloud, fallback, prompt_tokens;
    double ttft_ms, total_ms, router_ms, edge_ms;
    double cloud_ms; /* spent waiting */
    /* The ledger: calls = committed (the text goes on with their answer) + failed (with their
     * fault, so the small model's token stands) + wasted (made ahead, and not needed). */
    size_t calls, committed, failed, wasted, memo_hits, store_hits;
    size_t reasons[GATE_REASONS]; /* of fallback */
    struct traffic traffic;       /* of wasted calls too */
    uint64_t cost;                /* of committed and failed calls, as caps.h counts it */
    enum finish finish;
};

/* Write an answer after prompt[n]. s is rewound to what it shares with the prompt. router may be
 * NULL unless the policy is mlp; cloud may be NULL: a token that should be asked for then stays the
 * edge's, marked fallback, unless the policy is never. ERR_REMOTE from the cloud switches it off
 * for as long as the gate lives, ERR_TEXT for the rest of this text. Returns OK, ERR_STOP
 * (interrupted), ERR_NET, ERR_REMOTE, ERR_TEXT (only if required), ERR_ARG (prompt too long). stats
 * are filled in any case. */
int decode_run(struct decode_stats *stats, struct session *s, const struct tokenizer *tok,
               struct sampler *sampler, const struct router *router, const struct cloud_port *cloud,
               const uint32_t *prompt, size_t n, const struct decode_options *o, struct err *err);

#endif
