/* Decoding ahead writes what decoding in step writes: random clouds, networks, policies, samplers,
 * stop strings and limits, each with 0, 1, 2, 4 and 8 requests out, behind a simulated cloud. */
#include <math.h>
#include <string.h>

#include "kernels/base.h"
#include "kernels/math.h"
#include "model/model.h"
#include "model/sample.h"
#include "model/tokenizer.h"
#include "router/decode.h"
#include "router/private.h"
#include "router/router.h"
#include "tests/sim.h"
#include "tests/test.h"
#include "tests/tiny.h"
#include "tests/torture.h"
#include "tools/opt.h"
#include "tools/setting.h"

enum { CASES = 400, WINDOWS = 5, TEXTS = 2, MOST = 48, SCORES = 40 };

static const size_t windows[WINDOWS] = { 0, 1, 2, 4, 8 };
static struct engine engine;
static struct session *session, *other;
static struct router *router;
static float low[POLICY_ALWAYS], high[POLICY_ALWAYS]; /* scores as they come */

struct setup { /* one case */
    struct sim_truth truth;
    struct sample_params sample;
    enum policy policy;
    float threshold;
    uint64_t seed, delay, max_wasted;
    struct caps_limits limits;
    bool private, required;
    size_t max_tokens, most, interrupt_after, nprompt[TEXTS];
    uint32_t prompt[TEXTS][TINY_CONTEXT];
    const char *stops[3];
    char stop[2][4];
};

struct text { /* what one answer gave */
    struct decode_token at[TINY_CONTEXT];
    char fault[TINY_CONTEXT][64];
    size_t n, most, interrupt_after;
    _Atomic int stop;
    int rc;
    struct err err;
    struct decode_stats stats;
    size_t reach; /* of the simulation */
};

struct result { /* of one case and window */
    struct text text[TEXTS];
    struct sim sim;
    struct gate gate;
    struct caps caps;
};

static struct result results[WINDOWS];
static struct { /* what was met at all */
    size_t wasted, memo, store, stale, retries, reason[GATE_REASONS], finish[FINISH_ERROR + 1];
    size_t most, required, agreed;
} met;

static bool on_token(void *arg, const struct decode_token *t)
{
    struct text *x = arg;
    CHECK(x->n < TINY_CONTEXT && t->pos == x->n && t->id < tokenizer_size(engine.tokenizer));
    CHECK((t->source == SOURCE_FALLBACK) == (t->fault != NULL));
    snprintf(x->fault[x->n], sizeof(x->fault[0]), "%s", t->fault ? t->fault : "");
    x->at[x->n++] = *t;
    if (x->n == x->interrupt_after)
        x->stop = 1;
    return x->n != x->most;
}

static void check_ledger(const struct result *r, const struct text *x)
{
    const struct decode_stats *s = &x->stats;
    size_t reasons = 0, sources[3] = { 0 };
    for (size_t i = 0; i < GATE_REASONS; i++)
        reasons += s->reasons[i];
    for (size_t i = 0; i < x->n; i++)
        sources[x->at[i].source]++;
    CHECK(s->calls == s->committed + s->wasted && s->fallback == reasons);
    CHECK(s->tokens == x->n && s->cloud == sources[SOURCE_CLOUD]);
    CHECK(s->fallback == sources[SOURCE_FALLBACK]);
    CHECK((x->rc == OK) == (s->finish != FINISH_ERROR));
    CHECK(s->retries <= r->sim.retries && (s->calls || !s->retries));
    CHECK(r->sim.live == 0); /* no call is left behind */
}

