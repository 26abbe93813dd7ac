/* The drawing module: round values on the axes, well-formed files whatever the text holds, labels
 * that do not overlap, and the same bytes for the same data. */
#include <math.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "tests/support/files.h"
#include "tools/lab/plot/chart_internal.h"

enum { ROOM = 1 << 16, POINTS = 6 };

/* The values for an axis from low to high must be these, and its ends the first and the last. */
static void ticks_are(double low, double high, bool log, const char *want)
{
    struct chart_scale s;
    char text[512] = "", number[32];
    chart_scale_open(&s, log, low, high);
    for (size_t i = 0; i < s.n; i++) {
        chart_number(number, s.ticks[i]);
        strncat(text, i ? " " : "", sizeof(text) - strlen(text) - 1);
        strncat(text, number, sizeof(text) - strlen(text) - 1);
    }
    CHECK_MSG(strcmp(text, want) == 0, "%g to %g: %s, expected %s", low, high, text, want);
    CHECK(s.low <= low && s.high >= high && s.low < s.high);
    s.start = 100;
    s.size = -50;
    CHECK(chart_at(&s, s.ticks[0]) == 100 && chart_at(&s, s.ticks[s.n - 1]) == 50);
}

static void test_ticks(void)
{
    ticks_are(0, 55.5, false, "0 10 20 30 40 50 60");
    ticks_are(0, 500, false, "0 50 100 150 200 250 300 350 400 450 500");
    ticks_are(0.35, 0.985, false, "0.3 0.4 0.5 0.6 0.7 0.8 0.9 1");
    ticks_are(-1, 1, false, "-1 -0.8 -0.6 -0.4 -0.2 0 0.2 0.4 0.6 0.8 1");
    ticks_are(0, 123456, false, "0 20,000 40,000 60,000 80,000 100,000 120,000 140,000");
    ticks_are(3, 3, false, "1.5 2 2.5 3 3.5 4 4.5");
    ticks_are(0, 0, false, "0 0.1 0.2 0.3 0.4 0.5 0.6 0.7 0.8 0.9 1");
    ticks_are(3, 180, true, "1 10 100 1000");
    ticks_are(0.03, 0.9, true, "0.01 0.1 1");
    ticks_are(1, 100000, true, "1 10 100 1000 10,000 100,000");
    ticks_are(0.25, 4096, true, "0.1 1 10 100 1000 10,000");
    ticks_are(7, 7, true, "1 10");
    ticks_are(10, 10, true, "10 100");
}

static void test_numbers(void)
{
    static const struct {
        double v;
        const char *want;
    } cases[] = { { 0, "0" },          { 0.25, "0.25" },           { -1234, "-1234" },
                  { 10000, "10,000" }, { -1234567, "-1,234,567" }, { 100000, "100,000" },
                  { 1e-7, "1e-07" },   { 2.5e20, "2.5e+20" },      { 1.0 / 3, "0.333333" } };
    char text[32];
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        chart_number(text, cases[i].v);
        CHECK(strcmp(text, cases[i].want) == 0);
    }
    chart_tick(text, 500000);
    CHECK(strcmp(text, "500,000") == 0);
    chart_tick(text, 1.5e6);
    CHECK(strcmp(text, "1.5M") == 0);
    chart_tick(text, -2e10);
    CHECK(strcmp(text, "-20G") == 0);
}

static const char *path; /* of the picture */
static char svg[ROOM];

/* Read the picture, which must have been written, and check its tags and entities as far as these
 * files use XML. */
static void read_svg(int rc)
{
    const char *p = svg;
    static const char *const entities[] = { "&amp;", "&lt;", "&gt;", "&quot;" };
    char open[16][16];
    size_t depth = 0, elements = 0;
    CHECK(rc == OK);
    svg[slurp(path, svg, ROOM - 1)] = '\0';
    for (; *p; p++) {
        CHECK((unsigned char)*p >= ' ' || *p == '\n');
        bool known = *p != '&';
        for (size_t i = 0; i < 4; i++)
            known = known || strncmp(p, entities[i], strlen(entities[i])) == 0;
        CHECK(known && *p != '>');
        if (*p != '<')
            continue;
        bool closes = *++p == '/';
        p += closes;
        size_t n = strcspn(p, " >/");
        CHECK(n && n < sizeof(*open));
        if (closes) {
            CHECK(depth && strncmp(open[--depth], p, n) == 0 && open[depth][n] == '\0');
        } else {
            CHECK(depth < 16 && (depth || !elements++));
            memcpy(open[depth], p, n);
            open[depth++][n] = '\0';
        }
        for (p += n; *p != '>' && strncmp(p, "/>", 2) != 0;) {
            CHECK(*p == ' ');
            p += 1 + strcspn(p + 1, "=<>");
            CHECK(strncmp(p, "=\"", 2) == 0);
            p += 2 + strcspn(p + 2, "\"<");
            CHECK(*p++ == '"');
        }
        depth -= *p == '/';
        p += *p == '/';
    }
    CHECK(depth == 0 && elements == 1 && !strstr(svg, "nan") && !strstr(svg, "inf"));
}

