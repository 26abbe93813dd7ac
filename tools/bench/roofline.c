/* roofline.c - draws a roofline: operations per second against operations per byte, both
 * logarithmic. */
#include <stdio.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "kernels/math.h"
#include "tools/bench/bench.h"
#include "tools/cli/output_file.h"

enum { WIDTH = 900, HEIGHT = 600, LEFT = 80, RIGHT = 220, TOP = 40, BOTTOM = 60, COLORS = 8 };

/* The axes show 1/4 to 4096 operations per byte and 1/8 to 8192 GOP/s. */
static const double X_LOW = 0.25, X_HIGH = 4096, Y_LOW = 0.125, Y_HIGH = 8192;
static const char *const colors[COLORS] = { "#777777", "#1b6ca8", "#0a8754", "#c8553d",
                                            "#7a3e9d", "#b58900", "#00798c", "#d1495b" };

/* Return the x coordinate of a number of operations per byte, clamped to the axis. */
static double roofline_x_of(double v)
{
    v = v < X_LOW ? X_LOW : v > X_HIGH ? X_HIGH : v;
    return LEFT + (WIDTH - LEFT - RIGHT) * log_f64(v / X_LOW) / log_f64(X_HIGH / X_LOW);
}

/* Return the y coordinate of a speed in GOP/s, clamped to the axis. */
static double roofline_y_of(double v)
{
    v = v < Y_LOW ? Y_LOW : v > Y_HIGH ? Y_HIGH : v;
    return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * log_f64(v / Y_LOW) / log_f64(Y_HIGH / Y_LOW);
}

static void roofline_axes(FILE *f)
{
    fprintf(f,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
            "font-family=\"sans-serif\" font-size=\"12\">\n"
            "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n",
            WIDTH, HEIGHT);
    for (double v = X_LOW; v <= X_HIGH; v *= 4)
        fprintf(f,
                "<line x1=\"%.1f\" y1=\"%d\" x2=\"%.1f\" y2=\"%d\" stroke=\"#dddddd\"/>"
                "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%g</text>\n",
                roofline_x_of(v), TOP, roofline_x_of(v), HEIGHT - BOTTOM, roofline_x_of(v),
                HEIGHT - BOTTOM + 18, v);
    for (double v = Y_LOW; v <= Y_HIGH; v *= 4)
        fprintf(f,
                "<line x1=\"%d\" y1=\"%.1f\" x2=\"%d\" y2=\"%.1f\" stroke=\"#dddddd\"/>"
                "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%g</text>\n",
                LEFT, roofline_y_of(v), WIDTH - RIGHT, roofline_y_of(v), LEFT - 8,
                roofline_y_of(v) + 4, v);
    fprintf(f,
            "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">operations per byte</text>"
            "<text x=\"%d\" y=\"%d\">GOP/s, one thread</text>\n",
            (LEFT + WIDTH - RIGHT) / 2, HEIGHT - 18, LEFT, TOP - 14);
}

/* Draw the roof of one peak: it rises with the read bandwidth until it meets the peak. */
static void roofline_roof(FILE *f, double peak, double read, const char *name, const char *color)
{
    fprintf(f,
            "<polyline points=\"%.1f,%.1f %.1f,%.1f %.1f,%.1f\" fill=\"none\" stroke=\"%s\"/>"
            "<text x=\"%d\" y=\"%.1f\" fill=\"%s\">%s %.0f</text>\n",
            roofline_x_of(X_LOW), roofline_y_of(X_LOW * read), roofline_x_of(peak / read),
            roofline_y_of(peak), roofline_x_of(X_HIGH), roofline_y_of(peak), color,
            WIDTH - RIGHT + 6, roofline_y_of(peak) + 4, color, name, peak);
}

int roofline_plot(const char *path, const struct bench_point *points, size_t n, double read,
                  struct err *err)
{
    const char *seen[COLORS];
    double peaks[COLORS * 2];
    size_t sets = 0, npeaks = 0;
    struct output_file to;
    int rc = output_file_open(&to, path, err);
    if (rc)
        return rc;
    FILE *f = to.f;
    roofline_axes(f);
    for (size_t i = 0; i < n; i++) {
        const struct bench_point *p = &points[i];
        size_t set = 0, peak = 0;
        while (set < sets && strcmp(seen[set], p->isa) != 0)
            set++;
        if (set == sets && sets < COLORS)
            seen[sets++] = p->isa;
        set %= COLORS;
        while (peak < npeaks && !(peaks[peak] >= p->peak && peaks[peak] <= p->peak))
            peak++;
        if (p->peak > 0 && peak == npeaks && npeaks < COLORS * 2) {
            roofline_roof(f, p->peak, read, p->isa, colors[set]);
            peaks[npeaks++] = p->peak;
        }
        fprintf(f,
                "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"4\" fill=\"%s\"><title>%s %s, %s: %.1f "
                "GOP/s</title></circle>\n",
                roofline_x_of(p->ops / p->bytes), roofline_y_of(p->ops / p->ns), colors[set], p->op,
                p->isa, p->shape, p->ops / p->ns);
    }
    for (size_t i = 0; i < sets; i++)
        fprintf(f,
                "<circle cx=\"%d\" cy=\"%zu\" r=\"4\" fill=\"%s\"/><text x=\"%d\" "
                "y=\"%zu\">%s</text>\n",
                WIDTH - RIGHT + 110, TOP + 18 * i, colors[i], WIDTH - RIGHT + 120, TOP + 18 * i + 4,
                seen[i]);
    fprintf(f, "</svg>\n");
    return output_file_close(&to, true, err);
}
