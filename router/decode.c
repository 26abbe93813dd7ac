#include "router/decode_internal.h"

#include <math.h>
#include <stdlib.h>
#include <time.h>

#include "kernels/sys/os.h"
#include "model/model.h"
#include "model/sample.h"
#include "model/text/tokenizer.h"
#include "router/private.h"
#include "router/router.h"
#include "router/cloud_port.h"

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

/* Pick the local model's own token, from the head unless that has been read. */
static void edge_pick(struct decode *d, struct decode_token *t)
{
    uint64_t clock = os_now_ns();
    t->edge_id = sampler_pick(d->sampler, session_logits(d->session, 0), session_ids(d->session),
                              session_length(d->session));
    t->has_edge = true;
    d->stats->edge_ms += decode_lap(&clock);
}

/* Score the token, and say whether it goes to the cloud. Only policies that need the head read
 * it. For the oracle, the score is p1 until the cloud has answered. */
static bool wants_cloud(struct decode *d, struct decode_token *t)
{
    const struct decode_options *o = d->o;
    enum policy p = o->policy == POLICY_ORACLE ? POLICY_MAX_PROB : o->policy;
    uint64_t clock = os_now_ns();
    if (o->policy == POLICY_NEVER || o->policy == POLICY_ALWAYS) {
        t->score = NAN;
        return o->policy == POLICY_ALWAYS;
    }
    if (o->policy == POLICY_MLP) {
        const float *hidden = session_hidden(d->session, router_tap(d->router), 0);
        t->score = router_score(d->router, hidden, d->scratch);
    } else if (o->policy == POLICY_CONTEXT) {
        t->score = router_score_ids(d->router, session_ids(d->session), session_length(d->session));
    } else if (o->policy == POLICY_RANDOM) {
        t->score = policy_score_random(o->seed, session_length(d->session));
    } else {
        edge_pick(d, t); /* counts as edge time */
        decode_lap(&clock);
        t->score = policy_score_logits(p, session_logits(d->session, 0), d->size, d->kernels);
    }
    d->stats->router_ms += decode_lap(&clock);
    return t->score < o->threshold;
}

/* Sleep until then, or until a signal. */
static void decode_rest(uint64_t until)
{
    uint64_t now = os_now_ns();
    uint64_t ns = until > now ? until - now : 0;
    const struct timespec t = { (time_t)(ns / 1000000000), (long)(ns % 1000000000) };
    if (ns)
        nanosleep(&t, NULL);
}

/* Evaluate tokens, and take at least step_ns for it. */
static int decode_evaluate(struct decode *d, const uint32_t *ids, size_t n)
{
    uint64_t clock = os_now_ns();
    int rc = session_eval(d->session, ids, n, d->o->stop, d->err);
    if (d->o->step_ns)
        decode_rest(clock + d->o->step_ns);
    d->stats->edge_ms += decode_lap(&clock);
    return rc;
}

/* Add the token's bytes; true when the text now ends with a stop string. */
static bool decode_stopped(const struct decode *d, struct stops *stops, uint32_t id)
{
    size_t n, at, length;
    const char *bytes = tokenizer_bytes(d->tok, id, &n);
    return bytes && !tokenizer_is_control(d->tok, id) && stops_feed(stops, bytes, n, &at, &length);
}

/* Append the newest token; generation continues after it. */
static void written(struct decode *d, struct ahead_token *e, uint32_t id)
{
    e->t.id = d->last = id;
    e->written = true;
    d->halted = tokenizer_is_eog(d->tok, id) || decode_stopped(d, &d->tail, id);
}

/* Take the local model's own token, as there is no answer. */
static int fall_back(struct decode *d, struct ahead_token *e)
{
    bool limit = e->gate == GATE_PRIVATE || e->gate == GATE_CAPPED;
    int code = e->gate == GATE_REFUSED ? ERR_REMOTE : e->gate == GATE_UNFIT ? ERR_TEXT : ERR_NET;
    if (d->o->cloud_required && !limit)
        return err_set(d->err, code, "%s", d->fault.msg);
    if (!e->t.has_edge && session_length(d->session) > e->at) {
        /* A cached answer was used and text was written after it, but the entry is gone now. */
        uint32_t before = session_ids(d->session)[e->at - 1];
        ahead_cut(&d->ahead, 1);
        e->written = false;
        session_rewind(d->session, e->at - 1);
        int rc = decode_evaluate(d, &before, 1);
        if (rc != OK)
            return rc;
    }
    if (!e->t.has_edge)
        edge_pick(d, &e->t);
    e->t.source = SOURCE_FALLBACK;
    e->t.reason = e->gate;
    e->t.fault = d->fault.msg;
    d->stats->fallback++;
    d->stats->reasons[e->gate]++;
    return OK;
}

