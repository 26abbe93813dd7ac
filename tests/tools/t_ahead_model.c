/* The event model of decoding ahead, on texts short enough to follow by hand: a step takes 10, a
 * call 25. */
#include "tests/tools/long_text.h"
#include "tests/support/test.h"
#include "tools/lab/clock/ahead_model.h"

enum { E = 0, R = AHEAD_MODEL_ROUTED, A = AHEAD_MODEL_ROUTED | AHEAD_MODEL_AGREES };

/* The text must take `total`. */
static void holds(const unsigned char *marks, size_t n, bool ahead, double total)
{
    double ms = even_text(marks, n, 10, 25, ahead);
    CHECK_MSG(ms > total - 1e-9 && ms < total + 1e-9, "ahead %d: %g ms, not %g", ahead, ms, total);
}

static void test_by_hand(void)
{
    const unsigned char edge[] = { E, E, E, E }, alone[] = { E, A, E, E, E, E, E };
    const unsigned char wrong[] = { E, R, E, E, E, E }, last[] = { E, E, R };
    const unsigned char pair[] = { E, A, E, A, E, E, E };
    const unsigned char first[] = { R, E, E };
    for (int w = 0; w < 2; w++)
        holds(edge, 4, w, 30);
    holds(alone, 7, 0, 85); /* 6 steps and a call */
    holds(alone, 7, 1, 60); /* requested at 10, answered at 35, seen at 40: hidden */
    holds(wrong, 6, 0, 75);
    holds(wrong, 6, 1, 80); /* requested at 10, seen at 40, evaluated until 50, then 3 steps */
    holds(last, 3, 0, 45);  /* nothing to do in the meantime */
    holds(last, 3, 1, 45);
    holds(pair, 7, 1, 65);  /* the second waits from 30 to 35 for the first; seen at 65 */
    holds(first, 3, 0, 20); /* the clock starts at the first decision */
    holds(first, 3, 1, 20);
}

/* The tokens must be decided at these times. */
static void decided(const unsigned char *marks, const double *calls, size_t n, bool ahead,
                    const double *want)
{
    double at[8];
    ahead_model_decisions(at, marks, calls, n, 10, ahead);
    for (size_t i = 0; i < n; i++) {
        CHECK_MSG(at[i] > want[i] - 1e-9 && at[i] < want[i] + 1e-9,
                  "token %zu: decided at %g, expected %g", i, at[i], want[i]);
    }
}

static void test_decisions(void)
{
    /* The second call begins when the first has been answered. */
    const unsigned char marks[] = { E, A, E, A, E, E };
    const double calls[] = { 0, 60, 0, 5, 0, 0 };
    const double ahead[] = { 0, 70, 70, 80, 80, 90 }, step[] = { 0, 70, 80, 95, 105, 115 };
    decided(marks, calls, 6, 1, ahead);
    decided(marks, calls, 6, 0, step);
    /* An answer that comes just as a step ends is seen after the next one. */
    const unsigned char tie[] = { A, E, E, E };
    decided(tie, (double[]){ 10, 0, 0, 0 }, 4, 1, (double[]){ 20, 20, 20, 30 });
}

static void test_expected(void)
{
    double step = long_text(10, 0.07, 0.7, 200, 0), ahead = long_text(10, 0.07, 0.7, 200, 1);
    CHECK(step > 23.8 && step < 24.2 && ahead < step && ahead > 14.2);
    CHECK(long_text(10, 0, 0.7, 200, 1) == 10);
}

int main(void)
{
    test_by_hand();
    test_decisions();
    test_expected();
    return 0;
}
