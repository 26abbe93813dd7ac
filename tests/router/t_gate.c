/* t_gate.c - tests the gate and its breaker by hand, above all with several texts whose calls are
 * in flight together: a limit holds for all of them, a refusal outlives the others' answers, and
 * one of them probes. */
#include "router/gate.h"

#include <string.h>

#include "tests/support/test.h"

static const uint32_t ids[4] = { 1, 2, 3, 4 };
static const struct err why = { "no" };

static void test_breaker(void)
{
    struct breaker b = { 0 };
    size_t held[8] = { 0 }, k = 0;
    for (size_t i = 0; i < 3; i++) {
        CHECK(breaker_allows(&b) && !breaker_probes(&b));
        breaker_result(&b, false, false);
    }
    breaker_result(&b, false, false); /* requested before it opened */
    for (; k < 7; k++) {              /* every probe fails: pauses of 4, 8, ..., 64, 64 */
        for (; !breaker_allows(&b); held[k]++)
            breaker_held(&b);
        CHECK(breaker_probes(&b));
        breaker_result(&b, true, false);
    }
    CHECK(held[0] == 4 && held[1] == 8 && held[4] == 64 && held[6] == 64);
    while (!breaker_allows(&b))
        breaker_held(&b);
    breaker_result(&b, true, true);
    CHECK(breaker_allows(&b));
    breaker_result(&b, false, false);
    breaker_result(&b, false, false);
    CHECK(breaker_allows(&b)); /* two faults in a row are not three */
    breaker_result(&b, false, true);
    breaker_result(&b, false, false);
    breaker_result(&b, false, false);
    CHECK(breaker_allows(&b));
}

/* Decide on a token with this way to request it, and then one for a single token. */
static enum gate_reason decide(struct gate *g, struct gate_text *t, const struct caps_call *call,
                               size_t *way)
{
    struct err err;
    struct caps_call ways[2] = { *call, *call };
    ways[1].tokens = 1;
    return gate_decide(g, t, ways, false, way, &err);
}

/* Several calls are in flight when the server refuses one: it stays switched off whatever comes of
 * the others, and each of them is charged. */
static void test_refused(void)
{
    const struct caps_limits limits = { UINT64_MAX, UINT64_MAX, UINT64_MAX, { 3, 1, 10 } };
    const struct caps_call call = { .n = 3, .tokens = 1, .bytes = 100 };
    struct caps caps;
    struct gate gate = { .caps = &caps };
    struct gate_text a = { 0 }, b = { 0 }, c = { 0 };
    caps_begin(&caps, &limits);
    gate_done(&gate, &a, GATE_REFUSED, ids, &call, &why);
    gate_done(&gate, &b, GATE_OPEN, ids, &call, &why);
    CHECK(gate.refused && a.cost && b.cost);
    gate_done(&gate, &c, GATE_REFUSED, ids, &call, &why);
    CHECK(c.cost == a.cost && caps.count.cost == a.cost + b.cost + c.cost);
    gate_done(&gate, &c, GATE_UNFIT, ids, &call, &why);
    gate_done(&gate, &c, GATE_OPEN, ids, &call, &why);
    CHECK(gate.refused && c.unfit && !b.unfit);
    caps_end(&caps);
}

