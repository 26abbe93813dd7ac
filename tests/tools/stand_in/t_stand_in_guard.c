/* What the stand-in server lets in: compressed bodies up to a size, keys, TLS. Damaged, endless and
 * incomplete requests do it no harm. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "kernels/sys/base.h"
#include "kernels/sys/os.h"
#include "net/http/buf.h"
#include "net/cloud.h"
#include "net/http/gzip.h"
#include "tests/support/certificate.h"
#include "tests/support/http_client.h"
#include "tests/support/test.h"
#include "tests/support/tiny.h"
#include "tools/stand_in/stand_in.h"

static const char *model;
static struct stand_in *server;

static void serve(struct stand_in_options o)
{
    struct err err = { "" };
    o.model = model;
    o.threads = 1;
    int rc = stand_in_open(&server, &o, &err);
    if (rc)
        fprintf(stderr, "%s\n", err.msg);
    CHECK(rc == OK);
}

/* Return the status of a POST whose reply must contain `says`. */
static int post(const char *headers, const char *body, size_t n, const char *says)
{
    struct http_client_reply *r = malloc(sizeof(*r));
    CHECK(r);
    int fd = http_client_open(stand_in_port(server));
    http_client_put(fd, "POST", "/completion", headers, body, n);
    http_client_get(fd, r, 30000);
    close(fd);
    if (!strstr(r->body, says))
        fprintf(stderr, "%d %s\n", r->status, r->body);
    CHECK(r->whole && strstr(r->body, says));
    int status = r->status;
    http_client_free(r);
    free(r);
    return status;
}

/* Compressed bodies are read up to the limit; bombs, damage and trailing bytes are refused. */
static void test_gzip(void)
{
    static const char body[] = "{\"prompt\":[1,2,3],\"n_predict\":1}";
    static const char gz[] = "Content-Encoding: gzip\r\n";
    struct buf packed = { 0 }, bomb = { 0 };
    char *big = calloc(1, 64 << 20);
    CHECK(big && gzip_add(&packed, body, sizeof(body) - 1) && gzip_add(&bomb, big, 64 << 20));
    CHECK(post(gz, packed.p, packed.n, "\"tokens_evaluated\":3") == 200);
    CHECK(post("Content-Encoding: GZIP\r\n", packed.p, packed.n, "\"tokens_evaluated\":3") == 200);
    CHECK(post("Content-Encoding: identity\r\n", body, sizeof(body) - 1, "tokens") == 200);
    CHECK(post("Content-Encoding: br\r\n", packed.p, packed.n, "gzip, deflate") == 415);
    CHECK(post(gz, body, sizeof(body) - 1, "damaged") == 500);
    CHECK(post(gz, packed.p, packed.n - 5, "damaged") == 500);
    CHECK(post(gz, packed.p, 0, "damaged") == 500);
    packed.p[packed.n / 2] ^= 0x55;
    CHECK(post(gz, packed.p, packed.n, "error") == 500);
    size_t before = os_peak_memory();
    CHECK(bomb.n < 1 << 17 && post(gz, bomb.p, bomb.n, "too large") == 413);
    CHECK(os_peak_memory() - before < 32 << 20);
    /* Nothing may follow a gzip member. */
    struct buf two = { 0 };
    CHECK(gzip_add(&two, body, sizeof(body) - 1) && buf_str(&two, "more"));
    CHECK(post(gz, two.p, two.n, "damaged") == 500);
    buf_free(&two);
    buf_free(&packed);
    buf_free(&bomb);
    free(big);
}

static int get_status(const char *method, const char *path, const char *headers)
{
    struct http_client_reply *r = malloc(sizeof(*r));
    CHECK(r);
    http_client_ask(stand_in_port(server), r, method, path, headers,
                    strcmp(method, "POST") == 0 ? "{\"prompt\":[1],\"input_ids\":[1]}" : NULL);
    int status = r->status;
    http_client_free(r);
    free(r);
    return status;
}

