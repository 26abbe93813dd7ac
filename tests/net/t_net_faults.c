/* Tests what a network and a server can do wrong: each fault has its code and its message, ends
 * within the deadline, and leaves the client fit for the next call. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "kernels/sys/base.h"
#include "kernels/sys/os.h"
#include "net/cloud.h"
#include "tests/support/rude.h"
#include "tests/support/test.h"
#include "tests/support/torture.h"

#define KEY "sk-test-0123456789"
#define GOOD_BODY \
    "{\"choices\":[{\"index\":0,\"text\":\"x\",\"finish_reason\":\"length\",\"token_ids\":[42]}]}"
#define OK_JSON   "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
#define UNTIL_END OK_JSON "Connection: close\r\n\r\n"
#define STATUS(s) \
    "HTTP/1.1 " s "\r\nContent-Length: 50\r\n\r\n{\"error\":{\"message\":\"reason " KEY " \"}}"
#define IDS(list) UNTIL_END "{\"choices\":[{\"index\":0,\"text\":\"x\",\"token_ids\":" list "}]}"

static const char good[] = OK_JSON "Content-Length: 78\r\n\r\n" GOOD_BODY;
static const char url_form[] = "http://127.0.0.1:%u";
static const uint32_t prompt[] = { 7, 8, 9 };
static struct rude *server;

struct fault {
    const char *name;
    enum rude_mode mode;
    const char *bytes;
    int code;
    const char *says; /* a part of the message */
};

