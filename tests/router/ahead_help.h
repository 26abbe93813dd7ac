/* ahead_help.h - shared by t_ahead.c and t_draft.c: draws a case, writes it with a window against a
 * simulated cloud, and compares two windows. */
#ifndef TESTS_ROUTER_AHEAD_HELP_H
#define TESTS_ROUTER_AHEAD_HELP_H

#include "model/text/tokenizer.h"
#include "router/decode/decode.h"
#include "router/policy.h"
#include "tests/router/routers_help.h"
#include "tests/support/sim.h"

enum { WINDOWS = 2, TEXTS = 2, MOST = 48 }; /* windows: 0, in step; 1, ahead */

/* Return the router of a policy; texts of mlp have the mixed, gain or deep one, too. */
static inline const struct router *router_for(enum policy p, uint64_t seed)
{
    return p == POLICY_CONTEXT                ? table
           : p == POLICY_COMBINED             ? seed % 2 ? blind : combined
           : p == POLICY_MLP && seed % 4 == 1 ? mixed
           : p == POLICY_MLP && seed % 4 == 2 ? gain
           : p == POLICY_MLP && seed % 4 == 3 ? deep
                                              : network;
}

struct setup { /* one case */
    struct sim_truth truth;
    struct sample_params sample;
    enum policy policy;
    float threshold;
    char place[8]; /* of policy position */
    uint64_t seed, delay, step_ns;
    uint64_t most_tokens, most_input; /* UINT64_MAX: no limit */
    uint64_t cloud_limit;
    bool private, required;
    bool edges;
    float max_routed;
    size_t max_tokens, most, interrupt_after, nprompt[TEXTS];
    uint32_t prompt[TEXTS][TINY_CONTEXT];
    const char *stops[3];
    char stop[2][4];
    enum draft_kind drafts;
    size_t draft_max;
};

struct text { /* the result of one answer */
    struct decode_token at[TINY_CONTEXT];
    char fault[TINY_CONTEXT][64];
    size_t n, most, interrupt_after;
    _Atomic int stop;
    int rc;
    struct err err;
    struct decode_stats stats;
    size_t reach; /* reach of the simulation */
    /* What the hook has told. */
    size_t evaluated, asked, answered, failed;
    uint64_t latest;
};

struct result { /* the results of one case and window */
    struct text text[TEXTS];
    struct sim sim;
    struct gate gate;
    struct quota quota;
    size_t lost; /* tokens charged for calls of texts that were given up */
};

static struct result results[WINDOWS + 1];

static inline bool on_token(void *arg, const struct decode_token *t)
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

/* Events come in the order of their times. */
static inline void on_event(void *arg, const struct decode_event *e)
{
    struct text *x = arg;
    CHECK(e->ns >= x->latest && e->n > 0 && e->took_ns <= e->ns);
    CHECK((e->kind == DECODE_ASKED || e->kind == DECODE_ROLLED_BACK) == !e->took_ns);
    x->latest = e->ns;
    x->evaluated += e->kind == DECODE_EVALUATED ? e->n : 0;
    x->asked += e->kind == DECODE_ASKED;
    x->answered += e->kind == DECODE_ANSWERED && e->reason == GATE_OPEN;
    x->failed += e->kind == DECODE_ANSWERED && e->reason != GATE_OPEN;
}

/* The counts of a text agree with one another and with the simulation. */
static inline void check_ledger(struct result *r, const struct text *x)
{
    const struct decode_stats *s = &x->stats;
    size_t reasons = 0, sources[3] = { 0 };
    for (size_t i = 0; i < GATE_REASONS; i++)
        reasons += s->reasons[i];
    for (size_t i = 0; i < x->n; i++)
        sources[x->at[i].source]++;
    CHECK(s->calls - s->committed - s->failed <= (x->rc != OK) && s->fallback == reasons);
    CHECK(s->tokens == x->n && s->cloud == sources[SOURCE_CLOUD]);
    CHECK(s->fallback == sources[SOURCE_FALLBACK]);
    CHECK(x->asked == s->calls && x->answered == s->committed && x->failed == s->failed);
    CHECK((x->rc == OK) == (s->finish != FINISH_ERROR));
    CHECK(s->traffic.retries <= r->sim.retries && (s->calls || !s->traffic.retries));
    CHECK(r->sim.live == 0);                       /* no call is left over */
    size_t lost = r->quota.asked - r->sim.charged; /* by a call of a text that was given up */
    CHECK(lost == r->lost || (x->rc != OK && lost > r->lost));
    r->lost = lost;
    CHECK(r->quota.asked <= r->quota.tokens && r->quota.sent <= r->quota.input);
}