static void run_window(struct result *r, const struct setup *c, size_t window, uint64_t trace)
{
    struct err err;
    struct sampler *mine, *its;
    struct private *spans = NULL;
    struct teller teller;
    size_t size = tokenizer_size(engine.tokenizer);
    const struct private_options po = { .from = "Q" };
    memset(r, 0, sizeof(*r));
    CHECK(sampler_open(&mine, &c->sample, size, &engine.kernels, &err) == OK);
    CHECK(sampler_open(&its, &c->sample, size, &engine.kernels, &err) == OK);
    CHECK(!c->private || private_open(&spans, &po, engine.tokenizer, &err) == OK);
    bool calm = !c->truth.fault && !c->truth.refused && !c->truth.odd &&
                c->limits.tokens == UINT64_MAX && c->limits.upload == UINT64_MAX &&
                c->limits.budget == UINT64_MAX;
    r->sim = (struct sim){ .truth = c->truth,
                           .trace = trace,
                           .delay = c->delay,
                           .window = window,
                           .session = session,
                           .late_head = calm && !policy_reads_logits(c->policy),
                           .edge = other,
                           .sampler = its,
                           .size = size };
    sim_teller(&teller, &r->sim);
    caps_begin(&r->caps, &c->limits);
    r->gate = (struct gate){ .caps = &r->caps, .spans = spans, .max_wasted = c->max_wasted };
    for (size_t i = 0; i < TEXTS; i++) {
        struct text *x = &r->text[i];
        const struct decode_options o = { .policy = c->policy,
                                          .threshold = c->threshold,
                                          .ahead = window,
                                          .gate = &r->gate,
                                          .cloud_required = c->required,
                                          .max_tokens = c->max_tokens,
                                          .seed = c->seed,
                                          .stops = c->stops[0] ? c->stops : NULL,
                                          .stop = &x->stop,
                                          .emit = on_token,
                                          .arg = x };
        x->most = c->most;
        x->interrupt_after = c->interrupt_after;
        r->sim.stop = &x->stop;
        sim_text(&r->sim);
        x->rc = decode_run(&x->stats, session, engine.tokenizer, mine, router, &teller,
                           c->prompt[i], c->nprompt[i], &o, &x->err);
        x->reach = r->sim.reach;
        check_ledger(r, x);
    }
    caps_end(&r->caps);
    private_close(spans);
    sampler_close(mine);
    sampler_close(its);
}

static void compare_text(const struct text *a, const struct text *b)
{
    const struct decode_stats *s = &a->stats, *t = &b->stats;
    CHECK(a->rc == b->rc && a->n == b->n && s->finish == t->finish);
    CHECK(a->rc == OK || !strcmp(a->err.msg, b->err.msg));
    for (size_t i = 0; i < a->n; i++) {
        const struct decode_token *x = &a->at[i], *y = &b->at[i];
        CHECK(x->id == y->id && x->source == y->source && x->eog == y->eog);
        CHECK(memcmp(&x->score, &y->score, sizeof(x->score)) == 0);
        CHECK(!x->has_edge || (y->has_edge && x->edge_id == y->edge_id));
        CHECK(!strcmp(a->fault[i], b->fault[i]));
    }
    CHECK(s->committed == t->committed && s->memo_hits == t->memo_hits);
    CHECK(s->store_hits == t->store_hits);
    CHECK(memcmp(s->reasons, t->reasons, sizeof(s->reasons)) == 0);
}

/* Window w against in step. */
static void compare(const struct setup *c, size_t w)
{
    const struct result *a = &results[0], *b = &results[w];
    for (size_t i = 0; i < TEXTS; i++)
        compare_text(&a->text[i], &b->text[i]);
    CHECK(a->sim.ncommitted == b->sim.ncommitted);
    CHECK(!memcmp(a->sim.committed, b->sim.committed, a->sim.ncommitted * sizeof(uint64_t)));
    CHECK(!memcmp(&a->caps.count, &b->caps.count, sizeof(a->caps.count)));
    CHECK(!memcmp(&a->gate.breaker, &b->gate.breaker, sizeof(a->gate.breaker)));
    CHECK(a->gate.refused == b->gate.refused);
    if (windows[w] == 1) { /* the same calls, in the same order */
        CHECK(a->sim.nasked == b->sim.nasked && a->sim.ndropped == b->sim.ndropped);
        CHECK(!memcmp(a->sim.asked, b->sim.asked, a->sim.nasked * sizeof(uint64_t)));
    }
    if (c->max_wasted) /* ids that are none are dropped too, but not in vain */
        CHECK(b->gate.wasted <= c->max_wasted + a->gate.wasted);
}

static uint64_t at; /* of the random numbers that make the cases */

static uint64_t pick(uint64_t below)
{
    return rand_below(77, at++, below);
}

