/* What the stand-in server lets in: compressed bodies; TLS; and clients that leave, wait for a
 * place, or are there when it closes. tests/net/t_server*.c test the HTTP server that it stands on.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernels/sys/base.h"
#include "kernels/sys/buf.h"
#include "kernels/sys/os.h"
#include "net/cloud.h"
#include "tests/support/certificate.h"
#include "tests/support/http_client.h"
#include "tests/support/port.h"
#include "tests/support/raw_http.h"
#include "tests/support/test.h"
#include "tests/support/tiny.h"
#include "tools/lab/machine/limits.h"
#include "tools/lab/stand_in/stand_in.h"

enum { CLIENTS = 32 };

static const char *model;
static struct stand_in *server;

static void serve(struct stand_in_options o)
{
    struct err err = { "" };
    o.model = model;
    o.threads = 1;
    CHECK_MSG(stand_in_open(&server, &o, &err) == OK, "%s", err.msg);
}

/* Return the status of a POST whose reply must contain `says`. */
static int post(const char *headers, const char *body, size_t n, const char *says)
{
    struct http_client_reply *r;
    int fd = http_client_open(stand_in_port(server));
    http_client_put(fd, "POST", "/completion", headers, body, n);
    r = http_client_read(fd, 30000);
    close(fd);
    CHECK_MSG(r->whole && strstr(r->body, says), "%d %s", r->status, r->body);
    return r->status;
}

/* A compressed body is refused, in each dialect's words. */
static void test_gzip(void)
{
    serve((struct stand_in_options){ 0 });
    CHECK(post("Content-Encoding: gzip\r\n", "{}", 2, "Content-Encoding: expected none") == 415);
    stand_in_close(server);
}

static int get_status(const char *method, const char *path, const char *headers)
{
    const char *body = strcmp(method, "POST") == 0 ? "{\"prompt\":[1],\"input_ids\":[1]}" : NULL;
    return http_client_status(stand_in_port(server), method, path, headers, body);
}

/* A page of another site may not ask, even under a name that leads here. With a key any name may.
 */
static void test_sites(void)
{
    static const char evil[] =
        "GET /v1/models HTTP/1.1\r\nHost: evil.example\r\nOrigin: http://evil.example\r\n"
        "Authorization: Bearer sesame\r\n\r\n";
    static struct raw_reply r;
    for (int keyed = 0; keyed < 2; keyed++) {
        serve((struct stand_in_options){ .listen.key = keyed ? "sesame" : NULL });
        raw_http_ask(stand_in_port(server), &r, evil, sizeof(evil) - 1, 1, 5000);
        CHECK(r.status == (keyed ? 200 : 403));
        CHECK(get_status("GET", "/health", "Origin: http://evil.example\r\n") == 403);
        stand_in_close(server);
    }
}

static void test_tls(void)
{
    struct err err = { "" };
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
        CHECK_MSG(port_next(c, (const uint32_t[]){ 1, 2 }, 2, &id, &err) == OK && id < TINY_VOCAB,
                  "%s", err.msg);
        cloud_close(c);
    }
    stand_in_close(server);
}

static const char forever[] =
    "{\"prompt\":[5],\"n_predict\":255,\"ignore_eos\":true,\"stream\":true}";

/* True if no slot is busy and no question waits. */
static bool idle(void)
{
    struct http_client_reply *r =
        http_client_reply(stand_in_port(server), "GET", "/slots", NULL, NULL);
    bool free_all = strstr(r->body, "\"is_processing\":true") == NULL;
    r = http_client_reply(stand_in_port(server), "GET", "/server_info", NULL, NULL);
    CHECK(strstr(r->body, "\"waiting_requests\":"));
    free_all = free_all && strstr(r->body, "\"waiting_requests\":0");
    return free_all;
}

/* Ask for one token after ids 1 to same, then one id often enough to make n of them, in the slot,
 * or in any with -1. Return how many ids the server knew. */
static int cached(int same, int id, int n, int slot)
{
    struct http_client_reply *r;
    char body[2048];
    size_t at =
        (size_t)snprintf(body, sizeof(body), "{\"n_predict\":1,\"id_slot\":%d,\"prompt\":[", slot);
    for (int i = 0; i < n; i++)
        at +=
            (size_t)snprintf(body + at, sizeof(body) - at, i ? ",%d" : "%d", i < same ? i + 1 : id);
    snprintf(body + at, sizeof(body) - at, "]}");
    r = http_client_reply(stand_in_port(server), "POST", "/completion", NULL, body);
    CHECK(r->status == 200);
    const char *known = strstr(r->body, "\"cache_n\":");
    int n_known = known ? (int)strtol(known + 10, NULL, 10) : -1;
    return n_known;
}

