/* t_bench_figures.c - the arithmetic of `mizzle bench`, with times made up by hand: the rate of
 * threads that read, the level that holds data, medians, shares of limits, and what is doubtful.
 * Rows of its reports say so, and are printed whole or not at all when an allocation fails. The
 * loops of `bench limits` run, and read what they should. */

#include "kernels/sys/cpu.h"
#include "kernels/sys/pool.h"
#include "model/model.h"
#include "model/train/random.h"
#include "tests/support/test.h"
#include "tests/support/tiny.h"
#include "tools/lab/bench/bench_model.h"
#include "tools/lab/bench/bench_ops.h"
#include "tools/lab/machine/limits.h"
#include "tools/cli/setup.h"

static struct err err;
static bool near(double a, double b)
{
    return fabs(a - b) <= 1e-9 * fabs(b);
}

/* A thread that reads this many bytes from begin to end, at an even speed. */
static struct read_log steady(uint64_t begin, uint64_t end, double bytes)
{
    struct read_log log = { .bytes = bytes };
    for (size_t i = 0; i <= READ_PIECES; i++)
        log.at[i] = begin + (end - begin) * i / READ_PIECES;
    return log;
}

static void check_rates(void)
{
    struct read_log logs[2] = { steady(1000, 1000 + 160, 3200), steady(1000, 1000 + 160, 1600) };
    CHECK(near(read_probe_rate(logs, 1), 20));
    CHECK(near(read_probe_rate(logs, 2), 30)); /* together: the sum */
    /* The second one begins 40 ns later and ends 40 ns later: 120 ns are common to both. What
     * either did alone does not count, however fast it was. */
    logs[1] = steady(1040, 1040 + 160, 1600);
    CHECK(near(read_probe_rate(logs, 2), 30));
    logs[0].at[1] = 1001;
    CHECK(near(read_probe_rate(logs, 2), 30));
    /* The common time begins in the middle of a piece: 15 of its 30 ns. */
    logs[0] = steady(1000, 1000 + 480, 480);
    logs[1] = steady(1015, 1000 + 480, 465);
    CHECK(near(read_probe_rate(logs, 2), 2));
    /* Threads that took turns: both together, over the whole time. */
    logs[0] = steady(0, 160, 1600);
    logs[1] = steady(160, 320, 1600);
    CHECK(near(read_probe_rate(logs, 2), 10));
}

static void check_levels(void)
{
    const struct read_level levels[READ_LEVELS] = {
        { "L1", 1000, 200 }, { "L2", 8000, 100 }, { "L3", 64000, 50 }, { "memory", 0, 10 }
    };
    CHECK(!strcmp(read_level_of(levels, 1)->name, "L1"));
    CHECK(!strcmp(read_level_of(levels, 1000)->name, "L1"));
    CHECK(!strcmp(read_level_of(levels, 1001)->name, "L2"));
    CHECK(!strcmp(read_level_of(levels, 64000)->name, "L3"));
    CHECK(!strcmp(read_level_of(levels, 64001)->name, "memory"));
    CHECK(!strcmp(read_level_of(levels, 1e15)->name, "memory"));
}

static void check_doubts(void)
{
    char why[DOUBT_TEXT];
    doubt_text(why, 1, 2, 10, 20);
    CHECK(!*why);
    doubt_text(why, 1.001, 1, 0, 0);
    CHECK(!strcmp(why, "over 100 % of the limit"));
    doubt_text(why, 0, 2, 10, 10.4);
    CHECK(!strcmp(why, "2 threads get what one gets"));
    doubt_text(why, 0, 2, 10, 10.6);
    CHECK(!*why);
    doubt_text(why, 1.08, 64, 10, 3);
    CHECK(!strcmp(why, "over 100 % of the limit; 64 threads get what one gets"));
    doubt_text(why, 0.5, 1, 10, 10); /* one thread is one */
    CHECK(!*why);
    doubt_text(why, 0.5, 2, 0, 10); /* one thread was not measured */
    CHECK(!*why);
    doubt_changed(why, 40, 50);
    doubt_changed(why, 50, 40);
    CHECK(!*why);
    doubt_changed(why, 53, 86);
    CHECK(!strcmp(why, "probes differ: 53.0 and 86.0 GB/s"));
    doubt_text(why, 1, 1, 0, 0);
    CHECK(!doubt_busy(why, 0.9, 0.2) && !doubt_busy(why, 1, -1) && !*why);
    CHECK(doubt_busy(why, 0.354, -1));
    CHECK(!strcmp(why, "ran 35 % of the time: processors busy elsewhere?"));
    *why = 0;
    CHECK(doubt_busy(why, 1, 1.52) && !strcmp(why, "others kept 1.5 processors busy"));
    *why = 0;
    CHECK(doubt_busy(why, 0.5, 1));
    doubt_best(why, 61.21, 58.5, "t/s");
    CHECK(!strcmp(why, "others kept 1.0 processors busy, ran 50 % of the time; best 61.2 t/s, by "
                       "processor time 58.5"));
    doubt_text(why, 1.08, 64, 10, 3);
    doubt_changed(why, 100.4, 80);
    CHECK(doubt_busy(why, 0.5, 0));
    CHECK(!strcmp(why, "over 100 % of the limit; 64 threads get what one gets; probes differ: "
                       "100.4 and 80.0 GB/s; ran 50 % of the time: processors busy elsewhere?"));
}

