/* ahead_cases.h - draws random cases for t_ahead.c and t_draft.c: clouds, networks, policies,
 * samplers, limits, prompts and stop strings. */
#ifndef TESTS_ROUTER_AHEAD_CASES_H
#define TESTS_ROUTER_AHEAD_CASES_H

#include "kernels/math.h"
#include "tests/router/ahead_help.h"

enum { SCORES = 40 };

static float low[POLICY_ALWAYS], high[POLICY_ALWAYS]; /* range of the scores */

static uint64_t at; /* counter of the random numbers that make the cases */

/* Draw a number below `below`. */
static inline uint64_t pick(uint64_t below)
{
    return rand_below(81, at++, below);
}

/* Draw a case. */
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
        c->threshold =
            low[c->policy] + (high[c->policy] - low[c->policy]) * (float)(1 + pick(9)) / 10;
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

/* Make a place that does occur, unless the number that it is instead comes before it: what the
 * first two tokens say. */
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
        CHECK(decode_run(&stats, session, engine.tokenizer, s, router_for((enum policy)p, 0), NULL,
                         &prompt, 1, &o, &err) == OK);
        low[p] = 1;
        for (size_t i = 0; i < x.n; i++) {
            low[p] = x.at[i].score < low[p] ? x.at[i].score : low[p];
            high[p] = x.at[i].score > high[p] ? x.at[i].score : high[p];
        }
        CHECK(low[p] < high[p]);
    }
    sampler_close(s);
}

#endif
