/* The HTTP server: what a callback sees of a request, replies and streams, bodies, options that
 * contradict each other, TLS, and the n-th allocation that fails. */
#include <sys/socket.h>

#include "net/http/http.h"
#include "net/server/server.h"
#include "tests/support/certificate.h"
#include "tests/support/http_client.h"

#define POST "POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"

enum { LARGE = 3 << 20 };

static const uint64_t SLOW_NS = 100000000;

static struct server *server;
static _Atomic int drops, handled, waits, gone;
static _Atomic size_t parts;

static void count_drop(void *own)
{
    CHECK(own == &drops);
    drops++;
}

/* Three pieces, then the end; "cut" breaks after them. */
static enum server_more pieces(void *arg, struct buf *out)
{
    const char *path = server_path(arg);
    size_t at = parts++;
    CHECK(out->n == 0);
    if (strcmp(path, "/slow") == 0 && !server_wait(arg, os_now_ns() + SLOW_NS))
        return SERVER_BROKEN;
    if (at < 3)
        return buf_str(out, "piece") ? SERVER_MORE : SERVER_BROKEN;
    if (strcmp(path, "/cut") == 0)
        return SERVER_BROKEN;
    return buf_str(out, "last") ? SERVER_END : SERVER_BROKEN;
}

static void show(struct server_request *r)
{
    const struct buf *body = server_body(r);
    const char *x = server_header(r, "x-test");
    char line[512];
    const char *const headers[][2] = { { "X-One", "1" }, { "X-Two", NULL }, { NULL, NULL } };
    struct buf out = { 0 };
    snprintf(line, sizeof(line), "%s %s x=%s first=%d received=%zu body=", server_method(r),
             server_path(r), x ? x : "none", server_first(r), server_facts(r).body);
    if (buf_str(&out, line) && buf_add(&out, body->p ? body->p : "", body->n < 40 ? body->n : 40))
        server_reply(r, 201, "text/plain", &out, headers);
    buf_free(&out);
}

static void large(struct server_request *r)
{
    struct buf out = { 0 };
    for (size_t i = 0; i < LARGE / 16; i++)
        CHECK(buf_str(&out, "0123456789abcdef"));
    server_reply(r, 200, NULL, &out, NULL);
    CHECK(!out.p && server_facts(r).fd >= 0);
}

static void wait_on(struct server_request *r)
{
    waits++;
    while (server_wait(r, UINT64_MAX))
        ;
    gone++;
}

static void at_handle(void *arg, struct server_request *r)
{
    const char *path = server_path(r);
    (void)arg;
    handled++;
    CHECK(!server_closing(r) && !server_own(r));
    server_set_own(r, &drops, count_drop);
    CHECK(server_own(r) == &drops);
    parts = 0;
    if (strcmp(path, "/late") == 0 && !server_wait(r, os_now_ns() + SLOW_NS))
        return;
    if (strcmp(path, "/stream") == 0 || strcmp(path, "/cut") == 0 || strcmp(path, "/slow") == 0)
        server_stream(r, 200, "text/event-stream", -1, NULL, pieces, r);
    else if (strcmp(path, "/sized") == 0)
        server_stream(r, 200, "text/plain", 19, NULL, pieces, r);
    else if (strcmp(path, "/large") == 0)
        large(r);
    else if (strcmp(path, "/wait") == 0)
        wait_on(r);
    else if (strcmp(path, "/nothing") != 0)
        show(r);
}

static void at_refuse(void *arg, struct server_request *r, enum server_refusal what,
                      unsigned status, const char *why)
{
    char line[256];
    struct buf out = { 0 };
    (void)arg;
    snprintf(line, sizeof(line), "{\"no\":%d,\"why\":\"%s\"}", (int)what, why);
    if (buf_str(&out, line))
        server_reply(r, status, "application/json", &out, NULL);
    buf_free(&out);
}

static void serve(struct server_options o)
{
    struct err err = { "" };
    o.handle = at_handle;
    CHECK_MSG(server_open(&server, &o, &err) == OK, "%s", err.msg);
}