/* Let the system count so many seconds of all processors, of which half are idle, and look once
 * more, after a quarter of a second of work. */
static void look(struct doubt_others *o, double seconds)
{
    char text[128];
    unsigned long long ticks = (unsigned long long)(seconds * (double)sysconf(_SC_CLK_TCK));
    int n = snprintf(text, sizeof(text), "cpu  %llu 0 %llu %llu 7 0 1 2 0 0\ncpu0 1 1 1\n",
                     ticks / 2, ticks - ticks / 2, ticks);
    uint64_t until = os_now_ns() + 260000000;
    spill(doubt_stat, text, (size_t)n);
    while (os_now_ns() < until)
        ;
    doubt_look(o);
}

/* What others took is what all did, less the time of this process, which is no second here. */
static void check_others(void)
{
    struct doubt_others o = { 0 };
    const char *real = doubt_stat;
    doubt_look(&o);
    CHECK(o.at && o.took < 0); /* nothing is known from one look */
    doubt_stat = in_scratch("stat");
    memset(&o, 0, sizeof(o));
    look(&o, 1000);
    look(&o, 1000);
    CHECK(o.took >= 0 && o.took <= 0); /* all are idle, but this one */
    look(&o, 5000);
    CHECK(o.took > 10);
    double took = o.took;
    doubt_look(&o); /* too early */
    CHECK(o.took >= took && o.took <= took);
    doubt_stat = "/nonexistent/stat";
    o.at = 1;
    doubt_look(&o);
    CHECK(o.took < 0);
    doubt_stat = real;
}

static void check_model_figures(void)
{
    static struct bench_test t;
    struct model_figures f;
    /* 10 tokens of each of 4 texts in 0.5, 1 and 5 s: 80, 40 and 8 tokens per second, one slow. */
    t = (struct bench_test){
        .gen = 10, .texts = 4, .threads = 2, .samples = 3, .one = 39, .on_cpu = 1
    };
    t.ns[0] = 5e9;
    t.ns[1] = 0.5e9;
    t.ns[2] = 1e9;
    t.before = 20;
    t.after = 25;
    model_figures(&f, &t, 2000000000);
    CHECK(near(f.ts, 40) && near(f.each, 10) && near(f.ns, 1e9));
    CHECK(near(f.best, 80) && near(f.by_cpu, 120 / 6.5) && near(f.times, 40.0 / 39));
    CHECK(near(f.deviation_ts,
               sqrt((37.0 + 1.0 / 3) * (37 + 1.0 / 3) / 2 + (2.0 + 2.0 / 3) * (2 + 2.0 / 3) / 2 +
                    (34.0 + 2.0 / 3) * (34 + 2.0 / 3) / 2)));
    CHECK(near(f.read, 20)); /* 10 passes of 2 GB in a second, whatever the number of texts */
    CHECK(near(f.probe, 25) && near(f.share, 0.8)); /* the better of the two */
    CHECK(!strcmp(f.doubtful, "2 threads get what one gets"));
    t.before = 19;
    t.pass = 0.04e9; /* one token of each of 4 texts */
    model_figures(&f, &t, 2000000000);
    CHECK(near(f.best, 100));
    CHECK(!strcmp(f.doubtful, "2 threads get what one gets; probes differ: 19.0 and 25.0 GB/s"));
    t.before = t.after = 18;
    t.one = 20;
    model_figures(&f, &t, 2000000000);
    CHECK(near(f.share, 20.0 / 18) && !strcmp(f.doubtful, "over 100 % of the limit"));
    t.l3 = 2000000000; /* from there it may be read so fast */
    model_figures(&f, &t, 2000000000);
    CHECK(near(f.share, 20.0 / 18) && !*f.doubtful);
    t.on_cpu = 0.5;
    t.others = 1;
    model_figures(&f, &t, 2000000000);
    CHECK(!strcmp(f.doubtful,
                  "others kept 1.0 processors busy, ran 50 % of the time; best 100.0 t/s, "
                  "by processor time 36.9"));
    /* A prompt is not limited by memory. */
    t = (struct bench_test){ .prompt = 100, .texts = 1, .threads = 1, .samples = 2, .on_cpu = 1 };
    t.ns[0] = 1e9;
    t.ns[1] = 0.5e9;
    t.before = 0.001;
    model_figures(&f, &t, 2000000000);
    CHECK(near(f.ts, 150) && !(f.share > 0) && !*f.doubtful);
}