/* A token is routed if its score is below the threshold, and then alone. */
static inline void check_verdicts(const struct setup *c, const struct text *x)
{
    for (size_t i = 0; i < x->n; i++) {
        const struct decode_token *t = &x->at[i];
        CHECK(isnan(t->score) || (t->score < c->threshold) == (t->source != SOURCE_EDGE));
    }
}

/* Every beginning of a text keeps to its share of the cloud's tokens, and two more. Return how many
 * tokens that has held back. */
static inline size_t check_share(const struct setup *c, const struct text *x)
{
    size_t cloud = 0, held = 0;
    for (size_t i = 0; i < x->n; i++) {
        double most = (double)c->max_routed * (double)(i + 1) + 2;
        bool says = strstr(x->fault[i], "max_routed");
        CHECK(!says || (double)(cloud + 1) > most);
        held += says;
        cloud += x->at[i].source == SOURCE_CLOUD;
        CHECK(!(c->max_routed > 0) || (double)cloud <= most);
    }
    return held;
}

static inline bool place_is_number(const char *place)
{
    return strspn(place, "0123456789") == strlen(place);
}

/* What is routed is what the place says, told from the bytes of the answer. */
static inline void check_place(const char *place, const struct text *x)
{
    char bytes[TINY_CONTEXT * 8];
    size_t n = 0, length = strlen(place), size;
    for (size_t i = 0; i < x->n; i++) {
        bool here = place_is_number(place)
                        ? i == (size_t)atoi(place)
                        : n >= length && !memcmp(bytes + n - length, place, length);
        CHECK(x->at[i].score == (here ? 0.0f : 1.0f));
        const char *more = tokenizer_bytes(engine.tokenizer, x->at[i].id, &size);
        size = more && !tokenizer_is_control(engine.tokenizer, x->at[i].id) ? size : 0;
        CHECK(n + size <= sizeof(bytes));
        for (size_t k = 0; k < size; k++)
            bytes[n++] = more[k];
    }
}

/* Write the texts of a case with this window. */
static inline void run_window(struct result *r, const struct setup *c, bool window, uint64_t trace)
{
    struct err err;
    struct sampler *mine, *its;
    struct private_filter *patterns = NULL;
    struct cloud_port port;
    size_t size = tokenizer_size(engine.tokenizer);
    memset(r, 0, sizeof(*r));
    CHECK(sampler_open(&mine, &c->sample, size, &engine.kernels, &err) == OK);
    CHECK(sampler_open(&its, &c->sample, size, &engine.kernels, &err) == OK);
    CHECK(!c->private || private_open(&patterns, NULL, "Q", engine.tokenizer, &err) == OK);
    bool calm = !c->truth.fault && !c->truth.refused && !c->truth.unfit && !c->truth.odd &&
                c->most_tokens == UINT64_MAX && c->most_input == UINT64_MAX && !(c->max_routed > 0);
    r->sim = (struct sim){ .truth = c->truth,
                           .trace = trace,
                           .delay = c->delay,
                           .session = session,
                           .drafts = c->drafts,
                           .late_head = calm && !policy_reads_logits(c->policy) &&
                                        !router_extra(router_for(c->policy, c->seed)) &&
                                        !c->drafts && !c->edges,
                           .edge = other,
                           .sampler = its,
                           .size = size,
                           .secret = c->private ? 'Q' : 0 };
    sim_port(&port, &r->sim);
    session_rewind(session, 0);
    r->quota = (struct quota){ .tokens = c->most_tokens, .input = c->most_input };
    r->gate = (struct gate){ .quota = &r->quota, .patterns = patterns };
    for (size_t i = 0; i < TEXTS; i++) {
        struct text *x = &r->text[i];
        const struct decode_options o = { .policy = c->policy,
                                          .threshold = c->threshold,
                                          .call_tokens = c->truth.tokens,
                                          .place = c->place,
                                          .max_routed = c->max_routed,
                                          .ahead = window,
                                          .gate = &r->gate,
                                          .cloud_limit = c->cloud_limit,
                                          .cloud_required = c->required,
                                          .edges = c->edges,
                                          .max_tokens = c->max_tokens,
                                          .seed = c->seed,
                                          .step_ns = c->step_ns,
                                          .drafts = c->drafts,
                                          .draft_max = c->draft_max,
                                          .stops = c->stops[0] ? c->stops : NULL,
                                          .stop = &x->stop,
                                          .emit = on_token,
                                          .event = on_event,
                                          .arg = x };
        x->most = c->most;
        x->interrupt_after = c->interrupt_after;
        r->sim.stop = &x->stop;
        sim_text(&r->sim);
        x->rc =
            decode_run(&x->stats, session, engine.tokenizer, mine, router_for(c->policy, c->seed),
                       &port, c->prompt[i], c->nprompt[i], &o, &x->err);
        x->reach = r->sim.reach;
        check_ledger(r, x);
        check_verdicts(c, x);
        CHECK(policy_reads(c->policy) < READS_LOGITS || x->evaluated >= x->n); /* a row each */
        if (c->policy == POLICY_POSITION)
            check_place(c->place, x);
    }
    private_close(patterns);
    sampler_close(mine);
    sampler_close(its);
}

