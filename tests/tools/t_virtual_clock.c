/* The virtual clock: calls take as long as at the stand-in server, and answers whose times can be
 * added up by hand. Its cloud, in front of a simulated one: what calls take, which are late, what
 * becomes of a late one, and that answers known without a call are treated alike. */
#include <string.h>

#include "kernels/sys/base.h"
#include "tests/support/port.h"
#include "tests/support/test.h"
#include "tools/lab/clock/virtual_clock.h"
#include "tools/lab/clock/virtual_cloud.h"

enum { MOST = 8 };

static bool near(double a, double b)
{
    return a > b - 1e-6 && a < b + 1e-6;
}

/* The texts: e: edge, c: the cloud says what the edge would, x: it says something else. A step
 * takes 10 ms and the calls take turns at `call` and 40 ms. The times must be these. */
static void answer_takes(const char *text, bool ahead, double call, const double *want)
{
    const struct virtual_clock c = { .edge_ms = 10, .prefill_ms = 2, .ahead = ahead };
    struct virtual_token tokens[MOST] = { { 0 } };
    struct err err = { "" };
    size_t n = 0, calls = 0;
    for (; text[n]; n++) {
        tokens[n].routed = text[n] != 'e';
        tokens[n].agrees = text[n] == 'c';
        tokens[n].call_ms = tokens[n].routed && calls++ % 2 ? 40 : call;
    }
    CHECK(virtual_clock_answer(tokens, &c, 7, n, &err) == OK);
    for (size_t i = 0; i < n; i++) {
        CHECK_MSG(near(tokens[i].ms, want[i]), "%s, ahead %d: token %zu: %g ms, expected %g", text,
                  ahead, i, tokens[i].ms, want[i]);
    }
}

static void test_answers(void)
{
    answer_takes("eee", 0, 25, (double[]){ 14, 10, 10 }); /* 7 ids at 2 ms come first */
    answer_takes("eee", 1, 25, (double[]){ 14, 10, 10 });
    answer_takes("ceec", 0, 25, (double[]){ 39, 10, 10, 50 });
    /* Asked at 14, answered at 39, seen after the step that ends at 44, which decides what was
     * written until then: tokens 0 to 2. The call at 44 takes until 84. */
    answer_takes("ceec", 1, 25, (double[]){ 44, 0, 0, 40 });
    /* Without the 4 ms before the first token: asked at 10, answered at 35, seen at 40. */
    answer_takes("exeee", 1, 25, (double[]){ 14, 40, 10, 10, 10 });
    /* Asked at 10, awaited from 20 to 35; the second call, at 45, lasts until 85. */
    answer_takes("exceee", 1, 25, (double[]){ 14, 35, 50, 0, 0, 0 });
    answer_takes("exceee", 0, 25, (double[]){ 14, 35, 50, 10, 10, 10 });
    answer_takes("eec", 1, 25, (double[]){ 14, 10, 35 }); /* nothing to do in the meantime */
    /* An answer that comes just as a step ends is seen after the next one. */
    answer_takes("ceee", 1, 10, (double[]){ 34, 0, 0, 10 });
}

static void test_calls(void)
{
    const uint64_t key = stand_in_chance_first(0, (const uint32_t[]){ 3, 1, 4 }, 3);
    const struct virtual_size size = { .header = 200, .up = 300, .down = 700 };
    struct virtual_clock c = { .net.latency_ms = 80 };
    CHECK(near(virtual_clock_call(&c, key, &size), 80));
    c.cloud_ms = 5;
    c.net.up = 10000;
    c.net.down = 7000;
    CHECK(near(virtual_clock_call(&c, key, &size), 80 + 5 + 50 + 100));
}

/* Lost packets: the very losses that the server draws when a prefix comes for the first time, and
 * none that it draws later. */