static const struct fault faults[] = {
    { "immediate FIN", RUDE_CLOSE, "", ERR_NET, "" },
    { "RST", RUDE_RESET, "", ERR_NET, "" },
    { "RST in the header", RUDE_RESET, "HTTP/1.1 200 OK\r\nContent-", ERR_NET, "" },
    { "RST in the body", RUDE_RESET, OK_JSON "Content-Length: 500\r\n\r\n{", ERR_NET, "" },
    { "cut body, length given", RUDE_CLOSE, OK_JSON "Content-Length: 500\r\n\r\n{\"choices\":[{",
      ERR_NET, "" },
    { "cut body, no length", RUDE_CLOSE, UNTIL_END "{\"choices\":[{\"token_ids\":[4", ERR_NET,
      "not JSON" },
    { "cut chunk", RUDE_CLOSE, OK_JSON "Transfer-Encoding: chunked\r\n\r\nff\r\n{\"choi", ERR_NET,
      "" },
    { "bad chunk size", RUDE_CLOSE, OK_JSON "Transfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n",
      ERR_NET, "" },
    { "empty body", RUDE_KEEP, OK_JSON "Content-Length: 0\r\n\r\n", ERR_NET, "empty" },
    { "HTML portal", RUDE_CLOSE,
      "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<html>\x1b[31mlog in", ERR_NET, "<html>" },
    { "gzip without asking", RUDE_CLOSE, UNTIL_END "\x1f\x8b\x08", ERR_NET, "not JSON" },
    { "bad UTF-8", RUDE_CLOSE, UNTIL_END "{\"choices\":[{\"text\":\"\xff\xfe\"}]}", ERR_NET,
      "not JSON" },
    { "bad JSON", RUDE_CLOSE, UNTIL_END "{'choices':[]}", ERR_NET, "not JSON" },
    { "two documents", RUDE_CLOSE, UNTIL_END GOOD_BODY GOOD_BODY, ERR_NET, "not JSON" },
    { "NaN", RUDE_CLOSE, IDS("[NaN]"), ERR_NET, "not JSON" },
    { "no object", RUDE_CLOSE, UNTIL_END "[42]", ERR_NET, "choices" },
    { "a number", RUDE_CLOSE, UNTIL_END "42", ERR_NET, "choices" },
    { "empty choices", RUDE_CLOSE, UNTIL_END "{\"choices\":[]}", ERR_NET, "choices" },
    { "choices is a string", RUDE_CLOSE, UNTIL_END "{\"choices\":\"42\"}", ERR_NET, "a string" },
    { "choice is a number", RUDE_CLOSE, UNTIL_END "{\"choices\":[42]}", ERR_NET, "choices" },
    { "ids is a string", RUDE_CLOSE, IDS("\"42\""), ERR_NET, "a string" },
    { "ids is a number", RUDE_CLOSE, IDS("42"), ERR_NET, "a number" },
    { "ids nested", RUDE_CLOSE, IDS("[[42]]"), ERR_NET, "a list" },
    { "id is a string", RUDE_CLOSE, IDS("[\"42\"]"), ERR_NET, "a string" },
    { "id is null", RUDE_CLOSE, IDS("[null]"), ERR_NET, "null" },
    { "id is true", RUDE_CLOSE, IDS("[true]"), ERR_NET, "boolean" },
    { "id negative", RUDE_CLOSE, IDS("[-1]"), ERR_NET, "-1" },
    { "id fractional", RUDE_CLOSE, IDS("[42.0]"), ERR_NET, "fraction" },
    { "id beyond vocab", RUDE_CLOSE, IDS("[1000]"), ERR_NET, "below 1000" },
    { "id 2^32", RUDE_CLOSE, IDS("[4294967338]"), ERR_NET, "below 1000" },
    { "id 1e300", RUDE_CLOSE, IDS("[1e300]"), ERR_NET, "fraction" },
    { "id 1e999", RUDE_CLOSE, IDS("[1e999]"), ERR_NET, "not JSON" },
    { "id of 30 digits", RUDE_CLOSE, IDS("[100000000000000000000000000000]"), ERR_NET, "not JSON" },
    { "several ids", RUDE_CLOSE, IDS("[42,43]"), ERR_NET, "found 2" },
    { "empty ids", RUDE_CLOSE, IDS("[]"), ERR_NET, "found none" },
    { "text only", RUDE_CLOSE, UNTIL_END "{\"choices\":[{\"text\":\"x\"}]}", ERR_REMOTE,
      "without token ids" },
    { "ids null", RUDE_CLOSE, IDS("null"), ERR_REMOTE, "without token ids" },
    { "aborted", RUDE_CLOSE,
      UNTIL_END "{\"choices\":[{\"token_ids\":[42],\"finish_reason\":\"abort\"}]}", ERR_NET,
      "abort" },
    { "error as success", RUDE_CLOSE, UNTIL_END "{\"error\":{\"message\":\"over\\nloaded\"}}",
      ERR_NET, "over" },
    { "the end of the key", RUDE_CLOSE,
      UNTIL_END "{\"error\":{\"message\":\"no (23456789), st-0123456 or 3456789\"}}", ERR_NET,
      "no (***), *** or 3456789" },
    { "wrong version", RUDE_CLOSE, "HTTP/9.9 200 OK\r\n\r\n" GOOD_BODY, ERR_NET, "" },
    { "no HTTP", RUDE_CLOSE, "SSH-2.0-OpenSSH_9.2\r\n", ERR_NET, "" },
    { "HTTP/0.9", RUDE_CLOSE, GOOD_BODY, ERR_NET, "" },
    { "two lengths", RUDE_CLOSE,
      OK_JSON "Content-Length: 78\r\nContent-Length: 3\r\n\r\n" GOOD_BODY, ERR_NET, "" },
    { "negative length", RUDE_CLOSE, OK_JSON "Content-Length: -5\r\n\r\n", ERR_NET, "" },
    { "length short of the body", RUDE_CLOSE, OK_JSON "Content-Length: 9\r\n\r\n" GOOD_BODY,
      ERR_NET, "not JSON" },
    { "endless body", RUDE_FLOOD, UNTIL_END, ERR_NET, "longer than" },
    { "endless headers", RUDE_FLOOD_HEADERS, OK_JSON, ERR_NET, "header" },
    { "endless 1xx", RUDE_FLOOD_HEADERS, "HTTP/1.1 103 Early Hints\r\n", ERR_NET, "header" },
    { "204", RUDE_KEEP, "HTTP/1.1 204 No Content\r\n\r\n", ERR_NET, "204" },
    { "301", RUDE_CLOSE,
      "HTTP/1.1 301 Moved\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n", ERR_TEXT,
      "not followed" },
    { "302", RUDE_CLOSE,
      "HTTP/1.1 302 Found\r\nLocation: file:///etc/passwd\r\nContent-Length: 0\r\n\r\n", ERR_NET,
      "not followed" },
    { "400", RUDE_KEEP, STATUS("400 Bad Request"), ERR_TEXT, "400: reason ***" },
    { "401", RUDE_KEEP, STATUS("401 Unauthorized"), ERR_REMOTE,
      "401: reason ***  (the API key that was sent is not accepted)" },
    { "403", RUDE_KEEP, STATUS("403 Forbidden"), ERR_REMOTE, "403" },
    { "404", RUDE_KEEP, STATUS("404 Not Found"), ERR_REMOTE, "404" },
    { "408", RUDE_CLOSE, STATUS("408 Request Timeout"), ERR_NET, "408" },
    { "413", RUDE_KEEP, STATUS("413 Too Large"), ERR_TEXT, "413" },
    { "429", RUDE_KEEP, STATUS("429 Too Many Requests"), ERR_NET, "429" },
    { "500", RUDE_KEEP, STATUS("500 Oops"), ERR_NET, "500" },
    { "502", RUDE_KEEP, STATUS("502 Bad Gateway"), ERR_NET, "502" },
    { "503", RUDE_KEEP, STATUS("503 Unavailable"), ERR_NET, "503" },
    { "504", RUDE_KEEP, STATUS("504 Gateway Timeout"), ERR_NET, "504" },
};