static const struct http_client_reply *ask(const char *method, const char *path,
                                           const char *headers, const char *body)
{
    return http_client_reply(server_port(server), method, path, headers, body);
}

static bool asked(const char *method, const char *path, const char *headers, const char *body,
                  int status, const char *says)
{
    const struct http_client_reply *r = ask(method, path, headers, body);
    bool fine = r->status == status && r->whole && strstr(r->body, says);
    if (!fine)
        fprintf(stderr, "%s: %d %s\n", path, r->status, r->body);
    return fine;
}

static void test_requests(void)
{
    const struct http_client_reply *r;
    serve((struct server_options){ .name = "tester" });
    CHECK(asked("GET", "/a%2fb?c=%20&d", "X-Test: 1 2\r\n", NULL, 201,
                "GET /a/b x=1 2 first=1 received=0 body="));
    CHECK(asked("POST", "/", NULL, "{\"a\":1}", 201, "received=7 body={\"a\":1}"));
    CHECK(asked("PATCH", "/x", NULL, "z", 201, "PATCH /x x=none first=1 received=1 body=z"));
    r = ask("GET", "/", NULL, NULL);
    CHECK(strstr(r->head, "Server: tester\r\n") && strstr(r->head, "X-One: 1\r\n"));
    CHECK(!strstr(r->head, "X-Two") && strstr(r->head, "Content-Type: text/plain\r\n"));
    int fd = http_client_open(server_port(server));
    for (int i = 0; i < 3; i++) {
        http_client_put(fd, "GET", "/", NULL, NULL, 0);
        r = http_client_read(fd, 5000);
        CHECK(strstr(r->body, i ? "first=0" : "first=1"));
    }
    static const char head[] = "HEAD /x HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    struct raw_reply raw;
    http_client_send(fd, head, sizeof(head) - 1);
    raw_http_read(fd, &raw, 0, 9000);
    CHECK(raw.status == 201 && raw.ended && strstr(raw.bytes, "Content-Length: 39\r\n"));
    CHECK(strcmp(strstr(raw.bytes, "\r\n\r\n"), "\r\n\r\n") == 0);
    close(fd);
    r = ask("GET", "/nothing", NULL, NULL);
    CHECK(r->status == 0);
    server_close(server, 1000);
    CHECK(drops == handled);
}

static void test_replies(void)
{
    const struct http_client_reply *r;
    serve((struct server_options){ 0 });
    r = ask("GET", "/large", NULL, NULL);
    CHECK(r->whole && r->n == LARGE);
    for (size_t i = 0; i < LARGE; i += 16)
        CHECK(memcmp(r->body + i, "0123456789abcdef", 16) == 0);
    r = ask("GET", "/stream", NULL, NULL);
    CHECK(r->whole && r->chunks == 4 && strcmp(r->body, "piecepiecepiecelast") == 0);
    r = ask("GET", "/sized", NULL, NULL);
    CHECK(r->whole && strstr(r->head, "Content-Length: 19\r\n") && r->n == 19);
    r = ask("GET", "/cut", NULL, NULL);
    CHECK(!r->whole && strcmp(r->body, "piecepiecepiece") == 0);
    server_close(server, 1000);
    CHECK(drops == handled);
}

/* A client that shuts down its sending side gets its answer, whole or as a stream. */
static void test_half(void)
{
    static const char *const rows[][2] = {
        { "/late", "HTTP/1.1 201 Created\r\n" },
        { "/slow", "HTTP/1.1 200 OK\r\n" },
    };
    serve((struct server_options){ 0 });
    for (int i = 0; i < 2; i++) {
        struct raw_reply r;
        int fd = http_client_open(server_port(server));
        http_client_put(fd, "GET", rows[i][0], NULL, NULL, 0);
        shutdown(fd, SHUT_WR);
        raw_http_read(fd, &r, 0, 9000);
        CHECK_MSG(r.ended && strstr(r.bytes, rows[i][1]) &&
                      strstr(r.bytes, i ? "last" : "GET /late"),
                  "%s", r.bytes);
        close(fd);
    }
    server_close(server, 1000);
}