static void make_case(struct setup *c)
{
    static const float temps[] = { 0, 0, 0.8f, 2 };
    static const unsigned faults[] = { 0, 0, 10, 40, 100 };
    memset(c, 0, sizeof(*c));
    c->truth = (struct sim_truth){ .seed = pick(1u << 30),
                                   .agree = (unsigned)pick(5) * 25,
                                   .odd = (unsigned)pick(2) * 8,
                                   .fault = faults[pick(5)],
                                   .refused = pick(8) == 0 ? 4 : 0,
                                   .store = (unsigned)pick(3) * 8,
                                   .tokens = 1 + pick(2) * pick(6),
                                   .room = 1 + pick(SIM_MEMO) };
    c->sample = (struct sample_params){ .temp = temps[pick(4)],
                                        .top_p = pick(2) ? 1 : 0.9f,
                                        .repeat_penalty = pick(3) ? 1 : 1.4f,
                                        .seed = pick(100) };
    c->policy = (enum policy)pick(POLICY_NEVER);
    if (c->policy < POLICY_ALWAYS)
        c->threshold =
            low[c->policy] + (high[c->policy] - low[c->policy]) * (float)(1 + pick(9)) / 10;
    c->seed = pick(100);
    c->delay = pick(3) == 0 ? 2 : 1 + pick(120);
    c->max_wasted = pick(4) == 0 ? 1 + pick(6) : 0;
    c->limits = caps_none;
    if (pick(4) == 0)
        c->limits.tokens = pick(20);
    if (pick(4) == 0)
        c->limits.upload = pick(8000);
    if (pick(4) == 0) {
        c->limits.budget = pick(3000);
        c->limits.price = (struct caps_price){ 3, 1, 10 };
    }
    c->private = pick(5) == 0;
    c->required = c->truth.fault <= 10 && pick(6) == 0;
    c->max_tokens = pick(6) == 0 ? pick(4) : 10 + pick(MOST - 10);
    c->most = pick(8) == 0 ? 1 + pick(MOST) : 0;
    for (size_t i = 0; i < TEXTS; i++) {
        bool brim = pick(10) == 0; /* the context ends the text */
        c->nprompt[i] = brim ? TINY_CONTEXT - pick(12) : 1 + pick(6);
        for (size_t j = 0; j < c->nprompt[i]; j++)
            c->prompt[i][j] = (uint32_t)(32 + rand_below(c->seed + i, j, 90)) - (uint32_t)(j == 3);
    }
}

/* Stop strings that do occur: bytes of the text as it was without. */
static void make_stops(struct setup *c, const struct text *x)
{
    for (size_t k = 0; k < 2 && x->n > 4; k++) {
        size_t from = 2 + pick(x->n - 4), length = 1 + pick(3);
        for (size_t i = 0; i < length && from + i < x->n; i++)
            c->stop[k][i] = x->at[from + i].id < 256 ? (char)x->at[from + i].id : '\0';
        if (!c->stop[k][0])
            return;
        c->stops[k] = c->stop[k];
    }
}

static void count(void)
{
    for (size_t w = 0; w < WINDOWS; w++) {
        const struct result *r = &results[w];
        met.stale += r->sim.nstale;
        met.retries += r->sim.retries;
        met.most = r->sim.most > met.most ? r->sim.most : met.most;
        for (size_t i = 0; i < TEXTS; i++) {
            const struct text *x = &r->text[i];
            met.wasted += x->stats.wasted;
            met.memo += x->stats.memo_hits;
            met.store += x->stats.store_hits;
            met.finish[x->stats.finish]++;
            met.required += x->rc == ERR_NET || x->rc == ERR_REMOTE;
            for (size_t k = 0; k < GATE_REASONS; k++)
                met.reason[k] += x->stats.reasons[k];
            for (size_t k = 0; windows[w] > 1 && k < x->n; k++)
                met.agreed += x->at[k].source == SOURCE_CLOUD && x->at[k].has_edge &&
                              x->at[k].edge_id == x->at[k].id;
        }
    }
}