/* Open a client of the rude server, with more options. */
static struct cloud *client(const struct cloud_options *more)
{
    char url[64];
    struct cloud_options o = *more;
    struct cloud *c;
    struct err err;
    snprintf(url, sizeof(url), url_form, rude_port(server));
    o.url = url;
    o.key = KEY;
    o.vocab = 1000;
    o.api = CLOUD_OPENAI;
    o.model = "m";
    CHECK(cloud_open(&c, &o, &err) == OK);
    return c;
}

/* The message is one line that contains `says` and not the key. */
static void check_line(const char *name, const struct err *err, const char *says)
{
    if (!*err->msg || !strstr(err->msg, says) || strstr(err->msg, KEY))
        fprintf(stderr, "%s: \"%s\"\n", name, err->msg);
    CHECK(*err->msg && strstr(err->msg, says) && !strstr(err->msg, KEY));
    for (const unsigned char *c = (const unsigned char *)err->msg; *c; c++)
        CHECK(*c >= 0x20 && *c != 0x7f);
}

/* The client still answers the next call. */
static void works(struct cloud *c)
{
    struct err err = { "" };
    uint32_t id = 0;
    rude_play(server, &(struct rude_part){ .mode = RUDE_KEEP, .bytes = good });
    int rc = cloud_next(c, prompt, 3, &id, &err);
    if (rc)
        fprintf(stderr, "%s\n", err.msg);
    CHECK(rc == OK && id == 42);
}

/* Each fault of the table gives its code and message. */
static void test_table(void)
{
    struct cloud *c = client(&(struct cloud_options){ .max_reply = 1 << 16 });
    for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
        const struct fault *f = &faults[i];
        struct err err = { "" };
        uint32_t id = 77;
        works(c);
        rude_play(server, &(struct rude_part){ .mode = f->mode, .bytes = f->bytes });
        int rc = cloud_next(c, prompt, 3, &id, &err);
        if (rc != f->code)
            fprintf(stderr, "%s: %d %s\n", f->name, rc, err.msg);
        CHECK(rc == f->code && id == 77);
        check_line(f->name, &err, f->says);
    }
    works(c);
    const struct cloud_ledger *l = cloud_ledger(c);
    size_t n = sizeof(faults) / sizeof(faults[0]);
    CHECK(l->calls == 2 * n + 1 && l->faults == n && l->tokens == n + 1);
    CHECK(l->traffic.bytes_up > 100 * l->calls && l->traffic.bytes_down > 50 * l->tokens &&
          l->ns > 0);
    cloud_close(c);
}

