/* route_plot.c - draws the pictures of `mizzle bench route`. */
#include <stdio.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "tools/bench/bench_route.h"
#include "tools/cli/output_file.h"

enum { WIDTH = 900, HEIGHT = 540, LEFT = 80, RIGHT = 230, TOP = 40, BOTTOM = 60, COLORS = 8 };
enum { TICKS = 5, BAR = 34, BAR_LEFT = 140 };

static const char *const colors[COLORS] = { "#1b6ca8", "#c8553d", "#0a8754", "#7a3e9d",
                                            "#b58900", "#00798c", "#d1495b", "#777777" };

struct axes {
    FILE *f;
    double x_most, y_most; /* largest values, at the ends of the axes */
};

/* Return the x coordinate of a value. */
static double route_plot_x_of(const struct axes *a, double v)
{
    return LEFT + (WIDTH - LEFT - RIGHT) * v / a->x_most;
}

static double route_plot_y_of(const struct axes *a, double v)
{
    return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * v / a->y_most;
}

/* Return a parameter of the row: 0: latency, 1: share in percent, 2: requests in flight. */
static double parameter(const struct bench_route_row *r, size_t which)
{
    return which == 0 ? r->latency : which == 1 ? 100 * r->share : (double)r->ahead;
}

/* True if the rows agree in all parameters but this one. */
static bool same_but(const struct bench_route_row *a, const struct bench_route_row *b, size_t which)
{
    for (size_t i = 0; i < 3; i++)
        if (i != which && parameter(a, i) != parameter(b, i))
            return false;
    return true;
}

/* Return the parameter with most values among the rows that differ from the first in nothing
 * else. */
static size_t route_plot_widest(const struct bench_route_row *rows, size_t n)
{
    size_t best = 0, most = 0;
    for (size_t which = 0; which < 3; which++) {
        size_t values = 0;
        for (size_t i = 0; i < n; i++)
            values += same_but(&rows[0], &rows[i], which);
        if (values > most) {
            most = values;
            best = which;
        }
    }
    return best;
}

/* Open the file and write the head of the picture. */
static int open_svg(struct output_file *o, const char *path, int height, struct err *err)
{
    int rc = output_file_open(o, path, err);
    if (rc)
        return rc;
    fprintf(o->f,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
            "font-family=\"sans-serif\" font-size=\"12\">\n"
            "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n",
            WIDTH, height);
    return OK;
}

static int close_svg(struct output_file *o, struct err *err)
{
    fputs("</svg>\n", o->f);
    return output_file_close(o, true, err);
}

/* Draw grid, numbers and titles; `which` is the parameter on the x axis. */
static void draw_axes(const struct axes *a, size_t which)
{
    static const char *const names[] = { "latency of a call, ms", "tokens from the cloud, percent",
                                         "requests in flight" };
    for (int i = 0; i <= TICKS; i++) {
        double x = a->x_most * i / TICKS, y = a->y_most * i / TICKS;
        fprintf(a->f,
                "<line x1=\"%.1f\" y1=\"%d\" x2=\"%.1f\" y2=\"%d\" stroke=\"#dddddd\"/>"
                "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%.3g</text>\n"
                "<line x1=\"%d\" y1=\"%.1f\" x2=\"%d\" y2=\"%.1f\" stroke=\"#dddddd\"/>"
                "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%.3g</text>\n",
                route_plot_x_of(a, x), TOP, route_plot_x_of(a, x), HEIGHT - BOTTOM,
                route_plot_x_of(a, x), HEIGHT - BOTTOM + 18, x, LEFT, route_plot_y_of(a, y),
                WIDTH - RIGHT, route_plot_y_of(a, y), LEFT - 8, route_plot_y_of(a, y) + 4, y);
    }
    fprintf(a->f,
            "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">%s</text>"
            "<text x=\"%d\" y=\"%d\">ms per token: points: measured, lines: event model, "
            "dashes: formula</text>\n",
            (LEFT + WIDTH - RIGHT) / 2, HEIGHT - 18, names[which], LEFT, TOP - 14);
}

/* Draw a line through the rows that are like rows[first] but for one parameter: the model or the
 * formula. */
