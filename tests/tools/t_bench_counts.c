/* Events of the processor in `bench kernels` and `bench model`, from a simulated source; and the
 * figures of --by-op, by hand. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernels/kernels.h"
#include "kernels/sys/base.h"
#include "kernels/sys/cpu.h"
#include "model/model.h"
#include "tests/support/files.h"
#include "tests/support/test.h"
#include "tests/support/tiny.h"
#include "tools/bench/bench_model.h"
#include "tools/bench/bench_ops.h"
#include "tools/cli/setup.h"

static bool near(double a, double b)
{
    return fabs(a - b) <= 1e-9 * fabs(b);
}

/* Each reading of a counter finds so much more. */
static const uint64_t step[OS_EVENTS] = { 1000, 2500, 30, 7, 2, 5, 0 };
static uint64_t counted[OS_EVENTS];
static bool no_tlb; /* this machine does not count misses of the TLB */

static int source_open(enum os_event event, int *error)
{
    *error = ENOENT;
    return no_tlb && event == OS_TLB_MISSES ? -1 : (int)event;
}

static bool source_read(int handle, uint64_t now[3])
{
    counted[handle] += step[handle];
    now[0] = counted[handle];
    now[1] = now[2] = 1;
    return true;
}

static void source_close(int handle)
{
    CHECK(handle >= 0 && handle < OS_EVENTS);
}

static struct bench_options options = { .format = "jsonl", .repeat = 3, .only = "add_f32" };

static void run_kernels(void)
{
    struct err err;
    CHECK(bench_kernels(&options, &err) == OK);
}

static void run_model(void)
{
    struct err err = { "" };
    const struct bench_model_options m = { .prompt = "4",
                                           .gen = "2",
                                           .depth = "3",
                                           .texts = "1",
                                           .threads = { { 1 }, 1 },
                                           .by_op = true };
    CHECK(bench_model(&options, &m, &err) == OK);
}

static size_t times_found(const char *text, const char *what)
{
    size_t n = 0;
    for (; (text = strstr(text, what)); text++)
        n++;
    return n;
}

static void check_kernels(void)
{
    no_tlb = true;
    const char *text = printed(run_kernels);
    size_t rows = times_found(text, "\"op\": \"add_f32\"");
    CHECK(rows >= 1 && times_found(text, "\"ipc\": 2.5") == rows && !strstr(text, "tlb_misses"));
    CHECK(times_found(text, "\"llc_misses\": ") == rows &&
          times_found(text, "\"cpu_info\": ") == rows);
}

/* Of the model: three prompts of 4 tokens, three times 2 tokens, then --by-op's own. */
static void check_model(void)
{
    no_tlb = false;
    const char *text = printed(run_model);
    CHECK(times_found(text, "\"n_threads\": 1") == 2 && times_found(text, "\"by_op\": [") == 2);
    CHECK(times_found(text, "\"ipc\": 2.5") == 2 && times_found(text, "\"op\": \"ffn\"") == 2);
    CHECK(strstr(text, "\"cycles\": 83.33333,") && strstr(text, "\"cycles\": 166.6667,"));
    CHECK(strstr(text, "\"tlb_misses\": 0.1666667"));
}

/* Two samples of three tokens; the products took 6 and 12 ms, and memory is the limit of one, the
 * arithmetic that of the other. */
static void check_ops(void)
{
    static struct bench_ops o;
    static struct op_limits limits;
    struct err err;
    struct kernels k;
    struct model *m;
    struct os_counters c;
    char why[OS_WHY];
    struct bench_ops_row rows[BATCH_OPS];
    CHECK(kernels_pick(&k, NULL, cpu_detect(), &err) == OK);
    CHECK(model_random(&m, &tiny_shape, P_F32, &k, NULL, 1, &err) == OK);
    no_tlb = true;
    os_counters_open(&c, why);
    bench_ops_open(&o, m, KVCACHE_F16, &c);
    limits.levels[3] = (struct read_level){ "memory", 0, 10 };
    limits.level = &limits.levels[3];
    limits.f32 = 100;
    o.limits = &limits;
    o.tokens = 3;
    o.times.of[OP_FFN] = (struct op_sum){ .calls = 6, .bytes = 3e7, .ops = 6e6 };
    o.times.of[OP_DOWN] = (struct op_sum){ .calls = 6, .bytes = 6e6, .ops = 3e8 };
    for (o.samples = 0; o.samples < 2; o.samples++) {
        o.times.of[OP_FFN].ns += 3000000;
        o.times.of[OP_DOWN].ns += 6000000;
        bench_ops_timed(&o, 1e7);
    }
    for (size_t i = 0; i < 6; i++)
        for (int ends = 0; ends < 2; ends++)
            o.counting.op(o.counting.arg, OP_FFN, 0, 1, ends);
    struct bench_ops_row sum = bench_ops_rows(rows, &o);
    const struct bench_ops_row *ffn = &rows[OP_FFN], *down = &rows[OP_DOWN];
    CHECK(near(ffn->calls, 1) && near(ffn->ns, 1e6) && near(ffn->bytes, 5e6));
    CHECK(near(ffn->least, 5e5) && !strcmp(ffn->limit, "memory") && !strcmp(ffn->op, "ffn"));
    CHECK(near(down->least, 5e5) && !strcmp(down->limit, "f32"));
    CHECK(near(sum.ns, 3e6) && near(sum.least, 1e6) && near(sum.ops, 5.1e7) && near(sum.calls, 2));
    CHECK(near(ffn->count[OS_CYCLES], 1000) && near(ffn->count[OS_LLC_MISSES], 7));
    CHECK(near(sum.count[OS_CYCLES], 1000) && ffn->count[OS_TLB_MISSES] < 0);
    CHECK(!(down->count[OS_CYCLES] > 0) && sum.count[OS_TLB_MISSES] < 0);
    o.plain[0] = 9e6;
    o.plain[1] = 15e6;
    CHECK(near(bench_ops_ns(&o, true), 4e6));
    os_counters_close(&c);
    bench_ops_open(&o, m, KVCACHE_F16, &c); /* nothing is counted */
    o.samples = 1;
    o.limits = &limits;
    sum = bench_ops_rows(rows, &o);
    CHECK(sum.count[OS_CYCLES] < 0 && rows[OP_FFN].count[OS_INSTRUCTIONS] < 0);
    model_close(m);
}

int main(void)
{
    static const struct os_event_source simulated = { source_open, source_read, source_close };
    os_event_source = &simulated;
    CHECK(setenv("MIZZLE_DEMO", "weights/milli", 1) == 0);
    check_kernels();
    check_model();
    check_ops();
    return 0;
}
