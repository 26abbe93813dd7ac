/* The fleet's model against what queueing theory and the event model of decoding ahead say. */
#include <math.h>
#include <stdlib.h>

#include "kernels/math.h"
#include "kernels/sys/base.h"
#include "tests/support/test.h"
#include "tools/cli/setup.h"
#include "tools/lab/clock/ahead_model.h"
#include "tools/lab/clock/fleet.h"

/* Prints both values where they differ by more than this share. */
static void near(const char *what, double have, double want, double share)
{
    if (!(fabs(have - want) <= share * want))
        fprintf(stderr, "%s: %g, expected %g\n", what, have, want);
    CHECK(fabs(have - want) <= share * want);
}

struct figures {
    double load, busy, calls, batch, read, p50, p95, answers, answer_ms;
};

static struct figures run(const struct fleet_options *o, size_t n)
{
    struct fleet *f;
    struct err err;
    CHECK(fleet_open(&f, o, n, &err) == OK && fleet_run(f, NULL, &err) == OK);
    double ms = f->now - f->since, calls = (double)f->count.calls;
    double answers = (double)f->count.answers;
    const struct figures figures = { .load = f->count.work / ms,
                                     .busy = f->count.busy / ms,
                                     .calls = 1000 * calls / ms,
                                     .batch = (double)f->count.joined / (double)f->count.passes,
                                     .read = (double)f->count.read / calls,
                                     .p50 = fleet_quantile(f, 0.5),
                                     .p95 = fleet_quantile(f, 0.95),
                                     .answers = 1000 * answers / ms,
                                     .answer_ms = f->count.answers_ms / answers };
    free(f);
    return figures;
}

/* Devices that make one call per answer, which takes as long as the answer, and a server that
 * computes one call at a time. */
static const struct fleet_options single = { .routed = 0.999999,
                                             .prompt = 7,
                                             .tokens = 1,
                                             .agree = 1,
                                             .prefill = 1e9,
                                             .decode = 1e9,
                                             .step_ms = 10,
                                             .batch = 1 };

/* Many devices that ask seldom make a Poisson process: M/D/1 waits rho D / 2 (1 - rho), after
 * Pollaczek and Khinchine. */
static void test_queue(void)
{
    const double rhos[] = { 0.3, 0.5, 0.7 };
    const size_t n = 5000;
    for (size_t i = 0; i < 3; i++) {
        struct fleet_options o = single;
        o.idle = (double)n / 100 / rhos[i];
        struct figures load = run(&o, n);
        near("M/D/1 utilisation", load.busy, rhos[i], 0.02);
        near("M/D/1 time in the system", load.answer_ms, 10 + rhos[i] * 10 / (2 * (1 - rhos[i])),
             0.03);
    }
}

/* The limits of a closed system: one device never waits; many have N = X (R + Z), and too many
 * X = 1 / D. */
static void test_limits(void)
{
    struct fleet_options o = single;
    o.latency = 30;
    o.idle = 0.005;
    struct figures one = run(&o, 1);
    near("one device", one.answer_ms, 40, 1e-3);
    near("p95 of equal times", one.p95, 40, 0.001);
    o.idle = 1;
    struct figures many = run(&o, 400);
    near("throughput", many.calls, 100, 1e-6);
    near("Little's law", many.answer_ms, 400 * 10 - 1000, 0.01);
    near("load of a step that does little", many.load, 100 * 7 / 1e9, 1e-6);
    /* Calls of 10 tokens in one pass: the rate is all that counts. */
    o.prefill = 1000;
    o.step_ms = 1;
    o.batch = 0;
    o.prompt = 10;
    struct figures wide = run(&o, 400);
    near("rate with batches", wide.calls, 100, 1e-3);
    near("full", wide.load, 1, 1e-3);
    CHECK(wide.batch > 50);
    o.chunk = 20;
    struct figures narrow = run(&o, 400);
    near("rate with chunks", narrow.calls, 100, 1e-3);
    near("calls of a chunk", narrow.batch, 2, 0.01);
}

/* Little's law in overload, where an answer of many calls takes nearly an hour: all devices are
 * either idle or writing. */
