/* kernels_report.c - prints a row for each call of `bench kernels`, in the requested format. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "kernels/sys/cpu.h"
#include "tools/lab/bench/bench.h"
#include "tools/lab/machine/read_probe.h"

/* Return a figure, NaN if it is negative and so could not be counted. */
static double counted(double v)
{
    return v >= 0 ? v : (double)NAN;
}

/* Return the speed of a point as a share of its roof (Williams, Waterman, Patterson 2009), which is
 * the lower one of two: its level's and its set's peak. */
static double kernels_report_share(const struct bench_point *p)
{
    double reading = p->bytes / p->ns / p->level->gb_s;
    double computing = p->peak > 0 ? p->ops / p->ns / p->peak : 0;
    return reading > computing ? reading : computing;
}

/* Write why the point is doubtful, as doubt.h has it; "": it is not. */
static void kernels_report_doubt(char out[DOUBT_TEXT], const struct bench_point *p)
{
    doubt_text(out, kernels_report_share(p), 1, 0, 0);
    double others = p->others > p->beside_limits ? p->others : p->beside_limits;
    if (doubt_busy(out, p->on_cpu, others))
        doubt_best(out, p->best / 1e3, p->cpu / 1e3, "us");
}

/* Add what a busy machine disturbs least, which a table has only where the row is doubtful for it.
 */
static void kernels_report_busy(struct row *r, const struct bench_point *p)
{
    row_named(r, "best_ns", NULL, p->best, 1);
    row_named(r, "cpu_ns", NULL, p->cpu, 1);
    row_named(r, "on_cpu", NULL, p->on_cpu, 2);
    row_named(r, "others", NULL, counted(p->others), 2);
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
    kernels_report_busy(r, p);
    row_text(r, "cpu_info", NULL, cpu_name());
    int rc = row_print(r, err);
    b->closed = fflush(stdout) != 0;
    return rc;
}
