/* chart_bars.c - horizontal bars. */
#include "kernels/sys/base.h"
#include "tools/cli/output_file.h"
#include "tools/plot/chart_internal.h"

enum { BAR = 22, BETWEEN = 32, BELOW = 14, SUM = 110 };

static double chart_bar_sum(const struct chart_bar *b)
{
    double sum = 0;
    for (size_t i = 0; i < CHART_PARTS; i++)
        sum += b->parts[i];
    return sum;
}

/* Draw a part of a bar. Parts differ in lightness, and a line separates them. */
static void chart_bar_part(FILE *f, size_t part, double x, double y, double width)
{
    fprintf(f,
            "<g class=\"s%zu\"><rect class=\"fill\" opacity=\"%.2f\" x=\"%.1f\" y=\"%.1f\" "
            "width=\"%.1f\" height=\"%d\"/></g>\n",
            part, part % 2 ? 0.6 : 1.0, x, y, width, BAR);
}

/* Write which part looks how; y is the top of the line. */
static void chart_bar_key(FILE *f, const struct chart_bars *c, double x, double y)
{
    for (size_t i = 0; i < CHART_PARTS && c->names[i]; i++) {
        chart_bar_part(f, i, x, y, BAR);
        fprintf(f, "<text x=\"%.1f\" y=\"%.1f\">", x + BAR + 6, y + 16);
        chart_text(f, c->names[i]);
        fputs("</text>\n", f);
        x += BAR + 30 + chart_text_width(c->names[i]);
    }
}

/* Draw one bar with its label and its sum. */
static void chart_bar_draw(FILE *f, const struct chart_bars *c, const struct chart_bar *b,
                           double left, double y, double scale)
{
    char sum[32];
    double x = left;
    fprintf(f, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"end\">", left - 8, y + 16);
    chart_text(f, b->label);
    fputs("</text>\n", f);
    for (size_t i = 0; i < CHART_PARTS && c->names[i]; i++) {
        double width = b->parts[i] * scale;
        chart_bar_part(f, i, x, y, width);
        x += width;
    }
    snprintf(sum, sizeof(sum), "%.3g", chart_bar_sum(b));
    fprintf(f, "<text x=\"%.1f\" y=\"%.1f\">%s ", x + 8, y + 16, sum);
    chart_text(f, c->unit);
    fputs("</text>\n", f);
}

int chart_bars_write(const char *path, const struct chart_bars *c, struct err *err)
{
    struct output_file to;
    double left = 0, most = 0;
    int rc = output_file_open(&to, path, err);
    if (rc != OK)
        return rc;
    for (size_t i = 0; i < c->n; i++) {
        double width = chart_text_width(c->bars[i].label) + 2 * CHART_HEAD;
        double sum = chart_bar_sum(&c->bars[i]);
        left = width > left ? width : left;
        most = sum > most ? sum : most;
    }
    bool key = c->names[0] && c->names[1]; /* a single part is what the title is about */
    double y = chart_head(NULL, 0, c->title, c->note);
    chart_begin(to.f, c->title, y + BETWEEN * (double)(c->n + key) + BELOW);
    chart_head(to.f, 0, c->title, c->note);
    double scale = most > 0 ? (CHART_WIDTH - left - SUM) / most : 0;
    if (key)
        chart_bar_key(to.f, c, left, y);
    y += key ? BETWEEN : 0;
    for (size_t i = 0; i < c->n; i++, y += BETWEEN)
        chart_bar_draw(to.f, c, &c->bars[i], left, y, scale);
    chart_end(to.f);
    return output_file_close(&to, true, err);
}