static void test_overload(void)
{
    const size_t n = 15000;
    const struct fleet_options o = { .idle = 60,
                                     .edge_ms = 40,
                                     .routed = 0.07,
                                     .agree = 0.7,
                                     .prompt = 150,
                                     .tokens = 100,
                                     .prefill = 11146,
                                     .decode = 1443,
                                     .step_ms = 11.3,
                                     .latency = 50,
                                     .chunk = 8192,
                                     .no_cache = true };
    struct figures load = run(&o, n);
    near("answers of full server", load.answers, load.calls / 7, 0.01);
    near("Little's law in overload", load.answers * (load.answer_ms / 1000 + o.idle), (double)n,
         0.01);
}

/* Return the expected time of a token of which a share is routed, by the event model over a
 * long text with random marks. */
static double long_text(double t, double routed, double agree, double latency)
{
    enum { LENGTH = 1 << 20 };
    static unsigned char marks[LENGTH];
    static double calls[LENGTH], at[LENGTH];
    for (size_t i = 0; i < LENGTH; i++) {
        marks[i] = (unsigned char)((rand_unit(1, i) < routed ? AHEAD_MODEL_ROUTED : 0) |
                                   (rand_unit(2, i) < agree ? AHEAD_MODEL_AGREES : 0));
        calls[i] = latency;
    }
    ahead_model_decisions(at, marks, calls, LENGTH, t, true);
    return (at[LENGTH - 1] - at[0]) / (LENGTH - 1);
}

/* One device sees every call take latency and step: ahead_model.h gives the time per token. */
static void test_ahead(void)
{
    struct fleet_options o = { .idle = 0.001,
                               .edge_ms = 10,
                               .prompt = 5,
                               .tokens = 500,
                               .agree = 0.7,
                               .prefill = 1e12,
                               .decode = 1,
                               .step_ms = 15,
                               .latency = 60 };
    for (size_t i = 1; i <= 3; i++) {
        o.routed = 0.1 * (double)i;
        struct figures load = run(&o, 1);
        near("time per token", load.answer_ms / (double)o.tokens, long_text(10, o.routed, 0.7, 75),
             0.015);
        near("calls", load.calls / load.answers, o.routed * (double)o.tokens, 0.02);
    }
}

/* With the cache a text is read once; a memory that is too small falls back to reading it again. */
static void test_cache(void)
{
    struct fleet_options o = { .idle = 0.1,
                               .edge_ms = 5,
                               .prompt = 50,
                               .tokens = 100,
                               .agree = 1,
                               .routed = 0.1,
                               .prefill = 1e5,
                               .decode = 1e4,
                               .step_ms = 5,
                               .latency = 20,
                               .no_cache = true };
    struct figures without = run(&o, 20);
    near("a call reads the text before its token", without.read, 50 + 49.5, 0.02);
    o.no_cache = false;
    struct figures with = run(&o, 20);
    /* The last of the routed tokens is on average 1 / r - 1 before the end. */
    near("an answer is read once", with.read * with.calls / with.answers, 50 + 100 - 10, 0.02);
    o.kv = 20 * 150;
    near("all fits", run(&o, 20).read, with.read, 1e-9);
    o.kv = 10 * 150;
    double some = run(&o, 20).read;
    o.kv = 151;
    double none = run(&o, 20).read;
    CHECK(with.read < some && some < none);
    CHECK(none <= without.read * 1.05);
}

/* Whole answers: one read, then one token per pass, as many calls at a time as fit. */
static void test_whole(void)
{
    struct fleet_options o = { .prompt = 100,
                               .tokens = 50,
                               .routed = 1,
                               .prefill = 1000,
                               .decode = 200,
                               .step_ms = 1,
                               .latency = 10,
                               .no_cache = true };
    struct figures one = run(&o, 1);
    near("an answer alone", one.answer_ms, 100 + 49 * 5 + 10, 1e-9);
    near("median: the first token", one.p50, 110, 0.001);
    o.kv = 4 * 149;
    struct figures many = run(&o, 64);
    near("four at a time", many.batch, 4, 0.01);
    near("answers per second", many.answers, 1000 / (100 + 49 * 5.0), 0.01);
    o.prefill = 1e6;
    o.decode = 20;
    near("median: a later token", run(&o, 1).p50, 50, 0.001);
}

static void test_interrupt(void)
{
    struct fleet *f;
    struct err err;
    CHECK(fleet_open(&f, &single, 1, &err) == OK);
    interrupted = 1;
    CHECK(fleet_run(f, NULL, &err) == ERR_STOP);
    free(f);
}

int main(void)
{
    test_queue();
    test_limits();
    test_overload();
    test_ahead();
    test_cache();
    test_whole();
    test_interrupt();
    return 0;
}
