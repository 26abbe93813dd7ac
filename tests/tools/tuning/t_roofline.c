/* The picture of `bench kernels --plot`, on simulated figures: no two texts overlap, every point
 * has its name, and none is above its roof but those that are marked. */
#include <stdlib.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "tests/support/test.h"
#include "tools/tuning/roofline.h"
#include "tools/plot/chart_internal.h"

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
    const char *text, *name;
    double weights, tokens;
    size_t level;
} shapes[] = {
    { "o 896x896, 1 token", "o 1", 896 * 896, 1, 1 },
    { "down 896x4864, 1 token", "down 1", 896 * 4864, 1, 2 },
    { "down 896x4864, 192 tokens", "down 192", 896 * 4864, 192, 2 },
    { "gate 4864x896, 1 token", "gate 1", 896 * 4864, 1, 2 },
    { "gate 4864x896, 2 tokens", "gate 2", 896 * 4864, 2, 2 },
    { "gate 4864x896, 4 tokens", "gate 4", 896 * 4864, 4, 2 },
    { "gate 4864x896, 8 tokens", "gate 8", 896 * 4864, 8, 2 },
    { "gate 4864x896, 12 tokens", "gate 12", 896 * 4864, 12, 2 },
    { "gate 4864x896, 192 tokens", "gate 192", 896 * 4864, 192, 2 },
    { "head 151936x896, 1 token", "head 1", 151936.0 * 896, 1, 3 },
    { "head 151936x896, 8 tokens", "head 8", 151936.0 * 896, 8, 3 },
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
    char path[] = "/tmp/t_roofline.XXXXXX";
    struct err err = { "" };
    int fd = mkstemp(path);
    CHECK(fd >= 0);
    FILE *f = fdopen(fd, "rb");
    CHECK(f);
    fclose(f);
    CHECK(roofline_plot(path, points, n, levels, &err) == OK);
    f = fopen(path, "rb");
    CHECK(f);
    size_t size = fread(svg, 1, ROOM - 1, f);
    CHECK(size > 0 && size < ROOM - 1);
    svg[size] = '\0';
    fclose(f);
    CHECK(remove(path) == 0);
}

/* Return the attribute `key` of the tag at p, as a number. */
static double attribute(const char *p, const char *key)
{
    const char *at = strstr(p, key);
    CHECK(at && at < strchr(p, '>'));
    return strtod(at + strlen(key), NULL);
}

/* The box of a text, computed from its size and from how wide letters usually are. */
static struct chart_box text_box(const char *p, size_t n)
{
    const char *end = strchr(p, '>');
    char tag[256];
    CHECK(end && end - p < (long)sizeof(tag));
    snprintf(tag, sizeof(tag), "%.*s>", (int)(end - p), p);
    bool title = strstr(tag, "\"title\""), name = strstr(tag, "\"name\"");
    double letter = title ? 9.6 : name ? 6.2 : 7.2, size = title ? 17 : name ? 11 : 13;
    double w = letter * (double)n, x = attribute(tag, " x=\""), y = attribute(tag, " y=\"");
    x -= strstr(tag, "middle") ? w / 2 : strstr(tag, "\"end\"") ? w : 0;
    return (struct chart_box){ x, y - 0.8 * size, w, size };
}

/* Check that texts are apart and within the picture; return how often `name` is written alone. */
static size_t check_texts(const char *name)
{
    static struct chart_box boxes[TEXTS];
    static char texts[TEXTS][128];
    size_t n = 0, found = 0;
    double height = attribute(svg, " height=\"");
    for (const char *p = svg; (p = strstr(p, "<text")); p++) {
        const char *from = strchr(p, '>') + 1, *to = strstr(p, "</text>");
        if (!strncmp(p, "<text transform", 15)) /* the name of the y axis, turned */
            continue;
        CHECK(n < TEXTS && to - from < 128);
        snprintf(texts[n], sizeof(texts[n]), "%.*s", (int)(to - from), from);
        found += !strcmp(texts[n], name);
        boxes[n] = text_box(p, (size_t)(to - from));
        if (boxes[n].x < 0 || boxes[n].x + boxes[n].w > WIDTH)
            fprintf(stderr, "\"%s\" is cut\n", texts[n]);
        CHECK(boxes[n].x >= 0 && boxes[n].x + boxes[n].w <= WIDTH);
        CHECK(boxes[n].y >= 0 && boxes[n].y + boxes[n].h <= height);
        for (size_t k = 0; k < n; k++) {
            if (chart_boxes_meet(&boxes[k], &boxes[n]))
                fprintf(stderr, "\"%s\" overlaps \"%s\"\n", texts[n], texts[k]);
            CHECK(!chart_boxes_meet(&boxes[k], &boxes[n]));
        }
        n++;
    }
    return found;
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

static void check_names(void)
{
    char name[24];
    for (size_t i = 0; i < SHAPES; i++) {
        roofline_name(name, sizeof(name), shapes[i].text);
        CHECK(!strcmp(name, shapes[i].name));
    }
    roofline_name(name, sizeof(name), "56 rows, 64 keys of 64");
    CHECK(!strcmp(name, "56 rows"));
    roofline_name(name, sizeof(name), "4864");
    CHECK(!strcmp(name, "4864"));
}

int main(void)
{
    static struct bench_point points[POINTS];
    struct err err;
    check_names();
    size_t n = add_points(points, "matmul_q8", 1);
    draw(points, n); /* on their roofs, so as near to each other as they get */
    for (size_t i = 0; i < SHAPES; i++)
        CHECK(check_texts(shapes[i].name) == SETS);
    CHECK(check_roofs() == 0 && !strstr(svg, "?</text>"));
    CHECK(strstr(svg, ">gate 4864x896, 8 tokens: L3, avx2 9") && strstr(svg, ">L3 30 GB/s<"));
    CHECK(strstr(svg, "matmul_q8 is fastest with avx512vnni on "));
    points[4].ns /= 1.2; /* one that is a fifth faster than it can be */
    draw(points, n);
    CHECK(check_roofs() == 1 && check_texts("down 1?") == 1 && check_texts("down 1") == SETS - 1);
    CHECK(strstr(svg, ">down 896x4864, 1 token: L3, avxvnni above its roof<"));
    CHECK(strstr(svg, " data in L3, above its roof<") && largest_share() <= 100 &&
          largest_share() > 90);
    n = add_points(points, "matmul_q8", 0.2);
    for (size_t i = 0; i < n; i++)
        points[i].bytes /= 4; /* operations per byte beyond those at which L1 meets the peak */
    draw(points, n);
    CHECK(check_roofs() == 0 && check_texts("o 1") == SETS && strstr(svg, ">L1 233 GB/s<"));
    n = add_points(points, "matmul_q8", 0.6);
    n += add_points(points + n, "matmul_q4", 0.3);
    draw(points, n); /* a chart each */
    CHECK(check_texts("gate 192") == 2 * SETS);
    CHECK(roofline_plot("/tmp/x.svg", points, 0, levels, &err) == ERR_ARG);
    CHECK(roofline_plot("/tmp/none/x.svg", points, n, levels, &err) == ERR_IO);
    return 0;
}
