/* Tests that decoding ahead writes what decoding in step writes: random clouds, networks, policies,
 * samplers, stop strings and limits, against a simulated cloud. An emulator ($RUN) takes a quarter
 * of the cases. */
#include <stdlib.h>
#include <string.h>

#include "tests/router/ahead_cases.h"

enum { CASES = 1500 };

static struct { /* what occurred in all cases */
    size_t memo, store, stale, retries, reason[GATE_REASONS], finish[FINISH_ERROR + 1];
    size_t required, agreed, comes, unread, placed, held;
} met;

/* Compare window w with in step. */
static void compare(size_t w)
{
    const struct result *a = &results[0], *b = &results[w];
    for (size_t i = 0; i < TEXTS; i++) {
        compare_text(&a->text[i], &b->text[i]);
    }
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

int main(void)
{
    open_all();
    look_at_scores();
    test_cases();
    close_all();
    return 0;
}