static void test_cases(void)
{
    static struct setup c;
    for (size_t i = 0; i < CASES; i++) {
        make_case(&c);
        if (pick(3) == 0) {
            run_window(&results[0], &c, 0, i);
            make_stops(&c, &results[0].text[0]);
        }
        for (size_t w = 0; w < WINDOWS; w++) {
            run_window(&results[w], &c, windows[w], rand_u64(i, w));
            compare(&c, w);
        }
        count();
    }
    CHECK(met.wasted > 500 && met.memo > 500 && met.store > 500 && met.stale > 200);
    CHECK(met.retries > 500 && met.required > 5 && met.agreed > 500 && met.most == 8);
    for (int k = GATE_REFUSED; k < GATE_REASONS; k++)
        CHECK(met.reason[k] > 50);
    for (int k = FINISH_EOS; k <= FINISH_ERROR; k++)
        CHECK(met.finish[k] > 5);
}

/* A case without faults and limits, all of it asked for. */
static void plain_case(struct setup *c)
{
    memset(c, 0, sizeof(*c));
    c->truth = (struct sim_truth){ .seed = 5, .agree = 60, .tokens = 1, .room = SIM_MEMO };
    c->sample = (struct sample_params){ .top_p = 1, .repeat_penalty = 1 };
    c->policy = POLICY_ALWAYS;
    c->limits = caps_none;
    c->max_tokens = MOST;
    c->delay = 100;
    for (size_t i = 0; i < TEXTS; i++)
        c->prompt[i][c->nprompt[i]++] = (uint32_t)(70 + i);
}

/* Ctrl-C while calls are out: what was shown is what in step shows, and no call is left. */
static void test_interrupt(void)
{
    static struct setup c;
    plain_case(&c);
    run_window(&results[0], &c, 0, 1);
    for (size_t k = 1; k < 20; k++) {
        c.interrupt_after = k;
        run_window(&results[1], &c, 4, k);
        const struct text *a = &results[0].text[0], *b = &results[1].text[0];
        CHECK(b->rc == ERR_STOP && b->n >= k && b->stats.finish == FINISH_ERROR);
        for (size_t i = 0; i < b->n; i++)
            CHECK(a->at[i].id == b->at[i].id);
    }
}

/* By hand: everything confirmed, and nothing; what it costs. */
static void test_extremes(void)
{
    static struct setup c;
    plain_case(&c);
    c.truth.agree = 100;
    run_window(&results[0], &c, 0, 1);
    CHECK(results[0].text[0].stats.calls == MOST && results[0].sim.most == 1);
    uint64_t in_step = results[0].sim.clock;
    run_window(&results[1], &c, 8, 1);
    CHECK(results[1].sim.most == 8 && results[1].text[0].stats.cloud == MOST);
    CHECK(results[1].text[0].stats.wasted <= 7); /* asked for behind the end of the text */
    CHECK(results[1].sim.clock * 2 < in_step);
    c.truth.agree = 0;
    run_window(&results[0], &c, 0, 2);
    run_window(&results[1], &c, 8, 2);
    compare_text(&results[0].text[0], &results[1].text[0]);
    CHECK(results[1].text[0].stats.wasted > MOST);
    c.max_wasted = 10;
    run_window(&results[1], &c, 8, 2);
    CHECK(results[1].text[0].stats.wasted == 10 && results[1].text[1].stats.wasted == 0);
    compare_text(&results[0].text[0], &results[1].text[0]);
}

/* By hand: a dead server. Three faults, 4 held, a probe, 8 held, a probe, 16 held. */
static void test_limits(void)
{
    static struct setup c;
    static const size_t asked[] = { 0, 1, 2, 7, 16, 33 };
    plain_case(&c);
    c.truth.fault = 100;
    c.max_tokens = 40;
    for (size_t w = 0; w < WINDOWS; w++) {
        run_window(&results[w], &c, windows[w], w);
        const struct text *x = &results[w].text[0];
        size_t k = 0;
        for (size_t i = 0; i < 40; i++) {
            bool fault = k < 6 && i == asked[k];
            k += fault;
            CHECK(fault == !strncmp(x->fault[i], "fault", 5));
            CHECK(fault || strstr(x->fault[i], "3 faults in a row"));
        }
        CHECK(x->n == 40 && k == 6 && x->stats.committed == 6 && x->stats.cloud == 0);
        CHECK(x->stats.wasted <= 2 * windows[w]); /* none behind a probe */
    }
    c.truth.fault = 0; /* a limit of 5 tokens */
    c.limits.tokens = 5;
    for (size_t w = 0; w < WINDOWS; w++) {
        run_window(&results[w], &c, windows[w], w);
        const struct text *x = &results[w].text[0];
        for (size_t i = 0; i < x->n; i++)
            CHECK(x->at[i].source == (i < 5 ? SOURCE_CLOUD : SOURCE_FALLBACK));
        CHECK(x->stats.reasons[GATE_CAPPED] == x->n - 5 && strstr(x->fault[5], "cloud-tokens"));
        CHECK(results[w].text[1].stats.calls == 0); /* a limit of the process, not of the text */
    }
}