/* A prompt that begins like a text in another slot gets a copy of that part; the other text stays.
 */
static void test_copy(void)
{
    const struct stand_in_options o = { .threads = 1, .slots = 2 };
    serve(o);
    CHECK(cached(60, 0, 60, -1) == 0);
    CHECK(cached(20, 90, 60, -1) == 20);
    CHECK(cached(60, 0, 60, -1) == 59);
    CHECK(cached(20, 0, 20, 0) == 19);
    stand_in_close(server);
}

/* Long answers to slow readers hold both slots. When the readers have gone, one more request gets a
 * slot at once. */
static void test_gone(void)
{
    const struct stand_in_options o = { .threads = 1, .slots = 2, .net.down = 2000 };
    int fds[8];
    serve(o);
    for (size_t i = 0; i < 8; i++) {
        fds[i] = http_client_open(stand_in_port(server));
        http_client_put(fds[i], "POST", "/completion", NULL, forever, sizeof(forever) - 1);
    }
    rest_us(100000);
    for (size_t i = 0; i < 8; i++)
        close(fds[i]);
    uint64_t start = os_now_ns();
    CHECK(get_status("POST", "/completion", NULL) == 200);
    while (!idle() && os_now_ns() - start < UINT64_C(20000000000))
        rest_us(10000);
    CHECK(idle());
    stand_in_close(server);
}

/* With one slot and one place in the queue, some of many requests are refused with status 503. */
static void test_queue(void)
{
    static const char *const bodies[] = {
        "{\"prompt\":[5],\"n_predict\":255,\"ignore_eos\":true}",
        "{\"input_ids\":[6],\"sampling_params\":{\"max_new_tokens\":255,\"ignore_eos\":true}}"
    };
    const struct stand_in_options o = { .threads = 1, .slots = 1, .queue = 1 };
    struct http_client_reply *r;
    int fds[40];
    size_t fine = 0, full = 0;
    serve(o);
    for (size_t i = 0; i < 40; i++) {
        fds[i] = http_client_open(stand_in_port(server));
        http_client_put(fds[i], "POST", i % 2 ? "/generate" : "/completion", NULL, bodies[i % 2],
                        strlen(bodies[i % 2]));
    }
    for (size_t i = 0; i < 40; i++) {
        r = http_client_read(fds[i], 60000);
        CHECK(r->whole && (r->status == 200 || r->status == 503));
        CHECK(r->status == 200 || strstr(r->body, "all places are taken"));
        CHECK(r->status == 200 ||
              strstr(r->body, i % 2 ? "\"type\":\"503\"" : "unavailable_error"));
        *(r->status == 200 ? &fine : &full) += 1;
        close(fds[i]);
    }
    CHECK(fine >= 2 && full >= 1);
    stand_in_close(server);
}

static _Atomic int finished, refused, cut;
static char streamed; /* the argument of a thread whose request is one */

/* Thread function: send one request and count how it ended. */
static void *stream(void *arg)
{
    struct http_client_reply r;
    int fd = http_client_open(stand_in_port(server));
    const char *body = arg ? forever : "{\"prompt\":[5],\"n_predict\":3}";
    http_client_put(fd, "POST", "/completion", NULL, body, strlen(body));
    http_client_get(fd, &r, 30000);
    if (r.whole && r.status == 200)
        finished++;
    else if (r.whole && r.status == 503)
        refused++;
    else if (r.status == 0 || (r.status == 200 && arg))
        cut++;
    else
        fprintf(stderr, "%d %s\n", r.status, r.body);
    http_client_free(&r);
    close(fd);
    return NULL;
}

/* All requests are in progress, held back by the network; closing lets them finish within 2 s. */
static void test_close(void)
{
    const struct stand_in_options o = { .threads = 2, .net.latency_ms = 5000, .slots = 8 };
    pthread_t threads[CLIENTS];
    finished = refused = cut = 0;
    serve(o);
    for (int i = 0; i < CLIENTS; i++)
        CHECK(pthread_create(&threads[i], NULL, stream, i % 2 ? &streamed : NULL) == 0);
    rest_us(300000);
    uint64_t start = os_now_ns();
    stand_in_close(server);
    double took = (double)(os_now_ns() - start) / 1e9;
    for (int i = 0; i < CLIENTS; i++)
        pthread_join(threads[i], NULL);
    CHECK(finished + refused + cut == CLIENTS && took < 4);
    CHECK(finished >= CLIENTS / 2);
}

int main(void)
{
    model = tiny_make();
    test_gzip();
    test_sites();
    test_copy();
    test_gone();
    test_queue();
    test_close();
    bool tls = certificate_make();
    if (tls)
        test_tls();
    if (tls)
        return 0;
    puts("SKIP: TLS: no openssl command to make a certificate with");
    return 77;
}