/* Show the token, and see whether the text ends with it. */
static void decode_show(struct decode *d, struct decode_token *t, size_t at)
{
    struct decode_stats *stats = d->stats;
    const struct decode_options *o = d->o;
    t->pos = stats->tokens;
    t->eog = tokenizer_is_eog(d->tok, t->id);
    t->ms = decode_lap(&d->clock);
    if (stats->tokens++ == 0)
        stats->ttft_ms = t->ms;
    stats->cloud += t->source == SOURCE_CLOUD;
    bool goes_on = !o->emit || o->emit(o->arg, t);
    d->end = at;
    d->ended = true;
    stats->finish = t->eog ? FINISH_EOS : FINISH_STOP;
    if (t->eog || decode_stopped(d, &d->stops, t->id) || !goes_on)
        return;
    stats->finish = FINISH_LENGTH;
    d->ended = stats->tokens >= o->max_tokens || at == session_context(d->session);
}

/* Make the oldest token part of the text; roll back the tokens after it if they follow a different
 * token. */
static int decode_decide(struct decode *d, struct ahead_token *e)
{
    int rc = e->routed && !e->answered ? fall_back(d, e) : OK;
    if (rc != OK)
        return rc;
    struct decode_token t = e->t;
    if (e->answered)
        t.source = SOURCE_CLOUD;
    if (e->routed)
        t.id = e->answered ? e->answer : t.edge_id;
    bool back = !e->written || t.id != e->t.id;
    if (back) {
        ahead_cut(&d->ahead, 1);
        session_rewind(d->session, e->at);
        d->scored = false;
        d->last = t.id;
    }
    size_t at = e->at;
    ahead_pop(&d->ahead);
    decode_show(d, &t, at);
    if (back)
        d->tail = d->stops;
    return OK;
}

/* Decide what can be decided, oldest first. wait: wait for the answer of the oldest. */
static int decode_decide_ready(struct decode *d, bool wait)
{
    while (d->ahead.n && !d->ended) {
        struct ahead_token *e = ahead_at(&d->ahead, 0);
        bool turn = e->routed && !e->met, comes = turn && decode_is_coming(d, e);
        if (comes && !wait)
            return OK;
        wait = wait && !comes;
        int rc = turn ? decode_begin_turn(d, e) : OK;
        if (rc == OK && e->call) {
            if (!wait && !d->cloud->done(e->call))
                return OK;
            wait = false;
            rc = decode_await_answer(d, e);
        }
        if (rc == OK)
            rc = decode_decide(d, e);
        if (rc != OK)
            return rc;
    }
    return OK;
}

/* Score the next token; for a routed one, find the ways to request it. The oracle waits for the
 * answer before it scores. Its tokens are decided at once, so its turn has always come. */
static int decode_score_next(struct decode *d)
{
    struct ahead_token *e = &d->next;
    bool oracle = d->o->policy == POLICY_ORACLE;
    *e = (struct ahead_token){ .t.source = SOURCE_EDGE, .at = session_length(d->session) };
    e->routed = wants_cloud(d, &e->t);
    if ((e->routed || oracle) && d->cloud) {
        e->held = private_holds(d->gate->spans, session_ids(d->session), e->at);
        decode_find_ways(d, e);
    }
    int rc = oracle ? decode_ask_first(d, e) : OK;
    d->scored = rc == OK;
    return rc;
}

/* Append the next token to the queue. A routed token that follows undecided tokens is requested
 * early. */
static int decode_enqueue_next(struct decode *d)
{
    struct ahead_token *e = &d->next;
    uint32_t id = 0;
    bool early = e->routed && d->ahead.n && d->cloud;
    if (early)
        decode_look_up(d, e, &id);
    if (early && !e->known && !e->covered && decode_expects(d, e)) {
        if (!decode_has_room(d))
            return decode_decide_ready(d, true);
        if (decode_ask(d, e, NULL) != OK)
            e->call = NULL; /* when its turn comes, the error will be reported */
    }
    if (!e->routed) {
        if (!e->t.has_edge)
            edge_pick(d, &e->t);
        id = e->t.edge_id;
    }
    ahead_push(&d->ahead, e);
    if (!e->routed || e->known)
        written(d, ahead_last(&d->ahead), id);
    d->scored = false;
    return OK;
}

