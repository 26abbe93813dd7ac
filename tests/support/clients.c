#include "tests/support/clients.h"

#include <poll.h>
#include <sys/socket.h>

#include "tests/support/http_client.h"
#include "tests/support/serving.h"
#include "tests/support/test.h"
#include "tools/cli/progress.h"

enum {
    BODY = 1024,
    TURNS = 50, /* requests of a connection */
    ANSWER_MS = 120000,
    WORKERS = 256
};

#define LONG                                                                                \
    "Question: Where could you notice the hirukudi %u? Let us chat.\\nChoices:\\nA. garden" \
    "\\nB. hospital\\nC. cellar\\nD. meadow\\nE. station\\nAnswer:"

/* %u is the variant. */
static const struct {
    const char *path, *body;
} kinds[] = {
    { RAW, "{\"prompt\":\"Once upon %u\",\"max_tokens\":24}" },
    { RAW, "{\"prompt\":\"" LONG "\",\"max_tokens\":40,\"stream\":true}" },
    { CHAT, "{\"messages\":[{\"role\":\"user\",\"content\":\"hi %u\"}],\"max_tokens\":16,"
            "\"logprobs\":true,\"top_logprobs\":3}" },
    { CHAT, "{\"messages\":[{\"role\":\"user\",\"content\":\"" LONG "\"}],\"max_tokens\":30,"
            "\"stream\":true,\"return_token_ids\":true,\"stream_options\":{\"include_usage\":"
            "true}}" },
    { RAW, "{\"prompt\":[[1,2,3,4,5,6,%u],[9,8,7,6]],\"max_tokens\":1,\"echo\":true,"
           "\"logprobs\":2}" },
    { RAW, "{\"prompt\":[5,6,7,8],\"max_tokens\":20,\"temperature\":1,\"seed\":%u,\"n\":2}" },
    { RAW, "{\"prompt\":\"" LONG "\",\"max_tokens\":40,\"stop\":[\"(\",\"is\"]}" },
    { RAW, "{\"prompt\":\"The \xc3\xa9 %u\",\"max_tokens\":30,\"model\":\"edge-0.5:edge\","
           "\"logprobs\":1,\"stream\":true}" },
    { RAW, "{\"prompt\":\"" LONG "\",\"max_tokens\":12,\"model\":\"edge-0.5:cloud\"}" },
    { RAW, "{\"prompt\":\"" LONG "\",\"max_tokens\":0,\"echo\":true,\"logprobs\":1}" },
    { RAW, "{\"prompt\":\"Once %u\",\"max_tokens\":24,\"mizzle\":{\"policy\":\"max-prob\","
           "\"threshold\":0.9,\"ahead\":0,\"trace\":{\"top\":3}}}" },
    { CHAT, "{\"messages\":[{\"role\":\"system\",\"content\":\"Be brief.\"},{\"role\":\"user\","
            "\"content\":\"hi\"}],\"max_tokens\":16,\"temperature\":0.7,\"seed\":%u,"
            "\"top_p\":0.9}" },
    { RAW, "{\"prompt\":[\"Once upon\",[7,%u]],\"max_tokens\":24,\"n\":2,\"temperature\":1.5,"
           "\"seed\":1,\"stream\":true,\"logprobs\":0,\"return_token_ids\":true}" },
    { CHAT, "{\"messages\":[{\"role\":\"user\",\"content\":\"hi %u\"}],\"max_tokens\":16,"
            "\"logprobs\":true,\"top_logprobs\":3,\"stream\":true,\"mizzle\":{\"trace\":{}}}" },
};
enum { KINDS = sizeof(kinds) / sizeof(kinds[0]) };

static struct {
    char **answers; /* [variants][KINDS] */
    size_t variants;
    unsigned port;
    size_t requests;
    _Atomic size_t taken, done, rude;
} all;

/* Write the body of a request; return its path. */
static const char *clients_body(char body[BODY], size_t request)
{
    size_t kind = request % KINDS;
    snprintf(body, BODY, kinds[kind].body, (unsigned)(request / KINDS));
    return kinds[kind].path;
}

/* Add what an event says to what is known: texts are joined, lists are prolonged. */
static void clients_merge(json_t *to, json_t *from)
{
    const char *key;
    json_t *v;
    json_object_foreach(from, key, v)
    {
        json_t *old = json_object_get(to, key);
        if (!old || json_is_null(old)) {
            json_object_set_new(to, key, json_deep_copy(v));
        } else if (json_is_array(v)) {
            json_array_extend(old, v);
        } else if (json_is_object(v)) {
            clients_merge(old, v);
        } else if (json_is_string(v)) {
            json_object_set_new(to, key,
                                json_sprintf("%s%s", json_string_value(old), json_string_value(v)));
        }
    }
}

