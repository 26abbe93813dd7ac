/* Many clients at once: 64 growing texts get the answers they would get alone; a long answer and
 * clients that leave block no others; a full queue is reported; closing under load ends every
 * request properly. */
#include <jansson.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "kernels/sys/base.h"
#include "kernels/sys/os.h"
#include "tests/support/http_client.h"
#include "tests/support/test.h"
#include "tests/support/tiny.h"
#include "tools/stand_in/stand_in.h"

enum { CLIENTS = 64, STEPS = 10, PROMPT = 40 };

static const char *model;
static struct stand_in *server;

/* One growing text. */
struct client {
    pthread_t thread;
    int number;
    int ids[PROMPT + STEPS];
    size_t n;
};

/* Start a text; four clients each share the first half of their prompts. */
static void begin(struct client *c, int number)
{
    *c = (struct client){ .number = number, .n = PROMPT };
    for (int i = 0; i < PROMPT; i++)
        c->ids[i] = (i < PROMPT / 2 ? number / 4 : number) * 7 % 200 + i;
}

static size_t write_ids(char *out, size_t room, const struct client *c)
{
    size_t at = 0;
    for (size_t i = 0; i < c->n; i++)
        at += (size_t)snprintf(out + at, room - at, "%s%d", i ? "," : "", c->ids[i]);
    return at;
}

/* Return the number after `key` in the body. */
static int last_id(const char *body, const char *key)
{
    const char *p = strstr(body, key);
    CHECK(p);
    return (int)strtol(p + strlen(key), NULL, 10);
}

/* Request the next token over a kept connection; the client's number chooses the dialect. */
static void grow(struct client *c, int fd)
{
    static const char *const paths[] = { "/v1/completions", "/generate", "/completion" };
    static const char *const heads[] = {
        "{\"max_tokens\":1,\"return_token_ids\":true,\"prompt\":[",
        "{\"sampling_params\":{\"max_new_tokens\":1},\"input_ids\":[",
        "{\"n_predict\":1,\"return_tokens\":true,\"prompt\":[",
    };
    static const char *const keys[] = { "\"token_ids\":[", "\"output_ids\":[", "\"tokens\":[" };
    struct http_client_reply *r = malloc(sizeof(*r));
    char body[2048];
    size_t kind = (size_t)c->number % 3;
    size_t at = (size_t)snprintf(body, sizeof(body), "%s", heads[kind]);
    at += write_ids(body + at, sizeof(body) - at, c);
    at += (size_t)snprintf(body + at, sizeof(body) - at, "]}");
    CHECK(r);
    http_client_put(fd, "POST", paths[kind], NULL, body, at);
    http_client_get(fd, r, 60000);
    CHECK(r->whole && r->status == 200);
    c->ids[c->n++] = last_id(r->body, keys[kind]);
    http_client_free(r);
    free(r);
}

static void *work(void *arg)
{
    struct client *c = arg;
    int fd = http_client_open(stand_in_port(server));
    for (int i = 0; i < STEPS; i++)
        grow(c, fd);
    close(fd);
    return NULL;
}

static void open_server(const struct stand_in_options *more)
{
    struct stand_in_options o = *more;
    struct err err = { "" };
    o.model = model;
    CHECK(stand_in_open(&server, &o, &err) == OK);
}

/* Return tokens per second of all clients since start. */
static double rate(uint64_t start)
{
    return CLIENTS * STEPS / ((double)(os_now_ns() - start) / 1e9);
}

/* With fewer slots than clients, so that clients take slots from each other, every text is what it
 * is alone. */
static void test_many(size_t slots, size_t threads)
{
    static struct client alone[CLIENTS], all[CLIENTS];
    const struct stand_in_options single = { .threads = 1, .slots = 1 };
    open_server(&single);
    uint64_t start = os_now_ns();
    for (int i = 0; i < CLIENTS; i++) {
        begin(&alone[i], i);
        work(&alone[i]);
    }
    double before = rate(start);
    stand_in_close(server);
    const struct stand_in_options o = { .threads = threads, .slots = slots };
    open_server(&o);
    start = os_now_ns();
    for (int i = 0; i < CLIENTS; i++) {
        begin(&all[i], i);
        CHECK(pthread_create(&all[i].thread, NULL, work, &all[i]) == 0);
    }
    for (int i = 0; i < CLIENTS; i++)
        pthread_join(all[i].thread, NULL);
    printf("64 clients, %zu slots, %zu threads: %.0f tokens/s; one after the other: %.0f\n", slots,
           threads, rate(start), before);
    for (int i = 0; i < CLIENTS; i++)
        CHECK(memcmp(all[i].ids, alone[i].ids, sizeof(alone[i].ids)) == 0);
    stand_in_close(server);
}

static const char forever[] =
    "{\"prompt\":[5],\"n_predict\":255,\"ignore_eos\":true,\"stream\":true}";

/* True if no slot is busy and no question waits. */
static bool idle(void)
{
    struct http_client_reply *r = malloc(sizeof(*r));
    CHECK(r);
    http_client_ask(stand_in_port(server), r, "GET", "/slots", NULL, NULL);
    bool free_all = strstr(r->body, "\"is_processing\":true") == NULL;
    http_client_free(r);
    http_client_ask(stand_in_port(server), r, "GET", "/server_info", NULL, NULL);
    CHECK(strstr(r->body, "\"waiting_requests\":"));
    free_all = free_all && strstr(r->body, "\"waiting_requests\":0");
    http_client_free(r);
    free(r);
    return free_all;
}

