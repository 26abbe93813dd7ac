/* The picture of `bench kernels --plot`, on simulated figures: no two texts overlap, every mark
 * says what it is, and none is above its roof but those that are counted. */
#include <stdlib.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "tests/support/files.h"
#include "tools/lab/tuning/roofline.h"

enum { ROOM = 1 << 18, TEXTS = 512, POINTS = 256, SETS = 3, WIDTH = 860 };

static const struct read_level levels[READ_LEVELS] = {
    { "L1", 32 << 10, 233 }, { "L2", 1 << 20, 118 }, { "L3", 32 << 20, 30 }, { "memory", 0, 10.5 }
};
static const struct {
    const char *isa;
    double peak;
} sets[SETS] = { { "avx2", 211 }, { "avxvnni", 460 }, { "avx512vnni", 895 } };

/* The shapes of products with one byte a weight, and the level that holds each. */
static const struct {
    const char *text;
    double weights, tokens;
    size_t level;
} shapes[] = {
    { "o 896x896, 1 token", 896 * 896, 1, 1 },
    { "down 896x4864, 1 token", 896 * 4864, 1, 2 },
    { "down 896x4864, 192 tokens", 896 * 4864, 192, 2 },
    { "gate 4864x896, 1 token", 896 * 4864, 1, 2 },
    { "gate 4864x896, 2 tokens", 896 * 4864, 2, 2 },
    { "gate 4864x896, 4 tokens", 896 * 4864, 4, 2 },
    { "gate 4864x896, 8 tokens", 896 * 4864, 8, 2 },
    { "gate 4864x896, 12 tokens", 896 * 4864, 12, 2 },
    { "gate 4864x896, 192 tokens", 896 * 4864, 192, 2 },
    { "head 151936x896, 1 token", 151936.0 * 896, 1, 3 },
    { "head 151936x896, 8 tokens", 151936.0 * 896, 8, 3 },
};
enum { SHAPES = sizeof(shapes) / sizeof(shapes[0]) };

/* Add the points of an operation with `share` of its roof, a little less for each further set. */
static size_t add_points(struct bench_point *out, const char *op, double share)
{
    size_t n = 0;
    for (size_t i = 0; i < SHAPES; i++)
        for (size_t k = 0; k < SETS; k++) {
            double bytes = shapes[i].weights * 1.0625,
                   ops = 2 * shapes[i].weights * shapes[i].tokens;
            double read = bytes / levels[shapes[i].level].gb_s, compute = ops / sets[k].peak;
            out[n++] = (struct bench_point){ .op = op,
                                             .isa = sets[k].isa,
                                             .shape = shapes[i].text,
                                             .level = &levels[shapes[i].level],
                                             .bytes = bytes,
                                             .ops = ops,
                                             .ns = (read > compute ? read : compute) / share,
                                             .peak = sets[k].peak,
                                             .on_cpu = 1 };
            share *= 0.995;
        }
    return n;
}

static char svg[ROOM];

/* Draw the points and read the picture. */
static void draw(const struct bench_point *points, size_t n)
{
    const char *path = in_scratch("r.svg");
    struct err err = { "" };
    CHECK(roofline_plot(path, points, n, levels, &err) == OK);
    svg[slurp(path, svg, ROOM - 1)] = '\0';
}

/* Return the attribute `key` of the tag at p, as a number. */
static double attribute(const char *p, const char *key)
{
    const char *at = strstr(p, key);
    CHECK(at && at < strchr(p, '>'));
    return strtod(at + strlen(key), NULL);
}

/* Check that texts are apart and within the picture, by their size and by how wide letters are. */
static void check_texts(void)
{
    static double boxes[TEXTS][4]; /* left, right, top, bottom */
    size_t n = 0;
    for (const char *p = svg; (p = strstr(p, "<text")); p++) {
        const char *from = strchr(p, '>') + 1, *to = strstr(p, "</text>");
        bool title = !strncmp(p, "<text class=\"title\"", 19);
        double size = title ? 17 : 13, w = (title ? 9.6 : 7.2) * (double)(to - from);
        double x = attribute(p, " x=\""), y = attribute(p, " y=\"");
        if (!strncmp(p - 5, "90)\">", 5)) /* the name of the y axis, turned */
            continue;
        x -= !strncmp(from - 8, "middle", 6) ? w / 2 : !strncmp(from - 5, "end", 3) ? w : 0;
        const double box[4] = { x, x + w, y - 0.8 * size, y + 0.2 * size };
        bool fits =
            box[0] >= 0 && box[1] <= WIDTH && box[2] >= 0 && box[3] <= attribute(svg, " height=\"");
        for (size_t k = 0; k < n; k++)
            fits = fits && (boxes[k][0] >= box[1] || box[0] >= boxes[k][1] ||
                            boxes[k][2] >= box[3] || box[2] >= boxes[k][3]);
        CHECK_MSG(fits && n < TEXTS, "\"%.*s\" is cut, or overlaps another text", (int)(to - from),
                  from);
        memcpy(boxes[n++], box, sizeof(box));
    }
    CHECK(n > 10);
}

/* Return how many marks are for this shape. */
static size_t count_marks(const char *shape)
{
    char text[64];
    size_t n = 0;
    snprintf(text, sizeof(text), ", %s: ", shape);
    for (const char *p = svg; (p = strstr(p, text)); p++)
        n++;
    return n;
}