/* Replies that look odd but are valid are accepted. */
static void test_odd_but_right(void)
{
    static const char *const fine[] = {
        OK_JSON "Transfer-Encoding: chunked\r\n\r\n4e\r\n" GOOD_BODY "\r\n0\r\n\r\n",
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 102 Processing\r\n\r\n" OK_JSON
        "Content-Length: 78\r\n\r\n" GOOD_BODY,
        "HTTP/1.0 200 OK\r\n\r\n" GOOD_BODY,
        /* end-of-text is a token, whatever finish_reason says */
        UNTIL_END "{\"choices\":[{\"text\":\"\",\"finish_reason\":\"stop\",\"token_ids\":[42]}]}",
        UNTIL_END "{\"choices\":[{\"text\":\"\",\"finish_reason\":\"length\",\"token_ids\":[42]}]}",
        UNTIL_END "{\"choices\":[{\"text\":\"\\u0000\",\"token_ids\":[42]}]}",
        /* the end of the prompt before exactly one new id */
        UNTIL_END "{\"choices\":[{\"text\":\"\",\"token_ids\":[8,9,42]}],\"usage\":{\"completion_"
                  "tokens\":1}}",
    };
    struct cloud *c = client(&(struct cloud_options){ 0 });
    for (size_t i = 0; i < sizeof(fine) / sizeof(fine[0]); i++) {
        struct err err = { "" };
        uint32_t id = 0;
        rude_play(server,
                  &(struct rude_part){ .mode = i < 2 ? RUDE_KEEP : RUDE_CLOSE, .bytes = fine[i] });
        int rc = cloud_next(c, prompt, 3, &id, &err);
        if (rc)
            fprintf(stderr, "%zu: %s\n", i, err.msg);
        CHECK(rc == OK && id == 42);
    }
    cloud_close(c);
}

/* A connection closed between two calls is replaced by a new one. */
static void test_kept_alive(void)
{
    struct cloud *c = client(&(struct cloud_options){ 0 });
    unsigned before = rude_connections(server);
    for (int i = 0; i < 10; i++)
        works(c);
    CHECK(rude_connections(server) == before + 1);
    rude_play(server, &(struct rude_part){ .mode = RUDE_CLOSE, .bytes = good });
    for (int i = 0; i < 3; i++) {
        uint32_t id = 0;
        CHECK(cloud_next(c, prompt, 3, &id, NULL) == OK && id == 42);
    }
    CHECK(rude_connections(server) >= before + 3);
    cloud_close(c);
}

static double seconds_since(uint64_t start)
{
    return (double)(os_now_ns() - start) / 1e9;
}

/* A call ends at its deadline, whatever the server sends until then. */
static void test_deadline(void)
{
    static const struct rude_part slow[] = {
        { .mode = RUDE_SILENT, .bytes = "" },
        { .mode = RUDE_SILENT, .bytes = "HTTP/1.1 200 OK\r\n" },
        { .mode = RUDE_SILENT, .bytes = OK_JSON "Content-Length: 500\r\n\r\n{" },
        { .mode = RUDE_DRIP, .bytes = OK_JSON "Content-Length: 500\r\n\r\n{" },
        { .mode = RUDE_DRIP, .bytes = UNTIL_END "{\"choices\":[                              " },
    };
    struct cloud *c = client(&(struct cloud_options){ .timeout_ms = 200 });
    for (size_t i = 0; i < sizeof(slow) / sizeof(slow[0]); i++) {
        struct err err = { "" };
        uint32_t id = 77;
        uint64_t start = os_now_ns();
        rude_play(server, &slow[i]);
        CHECK(cloud_next(c, prompt, 3, &id, &err) == ERR_NET && id == 77);
        CHECK(seconds_since(start) > 0.15 && seconds_since(start) < 5);
        check_line("deadline", &err, "in time");
    }
    cloud_close(c);
    c = client(&(struct cloud_options){ 0 });
    works(c);
    cloud_close(c);
}

/* A server that has gone gives an error that names it. */
static void test_refused(void)
{
    struct err err = { "" };
    struct cloud *c = client(&(struct cloud_options){ 0 });
    unsigned port = rude_port(server);
    uint32_t id = 77;
    works(c);
    rude_close(server); /* no server listens now */
    CHECK(cloud_next(c, prompt, 3, &id, &err) == ERR_NET && id == 77);
    check_line("refused", &err, "127.0.0.1");
    CHECK(cloud_next(c, prompt, 3, &id, &err) == ERR_NET);
    CHECK(port);
    cloud_close(c);
    server = rude_open();
}