/* Add what must always be the same of a reply or an event: choices, usage, and who wrote which
 * token. Not so ids, dates, times and the ledger. */
static void clients_keep(json_t *known, const json_t *in)
{
    json_t *choice, *token, *choices = json_object_get(known, "choices");
    json_t *usage = json_object_get(in, "usage");
    size_t i;
    json_array_foreach(json_object_get(in, "choices"), i, choice)
    {
        size_t n = (size_t)json_integer_value(json_object_get(choice, "index"));
        while (json_array_size(choices) <= n)
            json_array_append_new(choices, json_object());
        json_object_del(choice, "mizzle");
        clients_merge(json_array_get(choices, n), choice);
    }
    if (json_is_object(usage)) {
        json_object_del(usage, "prompt_tokens_details");
        json_object_set(known, "usage", usage);
    }
    json_array_foreach(serving_at(in, "mizzle.tokens"), i, token)
    {
        json_object_del(token, "ms");
        json_object_del(token, "call");
        json_array_append(json_object_get(known, "tokens"), token);
    }
}

/* Return what clients_keep keeps of a reply, as text. */
static char *clients_digest(const struct http_client_reply *r)
{
    json_t *known = json_pack("{s:[],s:[]}", "choices", "tokens"), *event;
    bool done, stream = strstr(r->head, "event-stream") != NULL;
    json_t *events = stream ? serving_stream(r->body, &done)
                            : json_pack("[o]", json_loadb(r->body, r->n, 0, NULL));
    size_t i;
    json_array_foreach(events, i, event)
    {
        CHECK_MSG(!json_object_get(event, "error"), "%s", r->body);
        clients_keep(known, event);
    }
    json_decref(events);
    char *text = json_dumps(known, JSON_COMPACT | JSON_SORT_KEYS);
    CHECK(text);
    json_decref(known);
    return text;
}

/* Ask over a connection that stays, and return the digest. */
static char *clients_ask(int fd, size_t request)
{
    struct http_client_reply r;
    char body[BODY];
    const char *path = clients_body(body, request);
    http_client_put(fd, "POST", path, NULL, body, strlen(body));
    http_client_get(fd, &r, ANSWER_MS);
    CHECK_MSG(r.status == 200 && r.whole, "%s: %d %s", body, r.status, r.body);
    char *text = clients_digest(&r);
    http_client_free(&r);
    return text;
}

/* Read until the server has closed the connection, which must not answer with status 200. */
static void clients_refused(int fd)
{
    char bytes[4096], first[13] = "";
    size_t n = 0;
    for (ssize_t got; (got = recv(fd, bytes, sizeof(bytes), 0)) > 0; n += (size_t)got)
        if (n < 12)
            memcpy(first + n, bytes, (size_t)got < 12 - n ? (size_t)got : 12 - n);
    CHECK_MSG(!n || strcmp(first, "HTTP/1.1 400") == 0, "%s, and %zu bytes in all", first, n);
}

/* Send random bytes, some of them the end of a line. */
static void clients_garbage(int fd, size_t number)
{
    char bytes[400];
    for (size_t i = 0; i < sizeof(bytes); i++) {
        bytes[i] = (char)rand_u64(number, i);
        if (i % 40 == 38)
            memcpy(&bytes[i++], "\r\n", 2);
    }
    memcpy(bytes + sizeof(bytes) - 4, "\r\n\r\n", 4);
    http_client_send(fd, bytes, sizeof(bytes));
    shutdown(fd, SHUT_WR);
    clients_refused(fd);
}

/* Announce more bytes than there are, or fewer. */
static void clients_wrong_length(int fd, const char *path, const char *body, bool more)
{
    char bytes[2 * BODY];
    size_t n = strlen(body);
    int size = snprintf(bytes, sizeof(bytes),
                        "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                        "Content-Length: %zu\r\n\r\n%s",
                        path, more ? n + 9 : n - 9, body);
    http_client_send(fd, bytes, (size_t)size);
    shutdown(fd, SHUT_WR);
    clients_refused(fd);
}

/* Read some bytes, one at a time if slow. */
static void clients_sip(int fd, size_t n, bool slow)
{
    char bytes[64];
    while (n && recv(fd, bytes, slow || n < sizeof(bytes) ? 1 : sizeof(bytes), 0) > 0) {
        n--;
        if (slow)
            rest_us(300);
    }
}

/* Do something rude; *held is a connection with half a head, which stays open until the next
 * one. */