/* Two texts and their counts are equal. */
static inline void compare_text(const struct text *a, const struct text *b)
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
    CHECK(s->committed == t->committed && s->failed == t->failed);
    CHECK(s->memo == t->memo);
    CHECK(s->store == t->store);
    CHECK(memcmp(s->reasons, t->reasons, sizeof(s->reasons)) == 0);
}

/* The edge's own token is known at the same places, with and without drafts, at any times. */
static inline void compare_edges(const struct text *a, const struct text *b)
{
    for (size_t i = 0; i < a->n; i++) {
        const struct decode_token *x = &a->at[i], *y = &b->at[i];
        CHECK(x->has_edge == y->has_edge && (!x->has_edge || x->edge_id == y->edge_id));
    }
}

/* Random cases: clouds, networks, policies, samplers, limits, prompts and stop strings. */

enum { SCORES = 40 };

static float score_low[POLICY_ALWAYS], score_high[POLICY_ALWAYS]; /* range of the scores */

static uint64_t drawn_at; /* counter of the random numbers that make the cases */

static inline uint64_t pick(uint64_t below)
{
    return rand_below(81, drawn_at++, below);
}

static inline void make_case(struct setup *c)
{
    static const float temps[] = { 0, 0, 0.8f, 2 };
    static const unsigned faults[] = { 0, 0, 10, 40, 100 };
    memset(c, 0, sizeof(*c));
    c->truth = (struct sim_truth){ .seed = pick(1u << 30),
                                   .agree = (unsigned)pick(5) * 25,
                                   .odd = (unsigned)pick(2) * 8,
                                   .fault = faults[pick(5)],
                                   .refused = pick(8) == 0 ? 4 : 0,
                                   .unfit = pick(8) == 0 ? 4 : 0,
                                   .store = (unsigned)pick(3) * 8,
                                   .tokens = 1 + pick(2) * pick(6),
                                   .room = 1 + pick(SIM_MEMO) };
    c->sample = (struct sample_params){ .temp = temps[pick(4)],
                                        .top_p = pick(2) ? 1 : 0.9f,
                                        .repeat_penalty = pick(3) ? 1 : 1.4f,
                                        .seed = pick(100) };
    c->policy = (enum policy)pick(POLICY_NEVER);
    if (c->policy < POLICY_ALWAYS)
        c->threshold = score_low[c->policy] +
                       (score_high[c->policy] - score_low[c->policy]) * (float)(1 + pick(9)) / 10;
    if (pick(8) == 0) {
        c->policy = POLICY_POSITION;
        c->threshold = 0.5f;
        snprintf(c->place, sizeof(c->place), "%u", (unsigned)pick(12));
    }
    if (pick(6) == 0)
        c->cloud_limit = 1 + pick(20);
    c->seed = pick(100);
    c->delay = pick(3) == 0 ? 2 : 1 + pick(120);
    c->most_tokens = pick(4) == 0 ? pick(20) : UINT64_MAX;
    c->most_input = pick(4) == 0 ? pick(2000) : UINT64_MAX;
    c->private = pick(5) == 0;
    c->required = c->truth.fault <= 10 && pick(6) == 0;
    c->max_tokens = pick(6) == 0 ? pick(4) : 10 + pick(MOST - 10);
    c->max_routed = pick(4) == 0 ? (float)(1 + pick(9)) / 10 : 0;
    c->most = pick(8) == 0 ? 1 + pick(MOST) : 0;
    c->edges = pick(6) == 0;
    for (size_t i = 0; i < TEXTS; i++) {
        bool brim = pick(10) == 0; /* the context ends the text */
        c->nprompt[i] = brim ? TINY_CONTEXT - pick(12) : 1 + pick(6);
        for (size_t j = 0; j < c->nprompt[i]; j++)
            c->prompt[i][j] = (uint32_t)(32 + rand_below(c->seed + i, j, 90)) - (uint32_t)(j == 3);
    }
}