/* Set the stop flag after a while. */
static void *raise_flag(void *flag)
{
    const struct timespec pause = { .tv_nsec = 100 * 1000 * 1000 };
    nanosleep(&pause, NULL);
    atomic_store((_Atomic int *)flag, 1);
    return NULL;
}

/* The stop flag ends a waiting call. */
static void test_interrupted(void)
{
    static _Atomic int stop;
    struct err err = { "" };
    uint32_t id = 77;
    pthread_t t;
    struct cloud *c = client(&(struct cloud_options){ .stop = &stop, .timeout_ms = 60000 });
    works(c);
    rude_play(server, &(struct rude_part){ .mode = RUDE_SILENT, .bytes = "" });
    uint64_t start = os_now_ns();
    CHECK(pthread_create(&t, NULL, raise_flag, &stop) == 0);
    CHECK(cloud_next(c, prompt, 3, &id, &err) == ERR_STOP && id == 77);
    CHECK(seconds_since(start) < 10);
    CHECK(cloud_next(c, prompt, 3, &id, &err) == ERR_STOP);
    check_line("interrupted", &err, "interrupted");
    pthread_join(t, NULL);
    atomic_store(&stop, 0);
    works(c);
    CHECK(cloud_ledger(c)->faults == 0);
    cloud_close(c);
}

/* JSON that is nested too deep is refused. */
static void test_deep(void)
{
    static char deep[1 << 16] = UNTIL_END;
    size_t n = strlen(deep);
    memset(deep + n, '[', sizeof(deep) - n);
    struct err err = { "" };
    uint32_t id = 77;
    struct cloud *c = client(&(struct cloud_options){ 0 });
    rude_play(server, &(struct rude_part){ .mode = RUDE_CLOSE, .bytes = deep, .n = sizeof(deep) });
    CHECK(cloud_next(c, prompt, 3, &id, &err) == ERR_NET && id == 77);
    check_line("deep", &err, "deeper");
    works(c);
    cloud_close(c);
}

/* The wire carries one POST without Expect or Accept-Encoding, and the key in one place. */
static void test_request(void)
{
    static char text[1 << 16];
    struct cloud *c = client(&(struct cloud_options){ 0 });
    works(c);
    rude_request(server, text, sizeof(text));
    CHECK(strncmp(text, "POST /v1/completions HTTP/1.1\r\n", 31) == 0);
    CHECK(strstr(text, "Authorization: Bearer " KEY "\r\n"));
    CHECK(strstr(text, "Content-Type: application/json\r\n"));
    CHECK(!strstr(text, "Expect") && !strstr(text, "Accept-Encoding") && !strstr(text, "Cookie"));
    CHECK(strstr(text, "\"prompt\":[7,8,9]"));
    size_t up = cloud_ledger(c)->traffic.bytes_up, down = cloud_ledger(c)->traffic.bytes_down;
    CHECK(up == strlen(text) && down == sizeof(good) - 1);
    cloud_close(c);
}

/* Without a key, the message for 401 says where to give one, after the server's own words, however
 * long these are. */
static void test_no_key(void)
{
    static char replies[2][1200]; /* the server's thread reads them */
    char url[64], words[900];
    struct err err = { "" };
    struct cloud *c;
    uint32_t id;
    memset(words, 'w', sizeof(words) - 1);
    words[sizeof(words) - 1] = 0;
    for (int i = 0; i < 2; i++) {
        char *reply = replies[i];
        snprintf(reply, sizeof(replies[i]),
                 "HTTP/1.1 401 Unauthorized\r\nContent-Length: %zu\r\n\r\n{\"error\":\"%s\"}",
                 (i ? strlen(words) : 2) + 12, i ? words : "no");
        rude_play(server, &(struct rude_part){ RUDE_KEEP, reply, 0 });
        snprintf(url, sizeof(url), url_form, rude_port(server));
        const struct cloud_options o = { .url = url, .api = CLOUD_LLAMACPP, .vocab = 1000 };
        CHECK(cloud_open(&c, &o, &err) == OK);
        CHECK(cloud_next(c, prompt, 3, &id, &err) == ERR_REMOTE);
        if (!strstr(err.msg, "--cloud-key-file or in MIZZLE_API_KEY)"))
            fprintf(stderr, "%s\n", err.msg);
        CHECK(strstr(err.msg, i ? "401: www" : "401: no (no API key was sent") &&
              strstr(err.msg, "--cloud-key-file or in MIZZLE_API_KEY)"));
        cloud_close(c);
    }
}

