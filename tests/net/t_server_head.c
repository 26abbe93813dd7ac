/* What reads outside bytes in net/server, fed with any bytes: heads, cut into lines as the HTTP
 * library does, compressed bodies, and JSON. SERVER_CASES in the environment sets the number of
 * heads (default: 100,000), a tenth of it that of bodies and of JSON texts. */
#include "net/server/server_internal.h"
#include "tests/support/test.h"

enum { ROOM = 512, BODY_MAX = 5000, BODIES_MAX = 6000 };

static const char *const hosts[] = { "box.lan", NULL };
static const struct server_options rules = { .origin = "https://friend.example",
                                             .hosts = hosts,
                                             .body_max = 1000 };

static const char *const corpus[] = {
    "GET /a/b%20c?d=e HTTP/1.1\r\nHost: localhost:8080\r\nAuthorization: Bearer sesame\r\n\r\n",
    "POST http://127.0.0.1/x HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 12\r\nOrigin: "
    "http://127.0.0.1\r\nContent-Type: application/json\r\n\r\n",
    "POST / HTTP/1.1\r\nHost: [::1]:1\r\nTransfer-Encoding: chunked\r\nContent-Encoding: gzip\r\n"
    "Expect: 100-continue\r\n\r\n",
    "OPTIONS /x HTTP/1.0\r\nHost: box.lan\r\nOrigin: https://friend.example\r\n\r\n",
};

static uint64_t state = 88172645463325252u;

static size_t draw(size_t n)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (size_t)(state >> 11) % n;
}

static long cases(long usual)
{
    const char *text = getenv("SERVER_CASES");
    return text ? strtol(text, NULL, 10) : usual;
}

/* Change, remove, insert or double a few bytes. */
static size_t spoil(char *text, size_t n, size_t room)
{
    static const char odd[] = "\0\r\n\t :%/?[]@,;0129aHh-+\x7f\xff";
    for (size_t i = draw(6); i > 0 && n > 8; i--) {
        size_t at = draw(n), len = 1 + draw(7);
        len = len < n - at ? len : n - at;
        switch (draw(4)) {
        case 0:
            text[at] = odd[draw(sizeof(odd) - 1)];
            break;
        case 1:
            text[at] = (char)draw(256);
            break;
        case 2:
            memmove(text + at, text + at + len, n - at - len);
            n -= len;
            break;
        default:
            if (n + len > room)
                break;
            memmove(text + at + len, text + at, n - at);
            n += len;
        }
    }
    return n;
}

/* Cut one line off *text, at CRLF or LF; NULL if there is none. */
static char *line_of(char **text, const char *end)
{
    char *line = *text, *lf = memchr(line, '\n', (size_t)(end - line));
    if (!lf)
        return NULL;
    *text = lf + 1;
    *lf = 0;
    if (lf > line && lf[-1] == '\r')
        lf[-1] = 0;
    return line;
}

/* Read text[n] as a head; false if there is no first line. Each part has memory of its own, so that
 * a sanitizer sees reads beyond it. */
static bool read_head(struct server_head *h, char *text, size_t n, char **target)
{
    char *end = text + n, *line = line_of(&text, end);
    char *first = line ? strchr(line, ' ') : NULL, *last = first ? strrchr(line, ' ') : NULL;
    if (!last || last == first)
        return false;
    *first = *last = 0;
    server_head_begin(h, line, last + 1);
    while ((line = line_of(&text, end)) && *line) {
        char *colon = strchr(line, ':');
        if (!colon)
            return false;
        *colon++ = 0;
        server_head_field(h, line, colon + strspn(colon, " \t"));
    }
    size_t len = strlen(first + 1) + 1;
    *target = malloc(len);
    CHECK(*target);
    memcpy(*target, first + 1, len);
    server_head_target(h, *target);
    server_head_end(h, &rules);
    return true;
}

/* What holds for a head that is accepted. */
static void check_accepted(const struct server_head *h)
{
    const char *const *single = h->single;
    CHECK(single[SINGLE_HOST] && h->path[0] == '/' && h->length <= 1000);
    CHECK(!single[SINGLE_LENGTH] || !single[SINGLE_TRANSFER]);
    CHECK(!single[SINGLE_TRANSFER] || (!h->old && strlen(single[SINGLE_TRANSFER]) == 7));
    CHECK(strcmp(h->method, "GET") != 0 || !server_head_has_body(h));
    CHECK(strlen(h->path) < ROOM);
}

static void test_heads(long n)
{
    long accepted = 0, read = 0;
    for (long i = 0; i < n; i++) {
        const char *from = corpus[draw(sizeof(corpus) / sizeof(corpus[0]))];
        char *text = malloc(ROOM), *target = NULL;
        struct server_head h;
        CHECK(text && strlen(from) < ROOM);
        memcpy(text, from, strlen(from));
        size_t len = spoil(text, strlen(from), ROOM);
        text = realloc(text, len);
        CHECK(text);
        if (read_head(&h, text, len, &target)) {
            read++;
            if (!h.why) {
                check_accepted(&h);
                accepted++;
            }
            server_head_has_key(&h, "sesame");
            server_head_has_key(&h, "");
        }
        free(target);
        free(text);
    }
    CHECK(accepted > n / 10 && accepted < read && read < n);
}

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
static void test_any_json(long n)
{
    static const char from[] = "{\"a\":[-18446744073709551615,1e5,\"\\ud83d\\ude00\\\\\\ud83d\"]}";
    for (long i = 0; i < n; i++) {
        char room[ROOM];
        memcpy(room, from, sizeof(from) - 1);
        size_t len = spoil(room, sizeof(from) - 1, ROOM);
        char *text = malloc(len);
        CHECK(text);
        memcpy(text, room, len);
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
    long n = cases(100000);
    test_mend();
    test_trees();
    test_heads(n);
    test_bodies();
    test_any_json(n / 10);
    return 0;
}