/* Do one step of work ahead of what is decided; wait if there is none. */
static int decode_advance(struct decode *d)
{
    struct ahead_token *last = ahead_last(&d->ahead);
    size_t all = d->stats->tokens + d->ahead.n;
    if (d->o->stop && *d->o->stop)
        return err_set(d->err, ERR_STOP, "interrupted");
    if (last && !last->written && d->o->ahead) {
        if (!last->t.has_edge)
            edge_pick(d, &last->t);
        written(d, last, last->t.edge_id);
        return OK;
    }
    if (last && (!last->written || d->halted || all >= d->o->max_tokens ||
                 last->at == session_context(d->session)))
        return decode_decide_ready(d, true);
    if (session_length(d->session) < d->n + all)
        return decode_evaluate(d, &d->last, 1);
    if (d->scored)
        return decode_enqueue_next(d);
    return decode_score_next(d);
}

/* Evaluate the part of the prompt that the session does not hold, and at least its last token. */
static int decode_read_prompt(struct decode *d, const uint32_t *prompt, size_t n)
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
    if (!d->o->reading)
        return decode_evaluate(d, prompt + shared, n - shared);
    int rc = OK;
    for (size_t at = shared, some; rc == OK && at < n; at += some) {
        some = n - at < BATCH_ROWS ? n - at : BATCH_ROWS;
        rc = decode_evaluate(d, prompt + at, some);
        if (rc == OK)
            d->o->reading(d->o->arg, at + some, n);
    }
    return rc;
}

/* Write the answer, after the prompt has been evaluated. */
static int decode_write_answer(struct decode *d)
{
    int rc = OK;
    d->ended = d->o->max_tokens == 0;
    d->end = d->n;
    d->stats->finish = FINISH_LENGTH;
    while (rc == OK && !d->ended) {
        rc = decode_advance(d);
        if (rc == OK)
            rc = decode_decide_ready(d, false);
    }
    return rc;
}

/* Return how many tokens can be undecided at once; 1 in step. */
static size_t most_ahead(const struct decode *d)
{
    size_t context = session_context(d->session), most = d->o->max_tokens;
    if (!d->o->ahead || d->n > context)
        return 1;
    most = most < context - d->n + 1 ? most : context - d->n + 1;
    return most ? most : 1;
}

/* Set up the loop and run it. */
static int decode_text(struct decode *d, const uint32_t *prompt)
{
    const struct decode_options *o = d->o;
    int rc = stops_begin(&d->stops, o->stops, d->err);
    if (rc == OK && o->policy == POLICY_MLP) {
        d->scratch = malloc(router_scratch(d->router) * sizeof(float));
        if (!d->scratch)
            rc = err_set(d->err, ERR_NOMEM, "decode: out of memory");
    }
    if (rc == OK)
        rc = ahead_open(&d->ahead, d->cloud, most_ahead(d), d->err);
    if (rc != OK)
        return rc;
    d->tail = d->stops;
    d->clock = os_now_ns();
    rc = decode_read_prompt(d, prompt, d->n);
    if (rc != OK)
        return rc;
    gate_text(d->gate, prompt, d->n);
    return decode_write_answer(d);
}

int decode_run(struct decode_stats *stats, struct session *s, const struct tokenizer *tok,
               struct sampler *sampler, const struct router *router, const struct cloud_port *cloud,
               const uint32_t *prompt, size_t n, const struct decode_options *o, struct err *err)
{
    *stats = (struct decode_stats){ .prompt_tokens = n, .finish = FINISH_ERROR };
    if (policy_reads_router(o->policy) &&
        (!router || router_is_table(router) != (o->policy == POLICY_CONTEXT)))
        return err_set(err, ERR_ARG, "policy %s needs a router that is a %s",
                       policy_name(o->policy), o->policy == POLICY_MLP ? "network" : "table");
    struct gate own = { 0 };
    struct decode d = { .stats = stats,
                        .session = s,
                        .tok = tok,
                        .sampler = sampler,
                        .router = router,
                        .cloud = cloud,
                        .gate = o->gate ? o->gate : &own,
                        .kernels = model_kernels(session_model(s)),
                        .o = o,
                        .err = err,
                        .size = tokenizer_size(tok),
                        .n = n };
    uint64_t clock = os_now_ns();
    struct traffic before = cloud ? cloud->traffic(cloud->arg) : (struct traffic){ 0 };
    uint64_t cost = d.gate->caps ? d.gate->caps->count.cost : 0;
    int rc = decode_text(&d, prompt);
    stats->cost = d.gate->caps ? d.gate->caps->count.cost - cost : 0;
    if (rc != OK)
        stats->finish = FINISH_ERROR;
    ahead_close(&d.ahead);
    session_rewind(s, d.ended ? d.end : n + stats->tokens);
    struct traffic after = cloud ? cloud->traffic(cloud->arg) : before;
    stats->wasted = (size_t)d.ahead.wasted;
    d.gate->wasted += d.ahead.wasted;
    stats->traffic = traffic_since(&after, &before);
    stats->total_ms = decode_lap(&clock);
    free(d.scratch);
    return rc;
}