/* With CLOUD_AUTO, what the server says about itself decides; one that answers nothing useful is
 * taken for openai, and one that refuses is not used. */
static void test_probe(void)
{
#define MODELS(owner) UNTIL_END "{\"data\":[{\"id\":\"m1\",\"owned_by\":\"" owner "\"}]}"
    static const struct {
        const char *bytes;
        int code;
        enum cloud_api api;
        const char *model;
    } cases[] = {
        { MODELS("llamacpp"), OK, CLOUD_LLAMACPP, "m1" },
        { MODELS("vllm"), OK, CLOUD_OPENAI, "m1" },
        { MODELS("somebody"), OK, CLOUD_OPENAI, "m1" },
        { UNTIL_END "{\"default_generation_settings\":{}}", OK, CLOUD_LLAMACPP, NULL },
        { STATUS("404 Not Found"), OK, CLOUD_OPENAI, NULL },
        { MODELS("sglang"), OK, CLOUD_SGLANG, "m1" },
        { STATUS("401 Unauthorized"), ERR_REMOTE, CLOUD_AUTO, NULL },
        { STATUS("503 Unavailable"), ERR_NET, CLOUD_AUTO, NULL },
        { UNTIL_END "<html>", ERR_NET, CLOUD_AUTO, NULL },
    };
    char url[64];
    snprintf(url, sizeof(url), url_form, rude_port(server));
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct cloud_options o = { .url = url, .key = KEY, .vocab = 1000 };
        struct err err = { "" };
        struct cloud *c;
        rude_play(server, &(struct rude_part){ .mode = RUDE_CLOSE, .bytes = cases[i].bytes });
        int rc = cloud_open(&c, &o, &err);
        if (rc != cases[i].code)
            fprintf(stderr, "probe %zu: %d %s\n", i, rc, err.msg);
        CHECK(rc == cases[i].code && (rc == OK) == (c != NULL));
        if (rc) {
            check_line("probe", &err, "cloud http://127.0.0.1:");
            continue;
        }
        const char *model = cloud_known_info(c)->model;
        CHECK(cloud_known_info(c)->api == cases[i].api && !model == !cases[i].model);
        CHECK(!model || strcmp(model, cases[i].model) == 0);
        cloud_close(c);
    }
#undef MODELS
}

/* Every allocation fails once: an error or a right answer, and no leak. */
static void test_torture(void)
{
    long n = 1;
    rude_play(server, &(struct rude_part){ .mode = RUDE_KEEP, .bytes = good });
    for (;; n++) {
        struct err err = { "" };
        uint32_t id = 77;
        char url[64];
        struct cloud *c;
        snprintf(url, sizeof(url), url_form, rude_port(server));
        const struct cloud_options o = {
            .url = url, .key = KEY, .model = "m", .vocab = 1000, .api = CLOUD_OPENAI
        };
        torture_begin(n);
        int rc = cloud_open(&c, &o, &err);
        if (rc == OK)
            rc = cloud_next(c, prompt, 3, &id, &err);
        cloud_close(c);
        int hit = torture_end();
        CHECK(torture_live() == 0);
        CHECK(rc == OK ? id == 42 : hit && rc == ERR_NOMEM && id == 77);
        if (!hit)
            break;
    }
    CHECK(n > 5);
}

int main(void)
{
    server = rude_open();
    test_table();
    test_odd_but_right();
    test_kept_alive();
    test_deadline();
    test_refused();
    test_interrupted();
    test_deep();
    test_request();
    test_no_key();
    test_probe();
    test_torture();
    rude_close(server);
    return 0;
}
