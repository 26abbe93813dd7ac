/* The event model of decoding ahead, on texts short enough to follow by hand: a step takes 10, a
 * call 25. */
#include "tests/tools/long_text.h"
#include "tests/support/test.h"
#include "tools/lab/clock/ahead_model.h"

enum { E = 0, R = AHEAD_MODEL_ROUTED, A = AHEAD_MODEL_ROUTED | AHEAD_MODEL_AGREES };

/* The text must take `total`, with `wasted` calls. */
static void holds(const unsigned char *marks, size_t n, size_t ahead, double total, size_t wasted)
{
    size_t in_vain = 99;
    double ms = even_text(marks, n, 10, 25, ahead, &in_vain);
    CHECK_MSG(ms > total - 1e-9 && ms < total + 1e-9 && in_vain == wasted,
              "ahead %zu: %g ms and %zu in vain, not %g and %zu", ahead, ms, in_vain, total,
              wasted);
}

static void test_by_hand(void)
{
    const unsigned char edge[] = { E, E, E, E }, alone[] = { E, A, E, E, E, E, E };
    const unsigned char wrong[] = { E, R, E, E, E, E }, last[] = { E, E, R };
    const unsigned char pair[] = { E, A, E, A, E, E, E }, trap[] = { E, R, E, A, E, E };
    const unsigned char first[] = { R, E, E };
    for (size_t w = 0; w <= 4; w++)
        holds(edge, 4, w, 30, 0);
    holds(alone, 7, 0, 85, 0); /* 6 steps and a call */
    holds(alone, 7, 1, 60, 0); /* requested at 10, answered at 35, seen at 40: hidden */
    holds(wrong, 6, 0, 75, 0);
    holds(wrong, 6, 1, 80, 0); /* requested at 10, seen at 40, evaluated until 50, then 3 steps */
    holds(last, 3, 0, 45, 0);  /* nothing to do in the meantime */
    holds(last, 3, 1, 45, 0);
    holds(pair, 7, 1, 65, 0);  /* the second waits from 30 to 35 for the first; seen at 65 */
    holds(pair, 7, 2, 60, 0);  /* requested at 30, answered at 55: both hidden */
    holds(trap, 6, 2, 85, 1);  /* requested at 10 and 30, seen at 40; token 3 again at 60, and from
                                  80 on only waiting until 85 is left */
    holds(first, 3, 0, 20, 0); /* the clock starts at the first decision */
    holds(first, 3, 1, 20, 0);
}

/* The tokens must be decided at these times. */
static void decided(const unsigned char *marks, const double *calls, size_t n, size_t ahead,
                    const double *want)
{
    double at[8];
    CHECK(ahead_model_decisions(at, marks, calls, n, 10, ahead) == 0);
    for (size_t i = 0; i < n; i++) {
        CHECK_MSG(at[i] > want[i] - 1e-9 && at[i] < want[i] + 1e-9,
                  "token %zu: decided at %g, expected %g", i, at[i], want[i]);
    }
}

static void test_decisions(void)
{
    /* The second answer is there before the first, but waits for its turn. */
    const unsigned char marks[] = { E, A, E, A, E, E };
    const double calls[] = { 0, 60, 0, 5, 0, 0 };
    const double ahead[] = { 0, 70, 70, 70, 70, 70 }, step[] = { 0, 70, 80, 95, 105, 115 };
    decided(marks, calls, 6, 2, ahead);
    decided(marks, calls, 6, 0, step);
    /* The first answer, seen at 40, decides what was written before the second call. */
    const unsigned char two[] = { E, A, E, A, E, E };
    decided(two, (double[]){ 0, 25, 0, 60, 0, 0 }, 6, 2, (double[]){ 0, 40, 40, 90, 90, 90 });
    /* An answer that comes just as a step ends is seen after the next one. */
    const unsigned char tie[] = { A, E, E, E };
    decided(tie, (double[]){ 10, 0, 0, 0 }, 4, 1, (double[]){ 20, 20, 20, 30 });
}

static void test_expected(void)
{
    double step = long_text(10, 0.07, 0.7, 200, 0), before = step;
    CHECK(step > 23.8 && step < 24.2);
    for (size_t w = 1; w <= 8; w *= 2) {
        double ms = long_text(10, 0.07, 0.7, 200, w);
        CHECK(ms < before && ms > 14.2);
        before = ms;
    }
    CHECK(long_text(10, 0, 0.7, 200, 4) == 10);
}

int main(void)
{
    test_by_hand();
    test_decisions();
    test_expected();
    return 0;
}