static void clients_be_rude(size_t number, size_t request, int *held)
{
    const struct linger now = { .l_onoff = 1, .l_linger = 0 };
    char body[BODY];
    const char *path = clients_body(body, request);
    int fd = http_client_open(all.port);
    size_t way = number / 10 % 7;
    if (way == 0) {
        char head[100];
        int n = snprintf(head, sizeof(head), "POST %s HTTP/1.1\r\nHost: loc", path);
        http_client_send(fd, head, (size_t)n - number % 20);
        close(*held);
        *held = fd;
        return;
    }
    if (way == 1)
        clients_garbage(fd, number);
    if (way == 2)
        clients_wrong_length(fd, path, body, number & 1);
    if (way > 2)
        http_client_put(fd, "POST", path, NULL, body, strlen(body));
    if (way == 3)
        rest_us(number % 8000);
    if (way == 4)
        clients_sip(fd, number % 100, true);
    if (way > 4)
        clients_sip(fd, number % 10, false);
    if (way == 5)
        setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
    close(fd);
}

/* Thread: make requests while there are some. */
static void *clients_work(void *arg)
{
    size_t number, count = all.variants * KINDS, turns = 0;
    int fd = -1, held = http_client_open(all.port);
    (void)arg;
    while ((number = atomic_fetch_add(&all.taken, 1)) < all.requests) {
        size_t request = (size_t)rand_below(1, number, count);
        if (number % 10 == 0) {
            clients_be_rude(number, request, &held);
            atomic_fetch_add(&all.rude, 1);
        } else {
            if (turns++ % TURNS == 0) {
                close(fd);
                fd = http_client_open(all.port);
            }
            char *got = clients_ask(fd, request);
            CHECK_MSG(strcmp(got, all.answers[request]) == 0,
                      "request %zu: %s\nalone: %s\namong others: %s", request,
                      kinds[request % KINDS].body, all.answers[request], got);
            free(got);
        }
        atomic_fetch_add(&all.done, 1);
    }
    close(fd);
    close(held);
    return NULL;
}

size_t clients_learn(unsigned port, size_t variants)
{
    size_t n = variants * KINDS;
    int fd = http_client_open(port);
    all.port = port;
    all.variants = variants;
    all.answers = calloc(n, sizeof(*all.answers));
    CHECK(all.answers);
    for (size_t i = 0; i < n; i++)
        all.answers[i] = clients_ask(fd, i);
    close(fd);
    clients_settle(port);
    return n;
}

size_t clients_run(unsigned port, size_t clients, size_t requests)
{
    pthread_t threads[WORKERS];
    struct progress_count progress = { .what = "requests", .since = os_now_ns() };
    CHECK(clients <= WORKERS && port == all.port);
    all.requests = requests;
    all.taken = all.done = all.rude = 0;
    for (size_t i = 0; i < clients; i++)
        CHECK(pthread_create(&threads[i], NULL, clients_work, NULL) == 0);
    for (size_t done; (done = all.done) < requests; rest_us(20000))
        progress_counted(&progress, done, requests);
    progress_wipe(&progress);
    for (size_t i = 0; i < clients; i++)
        pthread_join(threads[i], NULL);
    clients_settle(port);
    return all.rude;
}

void clients_forget(void)
{
    for (size_t i = 0; i < all.variants * KINDS; i++)
        free(all.answers[i]);
    free(all.answers);
}

long clients_metric(unsigned port, const char *name)
{
    struct http_client_reply r;
    http_client_ask(port, &r, "GET", "/metrics", NULL, NULL);
    char line[100];
    size_t n = (size_t)snprintf(line, sizeof(line), "mizzle_%s ", name);
    const char *at = r.body;
    while (at && strncmp(at, line, n) != 0) {
        at = strchr(at, '\n');
        at = at ? at + 1 : NULL;
    }
    CHECK(at);
    long value = strtol(at + n, NULL, 10);
    http_client_free(&r);
    return value;
}

void clients_settle(unsigned port)
{
    for (int i = 0; i < 2000; i++) {
        if (clients_metric(port, "slots_busy") == 0 && clients_metric(port, "queue") == 0 &&
            clients_metric(port, "connections") <= 1)
            return;
        rest_us(10000);
    }
    fprintf(stderr, "texts do not end when their clients leave\n");
    exit(1);
}

void clients_await(int fd, const char *words)
{
    static char seen[1 << 16];
    ssize_t n;
    do {
        CHECK(poll(&(struct pollfd){ .fd = fd, .events = POLLIN }, 1, 60000) == 1);
        n = recv(fd, seen, sizeof(seen) - 1, MSG_PEEK);
        CHECK(n > 0 && n < (ssize_t)sizeof(seen) - 1);
        seen[n] = '\0';
    } while (!strstr(seen, words));
}
