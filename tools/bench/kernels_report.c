/* kernels_report.c - prints a row for each call of `bench kernels`, in the requested format. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/bench/bench.h"
#include "tools/bench/doubt.h"
#include "tools/bench/read_probe.h"

/* Columns that only some machines have. IPC follows from the first two. */
static const struct {
    enum os_event event;
    const char *key, *title;
} columns[] = {
    { OS_CYCLES, "cycles", "cycles" },
    { OS_INSTRUCTIONS, "instructions", "instructions" },
    { OS_L1D_MISSES, "l1d_misses", "L1d misses" },
    { OS_LLC_MISSES, "llc_misses", "LLC misses" },
    { OS_CPU_NS, "on_cpu", NULL },
};
enum { COLUMNS = sizeof(columns) / sizeof(columns[0]) };

static bool has_ipc(const struct kernels_report *b)
{
    return b->counts[OS_CYCLES] && b->counts[OS_INSTRUCTIONS];
}

/* True if the event has a column. How long the thread ran has one in CSV; a table tells it only
 * where the row is doubtful for it. */
static bool kernels_report_shows(const struct kernels_report *b, size_t i)
{
    return b->counts[columns[i].event] && (*b->format == 'c' || columns[i].event != OS_CPU_NS);
}

static double kernels_report_column(const struct bench_point *p, size_t i)
{
    return columns[i].event == OS_CPU_NS ? p->on_cpu : p->count[columns[i].event];
}

/* Return instructions per cycle, or -1 if they were not counted. */
static double kernels_report_ipc(const struct bench_point *p)
{
    double cycles = p->count[OS_CYCLES], n = p->count[OS_INSTRUCTIONS];
    return cycles > 0 && n >= 0 ? n / cycles : -1;
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

/* Print the cells of the counted events and end the row. */
static void print_counts(const struct kernels_report *b, const struct bench_point *p)
{
    bool csv = *b->format == 'c';
    for (size_t i = 0; i < COLUMNS; i++) {
        if (!kernels_report_shows(b, i))
            continue;
        print_cell(csv ? "," : " ", kernels_report_column(p, i), 1,
                   !csv                            ? "0"
                   : columns[i].event == OS_CPU_NS ? "2"
                                                   : "1",
                   csv ? "" : " |");
        if (columns[i].event == OS_INSTRUCTIONS && has_ipc(b))
            print_cell(csv ? "," : " ", kernels_report_ipc(p), 1, "2", csv ? "" : " |");
    }
    putchar('\n');
}

/* End a header line with the columns of the counted events; return their number. */
static size_t kernels_report_events(const struct kernels_report *b)
{
    bool csv = *b->format == 'c';
    size_t n = 0;
    for (size_t i = 0; i < COLUMNS; i++) {
        if (!kernels_report_shows(b, i))
            continue;
        bool and_ipc = columns[i].event == OS_INSTRUCTIONS && has_ipc(b);
        printf(csv ? ",%s%s" : " %s |%s", csv ? columns[i].key : columns[i].title,
               !and_ipc ? ""
               : csv    ? ",ipc"
                        : " IPC |");
        n += and_ipc ? 2 : 1;
    }
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
    double reading = p->bytes / p->ns / p->level->gb_s;
    double computing = p->peak > 0 ? p->ops / p->ns / p->peak : 0;
    doubt_text(out, reading > computing ? reading : computing, 1, 0, 0);
    if (p->on_cpu >= 0)
        doubt_busy(out, p->on_cpu);
}

static void kernels_report_print_json(const struct kernels_report *b, const struct bench_point *p,
                                      double times, const char *doubtful)
{
    json_t *o =
        json_pack("{s:s,s:s,s:s,s:f,s:f,s:f,s:f,s:o,s:f,s:s,s:o}", "op", p->op, "isa", p->isa,
                  "shape", p->shape, "ns", p->ns, "gb_s", p->bytes / p->ns, "read_gb_s",
                  p->level->gb_s, "gop_s", p->ops / p->ns, "peak_gop_s",
                  p->peak > 0 ? json_real(p->peak) : json_null(), "times_scalar", times, "level",
                  p->level->name, "doubtful", *doubtful ? json_string(doubtful) : json_null());
    for (size_t i = 0; i < COLUMNS; i++)
        if (kernels_report_column(p, i) >= 0)
            json_object_set_new(o, columns[i].key, json_real(kernels_report_column(p, i)));
    if (kernels_report_ipc(p) >= 0)
        json_object_set_new(o, "ipc", json_real(kernels_report_ipc(p)));
    char *text = o ? json_dumps(o, 0) : NULL;
    printf("%s%s\n", !strcmp(b->format, "json") && b->rows ? "," : "", text ? text : "{}");
    free(text);
    json_decref(o);
}

void kernels_report_row(struct kernels_report *b, const struct bench_point *p, double times)
{
    double gb = p->bytes / p->ns, gop = p->ops / p->ns;
    char doubtful[DOUBT_TEXT];
    kernels_report_doubt(doubtful, p);
    if (*b->format == 'j') {
        kernels_report_print_json(b, p, times, doubtful);
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
}

void kernels_report_end(const struct kernels_report *b)
{
    if (!strcmp(b->format, "json"))
        puts("]");
}
