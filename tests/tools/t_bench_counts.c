/* Counters, the system's and simulated ones; events of the processor in `bench kernels`; the
 * figures of `bench model --by-op`, by hand; and the loops of `bench limits`. */
#include <errno.h>
#include <sys/resource.h>

#include "kernels/sys/cpu.h"
#include "model/model.h"
#include "model/train/random.h"
#include "tests/support/test.h"
#include "tests/support/tiny.h"
#include "tools/cli/setup.h"
#include "tools/lab/bench/bench_model.h"
#include "tools/lab/bench/bench_ops.h"
#include "tools/lab/machine/limits.h"

static bool near(double a, double b)
{
    return fabs(a - b) <= 1e-9 * fabs(b);
}

/* A simulated source: event e counts 1000 * (e + 1) more in each reading, in half of the time.
 * Misses in the TLB cannot be counted, those in the last cache not be read, and faults never had
 * their turn. */
static size_t opened, readings[COUNT_EVENTS], all_readings;

static int sim_open(enum count_event event, int *error)
{
    *error = ENOENT;
    opened += event != COUNT_TLB_MISSES;
    return event == COUNT_TLB_MISSES ? -1 : 10 + (int)event;
}

static bool sim_read(int handle, uint64_t now[3])
{
    uint64_t event = (uint64_t)handle - 10, n = ++readings[event];
    all_readings++;
    now[0] = n * 1000 * (event + 1);
    now[1] = n * 4000;
    now[2] = event == COUNT_FAULTS ? 0 : n * 2000;
    return event != COUNT_LLC_MISSES;
}

static void sim_close(int handle)
{
    CHECK(handle >= 10 && handle < 10 + COUNT_EVENTS && handle != 10 + COUNT_TLB_MISSES);
    readings[handle - 10] = 0;
    opened--;
}

static int sim_refuses(enum count_event event, int *error)
{
    (void)event;
    *error = EACCES;
    return -1;
}

static const struct count_source simulated = { sim_open, sim_read, sim_close };

static void run_kernels(void)
{
    const struct bench_options o = { .format = "jsonl", .repeat = 3, .only = "add_f32" };
    CHECK(bench_kernels(&o, NULL) == OK);
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
    count_source = &simulated;
    const char *text = printed(run_kernels);
    size_t rows = times_found(text, "\"op\": \"add_f32\"");
    CHECK(rows >= 1 && times_found(text, "\"ipc\": 2.0") == rows && !strstr(text, "tlb_misses"));
    CHECK(times_found(text, "\"cycles\": ") == rows && times_found(text, "\"cpu_info\": ") == rows);
}

/* Two samples of three tokens; the products took 6 and 12 ms, and memory is the limit of one, the
 * arithmetic that of the other. */
static void check_ops(void)
{
    static struct bench_ops o;
    static struct op_limits bounds;
    struct kernels k;
    struct model *m;
    struct bench_ops_row rows[BATCH_OPS];
    CHECK(kernels_pick(&k, NULL, cpu_detect(), NULL) == OK);
    CHECK(model_random(&m, &tiny_shape, P_F32, &k, NULL, 1, NULL) == OK);
    bench_ops_open(&o, m, KVCACHE_F16);
    bounds.levels[3] = (struct read_level){ "memory", 0, 10 };
    bounds.level = &bounds.levels[3];
    bounds.f32 = 100;
    o.limits = &bounds;
    o.tokens = 3;
    o.times.of[OP_FFN] = (struct op_sum){ .calls = 6, .bytes = 3e7, .ops = 6e6 };
    o.times.of[OP_DOWN] = (struct op_sum){ .calls = 6, .bytes = 6e6, .ops = 3e8 };
    for (o.samples = 0; o.samples < 2; o.samples++) {
        o.times.of[OP_FFN].ns += 3000000;
        o.times.of[OP_DOWN].ns += 6000000;
        bench_ops_timed(&o, 1e7);
    }
    struct bench_ops_row sum = bench_ops_rows(rows, &o);
    const struct bench_ops_row *ffn = &rows[OP_FFN], *down = &rows[OP_DOWN];
    CHECK(near(ffn->calls, 1) && near(ffn->ns, 1e6) && near(ffn->bytes, 5e6));
    CHECK(near(ffn->least, 5e5) && !strcmp(ffn->limit, "memory") && !strcmp(ffn->op, "ffn"));
    CHECK(near(down->least, 5e5) && !strcmp(down->limit, "f32"));
    CHECK(near(sum.ns, 3e6) && near(sum.least, 1e6) && near(sum.ops, 5.1e7) && near(sum.calls, 2));
    o.plain[0] = 9e6;
    o.plain[1] = 15e6;
    CHECK(near(bench_ops_ns(&o, true), 4e6));
    model_close(m);
}