static void pause_ms(long ms)
{
    const struct timespec t = { .tv_nsec = ms * 1000000 };
    nanosleep(&t, NULL);
}

/* Ask for one token after ids 1 to same, then one id often enough to make n of them, in the slot,
 * or in any with -1. Return how many ids the server knew. */
static int cached(int same, int id, int n, int slot)
{
    struct http_client_reply *r = malloc(sizeof(*r));
    char body[2048];
    size_t at =
        (size_t)snprintf(body, sizeof(body), "{\"n_predict\":1,\"id_slot\":%d,\"prompt\":[", slot);
    for (int i = 0; i < n; i++)
        at +=
            (size_t)snprintf(body + at, sizeof(body) - at, i ? ",%d" : "%d", i < same ? i + 1 : id);
    snprintf(body + at, sizeof(body) - at, "]}");
    CHECK(r);
    http_client_ask(stand_in_port(server), r, "POST", "/completion", NULL, body);
    CHECK(r->status == 200);
    int known = last_id(r->body, "\"cache_n\":");
    http_client_free(r);
    free(r);
    return known;
}

/* A prompt that begins like a text in another slot gets a copy of that part; the other text stays.
 */
static void test_copy(void)
{
    const struct stand_in_options o = { .threads = 1, .slots = 2 };
    open_server(&o);
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
    struct client c;
    int fds[8];
    open_server(&o);
    for (size_t i = 0; i < 8; i++) {
        fds[i] = http_client_open(stand_in_port(server));
        http_client_put(fds[i], "POST", "/completion", NULL, forever, sizeof(forever) - 1);
    }
    pause_ms(100);
    for (size_t i = 0; i < 8; i++)
        close(fds[i]);
    uint64_t start = os_now_ns();
    begin(&c, 3);
    int fd = http_client_open(stand_in_port(server));
    grow(&c, fd);
    close(fd);
    while (!idle() && os_now_ns() - start < UINT64_C(20000000000))
        pause_ms(10);
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
    struct http_client_reply *r = malloc(sizeof(*r));
    int fds[40];
    size_t fine = 0, full = 0;
    CHECK(r);
    open_server(&o);
    for (size_t i = 0; i < 40; i++) {
        fds[i] = http_client_open(stand_in_port(server));
        http_client_put(fds[i], "POST", i % 2 ? "/generate" : "/completion", NULL, bodies[i % 2],
                        strlen(bodies[i % 2]));
    }
    for (size_t i = 0; i < 40; i++) {
        http_client_get(fds[i], r, 60000);
        CHECK(r->whole && (r->status == 200 || r->status == 503));
        CHECK(r->status == 200 || strstr(r->body, "The request queue is full."));
        CHECK(r->status == 200 ||
              strstr(r->body, i % 2 ? "\"type\":\"503\"" : "unavailable_error"));
        *(r->status == 200 ? &fine : &full) += 1;
        http_client_free(r);
        close(fds[i]);
    }
    CHECK(fine >= 2 && full >= 1);
    free(r);
    stand_in_close(server);
}

static _Atomic int finished, refused, cut;

/* Thread function: send one request and count how it ended. */
static void *stream(void *arg)
{
    struct http_client_reply *r = malloc(sizeof(*r));
    int fd = http_client_open(stand_in_port(server));
    CHECK(r);
    bool streamed = *(int *)arg % 2;
    const char *body = streamed ? forever : "{\"prompt\":[5],\"n_predict\":3}";
    http_client_put(fd, "POST", "/completion", NULL, body, strlen(body));
    http_client_get(fd, r, 30000);
    if (r->whole && r->status == 200)
        finished++;
    else if (r->whole && r->status == 503)
        refused++;
    else if (r->status == 0 || (r->status == 200 && streamed))
        cut++;
    else
        fprintf(stderr, "%d %s\n", r->status, r->body);
    http_client_free(r);
    free(r);
    close(fd);
    return NULL;
}

/* All requests are in progress, held back by the network; closing lets them finish within 2 s. */
static void test_close(unsigned latency)
{
    const struct stand_in_options o = { .threads = 2, .net.latency_ms = latency, .slots = 8 };
    static struct client clients[CLIENTS];
    finished = refused = cut = 0;
    open_server(&o);
    for (int i = 0; i < CLIENTS; i++) {
        clients[i].number = i;
        CHECK(pthread_create(&clients[i].thread, NULL, stream, &clients[i].number) == 0);
    }
    pause_ms(300);
    uint64_t start = os_now_ns();
    stand_in_close(server);
    double took = (double)(os_now_ns() - start) / 1e9;
    for (int i = 0; i < CLIENTS; i++)
        pthread_join(clients[i].thread, NULL);
    CHECK(finished + refused + cut == CLIENTS && took < 4);
    CHECK(finished >= CLIENTS / 2);
}

int main(void)
{
    model = tiny_make();
    test_many(64, 2);
    test_many(6, 1);
    test_copy();
    test_gone();
    test_queue();
    test_close(5000);
    tiny_remove();
    return 0;
}
