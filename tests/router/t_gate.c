/* t_gate.c - tests the gate and its breaker by hand, above all with several texts whose calls are
 * in flight together: a limit holds for all of them, a refusal outlives the others' answers, and
 * one of them probes. */
#include "router/gate.h"

#include "tests/support/test.h"

static const struct err why = { "no" };

/* Decide on a call for *tokens tokens after four ids. */
static enum gate_reason decide(struct gate *g, struct gate_text *t, size_t *tokens)
{
    static const uint32_t ids[4] = { 0 };
    struct err err;
    return gate_decide(g, t, ids, 4, tokens, &err);
}

/* After three faults in a row it opens; every probe fails, then one is answered. */
static void test_breaker(void)
{
    struct gate gate = { 0 };
    struct gate_text t = { 0 };
    size_t one = 1;
    for (size_t i = 0; i < 3; i++) {
        CHECK(decide(&gate, &t, &one) == GATE_OPEN && !t.probing);
        gate_done(&gate, &t, GATE_FAULT, 1, &why);
    }
    gate_done(&gate, &t, GATE_FAULT, 1, &why); /* requested before it opened */
    for (size_t k = 0, held = 0; k < 7; k++, held = 0) {
        for (; decide(&gate, &t, &one) == GATE_BREAKER; held++)
            continue;
        CHECK(t.probing && held == (k < 4 ? (size_t)4 << k : 64));
        gate_done(&gate, &t, k < 6 ? GATE_FAULT : GATE_OPEN, 1, &why);
    }
    for (size_t i = 0; i < 5; i++) { /* two faults in a row are not three */
        CHECK(decide(&gate, &t, &one) == GATE_OPEN && !t.probing);
        gate_done(&gate, &t, i == 2 ? GATE_OPEN : GATE_FAULT, 1, &why);
    }
    CHECK(decide(&gate, &t, &one) == GATE_OPEN);
}

/* When the server refuses one of several calls, it stays switched off, whatever others bring. */
static void test_refused(void)
{
    struct gate gate = { 0 };
    struct gate_text a = { 0 }, b = { 0 }, c = { 0 };
    gate_done(&gate, &a, GATE_REFUSED, 1, &why);
    gate_done(&gate, &b, GATE_OPEN, 1, &why);
    CHECK(gate.refused && a.tokens == 1 && b.tokens == 1);
    gate_done(&gate, &c, GATE_REFUSED, 1, &why);
    gate_done(&gate, &c, GATE_UNFIT, 1, &why);
    gate_done(&gate, &c, GATE_OPEN, 1, &why);
    CHECK(gate.refused && c.unfit && !b.unfit && c.tokens == 3);
}

/* A quota is never passed, by tokens or by ids; a call that does not fit takes nothing. */
static void test_quota(void)
{
    struct quota q = { .tokens = 9, .input = 20 };
    CHECK(quota_limits(&q) && quota_take(&q, 4, 8) && quota_take(&q, 5, 12));
    CHECK(!quota_take(&q, 1, 0) && !quota_take(&q, 0, 1) && quota_take(&q, 0, 0));
    CHECK(q.asked == 9 && q.sent == 20);
    quota_give(&q, 5, 12);
    CHECK(!quota_take(&q, 1, 13) && q.asked == 4 && q.sent == 8);
    CHECK(!quota_take(&q, UINT64_MAX, 0) && !quota_take(&q, 0, UINT64_MAX));
    struct quota none = { .tokens = UINT64_MAX, .input = UINT64_MAX };
    CHECK(!quota_limits(&none) && quota_take(&none, 7, UINT64_MAX) && !quota_take(&none, 0, 1));
}

/* The calls of several texts keep to the limits together, and ask for what is left. */
static void test_limits(void)
{
    struct quota q = { .tokens = 9, .input = UINT64_MAX };
    struct gate gate = { .quota = &q };
    struct gate_text t[4] = { { 0 } };
    size_t tokens[4] = { 4, 4, 4, 4 };
    for (size_t i = 0; i < 3; i++)
        CHECK(decide(&gate, &t[i], &tokens[i]) == GATE_OPEN && tokens[i] == (i < 2 ? 4 : 1));
    CHECK(decide(&gate, &t[3], &tokens[3]) == GATE_CAPPED);
    gate_done(&gate, &t[0], GATE_FAULT, 4, &why); /* which has asked for them, too */
    gate_end(&gate, &t[1]);                       /* one that was sent stays charged */
    CHECK(decide(&gate, &t[3], &tokens[3]) == GATE_CAPPED && q.asked == 9 && q.sent == 12);

    q = (struct quota){ .tokens = UINT64_MAX, .input = 11 };
    for (size_t i = 0; i < 3; i++) { /* four ids each */
        tokens[i] = 2;
        CHECK(decide(&gate, &t[i], &tokens[i]) == (i < 2 ? GATE_OPEN : GATE_CAPPED));
    }
    CHECK(q.sent == 8 && q.asked == 4);

    struct gate_text own = { .limit = 1 + 5 }; /* of a text alone */
    struct gate free_gate = { 0 };
    size_t many = 4;
    CHECK(decide(&free_gate, &own, &many) == GATE_OPEN && many == 4);
    gate_done(&free_gate, &own, GATE_OPEN, 4, &why);
    CHECK(decide(&free_gate, &own, &many) == GATE_OPEN && many == 1);
    gate_done(&free_gate, &own, GATE_OPEN, 1, &why);
    CHECK(decide(&free_gate, &own, &many) == GATE_CAPPED);
}

/* Calls of five texts fail together: the breaker opens once, and then one text probes. */
static void test_probe(void)
{
    enum { TEXTS = 5 };
    struct gate gate = { 0 };
    struct gate_text t[TEXTS] = { { 0 } };
    size_t one = 1;
    for (size_t i = 0; i < TEXTS; i++)
        CHECK(decide(&gate, &t[i], &one) == GATE_OPEN);
    for (size_t i = 0; i < TEXTS; i++)
        gate_done(&gate, &t[i], GATE_FAULT, 1, &why);
    CHECK(gate.breaker.pause == BREAKER_PAUSE);
    for (size_t i = 0; i < BREAKER_PAUSE; i++)
        CHECK(decide(&gate, &t[0], &one) == GATE_BREAKER);
    CHECK(decide(&gate, &t[0], &one) == GATE_OPEN);
    CHECK(decide(&gate, &t[1], &one) == GATE_BREAKER);
    gate_end(&gate, &t[0]); /* interrupted: another one may */
    CHECK(decide(&gate, &t[1], &one) == GATE_OPEN);
    gate_done(&gate, &t[1], GATE_FAULT, 1, &why);
    CHECK(gate.breaker.pause == 2 * BREAKER_PAUSE && !gate.probing);
}

int main(void)
{
    test_breaker();
    test_refused();
    test_quota();
    test_limits();
    test_probe();
    CHECK(!strcmp(gate_name(GATE_UNFIT), "unfit"));
    return 0;
}
