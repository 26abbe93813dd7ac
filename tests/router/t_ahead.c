/* Tests that decoding ahead writes what decoding in step writes: random clouds, networks, policies,
 * samplers, stop strings and limits, against a simulated cloud. An emulator ($RUN) takes a quarter
 * of the cases. */
#include "tests/router/ahead_help.h"

enum { CASES = 1500 };

static struct { /* what occurred in all cases */
    size_t memo, store, stale, retries, reason[GATE_REASONS], finish[FINISH_ERROR + 1];
    size_t required, agreed, comes, unread, placed, held;
} met;

static void compare(size_t w)
{
    const struct result *a = &results[0], *b = &results[w];
    for (size_t i = 0; i < TEXTS; i++)
        compare_text(&a->text[i], &b->text[i]);
    compare_calls(a, b);
}

/* Note what occurred, so that the test can show that it covers everything. */
static void count(const struct setup *c)
{
    for (size_t w = 0; w < WINDOWS; w++) {
        const struct result *r = &results[w];
        met.stale += r->sim.nstale;
        met.retries += r->sim.retries;
        met.comes += r->sim.comes;
        met.unread += r->sim.unread;
        for (size_t i = 0; i < TEXTS; i++) {
            const struct text *x = &r->text[i];
            met.held += check_share(c, x);
            met.memo += x->stats.memo;
            met.store += x->stats.store;
            met.finish[x->stats.finish]++;
            met.required += x->rc == ERR_NET || x->rc == ERR_REMOTE || x->rc == ERR_TEXT;
            for (size_t k = 0; k < GATE_REASONS; k++)
                met.reason[k] += x->stats.reasons[k];
            for (size_t k = 0; w && k < x->n; k++) {
                met.placed += c->policy == POLICY_POSITION && !place_is_number(c->place) &&
                              x->at[k].source == SOURCE_CLOUD;
                met.agreed += x->at[k].source == SOURCE_CLOUD && x->at[k].has_edge &&
                              x->at[k].edge_id == x->at[k].id;
            }
        }
    }
}

/* A shorter answer is the beginning of a longer one. */
static void compare_shorter(const struct setup *c)
{
    static struct result fewer;
    struct setup less = *c;
    size_t n = less.max_tokens = c->max_tokens / 2;
    run_window(&fewer, &less, c->max_tokens % 2, 0);
    const struct text *x = &fewer.text[0], *y = &results[0].text[0];
    CHECK(x->rc != OK || y->rc != OK || x->n == (y->n < n ? y->n : n));
    for (size_t i = 0; i < x->n; i++)
        CHECK(x->at[i].id == y->at[i].id && x->at[i].source == y->at[i].source);
}

static void test_cases(void)
{
    static struct setup c;
    const char *run = getenv("RUN");
    size_t cases = run && *run ? CASES / 4 : CASES;
    for (size_t i = 0; i < cases; i++) {
        make_case(&c);
        if (pick(3) == 0) {
            run_window(&results[0], &c, 0, i);
            make_stops(&c, &results[0].text[0]);
        }
        for (size_t w = 0; w < WINDOWS; w++) {
            run_window(&results[w], &c, w, rand_u64(i, w));
            compare(w);
        }
        compare_shorter(&c);
        count(&c);
    }
    if (cases < CASES)
        return;
    CHECK(met.memo > 500 && met.store > 500 && met.stale > 200);
    CHECK(met.retries > 500 && met.required > 5 && met.agreed > 500);
    CHECK(met.comes > 500 && met.unread > 30);
    CHECK(met.placed > 10 && met.held > 500);
    for (int k = GATE_REFUSED; k < GATE_REASONS; k++)
        CHECK(met.reason[k] > 50);
    for (int k = FINISH_EOS; k <= FINISH_ERROR; k++)
        CHECK(met.finish[k] > 5);
}

/* Cases checked by hand. */

/* Make a case without faults and limits in which every token is requested. */
static void plain_case(struct setup *c)
{
    memset(c, 0, sizeof(*c));
    c->truth = (struct sim_truth){ .seed = 5, .agree = 60, .tokens = 1, .room = SIM_MEMO };
    c->sample = (struct sample_params){ .top_p = 1, .repeat_penalty = 1 };
    c->policy = POLICY_ALWAYS;
    c->most_tokens = c->most_input = UINT64_MAX;
    c->max_tokens = MOST;
    c->delay = 100;
    for (size_t i = 0; i < TEXTS; i++)
        c->prompt[i][c->nprompt[i]++] = (uint32_t)(70 + i);
}

/* Ctrl-C while calls are in flight: what was shown is what in step shows, and no call is left. */
static void test_interrupt(void)
{
    static struct setup c;
    plain_case(&c);
    run_window(&results[0], &c, 0, 1);
    for (size_t k = 1; k < 20; k++) {
        c.interrupt_after = k;
        run_window(&results[1], &c, 1, k);
        const struct text *a = &results[0].text[0], *b = &results[1].text[0];
        CHECK(b->rc == ERR_STOP && b->n >= k && b->stats.finish == FINISH_ERROR);
        for (size_t i = 0; i < b->n; i++)
            CHECK(a->at[i].id == b->at[i].id);
    }
}

/* A limit of each text alone, beside which no guess of the edge stands; t_gate.c has the others. */
static void test_limit(void)
{
    static struct setup c;
    plain_case(&c);
    c.truth.agree = 0;
    c.cloud_limit = 9;
    for (size_t w = 0; w < WINDOWS; w++) {
        run_window(&results[w], &c, w, w);
        for (size_t i = 0; i < TEXTS; i++) {
            const struct decode_stats *s = &results[w].text[i].stats;
            CHECK(s->cloud == 8 && s->calls == 8);
        }
    }
}

/* With 8 tokens per call, what a call in flight will bring is not requested again. */
static void test_many(void)
{
    static struct setup c;
    plain_case(&c);
    c.truth.agree = 100;
    c.truth.tokens = 8;
    c.max_tokens = 24;
    for (size_t w = 0; w < WINDOWS; w++) {
        run_window(&results[w], &c, w, w);
        const struct decode_stats *s = &results[w].text[0].stats;
        CHECK(s->calls == 3 && s->committed == 3 && s->memo == 21 && s->cloud == 24);
        CHECK(results[w].quota.asked == 24 + results[w].text[1].stats.committed * 8);
    }
}

/* Nothing is requested beyond a predicted end: a stop string, half of it from the cloud. */
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
        run_window(&results[1], &c, 1, k);
        if (results[1].text[0].n != k + 2) /* the same two tokens occurred before */
            continue;
        tried++;
        CHECK(results[1].text[0].stats.finish == FINISH_STOP);
        CHECK(results[1].text[0].reach == c.nprompt[0] + k + 1);
    }
    CHECK(tried > 2);
}

int main(void)
{
    routers_open(true);
    test_interrupt();
    test_limit();
    test_many();
    test_stop_ahead();
    look_at_scores();
    test_cases();
    routers_close();
    return 0;
}
