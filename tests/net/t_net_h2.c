/* Tests HTTP/2 over TLS against node's server: many calls share one connection, which is made
 * before the first of them; dropped calls close only their stream. When the server has only
 * HTTP/1.1, there are as many connections as needed. */
#include <stdlib.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "kernels/sys/os.h"
#include "net/cloud.h"
#include "tests/support/certificate.h"
#include "tests/support/port.h"
#include "tests/support/process.h"

static unsigned port;
static struct child server;

/* Kill the server; also when a CHECK ends the program. */
static void stop(void)
{
    child_end(&server, SIGKILL);
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
    child_start(&server, run, mode);
    for (size_t n = 0; n + 1 < sizeof(line) && !strchr(line, '\n'); n++)
        if (read(server.from, line + n, 1) <= 0)
            break;
    port = (unsigned)strtoul(line, NULL, 10);
    return port != 0;
}

/* Open a client of the server. */
static struct cloud *client(bool background)
{
    char url[64];
    snprintf(url, sizeof(url), "https://127.0.0.1:%u", port);
    return port_open(
        url, (struct cloud_options){ .ca = cert, .background = background, .timeout_ms = 20000 });
}

enum { MANY = 32 };

/* Make MANY calls at once and drop every fourth. Returns the largest token, which is the number of
 * connections. */
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
    if (!certificate_make() || !start("http2"))
        SKIP("HTTP/2: no node, or no openssl command to make a certificate with");
    test_http2();
    stop();
    CHECK(start("http1"));
    test_http1();
    return 0;
}