/* Nothing is asked for behind what would be the end of the text, were the guesses right: a stop
 * string half of which the cloud put right. */
static void test_stop_ahead(void)
{
    static struct setup c;
    plain_case(&c);
    run_window(&results[0], &c, 1, 1);
    const struct text *x = &results[0].text[0];
    size_t k = 1, tried = 0;
    for (; k + 1 < x->n; k++) {
        const struct decode_token *a = &x->at[k], *b = &x->at[k + 1];
        bool fits = a->has_edge && a->edge_id != a->id && b->has_edge && b->edge_id == b->id;
        if (!fits || !a->id || !b->id || a->id >= TINY_IM_END || b->id >= TINY_IM_END)
            continue;
        c.stop[0][0] = (char)a->id;
        c.stop[0][1] = (char)b->id;
        c.stops[0] = c.stop[0];
        run_window(&results[1], &c, 8, k);
        if (results[1].text[0].n != k + 2) /* the same two tokens were there before */
            continue;
        tried++;
        CHECK(results[1].text[0].stats.finish == FINISH_STOP);
        CHECK(results[1].text[0].reach == c.nprompt[0] + k + 1);
    }
    CHECK(tried > 2);
}

/* Scores of each policy over some text, so that thresholds fall between them. */
static void look_at_scores(void)
{
    struct err err;
    struct decode_stats stats;
    struct sampler *s;
    static struct text x;
    const struct sample_params params = { .temp = 1, .top_p = 1, .repeat_penalty = 1 };
    const uint32_t prompt = 65;
    CHECK(sampler_open(&s, &params, tokenizer_size(engine.tokenizer), &engine.kernels, &err) == OK);
    for (int p = POLICY_MLP; p < POLICY_ALWAYS; p++) {
        const struct decode_options o = {
            .policy = (enum policy)p, .max_tokens = SCORES, .emit = on_token, .arg = &x
        };
        x.n = 0;
        CHECK(decode_run(&stats, session, engine.tokenizer, s, router, NULL, &prompt, 1, &o,
                         &err) == OK);
        low[p] = 1;
        for (size_t i = 0; i < x.n; i++) {
            low[p] = x.at[i].score < low[p] ? x.at[i].score : low[p];
            high[p] = x.at[i].score > high[p] ? x.at[i].score : high[p];
        }
        CHECK(low[p] < high[p]);
    }
    sampler_close(s);
}

int main(void)
{
    struct err err = { "" };
    const char *model = tiny_make();
    struct router_form form;
    engine_opts.threads = 1;
    CHECK(engine_open(&engine, model, true, &err) == OK);
    tiny_remove();
    CHECK(session_open(&session, engine.model, NULL, TINY_CONTEXT, KVCACHE_F32, &err) == OK);
    CHECK(session_open(&other, engine.model, NULL, TINY_CONTEXT, KVCACHE_F32, &err) == OK);
    size_t hidden = model_config(engine.model)->hidden;
    CHECK(router_form_open(&form, hidden, 2, &err) == OK);
    form.w1[0] = 4;
    form.w1[hidden] = -4;
    form.w2[0] = 1;
    form.w2[1] = -1;
    CHECK(router_make(&router, &form, "test", &engine.kernels, &err) == OK);
    router_form_close(&form);

    look_at_scores();
    test_cases();
    test_interrupt();
    test_extremes();
    test_limits();
    test_stop_ahead();

    router_close(router);
    session_close(session);
    session_close(other);
    engine_close(&engine);
    return 0;
}