/* Bodies up to a limit each and together; what is refused early is not read. */
static void test_bodies(void)
{
    char *big = malloc(40001), *chunks = malloc(50000);
    const struct http_client_reply *r;
    CHECK(big && chunks);
    memset(big, 'z', 40000);
    big[40000] = 0;
    serve((struct server_options){ .body_max = 40000, .bodies_max = 60000, .refuse = at_refuse });
    CHECK(asked("POST", "/", NULL, big, 201, "received=40000 body=zzzz"));
    /* In chunks the size is not known before; the rest is read, and the connection closes. */
    int fd = http_client_open(server_port(server));
    http_client_send(fd, POST "c350\r\n", sizeof(POST) + 6 - 1);
    memset(chunks, 'y', 50000);
    http_client_send(fd, chunks, 50000);
    http_client_send(fd, "\r\n0\r\n\r\n", 7);
    r = http_client_read(fd, 5000);
    CHECK(r->status == 413 &&
          strcmp(r->body, "{\"no\":4,\"why\":\"the request is too large\"}") == 0);
    CHECK(strstr(r->head, "Connection: close\r\n"));
    r = http_client_read(fd, 5000);
    CHECK(r->status == 0);
    close(fd);
    server_close(server, 1000);
    free(chunks);
    free(big);
}

static void test_options(void)
{
    static const char *const far[] = { "0.0.0.0", "::", "192.0.2.1" };
    struct server *s;
    struct err err = { "" };
    for (size_t i = 0; i < 3; i++) {
        const struct server_options o = { .host = far[i], .handle = at_handle };
        CHECK(server_open(&s, &o, &err) == ERR_ARG && !s);
        CHECK(strstr(err.msg, far[i]) && strstr(err.msg, "key"));
    }
    serve((struct server_options){ .host = "0.0.0.0", .key = "sesame" });
    CHECK(strncmp(server_url(server), "http://127.0.0.1:", 17) == 0);
    CHECK(asked("GET", "/", "Authorization: Bearer sesame\r\n", NULL, 201, "GET /"));
    CHECK(asked("GET", "/", NULL, NULL, 401, "Authorization: expected a valid key"));
    struct server_options o = { .port = server_port(server), .key = "a", .handle = at_handle };
    o.host = "0.0.0.0";
    CHECK(server_open(&s, &o, &err) == ERR_NET && !s && strstr(err.msg, "listen"));
    o.port = 65536;
    CHECK(server_open(&s, &o, &err) == ERR_ARG && !s);
    o.port = 0;
    o.host = "not-a-host";
    CHECK(server_open(&s, &o, &err) == ERR_ARG && !s && strstr(err.msg, "not-a-host"));
    server_close(server, 0);
    server_close(NULL, 0);
}

/* A large reply over TLS, and a client that leaves there. */
static void tls_requests(void)
{
    struct http *h;
    struct http_try *t;
    char url[400];
    const struct http_options ho = { .key = "sesame", .ca = cert, .max_reply = 8 << 20 };
    const struct http_request q = { .url = url };
    CHECK(http_open(&h, &ho, NULL) == OK);
    snprintf(url, sizeof(url), "%s/large", server_url(server));
    CHECK(http_start(h, &t, &q, NULL) == OK);
    while (http_perform(h, NULL) == OK && !t->over)
        http_wait(h, 1000);
    CHECK(t->over && t->rc == OK && t->status == 200 && t->body.n == LARGE);
    http_release(h, t);
    snprintf(url, sizeof(url), "%s/wait", server_url(server));
    waits = gone = 0;
    CHECK(http_start(h, &t, &q, NULL) == OK);
    for (int i = 0; i < 2000 && !waits && http_perform(h, NULL) == OK; i++)
        http_wait(h, 10);
    CHECK(waits == 1 && !gone);
    http_release(h, t);
    for (int i = 0; i < 20000 && !gone; i++)
        rest_us(1000);
    CHECK(gone == 1);
    http_close(h);
}

