/* Tests which proxy a request goes through, and that a tunnel is asked for without the key. Then
 * HTTP/2 over TLS against node's server: many calls share one connection, made before the first of
 * them; dropped calls close only their stream. HTTP/1.1 has as many connections as needed. */
#include "kernels/sys/wipe.h"
#include "tests/support/certificate.h"
#include "tests/support/port.h"
#include "tests/support/process.h"
#include "tests/support/rude.h"
#include "tools/lab/stand_in/stand_in.h"

#define KEY "sk-through-a-tunnel"

static struct rude *proxy, *server;
static char *variables[] = { "http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "no_proxy" };
enum { HTTP, HTTPS, ALL, UPPER, NO, VARIABLES };

static bool serve(const struct rude_request *r)
{
    bool through = r->server == proxy;
    if (strncmp(r->text, "CONNECT ", 8) == 0) {
        CHECK(through && !strstr(r->text, KEY) && !strstr(r->text, "uthorization"));
        CHECK(rude_text(r, "HTTP/1.1 200 OK\r\n\r\n"));
        return rude_carry(r, (unsigned)strtoul(strchr(r->path, ':') + 1, NULL, 10), false, NULL);
    }
    CHECK(through == !strncmp(r->path, "http://127.0.0.1:", 17) && strstr(r->text, KEY));
    return rude_json(r, "200 OK", "{\"choices\":[{\"token_ids\":[42]}]}");
}

static void call(const char *const *values, const char *option, const char *url, const char *ca,
                 int code)
{
    const struct cloud_options o = { .key = KEY, .ca = ca, .proxy = option, .vocab = 2000 };
    struct err err = { "" };
    uint32_t id;
    for (size_t i = 0; i < VARIABLES; i++)
        CHECK(values[i] ? !setenv(variables[i], values[i], 1) : !unsetenv(variables[i]));
    rude_forget(proxy);
    rude_forget(server);
    struct cloud *c = port_open(url, o);
    int rc = port_next(c, (const uint32_t[]){ 5 }, 1, &id, &err);
    CHECK_MSG(rc == code && !strstr(err.msg, "pw"), "%d: %s", rc, err.msg);
    cloud_close(c);
}

static void test_plain(void)
{
    const char *p = rude_url(proxy), *dead = "http://127.0.0.1:1";
    const struct {
        const char *values[VARIABLES], *option;
        bool through;
    } rows[] = {
        { { NULL }, NULL, false },
        { { [HTTP] = p }, NULL, true },
        { { [HTTP] = p, [NO] = "127.0.0.1,x" }, NULL, false },
        { { [HTTP] = p, [NO] = "*" }, NULL, false },
        { { [HTTP] = p, [NO] = "localhost" }, NULL, true }, /* another name of this machine */
        { { [ALL] = p }, NULL, true },
        { { [HTTPS] = dead, [UPPER] = dead }, NULL, false },   /* libcurl reads no HTTP_PROXY */
        { { [HTTP] = "", [ALL] = p }, NULL, true },            /* says nothing */
        { { [HTTP] = p, [NO] = "127.0.0.11 x" }, NULL, true }, /* a part of another host */
        { { [HTTP] = p, [NO] = "x, 127.0.0.1" }, NULL, false },
        { { [HTTP] = dead }, "", false },
        { { [HTTP] = dead }, p, true },
        { { [NO] = "127.0.0.1" }, p, false },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct err note;
        char *secret;
        call(rows[i].values, rows[i].option, rude_url(server), NULL, OK);
        CHECK_MSG(rude_requests(proxy) == rows[i].through &&
                      rude_requests(server) == !rows[i].through,
                  "row %zu: %u through the proxy", i, rude_requests(proxy));
        /* The key for another server goes nowhere; a person is told what a proxy can read. */
        const char *url = rude_url(server), *option = rows[i].option;
        CHECK(!unsetenv("MIZZLE_API_KEY") && !setenv("OPENAI_API_KEY", KEY, 1));
        CHECK(api_key_read(&secret, NULL, NULL, url, option, &note, NULL) == OK);
        CHECK(!secret && !*note.msg == !rows[i].through);
        CHECK(api_key_read(&secret, KEY, NULL, url, option, &note, NULL) == OK);
        CHECK(secret && !strstr(note.msg, "goes over plain http") == !rows[i].through);
        wipe_text(secret);
    }
}

/* A URL that is none stays out of the message, as a password may be in it. */
static void test_wrong(void)
{
    static const char *const none[VARIABLES] = { NULL };
    call(none, "ftp://u:pw@h", rude_url(server), NULL, ERR_NET);
    call(none, "http://u:pw@h x", rude_url(server), NULL, ERR_NET);
}

static void test_tunnel(void)
{
    const char *const through[VARIABLES] = { [HTTPS] = rude_url(proxy) };
    struct stand_in_options o = { .threads = 1 };
    struct stand_in *cloud;
    o.listen.tls = cert;
    CHECK(stand_in_open(&cloud, &o, NULL) == OK);
    call(through, NULL, stand_in_url(cloud), cert, OK);
    CHECK(rude_requests(proxy) == 1);
    stand_in_close(cloud);
}

static unsigned h2_port;
static struct child h2_server;

/* Kill the server; also when a CHECK ends the program. */
static void stop(void)
{
    child_end(&h2_server, SIGKILL);
}

static void run(const void *mode)
{
    execlp("node", "node", "tests/support/h2_server.js", cert, cert, (const char *)mode,
           (char *)NULL);
}

/* Start the server with HTTP/2 or HTTP/1.1. False: node is not installed. */
static bool start(const char *mode)
{
    char line[32] = "";
    child_start(&h2_server, run, mode);
    for (size_t n = 0; n + 1 < sizeof(line) && !strchr(line, '\n'); n++)
        if (read(h2_server.from, line + n, 1) <= 0)
            break;
    h2_port = (unsigned)strtoul(line, NULL, 10);
    return h2_port != 0;
}

static struct cloud *client(bool background)
{
    char url[64];
    snprintf(url, sizeof(url), "https://127.0.0.1:%u", h2_port);
    return port_open(
        url, (struct cloud_options){ .ca = cert, .background = background, .timeout_ms = 20000 });
}

enum { MANY = 32 };

/* Make MANY calls at once, drop every fourth, and return the largest token: the connections. */
static uint32_t burst(struct cloud *c)
{
    void *calls[MANY];
    struct err err = { "" };
    uint32_t most = 0;
    uint64_t start = os_now_ns();
    for (uint32_t i = 0; i < MANY; i++)
        CHECK(cloud_ask(c, &i, 1, CLOUD_MAX_TOKENS, NULL, &calls[i], &err) == OK);
    for (size_t i = 0; i < MANY; i += 4)
        cloud_end(calls[i], CLOUD_DROP);
    for (size_t i = 0; i < MANY; i++) {
        uint32_t id = 0;
        if (i % 4 == 0)
            continue;
        CHECK_MSG(cloud_take(calls[i], 0, &id, &err) == OK, "%zu: %s", i, err.msg);
        most = id > most ? id : most;
        cloud_end(calls[i], CLOUD_USE);
    }
    /* One after another they take at least 2.4 s. */
    CHECK((double)(os_now_ns() - start) / 1e9 < 2.4);
    return most;
}

static void test_http2(void)
{
    struct cloud *c = client(false);
    struct cloud_info info;
    /* Even the first calls wait for the connection that is being made. */
    CHECK(burst(c) == 1 && burst(c) == 1);
    CHECK(cloud_inspect(c, &info, NULL) == OK && info.http2);
    cloud_close(c);
    c = client(true);
    CHECK(cloud_ready(c, NULL) == OK);
    uint64_t up = cloud_ledger(c)->traffic.bytes_up;
    uint32_t id = 0;
    /* The connection was made before the call. */
    CHECK(up > 0 && port_next(c, &id, 1, &id, NULL) == OK && id == 2);
    cloud_close(c);
}

static void test_http1(void)
{
    struct cloud *c = client(false);
    CHECK(burst(c) > 1);
    cloud_close(c);
}

int main(void)
{
    CHECK(atexit(stop) == 0);
    proxy = rude_open(serve);
    server = rude_open(serve);
    test_plain();
    test_wrong();
    bool tls = certificate_make(), pair = tls && !access("weights/milli/cloud.gguf", R_OK);
    if (pair)
        test_tunnel();
    rude_close(proxy);
    rude_close(server);
    for (size_t i = 0; i < VARIABLES; i++)
        CHECK(!unsetenv(variables[i]));
    bool node = tls && start("http2");
    if (node) {
        test_http2();
        stop();
        CHECK(start("http1"));
        test_http1();
    }
    if (!pair || !node)
        SKIP("HTTP/2 or the tunnel: no node, demo pair, or openssl command to make a certificate");
    return 0;
}