/* What the calls of other texts may cost counts until they have ended. */
static void test_reserved(void)
{
    const struct caps_price price = { 3, 1, 10 };
    /* A call of 4 tokens costs 12 + 40 and has 100 bytes; one of a single token costs 12 + 10. */
    const struct caps_call call = { .n = 4, .tokens = 4, .bytes = 100 };
    const struct caps_limits limits[] = { { 9, UINT64_MAX, UINT64_MAX, price },
                                          { UINT64_MAX, 300, UINT64_MAX, price },
                                          { UINT64_MAX, UINT64_MAX, 126, price } };
    for (size_t i = 0; i < 3; i++) {
        struct caps caps;
        struct gate gate = { .caps = &caps };
        struct gate_text t[4] = { { 0 } };
        size_t way[4];
        caps_begin(&caps, &limits[i]);
        CHECK(decide(&gate, &t[0], &call, &way[0]) == GATE_OPEN && way[0] == 0);
        CHECK(decide(&gate, &t[1], &call, &way[1]) == GATE_OPEN && way[1] == 0);
        CHECK(decide(&gate, &t[2], &call, &way[2]) == GATE_OPEN && way[2] == (i != 1));
        CHECK(decide(&gate, &t[3], &call, &way[3]) == GATE_CAPPED);
        /* A failed call has asked for its tokens, but none cost anything. One without a result may
         * have cost all that it could. */
        gate_done(&gate, &t[0], GATE_FAULT, ids, &call, &why);
        CHECK(decide(&gate, &t[3], &call, &way[3]) == (i < 2 ? GATE_CAPPED : GATE_OPEN));
        gate_drop(&gate, &t[1], true);
        CHECK(t[1].cost == 52 && caps.count.cost == t[0].cost + t[1].cost);
        CHECK((i || caps.count.tokens == 9) && caps.count.upload == 200);
        gate_drop(&gate, &t[1], true);
        gate_drop(&gate, &t[2], true);
        gate_drop(&gate, &t[3], true);
        CHECK(caps.count.tokens <= limits[i].tokens && caps.count.upload <= limits[i].upload);
        CHECK(caps.count.cost <= limits[i].budget && caps.count.tokens > 4);
        CHECK(!gate.reserved.tokens && !gate.reserved.upload && !gate.reserved.cost);
        caps_end(&caps);
    }
}

/* A call that was given up before it was sent costs nothing; its tokens are given back by net/. */
static void test_unsent(void)
{
    const struct caps_limits limits = { UINT64_MAX, 100, UINT64_MAX, { 0, 0, 0 } };
    const struct caps_call call = { .n = 4, .tokens = 1, .bytes = 100 };
    struct caps caps;
    struct gate gate = { .caps = &caps };
    struct gate_text t = { 0 };
    size_t way;
    caps_begin(&caps, &limits);
    for (int sent = 0; sent < 2; sent++) {
        CHECK(decide(&gate, &t, &call, &way) == GATE_OPEN);
        gate_drop(&gate, &t, sent);
    }
    CHECK(decide(&gate, &t, &call, &way) == GATE_CAPPED && caps.count.upload == 100);
    caps_end(&caps);
}

/* Calls of five texts fail together: the breaker opens once, and then one text probes. */
static void test_probe(void)
{
    enum { TEXTS = 5 };
    const struct caps_call call = { .n = 4, .tokens = 1 };
    struct gate gate = { 0 };
    struct gate_text t[TEXTS] = { { 0 } };
    size_t way;
    for (size_t i = 0; i < TEXTS; i++)
        CHECK(decide(&gate, &t[i], &call, &way) == GATE_OPEN);
    for (size_t i = 0; i < TEXTS; i++)
        gate_done(&gate, &t[i], GATE_FAULT, ids, &call, &why);
    CHECK(gate.breaker.pause == BREAKER_PAUSE);
    for (size_t i = 0; i < BREAKER_PAUSE; i++) {
        CHECK(decide(&gate, &t[0], &call, &way) == GATE_BREAKER);
        gate_held(&gate, GATE_BREAKER);
    }
    CHECK(decide(&gate, &t[0], &call, &way) == GATE_OPEN);
    CHECK(decide(&gate, &t[1], &call, &way) == GATE_BREAKER);
    gate_drop(&gate, &t[0], true); /* interrupted: another one may */
    CHECK(decide(&gate, &t[1], &call, &way) == GATE_OPEN);
    gate_done(&gate, &t[1], GATE_FAULT, ids, &call, &why);
    CHECK(gate.breaker.pause == 2 * BREAKER_PAUSE && !gate.probing);
}

int main(void)
{
    test_breaker();
    test_refused();
    test_reserved();
    test_unsent();
    test_probe();
    CHECK(!strcmp(gate_name(GATE_UNFIT), "unfit"));
    return 0;
}
