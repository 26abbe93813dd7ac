/* decode.h - the decoding loop: the local model writes, the router decides, the cloud is asked.
 *
 * In step, the loop waits for each routed token. Ahead, the local model continues after its own
 * guess while the cloud is asked, up to the next token that needs a call. A guess that the cloud
 * confirms stands; otherwise the text is rolled back to it, and the tokens after it are never
 * shown. Both ways write the same text, token for token, if the cloud's answer depends on the
 * prefix alone. Scores and local tokens depend on the prefix alone, bit for bit, and tokens are
 * shown, counted against limits and fed to the breaker in the order of the text. */
#ifndef ROUTER_DECODE_DECODE_H
#define ROUTER_DECODE_DECODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/session.h"
#include "net/http/traffic.h"
#include "router/decode/draft.h"
#include "router/decode/figures.h"
#include "router/gate.h"
#include "router/policy_kind.h"

struct err;
struct router;
struct sampler;
struct cloud_port;
struct private_filter;
struct tokenizer;

enum source { SOURCE_EDGE, SOURCE_CLOUD, SOURCE_FALLBACK };
enum finish { FINISH_EOS, FINISH_LENGTH, FINISH_STOP, FINISH_ERROR };

const char *source_name(enum source s); /* "edge", "cloud", "fallback" */
const char *finish_name(enum finish f); /* "eos", "length", "stop", "error" */

struct decode_token {
    size_t pos; /* 0 for the first token of the answer */
    uint32_t id;
    enum source source;
    float score; /* raw, 0..1; NaN for policies that measure nothing (policy_scores) */
    /* edge_id is set: for the local model's own tokens, for all tokens with `edges`, with a
     * policy that reads the head, and ahead for those that took a call of their own. It does
     * not depend on when an answer came, or on drafts. */
    bool has_edge;
    uint32_t edge_id;
    double ms;               /* since the previous token; the first: since the start */
    bool eog;                /* ends the text, and has no bytes to show */
    enum gate_reason reason; /* why it is a fallback; else GATE_OPEN */
    const char *fault;       /* the same reason as one line, or NULL */
};

enum decode_event_kind {
    DECODE_EVALUATED, /* n ids after the first `at`, in one pass; the last ones may be a draft */
    DECODE_ASKED,     /* a call was made for n tokens after the first `at` ids */
    DECODE_ANSWERED,  /* its turn came, and its answer or fault was taken. A call that is dropped is
                       * never answered. */
    DECODE_ROLLED_BACK /* n tokens after the first `at` ids were not decided yet and are gone */
};

struct decode_event {
    enum decode_event_kind kind;
    size_t at, n;
    enum gate_reason reason; /* DECODE_ANSWERED: GATE_OPEN or why it failed */
    uint64_t ns;             /* when, as os_now_ns says it */
    uint64_t took_ns;        /* DECODE_EVALUATED, DECODE_ANSWERED: since it was wanted or asked */
    /* DECODE_ANSWERED: by the text's calls, since it was asked. Where a call brings more than one
     * token, the rest of an earlier reply counts, too. */
    struct traffic moved;
};

struct decode_options {
    enum policy policy;
    float threshold;
    float tie;          /* part of the tokens that score the threshold itself which are routed */
    size_t call_tokens; /* that a call asks for */
    bool ahead;         /* write on behind a guess while the cloud is asked; false: in step */
    struct gate *gate;  /* limits and breaker of all texts; NULL: no limits */
    /* A fault ends the run with its error; a limit does not. The breaker holds back no call, as to
     * fail unasked would be no better. */
    bool cloud_required;
    bool cloud_alone; /* with cloud_required: a limit or a private pattern ends the run, too */
    bool edges;       /* edge_id is set in all tokens: the head is also read for the cloud's */
    size_t max_tokens;
    const char *place; /* of policy position (policy.h) */
    /* Most tokens of the text that may be the cloud's, counted as they are decided: this times all,
     * and two more. Others are held back as if a limit were reached. 0: all may. */
    float max_routed;
    uint64_t seed;    /* seed of the random policy */
    uint64_t step_ns; /* least time of an evaluation, to simulate a slower machine; 0: none */
    /* Evaluate tokens that may come next together with the newest one. The text, its scores and its
     * calls are the same for all of these. */
    enum draft_kind drafts;
    size_t draft_max;         /* most ids of a draft; 0: no drafts */
    const char *const *stops; /* NULL-terminated stop strings, or NULL */
    bool ignore_eos;          /* end-of-text is a token like any other */
    /* 1 + most tokens that the cloud may write in this text, and that may be
     * requested for it; 0: the gate's limits. What is known without a call counts, so
     * that the text is the same whatever other texts have asked; so it is with patterns, which hold
     * back such tokens, too. */
    uint64_t cloud_limit;
    const struct private_filter *patterns; /* of this text, besides the gate's; or NULL */
    const _Atomic int *stop;               /* nonzero: interrupted; may be NULL */
    /* Called while the prompt is read, with the number of its tokens that are done. A text that the
     * cloud writes alone, in step, reads none. May be NULL. */
    void (*reading)(void *arg, size_t done, size_t all);
    /* Called for each token in order; false ends the text with FINISH_STOP. May be NULL. */
    bool (*emit)(void *arg, const struct decode_token *t);
    /* Called for each pass, request, answer and roll-back, in the order of their times; must not
     * call the stepper. May be NULL. */
    void (*event)(void *arg, const struct decode_event *e);
    void *arg;
};

struct decode_stats {
#define X(name) size_t name;
    FIGURES_COUNTS(X)
#undef X
#define X(name) double name;
    FIGURES_TIMES(X)
#undef X
    size_t reasons[GATE_REASONS]; /* counts of fallback tokens */
    struct traffic traffic;       /* of its calls until its end */
    enum finish finish;
};

/* Add what another text has counted. */
void decode_stats_add(struct decode_stats *sum, const struct decode_stats *one);

/* Write an answer after prompt[n]. s follows the text where something is computed from it, and
 * holds no more than what was shown in the end. router may be NULL unless the policy reads one
 * (policy_reads_router). cloud may be NULL: routed tokens then stay the local model's, marked as
 * fallback. ERR_REMOTE from the cloud switches it off for as long as the gate lives, ERR_TEXT for
 * the rest of this text. Returns OK, ERR_STOP (interrupted), ERR_NET, ERR_REMOTE, ERR_TEXT (only if
 * the cloud is required), ERR_ARG (prompt too long). stats are filled in any case. */
int decode_run(struct decode_stats *stats, struct session *s, const struct tokenizer *tok,
               struct sampler *sampler, const struct router *router, const struct cloud_port *cloud,
               const uint32_t *prompt, size_t n, const struct decode_options *o, struct err *err);

#endif
