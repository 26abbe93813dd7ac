/* explain_table.c - the table of where the time went. */
#include <math.h>
#include <stdio.h>

#include "kernels/sys/pool.h"
#include "tools/lab/explain/explain.h"

enum { WIDE = 80 }; /* columns of the whole table */

/* Print a number or, where there is none, blanks. */
static void table_cell(const char *form, int width, double v)
{
    if (isfinite(v) && v > 0)
        printf(form, width, v);
    else
        printf("%*s", width, "");
}

/* Print a line of something that is no operation. */
static void table_line(const char *what, double ms, double all_ms)
{
    printf("%-17s %8.3f %5.1f%%\n", what, ms, 100 * ms / all_ms);
}

static void table_operation(const struct explain *x, const struct op_times *t, enum batch_op op,
                            double all_ms)
{
    const struct op_sum *s = &t->of[op];
    double ns = (double)s->ns;
    struct op_speed speed = op_speed(&x->limits, x->engine.model, op, ns, s->bytes, s->ops);
    printf("%-10s %6zu %8.3f %5.1f%%", op_name(op), s->calls, ns / 1e6, 100 * ns / 1e6 / all_ms);
    if (explain_columns() >= WIDE) {
        table_cell(" %*.2f", 7, s->bytes / 1e6);
        table_cell(" %*.2f", 7, s->ops / 1e6);
        table_cell(" %*.2f", 7, speed.gb_s);
        table_cell(" %*.2f", 7, speed.gop_s);
    }
    printf(" %-6s", speed.limit);
    table_cell(" %*.1f%%", 5, 100 * speed.reached);
    puts(speed.reached > 1 ? "?" : "");
}

/* Print where the time of one part of the text went. */
static void table_part(const struct explain *x, bool reading)
{
    const struct explain_times t = explain_times(x, reading);
    double rest = t.ms - t.router_ms - t.cloud_ms;
    if (!t.passes && !t.tokens)
        return;
    char line[120];
    size_t n = reading ? x->prompt : t.tokens;
    snprintf(line, sizeof(line), "Where the time went: %zu token%s %s, %.3f ms", n,
             n == 1 ? "" : "s",
             !reading   ? "after that"
             : t.tokens ? "of the prompt, to the first token"
                        : "of the prompt",
             t.ms);
    putchar('\n');
    explain_wrap(line, 0);
    printf("operation   calls       ms  share%s limit reached\n",
           explain_columns() >= WIDE ? "      MB     MOP    GB/s   GOP/s" : "");
    for (size_t op = 0; op < BATCH_OPS; op++) {
        if (t.operations->of[op].calls)
            table_operation(x, t.operations, (enum batch_op)op, t.ms);
        rest -= (double)t.operations->of[op].ns / 1e6;
    }
    if (t.router_ms > 0)
        table_line("router", t.router_ms, t.ms);
    if (t.cloud_ms > 0)
        table_line("cloud, waiting", t.cloud_ms, t.ms);
    table_line("all else", rest, t.ms);
}

void explain_table(const struct explain *x)
{
    const struct read_level *level = x->limits.level, *memory = &x->limits.levels[READ_LEVELS - 1];
    double mb = (double)op_pass_bytes(x->engine.model) / 1e6;
    char line[700], slower[100] = "", doubtful[DOUBT_TEXT] = "";
    size_t threads = pool_threads(x->engine.pool);
    table_part(x, true);
    table_part(x, false);
    if (level != memory)
        snprintf(slower, sizeof(slower), "; from memory, which gives %.1f, it would be %.3f",
                 memory->gb_s, mb / memory->gb_s);
    snprintf(line, sizeof(line),
             "The limit is what would take longest if the machine did its best; what of that speed "
             "was reached stands beside it: 100 %% would be perfect, and more with ? is doubtful: "
             "the machine was slower when it was measured. %zu thread%s. A pass reads "
             "%.2f MB of weights. They lie in %s, which gives %.1f GB/s, so it takes %.3f ms at "
             "least%s. Products compute %.0f GOP/s in int8 and %.0f in f32 at most.",
             threads, threads == 1 ? "" : "s", mb, level->name, level->gb_s, mb / level->gb_s,
             slower, x->limits.int8, x->limits.f32);
    putchar('\n');
    explain_wrap(line, 0);
    if (doubt_busy(doubtful, 1, x->others.took)) {
        snprintf(line, sizeof(line), "All of these times are doubtful: %s.", doubtful);
        explain_wrap(line, 0);
    }
}