/* Work is counted as work; counters that are not available are reported, and nothing fails. */
static void counting(void)
{
    struct counts c;
    char why[COUNT_WHY];
    double before[COUNT_EVENTS], after[COUNT_EVENTS];
    counts_open(&c, why);
    uint64_t begin = os_now_ns();
    counts_read(&c, before);
    volatile uint32_t x = 0;
    for (uint32_t i = 0; i < 3000000; i++)
        x = x + i;
    size_t size = (size_t)1 << 20;
    unsigned char *pages = os_alloc(size);
    CHECK(pages);
    os_free(pages, size);
    counts_read(&c, after);
    double wall = (double)(os_now_ns() - begin);
    CHECK(!why[0] == (c.handle[COUNT_CYCLES] >= 0) && strlen(why) < COUNT_WHY);
    for (size_t i = 0; i < COUNT_EVENTS; i++)
        CHECK(c.handle[i] < 0 ? after[i] < 0 : after[i] < 0 || after[i] >= before[i]);
    if (after[COUNT_CPU_NS] >= 0 && before[COUNT_CPU_NS] >= 0)
        CHECK(after[COUNT_CPU_NS] > before[COUNT_CPU_NS] &&
              after[COUNT_CPU_NS] - before[COUNT_CPU_NS] <= wall * 1.01 + 1e6);
    if (after[COUNT_INSTRUCTIONS] >= 0 && before[COUNT_INSTRUCTIONS] >= 0)
        CHECK(after[COUNT_INSTRUCTIONS] - before[COUNT_INSTRUCTIONS] > 3000000);
    counts_close(&c);
    counts_close(&c);
    counts_read(&c, after);
    CHECK(after[COUNT_CYCLES] < 0 && after[COUNT_CPU_NS] < 0);

    struct rlimit most, none = { 0, 0 };
    CHECK(getrlimit(RLIMIT_NOFILE, &most) == 0);
    none.rlim_max = most.rlim_max;
    CHECK(setrlimit(RLIMIT_NOFILE, &none) == 0);
    counts_open(&c, why); /* no file descriptor is left */
    CHECK(why[0] && c.handle[COUNT_CYCLES] < 0 && c.handle[COUNT_FAULTS] < 0);
    counts_close(&c);
    CHECK(setrlimit(RLIMIT_NOFILE, &most) == 0);
}

/* What a source counts is extrapolated; what it cannot count or read is -1; no source is no
 * error. */
static void counting_simulated(void)
{
    static const struct count_source refuses = { sim_refuses, sim_read, sim_close };
    struct counts c;
    char why[COUNT_WHY];
    double count[COUNT_EVENTS];
    count_source = &simulated;
    counts_open(&c, why);
    CHECK(!why[0] && opened == COUNT_EVENTS - 1 && c.handle[COUNT_TLB_MISSES] < 0);
    counts_read(&c, count);
    CHECK(all_readings == COUNT_EVENTS - 1);
    for (size_t i = 0; i < COUNT_EVENTS; i++)
        if (i == COUNT_TLB_MISSES || i == COUNT_LLC_MISSES || i == COUNT_FAULTS)
            CHECK(count[i] < 0);
        else
            CHECK(near(count[i], 2000.0 * (double)(i + 1)));
    counts_close(&c);
    counts_close(&c);
    CHECK(opened == 0);
    count_source = &refuses;
    counts_open(&c, why);
    CHECK(!strncmp(why, "not permitted (kernel.perf_event_paranoid is ", 45) &&
          strlen(why) < COUNT_WHY);
    count_source = NULL;
    counts_open(&c, why);
    CHECK(!strcmp(why, "only Linux is asked for them"));
    counts_read(&c, count);
    CHECK(count[COUNT_CYCLES] < 0 && count[COUNT_CPU_NS] < 0);
    counts_close(&c);
}

enum { WORDS = 8 * 150 + 5 };

/* The loops behind `mizzle bench limits` run, and the reading loop reads every word. */
static void check_loops(void)
{
    static const unsigned sets[] = { 0, CPU_AVX2, CPU_AVX2 | CPU_AVX512 };
    uint64_t *p = os_alloc(WORDS * sizeof(*p));
    CHECK(p);
    for (size_t n = 0; n <= WORDS; n++) {
        uint64_t want = 0;
        for (size_t i = 0; i < n; i++)
            want ^= p[i] = rand_u64(1, n * WORDS + i);
        for (size_t s = 0; s < sizeof(sets) / sizeof(sets[0]); s++)
            if ((cpu_detect() & sets[s]) == sets[s])
                for (size_t streams = 1; streams <= 4; streams *= 2) {
                    CHECK(limits_read(p, n, streams, 1, sets[s]) == want);
                    CHECK(limits_read(p, n, streams, 2, sets[s]) == 0);
                    CHECK(limits_read(p, n, streams, 3, sets[s]) == want);
                }
    }
    os_free(p, WORDS * sizeof(*p));
    /* Levels of cache have sizes, be they the system's or usual ones. */
    for (unsigned level = 1; level <= 3; level++)
        CHECK(limits_cache(level) >= (size_t)4096 << level && limits_cache(level) < (size_t)1
                                                                                        << 40);
    CHECK(limits_cache(1) < limits_cache(3));
    CHECK(limits_peak_memory() > (size_t)1 << 20);
    CHECK(limits_count > 0);
    for (size_t i = 0; i < limits_count; i++)
        if ((cpu_detect() & limits[i].needs) == limits[i].needs)
            limits[i].run(1000);
}

int main(void)
{
    counting();
    counting_simulated();
    check_kernels();
    check_ops();
    check_loops();
    return 0;
}
