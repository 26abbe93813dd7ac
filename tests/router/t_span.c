/* Tests the reach of a reply on cases checked by hand, with every window: what ends it, and that it
 * does not depend on where an answer came from. check_reach judges every token of them. */
#include "tests/router/ahead_help.h"

enum { REPLY = 4 };

/* Make a case in which a token in four begins a reply, and half of the others in reach are
 * taken. */
static void span_case(struct setup *c)
{
    memset(c, 0, sizeof(*c));
    c->truth = (struct sim_truth){ .seed = 5, .tokens = REPLY, .room = SIM_MEMO };
    c->sample = (struct sample_params){ .top_p = 1, .repeat_penalty = 1 };
    c->policy = POLICY_RANDOM;
    c->threshold = 0.25f;
    c->span = 0.625f;
    c->seed = 3;
    c->limits = caps_none;
    c->max_tokens = MOST;
    c->delay = 40;
    for (size_t i = 0; i < TEXTS; i++)
        c->prompt[i][c->nprompt[i]++] = (uint32_t)(70 + i);
}

/* Count the tokens of a text that the first threshold would have left to the local model. */
static size_t taken(const struct setup *c, const struct text *x)
{
    size_t n = 0;
    for (size_t i = 0; i < x->n; i++)
        n += x->at[i].source == SOURCE_CLOUD && x->at[i].score >= c->threshold;
    return n;
}

/* Run a case with every window; all must be the same. Returns the tokens taken in a text. */
static size_t run_all(const struct setup *c)
{
    for (size_t w = 0; w < WINDOWS; w++) {
        run_window(&results[w], c, windows[w], w);
        for (size_t i = 0; i < TEXTS; i++)
            compare_text(&results[0].text[i], &results[w].text[i]);
    }
    return taken(c, &results[0].text[0]);
}

/* A token in reach costs no call, however the cloud differs from the local model; without a second
 * threshold above the first, and with replies of one token, nothing is in reach. */
static void test_plain(void)
{
    static struct setup c;
    span_case(&c);
    const struct text *x = &results[0].text[0];
    size_t n = run_all(&c);
    CHECK(n >= 4 && x->stats.memo >= n);
    c.truth.agree = 100;
    CHECK(run_all(&c) > 0);
    c.span = c.threshold;
    CHECK(run_all(&c) == 0 && x->stats.cloud > 8);
    c.span = c.threshold / 2;
    CHECK(run_all(&c) == 0 && x->stats.cloud > 8);
    span_case(&c);
    c.truth.tokens = 1;
    CHECK(run_all(&c) == 0 && x->stats.cloud > 8);
    c.truth.tokens = REPLY;
    c.span = 1; /* all of a reply is taken */
    n = run_all(&c);
    CHECK(n > 12 && x->stats.cloud > REPLY * (x->stats.calls - 1));
    c.policy = POLICY_ALWAYS; /* no score, so nothing to compare */
    CHECK(run_all(&c) == 0 && x->stats.cloud == MOST);
}

/* Answers that others have left in the store are as good as calls. */
static void test_known(void)
{
    static struct setup c;
    static struct text called;
    span_case(&c);
    CHECK(run_all(&c) >= 4);
    called = results[0].text[0];
    c.truth.store = 100;
    CHECK(run_all(&c) >= 4);
    const struct text *x = &results[0].text[0];
    CHECK(x->stats.calls == 0 && x->stats.cloud == called.stats.cloud && x->n == called.n);
    for (size_t i = 0; i < x->n; i++) {
        CHECK(x->at[i].id == called.at[i].id && x->at[i].source == called.at[i].source);
        CHECK(x->at[i].threshold == called.at[i].threshold);
    }
}

/* A token whose call fails, or must not be made, is the local model's and has no reach. */
static void test_failed(void)
{
    static struct setup c;
    span_case(&c);
    c.truth.fault = 100;
    CHECK(run_all(&c) == 0 && results[0].text[0].stats.fallback > 8);
    c.truth.fault = 40;
    CHECK(run_all(&c) > 0 && results[0].text[0].stats.reasons[GATE_FAULT] > 0);
    span_case(&c);
    c.private = true;
    c.prompt[0][0] = 'Q'; /* from there on nothing is sent */
    CHECK(run_all(&c) == 0 && results[0].text[0].stats.reasons[GATE_PRIVATE] > 8);
    CHECK(taken(&c, &results[0].text[1]) > 0);
}

/* A limit that leaves one token a call makes the others of its reply take calls of their own, as
 * far as it goes; then there is no reach. */
static void test_limit(void)
{
    static struct setup c;
    span_case(&c);
    const struct text *x = &results[0].text[0];
    for (c.limits.tokens = 1; c.limits.tokens < 3 * REPLY; c.limits.tokens++) {
        run_all(&c);
        CHECK(results[0].count.tokens == c.limits.tokens && x->stats.fallback > 0);
        CHECK(x->stats.cloud <= c.limits.tokens && x->stats.calls <= x->stats.cloud);
    }
}

/* A server that gives one token a call: the reach is the same, and its tokens take calls. */
static void test_server(void)
{
    static struct setup c;
    span_case(&c);
    size_t n = run_all(&c), cloud = results[0].text[0].stats.cloud;
    c.truth.alone = true;
    CHECK(run_all(&c) == n && results[0].text[0].stats.cloud == cloud);
    CHECK(results[0].text[0].stats.calls == cloud && !results[0].text[0].stats.memo);
    c.truth.store = 50;
    for (c.truth.seed = 6; c.truth.seed < 20; c.truth.seed++)
        run_all(&c);
}

int main(void)
{
    open_all();
    test_plain();
    test_known();
    test_failed();
    test_limit();
    test_server();
    close_all();
    return 0;
}
