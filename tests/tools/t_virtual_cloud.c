/* The cloud of the virtual clock, in front of a simulated one: what calls take, which are late,
 * what becomes of a late one, and that answers known without a call are treated alike. */
#include <string.h>

#include "kernels/sys/base.h"
#include "tests/support/port.h"
#include "tests/support/test.h"
#include "tools/lab/clock/virtual_cloud.h"

enum { HEADER = 100, UP = 200, DOWN = 300, ANSWER = 7 };

static struct {
    bool known, fails;
    size_t asked, committed, dropped;
    struct cloud_tally *tally;
} sim;

static enum origin sim_known(void *arg, const uint32_t *ids, size_t n, uint32_t *id)
{
    (void)arg, (void)ids, (void)n;
    *id = ANSWER;
    return sim.known ? ORIGIN_STORE : ORIGIN_NONE;
}

static size_t sim_tokens(void *arg)
{
    (void)arg;
    return 1;
}

static int sim_ask(void *arg, const uint32_t *ids, size_t n, size_t tokens,
                   struct cloud_tally *tally, void **call, struct err *err)
{
    (void)arg, (void)ids, (void)n, (void)tokens, (void)err;
    *call = &sim;
    sim.tally = tally;
    sim.asked++;
    return OK;
}

static int sim_take(void *call, uint32_t *id, struct err *err)
{
    CHECK(call == &sim);
    if (sim.fails)
        return err_set(err, ERR_NET, "refused");
    const struct traffic more = { .bytes_up = HEADER + UP,
                                  .header_bytes_up = HEADER,
                                  .bytes_down = 50 + DOWN,
                                  .header_bytes_down = 50 };
    traffic_add(&sim.tally->traffic, &more);
    *id = ANSWER;
    return OK;
}

static void sim_commit(void *call)
{
    CHECK(call == &sim);
    sim.committed++;
}

static void sim_drop(void *call)
{
    CHECK(call == &sim);
    sim.dropped++;
}

static size_t sim_bytes(void *arg, const uint32_t *ids, size_t n, size_t tokens)
{
    (void)arg, (void)ids, (void)n, (void)tokens;
    return UP;
}

static const struct cloud_port real = { .known = sim_known,
                                        .tokens = sim_tokens,
                                        .ask = sim_ask,
                                        .take = sim_take,
                                        .commit = sim_commit,
                                        .drop = sim_drop,
                                        .traffic = port_traffic };

/* Ask for the token after ids[2] and commit the call. Returns what it returned. */
static int ask(struct virtual_cloud *v, uint32_t first, struct err *err)
{
    const uint32_t ids[] = { first, 3 };
    const struct cloud_port *p = &v->port;
    struct cloud_tally tally = { 0 };
    uint32_t id = 0;
    void *call;
    CHECK(p->ask(p->arg, ids, 2, 1, &tally, &call, err) == OK);
    int rc = p->take(call, &id, err);
    CHECK(rc != OK || id == ANSWER);
    p->commit(call);
    return rc;
}

/* 100 + 200 bytes at 10 a ms, 50 ms, 300 bytes at 3 a ms: 30 + 50 + 100. */
static void test_deadline(void)
{
    struct virtual_clock c = { .net = { .latency_ms = 50, .up = 10000, .down = 3000 } };
    struct virtual_cloud v = { 0 };
    struct err err = { "" };
    c.deadline_ms = 180;
    virtual_cloud_begin(&v, &real, sim_bytes, &c);
    CHECK(ask(&v, 1, &err) == OK && !v.late);
    CHECK(v.ms > 180 - 1e-6 && v.ms < 180 + 1e-6);
    CHECK(sim.committed == 1 && sim.dropped == 0);
    c.deadline_ms = 179;
    CHECK(ask(&v, 1, &err) == ERR_NET && v.late);
    CHECK(v.ms > 179 - 1e-6 && v.ms < 179 + 1e-6);
    CHECK(strstr(err.msg, "no answer in time (179 ms)"));
    CHECK(sim.committed == 1 && sim.dropped == 1); /* no memo keeps it */
    sim.fails = true; /* the other port's own error, which is not late */
    CHECK(ask(&v, 1, &err) == ERR_NET && !v.late && !strcmp(err.msg, "refused"));
    CHECK(sim.committed == 2 && sim.dropped == 1);
    sim.fails = false;
}

/* A loss makes a call late or not by its prefix alone, however often it comes, and whether or not
 * the answer is known. */
static void test_known(void)
{
    struct virtual_clock c = { .net = { .latency_ms = 50, .loss = 0.2 }, .deadline_ms = 100 };
    struct virtual_cloud v = { 0 };
    struct err err;
    size_t late = 0;
    virtual_cloud_begin(&v, &real, sim_bytes, &c);
    for (uint32_t i = 0; i < 200; i++) {
        const uint32_t ids[] = { i, 3 };
        uint32_t id = 0;
        int rc = ask(&v, i, &err);
        double ms = v.ms;
        CHECK(rc == OK ? ms < 51 : v.late);
        CHECK(ask(&v, i, &err) == rc);
        sim.known = true;
        size_t asked = sim.asked;
        CHECK(v.port.known(v.port.arg, ids, 2, &id) == (rc == OK ? ORIGIN_STORE : ORIGIN_NONE));
        CHECK(v.ms - ms < 1e-6 && ms - v.ms < 1e-6 && sim.asked == asked);
        sim.known = false;
        CHECK(v.port.known(v.port.arg, ids, 2, &id) == ORIGIN_NONE);
        late += rc != OK;
    }
    CHECK(late > 40 && late < 110); /* two packets: 36 % lose one */
}

int main(void)
{
    test_deadline();
    test_known();
    return 0;
}