/* Which paths are open without a key, and the form of the refusal. */
static void test_keys(void)
{
    static const struct {
        enum stand_in_server server;
        const char *path, *no;
        int models;
    } cases[] = {
        { STAND_IN_OPENAI, "/v1/completions", "{\"error\":\"Unauthorized\"}", 401 },
        { STAND_IN_SGLANG, "/generate", "{\"error\":\"Unauthorized\"}", 401 },
        { STAND_IN_LLAMACPP, "/completion",
          "{\"error\":{\"code\":401,\"message\":\"Invalid API Key\",\"type\":"
          "\"authentication_error\"}}",
          200 },
    };
    for (size_t i = 0; i < 3; i++) {
        struct http_client_reply *r = malloc(sizeof(*r));
        CHECK(r);
        serve((struct stand_in_options){ .server = cases[i].server, .listen.key = "sesame" });
        http_client_ask(stand_in_port(server), r, "POST", cases[i].path,
                        "Authorization: Bearer sesam\r\n", "{}");
        CHECK(r->status == 401 && strcmp(r->body, cases[i].no) == 0);
        http_client_free(r);
        free(r);
        CHECK(get_status("POST", cases[i].path, "Authorization: Bearer sesamee\r\n") == 401);
        CHECK(get_status("POST", cases[i].path, "Authorization: Basic sesame\r\n") == 401);
        CHECK(get_status("POST", cases[i].path, NULL) == 401);
        CHECK(get_status("GET", "/nope", NULL) == 401);
        CHECK(get_status("GET", "/health", NULL) == 200);
        CHECK(get_status("GET", "/v1/models", NULL) == cases[i].models);
        CHECK(get_status("GET", "/v1/models", "Authorization: Bearer sesame\r\n") == 200);
        CHECK(get_status("POST", cases[i].path, "Authorization: Bearer sesame\r\n") == 200);
        stand_in_close(server);
    }
}

/* vLLM reads a body only if it is declared as JSON. */
static void test_media(void)
{
    serve((struct stand_in_options){ .server = STAND_IN_OPENAI });
    CHECK(get_status("POST", "/v1/completions", "Content-Type: text/plain\r\n") == 400);
    CHECK(get_status("POST", "/v1/completions", "Content-Type: application/jsonx\r\n") == 400);
    CHECK(get_status("POST", "/v1/completions",
                     "Content-Type: application/json; charset=utf-8\r\n") == 200);
    stand_in_close(server);
}

/* Bytes that are no request, or only a part of one, do not stop the server. */
static void test_rude(void)
{
    static const char *const bytes[] = {
        "",
        "\r\n\r\n",
        "GET\r\n\r\n",
        "GET / HTTP/9.9\r\n\r\n",
        "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        "POST /completion HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999\r\n\r\n",
        "POST /completion HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n{}",
        "POST /completion HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{\"prompt\":[1",
        "POST /completion HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        "POST /completion HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffff\r\n",
        "POST /completion HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n",
        "GET /health HTTP/1.1\r\nHost: x\r\nA: ",
    };
    for (size_t i = 0; i < sizeof(bytes) / sizeof(bytes[0]); i++) {
        int fd = http_client_open(stand_in_port(server));
        http_client_send(fd, bytes[i], strlen(bytes[i]));
        close(fd);
        CHECK(get_status("GET", "/health", NULL) == 200);
    }
    /* An endless header line. */
    char *line = malloc(1 << 20);
    CHECK(line);
    memset(line, 'x', 1 << 20);
    memcpy(line, "GET /health HTTP/1.1\r\nA: ", 25);
    int fd = http_client_open(stand_in_port(server));
    http_client_send(fd, line, 1 << 20);
    close(fd);
    free(line);
    CHECK(get_status("GET", "/health", NULL) == 200);
    struct http_client_reply *r = malloc(sizeof(*r));
    CHECK(r);
    fd = http_client_open(stand_in_port(server));
    http_client_put(fd, "HEAD", "/health", NULL, NULL, 0);
    http_client_get(fd, r, 200); /* waits for a body */
    CHECK(r->status == 200 && r->n == 0 && strstr(r->head, "Content-Length: 15"));
    http_client_free(r);
    free(r);
    close(fd);
}