/* Make a place that occurs, unless it is a number: what the first two tokens say. */
static inline void make_place(struct setup *c, const struct text *x)
{
    size_t sizes[2];
    const char *one = tokenizer_bytes(engine.tokenizer, x->at[0].id, &sizes[0]);
    const char *two = tokenizer_bytes(engine.tokenizer, x->at[1].id, &sizes[1]);
    if (one && two && *one && sizes[0] + sizes[1] < sizeof(c->place))
        snprintf(c->place, sizeof(c->place), "%.*s%.*s", (int)sizes[0], one, (int)sizes[1], two);
}

/* Make stop strings that do occur: bytes of the text without them. */
static inline void make_stops(struct setup *c, const struct text *x)
{
    if (c->policy == POLICY_POSITION && x->n > 4)
        make_place(c, x);
    for (size_t k = 0; k < 2 && x->n > 4; k++) {
        size_t from = 2 + pick(x->n - 4), length = 1 + pick(3);
        for (size_t i = 0; i < length && from + i < x->n; i++)
            c->stop[k][i] = x->at[from + i].id < 256 ? (char)x->at[from + i].id : '\0';
        if (!c->stop[k][0])
            return;
        c->stops[k] = c->stop[k];
    }
}

/* Two ways to write the texts of a case made the same calls, and left the gate the same. */
static inline void compare_calls(const struct result *a, const struct result *b)
{
    CHECK(a->sim.ncommitted == b->sim.ncommitted);
    CHECK(!memcmp(a->sim.committed, b->sim.committed, a->sim.ncommitted * sizeof(uint64_t)));
    CHECK(a->quota.asked == b->quota.asked && a->quota.sent == b->quota.sent);
    CHECK(!memcmp(&a->gate.breaker, &b->gate.breaker, sizeof(a->gate.breaker)));
    CHECK(a->gate.refused == b->gate.refused && a->gate.out == 0 && b->gate.out == 0);
    CHECK(a->sim.nasked == b->sim.nasked && a->sim.ndropped == b->sim.ndropped);
    CHECK(!memcmp(a->sim.asked, b->sim.asked, a->sim.nasked * sizeof(uint64_t)));
}

/* Collect the range of scores of each policy over some text, so that thresholds fall inside. */
static inline void look_at_scores(void)
{
    struct decode_stats stats;
    struct sampler *s;
    static struct text x;
    const struct sample_params params = { .temp = 1, .top_p = 1, .repeat_penalty = 1 };
    const uint32_t prompt = 65;
    CHECK(sampler_open(&s, &params, tokenizer_size(engine.tokenizer), &engine.kernels, NULL) == OK);
    for (int p = POLICY_MLP; p < POLICY_ALWAYS; p++) {
        const struct decode_options o = {
            .policy = (enum policy)p, .max_tokens = SCORES, .emit = on_token, .arg = &x
        };
        x.n = 0;
        CHECK(decode_run(&stats, session, engine.tokenizer, s, router_for((enum policy)p, 0), NULL,
                         &prompt, 1, &o, NULL) == OK);
        score_low[p] = 1;
        for (size_t i = 0; i < x.n; i++) {
            score_low[p] = x.at[i].score < score_low[p] ? x.at[i].score : score_low[p];
            score_high[p] = x.at[i].score > score_high[p] ? x.at[i].score : score_high[p];
        }
        CHECK(score_low[p] < score_high[p]);
    }
    sampler_close(s);
}

#endif