static void route_plot_line(const struct axes *a, const struct bench_route_row *rows, size_t n,
                            size_t first, size_t which, bool formula, const char *color)
{
    fprintf(a->f, "<polyline fill=\"none\" stroke=\"%s\"%s points=\"", color,
            formula ? " stroke-dasharray=\"4 4\"" : "");
    for (size_t i = first; i < n; i++)
        if (same_but(&rows[first], &rows[i], which))
            fprintf(a->f, "%.1f,%.1f ", route_plot_x_of(a, parameter(&rows[i], which)),
                    route_plot_y_of(a, formula ? rows[i].formula : rows[i].model));
    fputs("\"/>\n", a->f);
}

/* Draw points, lines and legend of one series; turn is its number. */
static void route_plot_series(const struct axes *a, const struct bench_route_row *rows, size_t n,
                              size_t first, size_t which, size_t turn)
{
    const char *color = colors[turn % COLORS];
    int y = TOP + 18 * (int)turn;
    route_plot_line(a, rows, n, first, which, false, color);
    route_plot_line(a, rows, n, first, which, true, color);
    for (size_t i = first; i < n; i++)
        if (same_but(&rows[first], &rows[i], which))
            fprintf(a->f, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"4\" fill=\"%s\"/>\n",
                    route_plot_x_of(a, parameter(&rows[i], which)), route_plot_y_of(a, rows[i].ms),
                    color);
    fprintf(a->f, "<circle cx=\"%d\" cy=\"%d\" r=\"4\" fill=\"%s\"/><text x=\"%d\" y=\"%d\">",
            WIDTH - RIGHT + 30, y, color, WIDTH - RIGHT + 40, y + 4);
    if (which != 0)
        fprintf(a->f, "L %g ms ", rows[first].latency);
    if (which != 1)
        fprintf(a->f, "r %g %% ", 100 * rows[first].share);
    if (which != 2)
        fprintf(a->f, "W %zu", rows[first].ahead);
    fputs("</text>\n", a->f);
}

int route_plot(const char *path, const struct bench_route_row *rows, size_t n, struct err *err)
{
    struct axes a = { .x_most = 0, .y_most = 0 };
    size_t which = route_plot_widest(rows, n), turn = 0;
    struct output_file to;
    int rc = open_svg(&to, path, HEIGHT, err);
    if (rc)
        return rc;
    a.f = to.f;
    for (size_t i = 0; i < n; i++) {
        double x = parameter(&rows[i], which), y = rows[i].ms;
        y = y > rows[i].model ? y : rows[i].model;
        a.x_most = x > a.x_most ? x : a.x_most;
        a.y_most = y > a.y_most ? y : a.y_most;
    }
    a.x_most = a.x_most > 0 ? a.x_most : 1;
    a.y_most = a.y_most > 0 ? a.y_most * 1.1 : 1;
    draw_axes(&a, which);
    for (size_t i = 0; i < n; i++) {
        bool seen = false;
        for (size_t k = 0; k < i && !seen; k++)
            seen = same_but(&rows[k], &rows[i], which);
        if (!seen)
            route_plot_series(&a, rows, n, i, which, turn++);
    }
    return close_svg(&to, err);
}

int route_plot_ways(const char *path, const struct bench_route_way *ways, size_t n, struct err *err)
{
    struct output_file to;
    double most = 0;
    int rc = open_svg(&to, path, TOP + BAR * (int)n + BAR, err);
    if (rc)
        return rc;
    FILE *f = to.f;
    for (size_t i = 0; i < n; i++)
        most = ways[i].s > most ? ways[i].s : most;
    fprintf(f, "<text x=\"%d\" y=\"%d\">seconds per answer; blue: edge, red: waiting</text>\n",
            BAR_LEFT, TOP - 14);
    for (size_t i = 0; i < n; i++) {
        int y = TOP + BAR * (int)i;
        double scale = (WIDTH - BAR_LEFT - RIGHT) / (most > 0 ? most : 1);
        double edge = ways[i].edge_s * scale, wait = ways[i].cloud_s * scale;
        fprintf(f,
                "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">%s</text>"
                "<rect x=\"%d\" y=\"%d\" width=\"%.1f\" height=\"%d\" fill=\"%s\"/>"
                "<rect x=\"%.1f\" y=\"%d\" width=\"%.1f\" height=\"%d\" fill=\"%s\"/>"
                "<text x=\"%.1f\" y=\"%d\">%.2f s</text>\n",
                BAR_LEFT - 8, y + BAR / 2, ways[i].name, BAR_LEFT, y, edge, BAR - 10, colors[0],
                BAR_LEFT + edge, y, wait, BAR - 10, colors[1], BAR_LEFT + edge + wait + 8,
                y + BAR / 2, ways[i].s);
    }
    return close_svg(&to, err);
}
