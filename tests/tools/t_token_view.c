/* What reaches the screen: marks and colours for each token, whole characters, hidden stop strings,
 * no terminal control; and the same text in JSON. Tokens are single bytes here. */
#include "tools/run/token_view.h"

#include "tests/support/test.h"
#include "tools/run/json_events.h"

/* Show text, byte by byte; sources[i] is 'c' for the cloud, 'f' for fallback, else the edge. */
static const char *show(enum token_view_style style, const char *const *stops, const char *text,
                        const char *sources)
{
    struct token_view s;
    FILE *f = tmpfile();
    CHECK(f);
    token_view_begin(&s, f, style, stops);
    for (size_t i = 0; text[i]; i++) {
        char c = i < strlen(sources) ? sources[i] : 'e';
        struct mizzle_token t = { .pos = i,
                                  .piece = text + i,
                                  .piece_size = 1,
                                  .source = c == 'c'   ? MIZZLE_CLOUD
                                            : c == 'f' ? MIZZLE_FALLBACK
                                                       : MIZZLE_EDGE };
        CHECK(token_view_token(&s, &t));
    }
    struct mizzle_token end = {
        .piece = "", .pos = strlen(text), .source = MIZZLE_CLOUD, .end = 1
    };
    CHECK(token_view_token(&s, &end));
    token_view_end(&s);
    return slurp_closed(f);
}

static void expect(const char *found, const char *wanted)
{
    CHECK_MSG(strcmp(found, wanted) == 0, "wanted:\n%s\nfound:\n%s", wanted, found);
}

#define PLAIN  TOKEN_VIEW_PLAIN
#define MARKS  TOKEN_VIEW_MARKS
#define COLOUR TOKEN_VIEW_COLOUR
#define LOST   "\xef\xbf\xbd" /* a byte that is no text */
#define EURO   "\xe2\x82\xac"

static const char *const ends[] = { "END", "\n\n", NULL };

static const struct {
    enum token_view_style style;
    bool stops;
    const char *text, *sources, *shown;
} views[] = {
    { PLAIN, false, "abcd", "ecfe", "abcd\n" },
    { MARKS, false, "abcd", "ecfe", "a[cloud:b][fallback:c]d\n" },
    { MARKS, false, "abcd", "eccc", "a[cloud:b][cloud:c][cloud:d]\n" },
    { COLOUR, false, "abcd", "ecfe", "a\033[4;36mb\033[0m\033[7;33mc\033[0md\n" },
    { PLAIN, false, "ab\n", "", "ab\n" },
    { PLAIN, false, "", "", "" },
    /* A character of three bytes from two sources is shown once, as the first source's. */
    { MARKS, false, "x" EURO "y", "ecee", "x[cloud:" EURO "]y\n" },
    { PLAIN, false, "\xe2\x82", "", LOST "\n" },
    { PLAIN, false, "\xe2\x82z\xff\x80", "", LOST "z" LOST LOST "\n" },
    { COLOUR, false, "\033[31m\a\r\x7f\tz", "", "\\x1b[31m\\x07\\x0d\\x7f\tz\n" },
    { PLAIN, false, "\xc2\x9b\xe2\x80\xae\xe2\x81\xa6", "", "\\x9b\\u202e\\u2066\n" },
    { PLAIN, true, "text END more", "", "text \n" },
    { PLAIN, true, "text EN", "", "text EN\n" },
    { MARKS, true, "EENDx", "cceee", "[cloud:E]\n" },
    { PLAIN, true, "a\nb\n\nc", "", "a\nb\n" },
};

/* Text is held back until it can no longer become a stop string, then shown at once. */
static void test_held(void)
{
    struct token_view s;
    struct mizzle_token t = { .piece = "E", .piece_size = 1 };
    FILE *f = tmpfile();
    CHECK(f);
    token_view_begin(&s, f, PLAIN, ends);
    CHECK(token_view_token(&s, &t) && ftell(f) == 0);
    t.piece = "X";
    CHECK(token_view_token(&s, &t) && ftell(f) == 2);
    token_view_end(&s);
    fclose(f);
}

/* Print events for the bytes of a text, one token each. */
static const char *json_of;

static void print_json(void)
{
    struct json_events j = { 0 };
    for (size_t i = 0; json_of[i]; i++) {
        struct mizzle_token t = { .pos = i,
                                  .id = (unsigned char)json_of[i],
                                  .piece = json_of + i,
                                  .piece_size = 1,
                                  .score = 0.5,
                                  .ms = 1 };
        CHECK(json_events_token(&j, &t));
    }
    json_events_done(&j, &(struct mizzle_stats){ .finish = "length" }, false);
}

static const char *json(const char *text)
{
    json_of = text;
    return printed(print_json);
}

/* Return the texts of the events, joined. */
static const char *json_text(const char *text)
{
    static char all[512];
    size_t n = 0;
    for (const char *p = json(text); (p = strstr(p, "\"text\":\""));) {
        p += 8;
        const char *end = strstr(p, "\",\"source\""), *last = strstr(p, "\",\"offline\"");
        end = end ? end : last;
        CHECK(end && n + (size_t)(end - p) < sizeof(all));
        memcpy(all + n, p, (size_t)(end - p));
        n += (size_t)(end - p);
    }
    all[n] = '\0';
    return all;
}

static void test_json(void)
{
    const char *a =
        "{\"event\":\"token\",\"pos\":0,\"id\":97,\"text\":\"a\",\"source\":\"edge\","
        "\"score\":0.5,\"edge_id\":null,\"ms\":1.000}\n{\"event\":\"done\",\"offline\":";
    CHECK(!strncmp(json("a"), a, strlen(a)));
    expect(json_text("a\"b\\c\n\t\033z"), "a\\\"b\\\\c\\n\\t\\u001bz");
    expect(json_text("x\xe2\x82\xacy\xf0\x9f\x98\x80"), "x\xe2\x82\xacy\xf0\x9f\x98\x80");
    expect(json_text("\xe2\x82z\xff.\xe2\x80\xae"), "\xef\xbf\xbdz\xef\xbf\xbd.\\u202e");
    expect(json_text("a\xf0\x9f\x98"), "a\xef\xbf\xbd"); /* the answer ends there */
    const struct mizzle_stats s = { .tokens = 3, .prompt_ms = 10, .ttft_ms = 100, .total_ms = 110 };
    CHECK(json_events_speed(&s) > 29.9 && json_events_speed(&s) < 30.1);
    const struct mizzle_stats none = { 0 };
    CHECK(json_events_speed(&none) == 0);
}

static void test_style(void)
{
    FILE *f = tmpfile();
    CHECK(f && setenv("TERM", "xterm", 1) == 0 && token_view_style(f) == TOKEN_VIEW_MARKS);
    fclose(f);
}

int main(void)
{
    for (size_t i = 0; i < sizeof(views) / sizeof(*views); i++)
        expect(show(views[i].style, views[i].stops ? ends : NULL, views[i].text, views[i].sources),
               views[i].shown);
    test_held();
    test_json();
    test_style();
    return 0;
}