/* A line from (x0, y0) to (x1, y1), pixels. */
struct line {
    double x0, y0, x1, y1;
};

static size_t find_lines(struct line *out, const char *class)
{
    char start[64];
    size_t n = 0;
    snprintf(start, sizeof(start), "<path class=\"%s\" d=\"M", class);
    for (const char *p = svg; (p = strstr(p, start)); p++, n++) {
        CHECK(n < 8);
        const char *numbers = p + strlen(start);
        CHECK(sscanf(numbers, "%lf %lfL%lf %lf", &out[n].x0, &out[n].y0, &out[n].x1, &out[n].y1) ==
              4);
    }
    return n;
}

/* Check each mark against the roof of its level and of its set: it is below both, within the tenth
 * of a pixel to which they are written. Return how many are above. */
static size_t check_roofs(void)
{
    struct line rising[8], flat[8];
    size_t above = 0, marks = 0;
    CHECK(find_lines(rising, "line") == READ_LEVELS && find_lines(flat, "dash") == SETS);
    for (const char *p = svg; (p = strstr(p, ">matmul")); p++) {
        const char *from = p, *end = strchr(p + 1, '<'), *data = strstr(p, "data in ");
        double x, y;
        if (strncmp(p - 6, "<title", 6) != 0 || !data || data > end)
            continue;
        while (strncmp(from, " d=\"M", 5) != 0)
            from--;
        CHECK(sscanf(from, " d=\"M%lf %lf", &x, &y) == 2);
        bool over = false;
        for (size_t i = 0; i < READ_LEVELS; i++) {
            const struct line *l = &rising[i];
            char held[32];
            snprintf(held, sizeof(held), "data in %s,", levels[i].name);
            const char *at = strstr(p, held);
            if (at && at < end)
                over = over || y < l->y0 + (l->y1 - l->y0) * (x - l->x0) / (l->x1 - l->x0) - 0.3;
        }
        for (size_t i = 0; i < SETS; i++) {
            char own[32];
            snprintf(own, sizeof(own), "matmul_q8 %s, ", sets[i].isa);
            over = over || (!strncmp(p + 1, own, strlen(own)) && y < flat[i].y0 - 0.3);
        }
        above += over;
        marks++;
    }
    CHECK(marks == SHAPES * SETS);
    return above;
}

/* Return the largest share, in percent, that is written anywhere in the picture. */
static double largest_share(void)
{
    double most = 0;
    for (const char *p = svg; (p = strstr(p, " %")); p++) {
        const char *from = p;
        while (from[-1] >= '0' && from[-1] <= '9')
            from--;
        double share = strtod(from, NULL);
        most = share > most ? share : most;
    }
    return most;
}

int main(void)
{
    static struct bench_point points[POINTS];
    struct err err;
    size_t n = add_points(points, "matmul_q8", 1);
    draw(points, n); /* on their roofs */
    check_texts();
    for (size_t i = 0; i < SHAPES; i++)
        CHECK(count_marks(shapes[i].text) == SETS);
    CHECK(check_roofs() == 0 && !strstr(svg, "above") && !strstr(svg, " doubtful\""));
    CHECK(strstr(svg, "Solid, from the left: L1 233, L2 118, L3 30, memory 10.5 GB/s."));
    CHECK(strstr(svg, ">peak 211: avx2<") &&
          strstr(svg, "matmul_q8 is fastest with avx512vnni on "));
    points[4].ns /= 1.2; /* one that is a fifth faster than it can be */
    draw(points, n);
    check_texts();
    CHECK(check_roofs() == 1 && strstr(svg, " 1 above their roof"));
    CHECK(strstr(svg, " data in L3, above its roof; doubtful: over 100 % of the limit<") &&
          largest_share() <= 100 && largest_share() > 90);
    points[4].on_cpu = 0.5; /* and others that a busy machine measured, the fastest included */
    for (size_t i = 0; i < 10; i++)
        points[i].others = 1;
    draw(points, n);
    check_texts();
    CHECK(strstr(svg, "disturbed 10 of 33 points."));
    CHECK(strstr(svg, "of its roof; doubtful: others kept 1.0 processors busy; best "));
    CHECK(strstr(svg, " busy machine)</text>") && strstr(svg, "<path class=\"mark doubtful\" d="));
    n = add_points(points, "matmul_q8", 0.2);
    for (size_t i = 0; i < n; i++)
        points[i].bytes /= 4; /* operations per byte beyond those at which L1 meets the peak */
    draw(points, n);
    check_texts();
    CHECK(check_roofs() == 0 && strstr(svg, "L1 233, "));
    n = add_points(points, "matmul_q8", 0.6);
    n += add_points(points + n, "matmul_q4", 0.3);
    draw(points, n); /* a chart each */
    check_texts();
    CHECK(count_marks("gate 4864x896, 192 tokens") == 2 * SETS);
    CHECK(roofline_plot("/tmp/x.svg", points, 0, levels, &err) == ERR_ARG);
    CHECK(roofline_plot("/tmp/none/x.svg", points, n, levels, &err) == ERR_IO);
    return 0;
}
