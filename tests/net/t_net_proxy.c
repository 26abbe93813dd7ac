/* Tests which proxy a request goes through, from the environment and from the options, and that a
 * tunnel is asked for without the key. The proxy counts, and answers plain requests itself. */
#include <string.h>
#include <unistd.h>

#include "kernels/sys/base.h"
#include "kernels/sys/wipe.h"
#include "net/cloud.h"
#include "tests/support/certificate.h"
#include "tests/support/port.h"
#include "tests/support/rude.h"
#include "tests/support/test.h"
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

/* Make a call with this environment. */
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
    if (access("weights/milli/cloud.gguf", R_OK) || !certificate_make())
        SKIP("no demo pair in weights/milli, or no openssl: no tunnel");
    o.listen.tls = cert;
    CHECK(stand_in_open(&cloud, &o, NULL) == OK);
    call(through, NULL, stand_in_url(cloud), cert, OK);
    CHECK(rude_requests(proxy) == 1);
    stand_in_close(cloud);
}

int main(void)
{
    proxy = rude_open(serve);
    server = rude_open(serve);
    test_plain();
    test_wrong();
    test_tunnel();
    rude_close(proxy);
    rude_close(server);
    return 0;
}
