/* What reads outside bytes in net/server: bodies up to their limits, and JSON, which is mended
 * before it is parsed. t_server_abuse.c sends heads of any bytes. */
#include "net/server/server_internal.h"
#include "tests/support/test.h"

enum { CASES = 10000, BODY_MAX = 5000, BODIES_MAX = 6000 };

/* Add text[n], twice; return the refusal, or SIZE_MAX. The claims add up to nothing. */
static size_t add_twice(struct server *s, const char *text, size_t n)
{
    struct server_request *r = calloc(1, sizeof(*r) + 1);
    CHECK(r);
    r->server = s;
    r->body.max = s->o.body_max;
    bool fine = server_body_add(r, text, n) && server_body_add(r, text, n);
    CHECK(fine == !r->why && r->body.n <= BODY_MAX);
    CHECK(fine ? r->body.n == 2 * n && s->bodies == 2 * n : !r->body.p && s->bodies == 0);
    size_t what = fine ? SIZE_MAX : r->what;
    server_drop_body(r);
    CHECK(s->bodies == 0);
    free(r);
    return what;
}

static void test_bodies(void)
{
    struct server *s = calloc(1, sizeof(*s));
    char *zeros = calloc(1, BODY_MAX);
    CHECK(s && zeros);
    s->o = (struct server_options){ .body_max = BODY_MAX, .bodies_max = BODIES_MAX };
    CHECK(add_twice(s, zeros, BODY_MAX / 2) == SIZE_MAX);
    CHECK(add_twice(s, zeros, BODY_MAX / 2 + 1) == SERVER_TOO_LARGE);
    s->o.bodies_max = BODY_MAX - 1;
    CHECK(add_twice(s, zeros, BODY_MAX / 2) == SERVER_BUSY);
    free(zeros);
    free(s);
}

/* What is mended before JSON is parsed, in place. */
static void test_mend(void)
{
    static const char *const rows[][2] = {
        { "[\"\\ud83d\", \"\\uDE00x\\u0041\"]", "[\"\\ufffd\", \"\\ufffdx\\u0041\"]" },
        { "[\"\\ud83d\\ude00\\\\ud83d\"]", NULL },
        { "[\"\\ud83d\\ud83d\\ude00\", \"\\ud83\"]", "[\"\\ufffd\\ud83d\\ude00\", \"\\ud83\"]" },
        { "\"\\\"\\ud83d\" \\ud83d", "\"\\\"\\ufffd\" \\ud83d" },
        { "[18446744073709551615,-9223372036854775809]",
          "[184467440737095516e2,-92233720368547758e2]" },
        { "[9223372036854775807,-9223372036854775808,1e99999999999999999999,1."
          "23456789012345678901]",
          NULL },
        { "\"18446744073709551615 \\\"18446744073709551615\"", NULL },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char text[120];
        size_t n = strlen(rows[i][0]);
        memcpy(text, rows[i][0], n + 1);
        server_json_mend(text, n);
        CHECK_MSG(strcmp(text, rows[i][1] ? rows[i][1] : rows[i][0]) == 0, "%s", text);
    }
}

/* Parse n objects as the body; the tree counts among all bodies until that is dropped. */
static int parse(struct server *s, size_t n, struct err *err)
{
    struct server_request *r = calloc(1, sizeof(*r) + 1);
    json_t *json;
    CHECK(r);
    r->server = s;
    r->body.max = s->o.body_max;
    CHECK(server_body_add(r, "\xef\xbb\xbf[0", 5));
    for (size_t i = 0; i < n; i++)
        CHECK(server_body_add(r, ",{}", 3));
    CHECK(server_body_add(r, "]", 1));
    int rc = server_parse(r, &json, err);
    CHECK(rc == OK ? json_array_size(json) == n + 1 && s->bodies > 240 * n : !json);
    json_decref(json);
    server_drop_body(r);
    CHECK(s->bodies == 0);
    free(r);
    return rc;
}

/* Any bytes are mended without a change of their length, in memory of just that size. */
static void test_any_json(void)
{
    static const char from[] = "{\"a\":[-18446744073709551615,1e5,\"\\ud83d\\ude00\\\\\\ud83d\"]}";
    static const char odd[] = "\"\\u,:-09eE.dD8c[]{}\n\xff";
    for (uint64_t i = 0; i < CASES; i++) {
        size_t len = sizeof(from) - 1 - rand_below(1, i, 30);
        char *text = malloc(len);
        CHECK(text);
        memcpy(text, from + rand_below(2, i, sizeof(from) - len), len);
        for (uint64_t k = 0; k < i % 6; k++)
            text[rand_below(3, 6 * i + k, len)] = odd[rand_below(4, 6 * i + k, sizeof(odd))];
        CHECK(server_json_mend(text, len) >= len);
        free(text);
    }
}

static void test_trees(void)
{
    struct server *s = calloc(1, sizeof(*s));
    struct err err = { "" };
    CHECK(s);
    s->o = (struct server_options){ .body_max = 4 << 20, .bodies_max = 5 << 20 };
    CHECK(parse(s, 10000, &err) == OK);
    CHECK(parse(s, 100000, &err) == ERR_NOMEM && strstr(err.msg, "at a time"));
    s->o.bodies_max = 128 << 20;
    CHECK(parse(s, 100000, &err) == OK);
    CHECK(parse(s, 400000, &err) == ERR_FORMAT && strstr(err.msg, "at most 64"));
    free(s);
}

int main(void)
{
    test_mend();
    test_trees();
    test_bodies();
    test_any_json();
    return 0;
}