static void test_losses(void)
{
    const struct virtual_size size = { .header = 200, .up = 300, .down = 700 };
    const struct virtual_clock c = { .net = { .latency_ms = 50, .loss = 0.2 }, .seed = 9 };
    struct stand_in_chance *server = stand_in_chance_open(9);
    size_t lost = 0, other = 0;
    CHECK(server);
    for (uint32_t i = 0; i < 200; i++) {
        const uint32_t ids[] = { i, 7 };
        uint64_t first = stand_in_chance_key(server, ids, 2);
        uint64_t second = stand_in_chance_key(server, ids, 2);
        double ms = virtual_clock_call(&c, stand_in_chance_first(9, ids, 2), &size);
        CHECK(near(ms, (double)stand_in_chance_way(&c.net, first, 300, 700) / 1e6));
        other += !near(ms, (double)stand_in_chance_way(&c.net, second, 300, 700) / 1e6);
        lost += ms > 51;
    }
    CHECK(lost > 40 && lost < 110 && other > 40); /* two packets: 36 % lose one */
    stand_in_chance_close(server);
}

enum { HEADER = 100, UP = 200, DOWN = 300, ANSWER = 7 };

static struct {
    bool known, fails;
    size_t asked, committed, dropped;
    struct cloud_tally *tally;
} sim;

static enum cloud_sight sim_known(void *arg, const uint32_t *ids, size_t n, bool used, uint32_t *id)
{
    (void)arg, (void)ids, (void)n, (void)used;
    *id = ANSWER;
    return sim.known ? CLOUD_STORE : CLOUD_UNKNOWN;
}

static struct cloud_info sim_info(void *arg)
{
    (void)arg;
    return (struct cloud_info){ .model = "a \"b\"", .tokens = 1 };
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

static int sim_take(void *call, size_t at, uint32_t *id, struct err *err)
{
    CHECK(call == &sim && at == 0);
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

static void sim_end(void *call, enum cloud_end how)
{
    CHECK(call == &sim);
    sim.committed += how == CLOUD_USE;
    sim.dropped += how == CLOUD_DROP;
}

static size_t sim_bytes(const struct cloud_port *port, const uint32_t *ids, size_t n, size_t tokens)
{
    (void)port, (void)ids, (void)n, (void)tokens;
    return UP;
}

static const struct cloud_port real = { .known = sim_known,
                                        .info = sim_info,
                                        .ask = sim_ask,
                                        .take = sim_take,
                                        .end = sim_end,
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
    int rc = p->take(call, 0, &id, err);
    CHECK(rc != OK || id == ANSWER);
    p->end(call, CLOUD_USE);
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
    CHECK(near(v.ms, 180));
    CHECK(sim.committed == 1 && sim.dropped == 0);
    c.deadline_ms = 179;
    CHECK(ask(&v, 1, &err) == ERR_NET && v.late);
    CHECK(near(v.ms, 179));
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
        CHECK(cloud_port_known(&v.port, ids, 2, true, &id) ==
              (rc == OK ? CLOUD_STORE : CLOUD_UNKNOWN));
        CHECK(near(v.ms, ms) && sim.asked == asked);
        sim.known = false;
        CHECK(cloud_port_known(&v.port, ids, 2, true, &id) == CLOUD_UNKNOWN);
        late += rc != OK;
    }
    CHECK(late > 40 && late < 110); /* two packets: 36 % lose one */
}

/* The body of a request is known before it is made. */
static void test_bytes(void)
{
    static const char body[] = "{\"model\":\"a \\\"b\\\"\",";
    const uint32_t ids[] = { 5, 67, 890 };
    size_t one = virtual_cloud_measure(&real, ids, 1, 1);
    CHECK(one > sizeof(body) && virtual_cloud_measure(&real, ids, 1, 9) == one);
    CHECK(virtual_cloud_measure(&real, ids, 3, 1) == one + strlen(",67,890"));
}

int main(void)
{
    test_bytes();
    test_answers();
    test_calls();
    test_losses();
    test_deadline();
    test_known();
    return 0;
}
