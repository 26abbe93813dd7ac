#include "router/decode.h"

#include <stdlib.h>

#include "kernels/base.h"
#include "kernels/os.h"
#include "model/model.h"
#include "model/sample.h"
#include "model/tokenizer.h"
#include "net/cloud.h"
#include "router/router.h"
#include "router/stops.h"

struct decode {
    struct decode_stats *stats;
    struct session *session;
    const struct tokenizer *tok;
    struct sampler *sampler;
    const struct router *router;
    struct cloud *cloud; /* NULL: none, or switched off by a refusal */
    const struct kernels *kernels;
    const struct decode_options *o;
    struct err *err;
    size_t size;    /* ids in use */
    float *scratch; /* the router's */
    struct stops stops;
    struct err fault; /* why the cloud did not answer */
};

const char *source_name(enum source s)
{
    static const char *const names[] = { "edge", "cloud", "fallback" };
    return names[s];
}

const char *finish_name(enum finish f)
{
    static const char *const names[] = { "eos", "length", "stop", "error" };
    return names[f];
}

/* Milliseconds since *since, which becomes now. */
static double lap(uint64_t *since)
{
    uint64_t now = os_now_ns();
    double ms = (double)(now - *since) / 1e6;
    *since = now;
    return ms;
}

/* The edge's own token; reads the head unless that is done. */
static void edge_pick(struct decode *d, struct decode_token *t)
{
    uint64_t clock = os_now_ns();
    t->edge_id = sampler_pick(d->sampler, session_logits(d->session, 0), session_ids(d->session),
                              session_length(d->session));
    t->has_edge = true;
    d->stats->edge_ms += lap(&clock);
}

/* The score, and whether the token is to be asked for. The head is read by those policies alone
 * that decide by it. */
static bool wants_cloud(struct decode *d, struct decode_token *t)
{
    const struct decode_options *o = d->o;
    uint64_t clock = os_now_ns();
    if (o->policy == POLICY_NEVER || o->policy == POLICY_ALWAYS) {
        t->score = o->policy == POLICY_NEVER;
        return o->policy == POLICY_ALWAYS;
    }
    if (o->policy == POLICY_MLP) {
        const float *hidden = session_hidden(d->session, router_tap(d->router), 0);
        t->score = router_score(d->router, hidden, d->scratch);
    } else if (o->policy == POLICY_RANDOM) {
        t->score = policy_score_random(o->seed, session_length(d->session));
    } else {
        edge_pick(d, t); /* its time is the edge's */
        lap(&clock);
        t->score =
            policy_score_logits(o->policy, session_logits(d->session, 0), d->size, d->kernels);
    }
    d->stats->router_ms += lap(&clock);
    return t->score < o->threshold;
}

/* Ask the cloud. OK with t->id set, or why not: ERR_NET and ERR_REMOTE with d->fault. */
static int cloud_pick(struct decode *d, struct decode_token *t)
{
    uint64_t clock = os_now_ns();
    if (!d->cloud) {
        if (!d->fault.msg[0])
            err_set(&d->fault, ERR_NET, "there is no cloud");
        return ERR_NET;
    }
    int rc = cloud_next(d->cloud, session_ids(d->session), session_length(d->session), &t->id,
                        &d->fault);
    d->stats->cloud_ms += lap(&clock);
    if (rc == OK && t->id >= d->size)
        rc = err_set(&d->fault, ERR_NET, "cloud: token id: expected below %zu, found %u", d->size,
                     (unsigned)t->id);
    if (rc == ERR_REMOTE)
        d->cloud = NULL;
    return rc;
}

/* Who writes the next token, and what it is. */
static int choose(struct decode *d, struct decode_token *t)
{
    if (wants_cloud(d, t)) {
        int rc = cloud_pick(d, t);
        if (rc == OK) {
            t->source = SOURCE_CLOUD;
            d->stats->cloud++;
            return OK;
        }
        if ((rc != ERR_NET && rc != ERR_REMOTE) || d->o->cloud_required)
            return err_set(d->err, rc, "%s", d->fault.msg);
        t->source = SOURCE_FALLBACK;
        t->fault = d->fault.msg;
        d->stats->fallback++;
    }
    if (!t->has_edge)
        edge_pick(d, t);
    t->id = t->edge_id;
    return OK;
}