/* Of an embedding apart from the head a pass reads only the rows of its tokens. */
static void check_pass_bytes(void)
{
    struct kernels k;
    size_t bytes[2];
    struct model_config c = tiny_shape;
    CHECK(kernels_pick(&k, NULL, cpu_detect(), &err) == OK);
    for (size_t i = 0; i < 2; i++) {
        struct model *m;
        c.tied = i > 0;
        CHECK(model_random(&m, &c, P_F32, &k, NULL, 1, &err) == OK);
        bytes[i] = op_pass_bytes(m);
        CHECK(m->bytes - bytes[i] == (c.tied ? 0 : 4096 * 64 * sizeof(float)));
        model_close(m);
    }
    CHECK(bytes[0] == bytes[1]);
}

static const char *form;
static struct engine engine;

static const struct read_level l3 = { "L3", 1 << 20, 50 };
static const struct bench_point a_point = {
    .op = "x", .isa = "y", .shape = "z", .level = &l3, .bytes = 3000, .ns = 100, .on_cpu = 1
};

/* A product that reads 30 GB/s from a level of 50, then one that reads 60, then one that computes
 * more than its set can; one beside others, and one beside others while limits were measured. */
static void print_kernels(void)
{
    struct kernels_report b = { .row.format = form };
    for (size_t i = 0; i < 5; i++) {
        struct bench_point p = a_point;
        p.op = i < 3 ? "matmul_q8" : "matmul_f32";
        p.ops = 1000;
        p.bytes = i == 1 ? 6000 : 3000;
        p.peak = i < 2 ? 20 : i == 2 ? 9 : 0;
        p.best = i < 3 ? 0 : 60;
        p.cpu = i < 3 ? 0 : 50;
        p.on_cpu = i == 3 ? 0.5 : 1;
        p.others = i == 3;
        p.beside_limits = i == 4 ? 2 : 0;
        CHECK(kernels_report_row(&b, &p, 2, NULL) == OK);
    }
    row_end(&b.row);
}

/* Texts of ten tokens in a second, and memory at 25 GB/s. */
static struct bench_test a_test(size_t texts, size_t threads)
{
    struct bench_test t = { .gen = 10, .texts = texts, .threads = threads, .samples = 1 };
    t.ns[0] = 1e9;
    t.before = 25;
    t.after = 24;
    t.on_cpu = 1;
    return t;
}

static void print_test(struct model_report *b, const struct bench_test *t)
{
    struct model_figures f;
    model_figures(&f, t, 2000000000);
    CHECK(model_report_row(b, t, &f, NULL, NULL) == OK);
}

/* Two texts within the limit, then beyond it. */
static void print_model(void)
{
    struct model_report b = {
        .row.format = form, .model = "tiny", .kv = "f16", .engine = &engine, .texts = true
    };
    struct bench_test t = a_test(2, 1);
    print_test(&b, &t);
    t.before = t.after = 10;
    print_test(&b, &t);
    model_report_end(&b);
}

/* Two threads beside one, on a machine that has both for them, then on one where another runs. */
static void print_threads(void)
{
    struct model_report b = {
        .row.format = form, .model = "tiny", .kv = "f16", .engine = &engine, .threads = true
    };
    struct bench_test t = a_test(1, 2);
    t.one = 5;
    t.waiting = 0.124;
    print_test(&b, &t);
    t.others = 0.98;
    print_test(&b, &t);
    model_report_end(&b);
}

