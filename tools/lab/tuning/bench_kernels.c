/* bench_kernels.c - times every operation of every kernel set at the shapes of Qwen2.5-0.5B, on one
 * thread, beside limits measured in the same run. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "kernels/sys/cpu.h"
#include "kernels/kernels.h"
#include "kernels/sys/os.h"
#include "tools/lab/machine/limits.h"
#include "tools/lab/bench/bench.h"
#include "tools/lab/bench/doubt.h"
#include "tools/lab/machine/read_probe.h"
#include "tools/lab/tuning/kit.h"
#include "tools/cli/setup.h"

enum { MAX_SAMPLES = 1000, WINDOWS = 8 };
static const double SAMPLE_NS = 3e6;

/* Write why the point is doubtful, as doubt.h has it; "": it is not. Its roof (Williams, Waterman,
 * Patterson 2009) is the lower one of two: its level's and its set's peak. */
static void kernels_report_doubt(char out[DOUBT_TEXT], const struct bench_point *p)
{
    double reading = p->bytes / p->ns / p->level->gb_s;
    double computing = p->peak > 0 ? p->ops / p->ns / p->peak : 0;
    double others = p->others > p->beside_limits ? p->others : p->beside_limits;
    doubt_text(out, reading > computing ? reading : computing, 1, 0, 0);
    if (doubt_busy(out, p->on_cpu, others))
        doubt_best(out, p->best / 1e3, p->cpu / 1e3, "us");
}

int kernels_report_row(struct kernels_report *b, const struct bench_point *p, double times,
                       struct err *err)
{
    double gb = p->bytes / p->ns, us = p->ns / 1e3;
    double gop = p->ops > 0 ? p->ops / p->ns : (double)NAN;
    double peak = p->peak > 0 ? p->peak : (double)NAN;
    char doubtful[DOUBT_TEXT];
    struct row *r = &b->row;
    kernels_report_doubt(doubtful, p);
    if (b->op && strcmp(b->op, p->op) != 0 && !strcmp(r->format, "md")) {
        puts("");
        r->headed = false;
    }
    b->op = p->op;
    row_text(r, "op", NULL, p->op);
    row_text(r, "isa", p->op, p->isa); /* the operation's name stands above its sets */
    row_text(r, "shape", "shape", p->shape);
    row_named(r, "ns", NULL, p->ns, 1);
    row_named(r, NULL, "us", us, us < 1000 ? 2 : 0);
    row_named(r, "gb_s", "GB/s", gb, 2);
    row_text(r, NULL, "data in", p->level->name);
    row_named(r, "read_gb_s", NULL, p->level->gb_s, 2);
    row_percent(r, "of that", gb / p->level->gb_s);
    row_named(r, "gop_s", "GOP/s", gop, 2);
    row_named(r, "peak_gop_s", NULL, peak, 2);
    row_percent(r, "of peak", gop / peak);
    row_named(r, "times_scalar", "x scalar", times, 2);
    row_text(r, "level", NULL, p->level->name);
    row_text(r, "doubtful", "doubtful", *doubtful ? doubtful : NULL);
    /* What a busy machine disturbs least, which a table has only where the row is doubtful. */
    row_named(r, "best_ns", NULL, p->best, 1);
    row_named(r, "cpu_ns", NULL, p->cpu, 1);
    row_named(r, "on_cpu", NULL, p->on_cpu, 2);
    row_named(r, "others", NULL, p->others >= 0 ? p->others : (double)NAN, 2);
    row_text(r, "cpu_info", NULL, cpu_name());
    int rc = row_print(r, err);
    b->closed = fflush(stdout) != 0;
    return rc;
}

/* A call with a set, and the first weights; those of the next turn are in the kit. */
struct timing {
    const struct kit_op *op;
    const struct kernels *k;
    const struct kit_call *c;
    struct kit kit;
    unsigned char *first;
};

/* Make the call so many times, and return the nanoseconds that it took. */
static double time_turns(struct timing *t, size_t turns)
{
    size_t step = t->c->step;
    uint64_t begin = os_now_ns();
    for (size_t i = 0; i < turns; i++) {
        t->op->run(t->k, &t->kit, t->c);
        t->kit.weights += step;
        if (t->kit.weights + step > t->first + t->kit.weight_bytes)
            t->kit.weights = t->first;
    }
    return (double)(os_now_ns() - begin);
}

/* Take a sample of so many turns, in windows: the shorter one is, the likelier nothing else ran in
 * it. Return the nanoseconds of a turn; the shortest window's go to *best. */
static double time_sample(struct timing *t, size_t turns, double *best)
{
    size_t window = turns > WINDOWS ? turns / WINDOWS : 1;
    double all = 0;
    for (size_t i = 0; i < turns; i += window) {
        double ns = time_turns(t, window);
        all += ns;
        *best = *best <= 0 || ns / (double)window < *best ? ns / (double)window : *best;
    }
    return all / (double)turns;
}

/* Set the median nanoseconds of a call over the samples, each long enough for the clock, the best
 * and those that it ran. */
static void time_call(struct bench_point *p, struct timing *t, size_t samples)
{
    static double ns[MAX_SAMPLES];
    size_t turns = 1, done = 0;
    while (time_turns(t, turns) < SAMPLE_NS) /* warm up and find the number of turns */
        turns *= 2;
    uint64_t begin = os_now_ns();
    double ran = doubt_ran();
    while (done == 0 || (done < samples && !interrupted))
        ns[done++] = time_sample(t, turns, &p->best);
    p->cpu = 1e9 * (doubt_ran() - ran) / (double)(done * turns);
    p->on_cpu = p->cpu * (double)(done * turns) / (double)(os_now_ns() - begin);
    p->ns = limits_median(ns, done);
}

