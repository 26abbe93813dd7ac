/* Tests the request as it is on the wire, connections that are kept, what the server is taken for,
 * a forked child, and speed. t_net_matrix.c has replies that are wrong. */
#include <sys/wait.h>

#include "net/cloud_internal.h"
#include "tests/support/port.h"
#include "tests/support/rude.h"

#define KEY "sk-test-0123456789"
#define GOOD_BODY \
    "{\"choices\":[{\"index\":0,\"text\":\"x\",\"finish_reason\":\"length\",\"token_ids\":[42]}]}"
#define OK_JSON   "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
#define UNTIL_END OK_JSON "Connection: close\r\n\r\n"
#define STATUS(s) \
    "HTTP/1.1 " s "\r\nContent-Length: 50\r\n\r\n{\"error\":{\"message\":\"reason " KEY " \"}}"

static const char good[] = OK_JSON "Content-Length: 78\r\n\r\n" GOOD_BODY;
static const uint32_t prompt[] = { 7, 8, 9 };
static struct rude *server;

static struct cloud *client(void)
{
    return port_open(rude_url(server), (struct cloud_options){ .key = KEY });
}

/* The message is one line that contains `says` and not the key. */
static void check_line(const char *name, const struct err *err, const char *says)
{
    CHECK_MSG(*err->msg && strstr(err->msg, says) && !strstr(err->msg, KEY), "%s: \"%s\"", name,
              err->msg);
    for (const unsigned char *c = (const unsigned char *)err->msg; *c; c++)
        CHECK(*c >= 0x20 && *c != 0x7f);
}

/* The client still answers the next call. */
static void works(struct cloud *c)
{
    struct err err = { "" };
    uint32_t id = 0;
    rude_play(server, RUDE_KEEP, good);
    CHECK_MSG(port_next(c, prompt, 3, &id, &err) == OK && id == 42, "%s", err.msg);
}

/* A connection closed between two calls is replaced by a new one. */
static void test_kept_alive(void)
{
    struct cloud *c = client();
    unsigned before = rude_connections(server);
    for (int i = 0; i < 10; i++)
        works(c);
    CHECK(rude_connections(server) == before + 1);
    rude_play(server, RUDE_CLOSE, good);
    for (int i = 0; i < 3; i++) {
        uint32_t id = 0;
        CHECK(port_next(c, prompt, 3, &id, NULL) == OK && id == 42);
    }
    CHECK(rude_connections(server) >= before + 3);
    cloud_close(c);
}

/* The wire carries one POST without Expect or Accept-Encoding, and the key in one place. */
static void test_request(void)
{
    static char text[1 << 16];
    struct cloud *c = client();
    works(c);
    rude_latest(server, text, sizeof(text));
    CHECK(strncmp(text, "POST /v1/completions HTTP/1.1\r\n", 31) == 0);
    CHECK(strstr(text, "Authorization: Bearer " KEY "\r\n"));
    CHECK(strstr(text, "Content-Type: application/json\r\n"));
    CHECK(!strstr(text, "Expect") && !strstr(text, "Accept-Encoding") && !strstr(text, "Cookie"));
    CHECK(strstr(text, "\"prompt\":[7,8,9]"));
    size_t up = cloud_ledger(c)->traffic.bytes_up, down = cloud_ledger(c)->traffic.bytes_down;
    CHECK(up == strlen(text) && down == sizeof(good) - 1);
    cloud_close(c);
}

/* Without a key, the message for 401 says where to give one, behind any words of the server. */
static void test_no_key(void)
{
    static char replies[2][1200]; /* the server's thread reads them */
    char words[900];
    struct err err = { "" };
    uint32_t id;
    memset(words, 'w', sizeof(words) - 1);
    words[sizeof(words) - 1] = 0;
    for (int i = 0; i < 2; i++) {
        char *reply = replies[i];
        snprintf(reply, sizeof(replies[i]),
                 "HTTP/1.1 401 Unauthorized\r\nContent-Length: %zu\r\n\r\n{\"error\":\"%s\"}",
                 (i ? strlen(words) : 2) + 12, i ? words : "no");
        rude_play(server, RUDE_KEEP, reply);
        struct cloud *c =
            port_open(rude_url(server), (struct cloud_options){ .api = CLOUD_LLAMACPP });
        CHECK(port_next(c, prompt, 3, &id, &err) == ERR_REMOTE);
        CHECK_MSG(strstr(err.msg, i ? "401: www" : "401: no (no API key was sent") &&
                      strstr(err.msg, "--cloud-key-file or in MIZZLE_API_KEY)"),
                  "%s", err.msg);
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
        { STATUS("404 Not Found"), OK, CLOUD_OPENAI, NULL },
        { MODELS("sglang"), OK, CLOUD_SGLANG, "m1" },
        { STATUS("401 Unauthorized"), ERR_REMOTE, CLOUD_AUTO, NULL },
        { STATUS("503 Unavailable"), ERR_NET, CLOUD_AUTO, NULL },
        { UNTIL_END "<html>", ERR_NET, CLOUD_AUTO, NULL },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct cloud_options o = { .url = rude_url(server), .key = KEY, .vocab = 1000 };
        struct err err = { "" };
        struct cloud *c;
        rude_play(server, RUDE_CLOSE, cases[i].bytes);
        int rc = cloud_open(&c, &o, &err);
        CHECK_MSG(rc == cases[i].code && (rc == OK) == (c != NULL), "probe %zu: %d %s", i, rc,
                  err.msg);
        if (rc) {
            check_line("probe", &err, "cloud http://127.0.0.1:");
            continue;
        }
        const char *model = cloud_known_info(c).model;
        CHECK(cloud_known_info(c).api == cases[i].api && !model == !cases[i].model);
        CHECK(!model || strcmp(model, cases[i].model) == 0);
        cloud_close(c);
    }
#undef MODELS
}

/* A forked child cannot use the client, and leaves the parent's connection alone. It can end what
 * the parent has begun, even if another thread held the lock. */
static void test_fork(void)
{
    struct cloud *c = client();
    struct cloud_tally tally = { .limit = 0 };
    uint32_t id = 0;
    int status = 1;
    works(c);
    wire_lock(c->wire);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        alarm(10);
        bool fine = cloud_traffic(c, &tally, false).retries == 0 &&
                    port_next(c, prompt, 3, &id, NULL) == ERR_ARG;
        cloud_traffic(c, &tally, true);
        cloud_close(c);
        _exit(fine ? 0 : 1);
    }
    wire_unlock(c->wire);
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    unsigned before = rude_connections(server);
    works(c);
    CHECK(rude_connections(server) == before);
    cloud_close(c);
}

/* The server answers at once, so the client does, too; half of the calls may be unlucky. */
static void test_speed(void)
{
    enum { N = 1000, ROUNDS = 101 };
    static uint32_t ids[N + ROUNDS];
    size_t slow = 0;
    struct cloud *c = client();
    works(c);
    for (size_t i = 0; i < ROUNDS; i++) {
        uint32_t id;
        uint64_t start = os_now_ns();
        CHECK(port_next(c, ids, N + i, &id, NULL) == OK);
        slow += os_now_ns() - start > 20000000;
    }
    CHECK(slow <= ROUNDS / 2);
    cloud_close(c);
}

int main(void)
{
    server = rude_open(NULL);
    test_kept_alive();
    test_request();
    test_no_key();
    test_probe();
    test_fork();
    test_speed();
    rude_close(server);
    return 0;
}
