/* The virtual clock: calls take as long as at the stand-in server, and answers whose times can be
 * added up by hand. */
#include "kernels/sys/base.h"
#include "tests/support/test.h"
#include "tools/lab/clock/virtual_clock.h"

enum { MOST = 8 };

static bool near(double a, double b)
{
    return a > b - 1e-6 && a < b + 1e-6;
}

/* The texts: e: edge, c: the cloud says what the edge would, x: it says something else. A step
 * takes 10 ms and the calls take turns at 25 and 40 ms. The times must be these. */
static void answer_takes(const char *text, bool ahead, const double *want)
{
    const struct virtual_clock c = { .edge_ms = 10, .prefill_ms = 2, .ahead = ahead };
    struct virtual_token tokens[MOST] = { { 0 } };
    struct err err = { "" };
    size_t n = 0, calls = 0;
    for (; text[n]; n++) {
        tokens[n].routed = text[n] != 'e';
        tokens[n].agrees = text[n] == 'c';
        tokens[n].call_ms = tokens[n].routed && calls++ % 2 ? 40 : 25;
    }
    CHECK(virtual_clock_answer(tokens, &c, 7, n, &err) == OK);
    for (size_t i = 0; i < n; i++) {
        CHECK_MSG(near(tokens[i].ms, want[i]), "%s, ahead %d: token %zu: %g ms, expected %g", text,
                  ahead, i, tokens[i].ms, want[i]);
    }
}

static void test_answers(void)
{
    answer_takes("eee", 0, (double[]){ 14, 10, 10 }); /* 7 ids at 2 ms come first */
    answer_takes("eee", 1, (double[]){ 14, 10, 10 });
    answer_takes("ceec", 0, (double[]){ 39, 10, 10, 50 });
    /* Asked at 14, answered at 39, seen after the step that ends at 44, which decides what was
     * written until then: tokens 0 to 2. The call at 44 takes until 84. */
    answer_takes("ceec", 1, (double[]){ 44, 0, 0, 40 });
    /* Without the 4 ms before the first token: asked at 10, answered at 35, seen at 40. */
    answer_takes("exeee", 1, (double[]){ 14, 40, 10, 10, 10 });
    /* Asked at 10, awaited from 20 to 35; the second call, at 45, lasts until 85. */
    answer_takes("exceee", 1, (double[]){ 14, 35, 50, 0, 0, 0 });
    answer_takes("exceee", 0, (double[]){ 14, 35, 50, 10, 10, 10 });
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

int main(void)
{
    test_answers();
    test_calls();
    test_losses();
    return 0;
}