/* True if the server speaks this version of TLS, an option of openssl. */
static bool tls_speaks(const char *version)
{
    char line[200];
    snprintf(line, sizeof(line),
             "openssl s_client -connect 127.0.0.1:%u %s -cipher ALL:@SECLEVEL=0 </dev/null "
             ">/dev/null 2>&1",
             server_port(server), version);
    return system(line) == 0;
}

static void test_tls(void)
{
    static const char plain[] = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
    struct server *none;
    struct raw_reply raw;
    struct err err = { "" };
    char line[512], *alone = in_scratch("b.pem"); /* a file without a key */
    struct server_options o = { .tls = alone, .handle = at_handle };
    snprintf(line, sizeof(line), "openssl x509 -in %s -out %s", cert, alone);
    CHECK(system(line) == 0);
    CHECK(server_open(&none, &o, &err) == ERR_FORMAT && !none && strstr(err.msg, alone));
    o.tls = "build/no-such-key";
    CHECK(server_open(&none, &o, &err) == ERR_IO && !none);
    serve((struct server_options){ .tls = cert, .key = "sesame" });
    CHECK(strncmp(server_url(server), "https://127.0.0.1:", 18) == 0);
    tls_requests();
    CHECK(tls_speaks("-tls1_2") && tls_speaks("-tls1_3"));
    CHECK(!tls_speaks("-tls1_1") && !tls_speaks("-tls1"));
    /* Plain HTTP gets no reply, and a client that says nothing is not waited for. */
    raw_http_ask(server_port(server), &raw, plain, sizeof(plain) - 1, 1, 9000);
    CHECK(!raw.status && raw.ended);
    server_close(server, 1000);
    serve((struct server_options){ .tls = cert, .head_ms = 200 });
    raw_http_ask(server_port(server), &raw, "", 0, 0, 9000);
    CHECK(!raw.n && raw.ended);
    server_close(server, 1000);
}

/* Wait until no connection is open, so that nothing of one is in memory. */
static void settle(void)
{
    for (int i = 0; i < 10000 && server_connections(server); i++)
        rest_us(1000);
    CHECK(server_connections(server) == 0);
}

static int open_once(const void *arg)
{
    const struct server_options o = { .handle = at_handle };
    int rc = server_open(&server, &o, NULL);
    (void)arg;
    server_close(server, 0);
    return rc;
}

/* Whatever allocation fails, the client gets an answer or none, nothing leaks, and the next request
 * is answered. A thread of the server may still be about to free what a connection had. */
static void test_torture(void)
{
    static const char *const requests[] = {
        "GET /x?y HTTP/1.1\r\nHost: localhost\r\n\r\n",
        POST "2\r\n{}\r\n400\r\n%01024d\r\n0\r\n\r\n",
        "GET /stream HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
        "GET /x HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
    };
    struct raw_reply r;
    serve((struct server_options){ .refuse = at_refuse });
    settle();
    for (size_t i = 0; i < sizeof(requests) / sizeof(requests[0]); i++) {
        long n = 1;
        char text[2048];
        bool hit = true;
        int len = snprintf(text, sizeof(text), requests[i], 0);
        for (; hit; n++) {
            torture_begin(n);
            raw_http_ask(server_port(server), &r, text, (size_t)len, i == 2 ? 0 : 1, 9000);
            settle();
            for (int ms = 0; ms < 10000 && torture_live(); ms++)
                rest_us(1000);
            hit = torture_end();
            CHECK(torture_live() == 0 && (r.n || hit || r.ended));
            if (!hit)
                CHECK(r.status == (i == 3 ? 400 : i == 2 ? 200 : 201));
        }
        CHECK(n > 3);
    }
    server_close(server, 1000);
    torture_each(open_once, NULL);
}

int main(void)
{
    test_requests();
    test_replies();
    test_half();
    test_bodies();
    test_options();
    test_torture();
    bool tls = certificate_make();
    if (!tls)
        SKIP("TLS: no openssl command to make a certificate with");
    test_tls();
    return 0;
}