/* Print in a format, and search the next text in what was printed. */
static const char *shown;

static void print_as(const char *as, void (*print)(void))
{
    form = as;
    shown = printed(print);
}

static void says(const char *want)
{
    CHECK_MSG(strstr(shown, want), "expected %s, found:\n%s", want, shown);
}

#define OVER "over 100 % of the limit"
#define SLOW \
    "others kept 1.0 processors busy, ran 50 % of the time; best 0.06 us, by processor time 0.05"

/* Each row in one format, and one of them in all, since row.c writes them alike. */
static void check_reports(void)
{
    print_as("md", print_kernels);
    says("|\n| y | z | 0.10 | 30.00 | L3 | 60 % | 10.00 | 50 % | 2.00 |  |\n");
    says(" | 60.00 | L3 | 120 % | 10.00 | 50 % | 2.00 | " OVER " |\n");
    says("| L3 | 60 % | 10.00 | 111 % | 2.00 | " OVER " |\n\n| matmul_f32 | shape |");
    says("| L3 | 60 % | 10.00 |  | 2.00 | " SLOW " |\n");
    says(" | others kept 2.0 processors busy; best 0.06 us, by processor time");
    print_as("csv", print_kernels);
    says(",times_scalar,level,doubtful,best_ns,cpu_ns,on_cpu,others,cpu_info\n");
    says(",30.00,50.00,10.00,20.00,2.00,L3,,");
    says(",60.00,50.00,10.00,20.00,2.00,L3," OVER ",");
    says(",30.00,50.00,10.00,,2.00,L3,\"" SLOW "\",60.0,50.0,0.50,1.00,");
    print_as("jsonl", print_kernels);
    says("\"peak_gop_s\": null");
    says("\"level\": \"L3\", \"doubtful\": null");
    says("\"level\": \"L3\", \"doubtful\": \"" OVER "\"");
    print_as("md", print_model);
    says("| 1 | tg10 x 2 | 20.00 +- 0.00 | 10.00 | 20.0 | 25.0, 24.0 | 80 % |  |  |\n");
    says(" | 20.0 | 10.0, 10.0 | 200 % |  | " OVER " |\n");
    print_as("jsonl", print_model);
    says("\"avg_ts\": 20.0, \"stddev_ts\": 0.0, \"text_ts\": 10.0, ");
    says("\"best_ts\": 20.0, \"cpu_ts\": 20.0, \"times_one\": null, \"waiting\": null, ");
    says("\"probe_before_gb_s\": 25.0, \"probe_after_gb_s\": 24.0, \"of_probe\": 0.8");
    print_as("md", print_threads);
    says(" | of probe | x 1 thread | waiting | doubtful |\n");
    says(" | 80 % | 2.00 | 12 % |  |\n");
    says(" | 80 % | 2.00 | 12 % | others kept 1.0 processors busy; best 10.0 t/s, by ");
}

static int report_kernels(void)
{
    struct kernels_report b = { .row.format = form };
    return kernels_report_row(&b, &a_point, 2, &err);
}

/* A row with the times of the operations, and a name that is no UTF-8. */
static int report_model(void)
{
    static struct op_limits bounds = { .int8 = 10, .f32 = 10 };
    static struct bench_ops ops = { .samples = 1, .plain = { 1e6 }, .watched = { 1e6 } };
    struct bench_test t = a_test(1, 1);
    struct model_figures f;
    struct model_report b = {
        .row.format = form, .model = "tiny\xff", .kv = "f16", .engine = &engine
    };
    for (size_t i = 0; i < READ_LEVELS; i++)
        bounds.levels[i] = (struct read_level){ "L1", 1 << 20, 10 };
    bounds.level = bounds.levels;
    ops.limits = &bounds;
    ops.times.model = engine.model;
    model_figures(&f, &t, 2000000000);
    return model_report_row(&b, &t, &f, &ops, &err);
}

static void print_model_once(void)
{
    CHECK(report_model() == OK);
}

static int (*report)(void);