/* A chunked body is accepted like one with a length. */
static void test_chunks(void)
{
    static const char bytes[] =
        "POST /completion HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
        "a\r\n{\"prompt\":\r\n14\r\n[1,2],\"n_predict\":1}\r\n0\r\n\r\n";
    struct http_client_reply *r = malloc(sizeof(*r));
    CHECK(r);
    int fd = http_client_open(stand_in_port(server));
    http_client_send(fd, bytes, sizeof(bytes) - 1);
    http_client_get(fd, r, 30000);
    CHECK(r->status == 200 && strstr(r->body, "\"tokens_evaluated\":2"));
    http_client_free(r);
    free(r);
    close(fd);
}

/* Send raw bytes on a connection of their own and return the status of the reply. */
static int raw_status(const char *bytes, size_t n)
{
    struct http_client_reply *r = malloc(sizeof(*r));
    char more[16];
    CHECK(r);
    int fd = http_client_open(stand_in_port(server));
    http_client_send(fd, bytes, n);
    http_client_get(fd, r, 30000);
    int status = r->status;
    CHECK(recv(fd, more, sizeof(more), 0) <= 0);
    close(fd);
    http_client_free(r);
    free(r);
    return status;
}

/* What a proxy in front of the server might read differently is refused: a body with two lengths, a
 * path with an embedded NUL. */
static void test_strict(void)
{
    static const char both[] =
        "POST /completion HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n"
        "Transfer-Encoding: chunked\r\n\r\n1e\r\n{\"prompt\":[1,2],\"n_predict\":1}\r\n0\r\n\r\n";
    CHECK(raw_status(both, sizeof(both) - 1) == 400);
    CHECK(get_status("GET", "/health", NULL) == 200);
    CHECK(get_status("GET", "/%68ealth", NULL) == 200);
    CHECK(get_status("GET", "/health%00", NULL) == 400);
    CHECK(get_status("GET", "/health%00/../x", NULL) == 400);
}

/* Send `first`, then one byte repeatedly. True if the server ends the connection. */
static bool drips(const char *first, char byte)
{
    const struct timespec pause = { .tv_nsec = 20 * 1000 * 1000 };
    char sink[4096];
    int fd = http_client_open(stand_in_port(server));
    bool ended = false;
    http_client_send(fd, first, strlen(first));
    for (int i = 0; i < 1500 && !ended; i++) {
        nanosleep(&pause, NULL);
        ssize_t got = recv(fd, sink, sizeof(sink), MSG_DONTWAIT);
        ended = got == 0 || (got < 0 && errno != EAGAIN && errno != EWOULDBLOCK) ||
                send(fd, &byte, 1, MSG_NOSIGNAL) != 1;
    }
    close(fd);
    return ended;
}

/* An occasional byte does not hold a connection forever: the whole request has a deadline. */
static void test_drip(void)
{
    static const char post[] =
        "POST /completion HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n";
    char line[512];
    serve((struct stand_in_options){ .listen = { .head_ms = 200, .body_ms = 200 } });
    CHECK(drips("", 'G'));
    CHECK(drips("GET /health HTTP/1.1\r\nA: ", 'x'));
    CHECK(drips("GET /health HTTP/1.1\r\nHost: x\r\n\r\nGET /health HTTP/1.1\r\nA: ", 'x'));
    CHECK(drips("POST /completion HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n", ' '));
    snprintf(line, sizeof(line), "%s5;x=", post);
    CHECK(drips(line, 'y'));
    snprintf(line, sizeof(line), "%s2\r\n{}\r\n0\r\nA: ", post);
    CHECK(drips(line, 'x'));
    /* Time to compute and to reply does not count. */
    stand_in_close(server);
    serve((struct stand_in_options){ .listen = { .head_ms = 200, .body_ms = 200 },
                                     .net.latency_ms = 500 });
    CHECK(get_status("POST", "/completion", NULL) == 200);
    stand_in_close(server);
}