/* Draw three series: two that end at almost the same place, and one with gaps and intervals. */
static void draw(bool log)
{
    static struct chart_point a[POINTS], b[POINTS], c[POINTS];
    for (size_t i = 0; i < POINTS; i++) {
        double x = (double)i;
        a[i] = (struct chart_point){ .x = x, .y = 0.4 + 0.1 * x };
        b[i] = (struct chart_point){ .x = x, .y = 0.41 + 0.1 * x, .label = "<b> & \"c\"" };
        c[i] = (struct chart_point){ x, i == 2 ? (double)NAN : 0.3, 0.2,
                                     i == 4 ? (double)INFINITY : 0.45, NULL };
    }
    const struct chart_series series[] = {
        { .label = "mlp", .points = a, .n = POINTS, .line = true, .marks = true },
        { .label = "a<b>&c \xff\x01 \xe2\x80\xae \xc3\xa9",
          .points = b,
          .n = POINTS,
          .style = 1,
          .line = true,
          .marks = true },
        { .points = c, .n = POINTS, .style = 9, .line = true, .intervals = true },
    };
    const struct chart chart = {
        .title = "A title that is long enough to need a second line, because it says what the "
                 "reader should see: \"<&>\"",
        .note = "Bands: 95 % intervals.",
        .x = "share of tokens, %",
        .y = "accuracy & more",
        .log = log,
        .series = series,
        .n = 3,
    };
    struct err err = { "" };
    read_svg(charts_write(path, &chart, 1, &err));
}

/* Return the number that follows `key` in the element that ends with `end`. */
static double number_before(const char *text, const char *end, const char *key)
{
    const char *at = strstr(text, end), *from = at;
    CHECK(at);
    while (from > text && *from != '<')
        from--;
    from = strstr(from, key);
    CHECK(from && from < at);
    return strtod(from + strlen(key), NULL);
}

static size_t count(const char *what)
{
    size_t n = 0;
    for (const char *p = svg; (p = strstr(p, what)); p++)
        n++;
    return n;
}

static void test_lines(void)
{
    static char again[ROOM];
    draw(false);
    memcpy(again, svg, sizeof(svg));
    draw(false);
    CHECK(strcmp(svg, again) == 0);
    CHECK(strstr(svg, ">a&lt;b&gt;&amp;c \xef\xbf\xbd  ") && strstr(svg, "\xc3\xa9</text>"));
    CHECK(strstr(svg, "<title>&lt;b&gt; &amp; &quot;c&quot;</title>"));
    CHECK(strstr(svg, "prefers-color-scheme:dark"));
    double apart =
        number_before(svg, ">mlp</text>", "y=\"") - number_before(svg, ">a&lt;b", "y=\"");
    CHECK(apart >= 15 && apart < 40);
    /* Of the points 0 to 5, 2 and 4 have no interval: a band, and an error bar each for 3 and 5. */
    CHECK(count("class=\"band\"") == 1 && count("class=\"error\"") == 2);
    CHECK(count("class=\"title\"") == 2 && count("class=\"note\"") == 1);
    draw(true); /* x = 0 has no place on a logarithmic axis */
}

/* Bars begin at 0, whatever their signs, and their intervals may end beyond all of them. */
static void test_bars(void)
{
    struct err err = { "" };
    const double none = (double)NAN;
    const struct chart_point one[] = { { 0, 0.474, none, none, "as <it> is" },
                                       { 0, none, none, none, "nothing" } };
    const struct chart_point two[] = { { 0, -2, -4, 1, "less (assumed)" } };
    const struct chart_series series[] = {
        { .label = "group", .points = one, .n = 2, .intervals = true },
        { .label = "other", .points = two, .n = 1, .intervals = true },
    };
    const struct chart c = { .title = "t", .y = "change, %", .series = series, .n = 2 };
    read_svg(chart_bars_write(path, &c, &err));
    CHECK(strstr(svg, ">0.474</text>") && strstr(svg, ">as &lt;it&gt; is</text>"));
    CHECK(strstr(svg, ">other</text>") && strstr(svg, ">change, %</text>"));
    CHECK(strstr(svg, ">-4</text>") && strstr(svg, ">1</text>"));
    CHECK(count("<rect class=\"bar") == 2 && count("class=\"error") == 1);
    CHECK(count("<rect class=\"bar assumed s0") == 1);
    const char *first = strstr(svg, "<rect class=\"bar"), *last = strstr(first + 1, "<rect class");
    double zero = number_before(first, "/>", " x=\""), left = number_before(last, "/>", " x=\"");
    CHECK(fabs(left + number_before(last, "/>", "width=\"") - zero) < 0.2);
    CHECK(chart_bars_write("/tmp/none/c.svg", &c, &err) == ERR_IO && strstr(err.msg, "none"));
}

int main(void)
{
    struct err err = { "" };
    const struct chart empty = { .title = "", .x = "x", .y = "y", .log = true };
    path = in_scratch("c.svg");
    test_ticks();
    test_numbers();
    test_lines();
    test_bars();
    read_svg(charts_write(path, &empty, 1, &err));
    return 0;
}