/* True where the text now ends with a stop string. */
static bool stopped(struct decode *d, uint32_t id)
{
    size_t n, at, length;
    const char *bytes = tokenizer_bytes(d->tok, id, &n);
    return bytes && !tokenizer_is_control(d->tok, id) &&
           stops_feed(&d->stops, bytes, n, &at, &length);
}

static int evaluate(struct decode *d, const uint32_t *ids, size_t n)
{
    uint64_t clock = os_now_ns();
    int rc = session_eval(d->session, ids, n, d->o->stop, d->err);
    d->stats->edge_ms += lap(&clock);
    return rc;
}

/* The tokens of the answer, after the prompt has been evaluated. */
static int write_answer(struct decode *d, uint64_t start)
{
    struct decode_stats *stats = d->stats;
    const struct decode_options *o = d->o;
    uint64_t last = start;
    while (stats->tokens < o->max_tokens) {
        struct decode_token t = { .pos = stats->tokens, .source = SOURCE_EDGE };
        if (o->stop && *o->stop)
            return err_set(d->err, ERR_STOP, "interrupted");
        int rc = choose(d, &t);
        if (rc != OK)
            return rc;
        t.eog = tokenizer_is_eog(d->tok, t.id);
        t.ms = lap(&last);
        if (stats->tokens++ == 0)
            stats->ttft_ms = t.ms;
        bool goes_on = !o->emit || o->emit(o->arg, &t);
        stats->finish = t.eog ? FINISH_EOS : FINISH_STOP;
        if (t.eog || stopped(d, t.id) || !goes_on)
            return OK;
        stats->finish = FINISH_LENGTH;
        if (session_length(d->session) == session_context(d->session))
            return OK;
        rc = stats->tokens < o->max_tokens ? evaluate(d, &t.id, 1) : OK;
        if (rc != OK)
            return rc;
    }
    stats->finish = FINISH_LENGTH;
    return OK;
}

/* Evaluate what of the prompt the session does not hold; at least its last token. */
static int read_prompt(struct decode *d, const uint32_t *prompt, size_t n)
{
    size_t shared = 0, length = session_length(d->session);
    const uint32_t *have = session_ids(d->session);
    if (n == 0)
        return err_set(d->err, ERR_ARG, "the prompt is empty");
    if (n > session_context(d->session))
        return err_set(d->err, ERR_ARG, "prompt: expected at most %zu tokens, found %zu",
                       session_context(d->session), n);
    while (shared < length && shared < n - 1 && have[shared] == prompt[shared])
        shared++;
    session_rewind(d->session, shared);
    return evaluate(d, prompt + shared, n - shared);
}

int decode_run(struct decode_stats *stats, struct session *s, const struct tokenizer *tok,
               struct sampler *sampler, const struct router *router, struct cloud *cloud,
               const uint32_t *prompt, size_t n, const struct decode_options *o, struct err *err)
{
    *stats = (struct decode_stats){ .prompt_tokens = n, .finish = FINISH_ERROR };
    if (o->policy == POLICY_MLP && !router)
        return err_set(err, ERR_ARG, "policy mlp needs a router");
    struct decode d = { .stats = stats,
                        .session = s,
                        .tok = tok,
                        .sampler = sampler,
                        .router = router,
                        .cloud = cloud,
                        .kernels = model_kernels(session_model(s)),
                        .o = o,
                        .err = err,
                        .size = tokenizer_size(tok) };
    int rc = stops_begin(&d.stops, o->stops, err);
    if (rc != OK)
        return rc;
    if (o->policy == POLICY_MLP) {
        d.scratch = malloc(router_scratch(router) * sizeof(float));
        if (!d.scratch)
            return err_set(err, ERR_NOMEM, "decode: out of memory");
    }
    uint64_t start = os_now_ns(), clock = start;
    struct cloud_ledger before = { 0 };
    if (cloud)
        before = *cloud_ledger(cloud);
    rc = read_prompt(&d, prompt, n);
    if (rc == OK)
        rc = write_answer(&d, start);
    if (rc != OK)
        stats->finish = FINISH_ERROR;
    if (cloud) {
        stats->bytes_up = cloud_ledger(cloud)->bytes_up - before.bytes_up;
        stats->bytes_down = cloud_ledger(cloud)->bytes_down - before.bytes_down;
    }
    stats->total_ms = lap(&clock);
    free(d.scratch);
    return rc;
}