/* If other machines can reach it, the server requires a key. */
static void test_hosts(void)
{
    static const char *const open_to_all[] = { "0.0.0.0", "::", "192.0.2.1" };
    static const char *const near[] = { "127.0.0.1", "127.0.0.2", "localhost" };
    struct stand_in *s;
    struct err err;
    for (size_t i = 0; i < 3; i++) {
        const struct stand_in_options o = { .model = model,
                                            .listen.host = open_to_all[i],
                                            .threads = 1 };
        CHECK(stand_in_open(&s, &o, &err) == ERR_ARG && !s);
        CHECK(strstr(err.msg, open_to_all[i]) && strstr(err.msg, "needs a key"));
        serve((struct stand_in_options){ .listen.host = near[i] });
        stand_in_close(server);
    }
    serve((struct stand_in_options){ .listen.host = "0.0.0.0", .listen.key = "sesame" });
    CHECK(get_status("GET", "/health", NULL) == 200);
    stand_in_close(server);
}

static void test_tls(void)
{
    struct stand_in *none;
    struct err err = { "" };
    struct stand_in_options o = { .model = model, .listen.tls_cert = cert };
    CHECK(stand_in_open(&none, &o, &err) == ERR_ARG && !none);
    o.listen.tls_key = cert; /* a file without a key */
    CHECK(stand_in_open(&none, &o, &err) == ERR_FORMAT && !none && strstr(err.msg, cert));
    o.listen.tls_key = "build/no-such-key";
    CHECK(stand_in_open(&none, &o, &err) == ERR_IO && !none);
    serve((struct stand_in_options){
        .listen.tls_cert = cert, .listen.tls_key = key, .listen.key = "sesame" });
    CHECK(strncmp(stand_in_url(server), "https://127.0.0.1:", 18) == 0);
    for (int api = CLOUD_OPENAI; api <= CLOUD_SGLANG; api++) {
        struct cloud *c;
        uint32_t id = UINT32_MAX;
        const struct cloud_options co = { .url = stand_in_url(server),
                                          .api = (enum cloud_api)api,
                                          .ca = cert,
                                          .key = "sesame",
                                          .vocab = TINY_VOCAB };
        CHECK(cloud_open(&c, &co, &err) == OK);
        int rc = cloud_next(c, (const uint32_t[]){ 1, 2 }, 2, &id, &err);
        if (rc)
            fprintf(stderr, "%s\n", err.msg);
        CHECK(rc == OK && id < TINY_VOCAB);
        cloud_close(c);
    }
    /* Plain HTTP gets no reply. */
    struct http_client_reply *r = malloc(sizeof(*r));
    CHECK(r);
    int fd = http_client_open(stand_in_port(server));
    http_client_put(fd, "GET", "/health", NULL, NULL, 0);
    http_client_get(fd, r, 300);
    close(fd);
    CHECK(r->status == 0);
    http_client_free(r);
    free(r);
    stand_in_close(server);
}

int main(void)
{
    model = tiny_make();
    serve((struct stand_in_options){ 0 });
    test_gzip();
    test_rude();
    test_chunks();
    test_strict();
    stand_in_close(server);
    test_keys();
    test_media();
    test_drip();
    test_hosts();
    bool tls = certificate_make();
    if (tls)
        test_tls();
    certificate_remove();
    tiny_remove();
    if (tls)
        return 0;
    puts("SKIP: TLS: no openssl command to make a certificate with");
    return 77;
}
