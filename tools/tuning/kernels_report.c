/* kernels_report.c - prints a row for each call of `bench kernels`, in the requested format. */
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "kernels/sys/cpu.h"
#include "tools/bench/bench.h"
#include "tools/bench/counts.h"
#include "tools/bench/doubt.h"
#include "tools/cli/json_report.h"
#include "tools/tuning/roofline.h"

static bool has_ipc(const struct kernels_report *b)
{
    return b->counts[OS_CYCLES] && b->counts[OS_INSTRUCTIONS];
}

/* Print one cell; a negative value, which could not be counted, leaves it empty. */
static void print_cell(const char *before, double v, double scale, const char *form,
                       const char *after)
{
    fputs(before, stdout);
    if (v >= 0)
        printf(*form == '2' ? "%.2f" : *form == '1' ? "%.1f" : "%.0f", v * scale);
    printf("%s%s", v >= 0 && scale > 1 ? " %" : "", after);
}

/* Print the cells of the counted events and end the row. How long the thread ran has a cell in CSV;
 * a table tells it only where the row is doubtful for it. */
static void print_counts(const struct kernels_report *b, const struct bench_point *p)
{
    bool csv = *b->format == 'c';
    const char *before = csv ? "," : " ", *after = csv ? "" : " |";
    for (size_t i = 0; i < COUNT_COLUMNS; i++) {
        enum os_event event = count_columns[i].event;
        if (b->counts[event])
            print_cell(before, p->count[event], 1, csv ? "1" : "0", after);
        if (event == OS_INSTRUCTIONS && has_ipc(b))
            print_cell(before, counts_ipc(p->count), 1, "2", after);
    }
    if (csv && b->counts[OS_CPU_NS])
        print_cell(before, p->on_cpu, 1, "2", after);
    putchar('\n');
}

/* End a header line with the columns of the counted events; return their number. */
static size_t kernels_report_events(const struct kernels_report *b)
{
    bool csv = *b->format == 'c';
    const char *form = csv ? ",%s" : " %s |";
    size_t n = 0;
    for (size_t i = 0; i < COUNT_COLUMNS; i++) {
        enum os_event event = count_columns[i].event;
        if (b->counts[event]) {
            printf(form, csv ? count_columns[i].key : count_columns[i].title);
            n++;
        }
        if (event == OS_INSTRUCTIONS && has_ipc(b)) {
            printf(form, csv ? "ipc" : "IPC");
            n++;
        }
    }
    if (csv && b->counts[OS_CPU_NS])
        printf(form, "on_cpu");
    putchar('\n');
    return n;
}

void kernels_report_begin(const struct kernels_report *b)
{
    if (!strcmp(b->format, "json"))
        puts("[");
    if (*b->format != 'c')
        return;
    fputs("op,isa,shape,ns,gb_s,read_gb_s,gop_s,peak_gop_s,times_scalar,level,doubtful", stdout);
    kernels_report_events(b);
}

/* Begin the table of an operation, whose name stands above its sets. */
static void kernels_report_table(struct kernels_report *b, const char *op)
{
    printf("%s| %s | shape | us | GB/s | data in | of that | GOP/s | of peak | x scalar | doubtful "
           "|",
           b->rows ? "\n" : "", op);
    size_t n = 10 + kernels_report_events(b);
    putchar('|');
    while (n--)
        fputs("---|", stdout);
    putchar('\n');
    b->op = op;
}

/* Write why the point is doubtful; the larger of its two shares counts, and whether its thread ran
 * all the time. */
static void kernels_report_doubt(char out[DOUBT_TEXT], const struct bench_point *p)
{
    doubt_text(out, roofline_share(p), 1, 0, 0);
    if (p->on_cpu >= 0)
        doubt_busy(out, p->on_cpu);
}

/* Add the counted events, and the samples themselves for `bench kernels --compare`. */
static void kernels_report_json_more(json_t **o, const struct bench_point *p)
{
    for (size_t i = 0; i < COUNT_COLUMNS; i++)
        if (p->count[count_columns[i].event] >= 0)
            json_report_set(o, count_columns[i].key, json_real(p->count[count_columns[i].event]));
    if (counts_ipc(p->count) >= 0)
        json_report_set(o, "ipc", json_real(counts_ipc(p->count)));
    if (p->on_cpu >= 0)
        json_report_set(o, "on_cpu", json_real(p->on_cpu));
    json_t *samples = json_array();
    for (size_t i = 0; i < p->nsamples; i++)
        json_report_add(&samples, json_real(p->samples[i]));
    json_report_set(o, "samples_ns", samples);
}

/* Print a row as a JSON object. */
static int kernels_report_print_json(const struct kernels_report *b, const struct bench_point *p,
                                     double times, const char *doubtful, struct err *err)
{
    json_t *o =
        json_pack("{s:s,s:s,s:s,s:s,s:f,s:f,s:f,s:f,s:o,s:f,s:s,s:o}", "cpu_info", cpu_name(), "op",
                  p->op, "isa", p->isa, "shape", p->shape, "ns", p->ns, "gb_s", p->bytes / p->ns,
                  "read_gb_s", p->level->gb_s, "gop_s", p->ops / p->ns, "peak_gop_s",
                  p->peak > 0 ? json_real(p->peak) : json_null(), "times_scalar", times, "level",
                  p->level->name, "doubtful", *doubtful ? json_string(doubtful) : json_null());
    kernels_report_json_more(&o, p);
    bool comma = !strcmp(b->format, "json") && b->rows;
    return json_report_print("bench", o, 0, comma ? "," : "", "", err);
}

int kernels_report_row(struct kernels_report *b, const struct bench_point *p, double times,
                       struct err *err)
{
    double gb = p->bytes / p->ns, gop = p->ops / p->ns;
    char doubtful[DOUBT_TEXT];
    kernels_report_doubt(doubtful, p);
    if (*b->format == 'j') {
        int rc = kernels_report_print_json(b, p, times, doubtful, err);
        if (rc != OK)
            return rc;
    } else if (*b->format == 'c') {
        printf("%s,%s,\"%s\",%.1f,%.2f,%.2f,%.2f", p->op, p->isa, p->shape, p->ns, gb,
               p->level->gb_s, gop);
        print_cell(",", p->peak > 0 ? p->peak : -1, 1, "2", "");
        printf(",%.2f,%s,%s", times, p->level->name, doubtful);
        print_counts(b, p);
    } else {
        if (!b->op || strcmp(b->op, p->op) != 0)
            kernels_report_table(b, p->op);
        double us = p->ns / 1e3;
        printf("| %s | %s | %.*f | %.1f | %s | %.0f %% |", p->isa, p->shape, us < 1000 ? 2 : 0, us,
               gb, p->level->name, 100 * gb / p->level->gb_s);
        print_cell(" ", p->ops > 0 ? gop : -1, 1, "1", " |");
        print_cell(" ", p->peak > 0 ? gop / p->peak : -1, 100, "0", " |");
        printf(" %.1f | %s |", times, doubtful);
        print_counts(b, p);
    }
    b->rows++;
    b->closed = fflush(stdout) != 0;
    return OK;
}

void kernels_report_end(const struct kernels_report *b)
{
    if (!strcmp(b->format, "json"))
        puts("]");
}