/* Print a row while each allocation fails, jansson's included, and at last none. */
static void print_failing(void)
{
    int reached = 1;
    for (long n = 1; reached; n++) {
        torture_begin(n);
        int rc = report();
        reached = torture_end();
        CHECK(torture_live() == 0 && rc == (reached ? ERR_NOMEM : OK));
        CHECK(reached ? strstr(err.msg, "memory") != NULL : n > 10);
    }
}

/* A row is printed whole or not at all: each line has as many members as the last one. */
static void check_failing(int (*print)(void))
{
    size_t members[2] = { 0 };
    report = print;
    form = "jsonl";
    const char *text = printed(print_failing);
    for (int pass = 0; pass < 2; pass++)
        for (const char *line = text; *line; line = strchr(line, '\n') + 1) {
            json_t *o = json_loadb(line, strcspn(line, "\n"), 0, NULL);
            CHECK(json_is_object(o) && (!pass || json_object_size(o) == members[0]));
            members[pass] = json_object_size(o);
            json_decref(o);
        }
    CHECK(members[0] > 0);
}

static void check_rows(void)
{
    CHECK(kernels_pick(&engine.kernels, NULL, cpu_detect(), &err) == OK);
    CHECK(model_random(&engine.model, &tiny_shape, P_F32, &engine.kernels, NULL, 1, &err) == OK);
    check_reports();
    print_as("csv", print_model_once); /* where operations have no text */
    says(",tiny\\xff,");
    says(",1000000000.000,10.000,");
    json_set_alloc_funcs(malloc, free); /* those that can fail */
    check_failing(report_kernels);
    check_failing(report_model);
    model_close(engine.model);
}

/* Where L3 ends, on a shared Xeon whose system tells of 480 MiB, and on what none is faster in. */
static void check_stairs(void)
{
    const struct read_stair xeon[] = {
        { 4u << 20, 102.7 }, { 8u << 20, 57.6 },   { 16u << 20, 58.2 },  { 32u << 20, 57.4 },
        { 64u << 20, 55.1 }, { 128u << 20, 45.6 }, { 256u << 20, 34.9 }, { 512u << 20, 32.4 },
    };
    CHECK(read_stairs_end(xeon, 8, 28.8, 480u << 20) == 128u << 20);
    CHECK(read_stairs_end(xeon, 3, 28.8, 480u << 20) ==
          16u << 20); /* and more, which was not tried */
    /* Where none is a cache's, L3 ends before the first one, whatever is told. */
    CHECK(read_stairs_end(xeon + 6, 2, 28.8, 480u << 20) == 128u << 20);
    CHECK(read_stairs_end(xeon, 8, 99, 480u << 20) == 2u << 20);
    CHECK(read_stairs_end(xeon, 8, 99, 1u << 20) == 1u << 20);
    CHECK(read_stairs_end(xeon, 0, 28.8, 8u << 20) == 8u << 20);
}

/* The probe itself: every thread reads its part, with one thread and with two, and there are four
 * levels whose sizes rise. */
static void check_probe(void)
{
    struct pool *pool;
    struct read_probe *probe;
    struct read_level levels[READ_LEVELS];
    CHECK(read_probe_bytes(UINT64_MAX, 32u << 20) == 256u << 20);
    CHECK(read_probe_bytes(UINT64_MAX, 512u << 20) == 1088u << 20);
    CHECK(read_probe_bytes(1u << 30, 8u << 20) == 128u << 20);
    CHECK(read_probe_bytes(3u << 29, 8u << 20) == 192u << 20);
    CHECK(read_probe_bytes(0, 0) == 128u << 20);
    CHECK(pool_open(&pool, 2, &err) == OK);
    CHECK(read_probe_open(&probe, false, pool, &err) == OK);
    CHECK(read_probe_memory(probe, pool) > 0);
    CHECK(read_probe_memory(probe, NULL) > 0);
    read_probe_levels(levels, probe, pool);
    CHECK(levels[2].bytes == read_probe_l3(probe, pool));
    for (size_t i = 0; i < READ_LEVELS; i++)
        CHECK(levels[i].gb_s > 0 && (levels[i].bytes > 0) == (i + 1 < READ_LEVELS));
    read_probe_close(probe);
    read_probe_close(NULL);
    pool_close(pool);
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
    check_rates();
    check_levels();
    check_doubts();
    check_others();
    check_model_figures();
    check_pass_bytes();
    check_rows();
    check_stairs();
    check_probe();
    check_loops();
    return 0;
}