struct bench_kernels {
    struct kit kit;
    struct kernels chosen; /* by --isa, else the fastest exact set */
    const struct bench_options *o;
    struct kernels_report table;
    struct read_level levels[READ_LEVELS];
    struct doubt_others others;
    double beside_limits; /* what others took while levels were measured */
    double scalar;        /* operations or calls per nanosecond of the set scalar with one token */
    bool all_sets;        /* no set was named */
    bool hinted;          /* the hint on OpenBLAS was printed */
};

/* Time one call with every set that implements the operation itself. Scalar is slow and takes each
 * token by itself, so it is timed with one, whose weights a cache may hold. */
static int bench_call(struct bench_kernels *b, const struct kit_op *op, const struct kit_call *c,
                      struct err *err)
{
    int rc = OK;
    for (size_t i = 0; rc == OK && i < kernels_nsets && !interrupted && !b->table.closed; i++) {
        const struct kernels *set = kernels_sets[i];
        struct kernels all;
        void (*own)(void);
        kernels_own(&all, set);
        memcpy(&own, (const char *)&all + op->member, sizeof(own));
        if (!own || !kernels_ready(set, cpu_detect()) ||
            (i && !b->all_sets && strcmp(b->chosen.isa, set->isa) != 0) ||
            (!i && (c->n > 1 || c->step)))
            continue;
        if ((set->needs & CPU_BLAS) && !b->hinted) {
            b->hinted = true;
            setup_blas_hint(set);
        }
        struct bench_point p = { .op = op->name,
                                 .isa = set->isa,
                                 .shape = c->shape,
                                 .level = read_level_of(b->levels, c->held),
                                 .bytes = c->bytes,
                                 .ops = c->ops };
        struct timing timing = { op, &all, c, b->kit, b->kit.weights };
        time_call(&p, &timing, i ? b->o->repeat : 1);
        doubt_look(&b->others);
        p.others = b->others.took;
        p.beside_limits = b->beside_limits;
        const char *what = set->needs & CPU_AVX512BF16 ? "bf16" : c->what;
        if (what && i)
            p.peak = limits_peak(what, set->needs & cpu_detect(), NULL);
        double work = p.ops > 0 ? p.ops / p.ns : 1 / p.ns;
        if (i == 0)
            b->scalar = work;
        rc = kernels_report_row(&b->table, &p, work / b->scalar, err);
    }
    return rc;
}

/* Measure how fast the levels are read. The table holds points against this measurement. */
static int bench_levels(struct bench_kernels *b, struct err *err)
{
    struct read_probe *probe;
    doubt_look(&b->others);
    int rc = read_probe_open(&probe, false, NULL, err);
    if (rc == OK)
        read_probe_levels(b->levels, probe, NULL);
    read_probe_close(probe);
    doubt_look(&b->others);
    b->beside_limits = b->others.took;
    return rc;
}

/* Time a call, and where a cache may hold its weights, with others each turn, too. */
static int bench_both(struct bench_kernels *b, const struct kit_op *op, const struct kit_call *c,
                      struct err *err)
{
    int rc = bench_call(b, op, c, err);
    if (rc != OK || !c->cold || c->held > (double)b->levels[READ_LEVELS - 2].bytes)
        return rc;
    struct kit_call cold = *c;
    snprintf(cold.shape, sizeof(cold.shape), "%.30s, cold", c->shape);
    cold.held = (double)b->kit.weight_bytes;
    cold.step = c->matrix;
    return bench_call(b, op, &cold, err);
}

/* Time the calls of all requested operations. */
static int bench_all(struct bench_kernels *b, struct err *err)
{
    int rc = OK;
    for (size_t i = 0; i < kit_nops && !interrupted && !b->table.closed; i++) {
        struct kit_call calls[KIT_SHAPES];
        const struct kit_op *op = &kit_ops[i];
        size_t n = kit_wants(b->o->only, op->name) ? kit_calls(calls, op) : 0;
        for (size_t j = 0; rc == OK && j < n; j++)
            rc = bench_both(b, op, &calls[j], err);
    }
    row_end(&b->table.row);
    return rc == OK && interrupted ? err_set(err, ERR_STOP, "interrupted") : rc;
}

int bench_kernels(const struct bench_options *o, struct err *err)
{
    static struct bench_kernels b;
    b = (struct bench_kernels){ .o = o, .table.row.format = o->format };
    size_t found = 0;
    for (size_t i = 0; i < kit_nops; i++)
        found += kit_wants(o->only, kit_ops[i].name);
    if (!found)
        return err_set(err, ERR_ARG, "expected an operation that `mizzle info` lists, found %s",
                       o->only);
    const char *isa = setup_isa();
    if (kernels_pick(&b.chosen, isa, cpu_detect(), err) != OK)
        return ERR_ARG;
    b.all_sets = !isa || *isa == ','; /* `,ahead=0` changes how products walk, in every set */
    int rc = bench_levels(&b, err);
    if (rc == OK && !kit_open(&b.kit, o->only, b.levels[READ_LEVELS - 2].bytes, b.chosen.tune))
        rc = err_set(err, ERR_NOMEM, "bench: out of memory");
    if (rc == OK)
        rc = bench_all(&b, err);
    kit_close(&b.kit);
    return rc;
}
