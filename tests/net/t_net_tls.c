/* Tests that wrong TLS of every kind is refused in each dialect before the key has left, and that
 * right TLS is accepted. The server is `openssl s_server`; this program talks through its pipes. */
#include <poll.h>

#include "tests/support/port.h"
#include "tests/support/process.h"

#define KEY  "sk-very-secret"
#define BODY "{\"choices\":[{\"token_ids\":[42]}],\"output_ids\":[42],\"tokens\":[42]}"

static const char reply[] = "HTTP/1.1 200 OK\r\nContent-Length: 64\r\n\r\n" BODY;
static unsigned port;
static struct child server;

/* Certificates, each its own authority, and how to make them. */
enum { GOOD, OTHER, EXPIRED, CLIENT, WEAK, CERTIFICATES };

static const struct {
    const char *name, *key, *days, *ext;
} certificates[CERTIFICATES] = {
    { "good", "ec -pkeyopt ec_paramgen_curve:prime256v1", "2", "" },
    { "other", "ec -pkeyopt ec_paramgen_curve:prime256v1", "2", "" },
    { "expired", "ec -pkeyopt ec_paramgen_curve:prime256v1", "-1", "" },
    { "client", "ec -pkeyopt ec_paramgen_curve:prime256v1", "2", "extendedKeyUsage=clientAuth\\n" },
    { "weak", "rsa:1024", "2", "" },
};

static const struct row {
    const char *name;
    int certificate, ca; /* ca CERTIFICATES means the system's */
    const char *host;
    int code;
    const char *says;
    const char *args[4]; /* arguments for s_server */
} rows[] = {
#define CASE(title, server, client, at, becomes, line, ...)                                        \
    {                                                                                              \
        .name = (title), .certificate = (server), .ca = (client), .host = (at), .code = (becomes), \
        .says = (line), .args = {                                                                  \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    }
/* Both sides have the good certificate; or the server's is refused. */
#define ROW(title, becomes, line, ...) \
    CASE(title, GOOD, GOOD, "127.0.0.1", becomes, line, __VA_ARGS__)
#define CERTIFICATE(title, server, client, at, ...) \
    CASE(title, server, client, at, ERR_NET, "certificate", __VA_ARGS__)
    ROW("right", OK, "", NULL),
    ROW("TLS 1.2", OK, "", "-tls1_2"),
    ROW("another ALPN", ERR_NET, "protocol", "-alpn", "other"),
    ROW("TLS 1.0", ERR_NET, "", "-tls1", "-cipher", "ALL:@SECLEVEL=0"),
    ROW("TLS 1.1", ERR_NET, "", "-tls1_1", "-cipher", "ALL:@SECLEVEL=0"),
    ROW("no common cipher", ERR_NET, "", "-tls1_3", "-ciphersuites", "TLS_AES_128_CCM_8_SHA256"),
    ROW("no common cipher, TLS 1.2", ERR_NET, "", "-tls1_2", "-cipher", "eNULL:@SECLEVEL=0"),
    ROW("asks for a certificate", ERR_NET, "", "-Verify", "1"),
    ROW("asks for one, TLS 1.2", ERR_NET, "", "-Verify", "1", "-tls1_2"),
    ROW("HTTP/2 agreed, not spoken", ERR_NET, "in time", "-alpn", "h2"),
    CERTIFICATE("self-signed", GOOD, CERTIFICATES, "127.0.0.1", NULL),
    CERTIFICATE("unknown authority", GOOD, OTHER, "127.0.0.1", NULL),
    CERTIFICATE("wrong host", GOOD, GOOD, "localhost", NULL),
    CERTIFICATE("expired", EXPIRED, EXPIRED, "127.0.0.1", NULL),
    CERTIFICATE("not for servers", CLIENT, CLIENT, "127.0.0.1", NULL),
    CERTIFICATE("weak key", WEAK, WEAK, "127.0.0.1", "-cipher", "DEFAULT:@SECLEVEL=0"),
};

static char *path(int certificate, const char *what)
{
    return in_scratch("%s.%s", certificates[certificate].name, what);
}

/* Make a certificate. False: openssl cannot. */
static bool make_certificate(int i)
{
    const char *crt = path(i, "crt"), *key = path(i, "key");
    const char *csr = path(i, "csr"), *ext = path(i, "ext");
    char line[1024];
    snprintf(line, sizeof(line),
             "exec >/dev/null 2>&1; printf 'subjectAltName=IP:127.0.0.1\\n%s' >%s && openssl req "
             "-newkey %s -nodes -subj /CN=mizzle-test -keyout %s -out %s && openssl x509 -req -in "
             "%s -signkey %s -days %s -extfile %s -out %s",
             certificates[i].ext, ext, certificates[i].key, key, csr, csr, key,
             certificates[i].days, ext, crt);
    return system(line) == 0;
}

/* Kill the server; also when a CHECK ends the program. */
static void stop(void)
{
    child_end(&server, SIGKILL);
}

static void run(const void *arg)
{
    const struct row *r = arg;
    char accept[32];
    snprintf(accept, sizeof(accept), "127.0.0.1:%u", port);
    dup2(STDOUT_FILENO, STDERR_FILENO);
    execlp("openssl", "openssl", "s_server", "-quiet", "-accept", accept, "-cert",
           path(r->certificate, "crt"), "-key", path(r->certificate, "key"), r->args[0], r->args[1],
           r->args[2], (char *)NULL);
}

/* Start s_server as the row says, on a port that was free a moment ago. */
static void start(const struct row *r)
{
    close(loopback(&port, -1));
    child_start(&server, run, r);
}

static struct cloud *client(const struct row *r, enum cloud_api api)
{
    char url[64];
    snprintf(url, sizeof(url), "https://%s:%u", r->host, port);
    const struct cloud_options o = { .api = api,
                                     .ca = r->ca < CERTIFICATES ? path(r->ca, "crt") : NULL,
                                     .key = KEY,
                                     .timeout_ms = strcmp(r->says, "in time") ? 0 : 300 };
    return port_open(url, o);
}

/* Make one call; retry while the server does not listen yet. */
static int call(struct cloud *c, uint32_t *id, struct err *err)
{
    for (int i = 0;; i++) {
        *err = (struct err){ "" };
        int rc = port_next(c, (const uint32_t[]){ 1, 2 }, 2, id, err);
        if (i == 200 || rc != ERR_NET || !strstr(err->msg, "connect"))
            return rc;
        rest_us(20000);
    }
}

/* Check one row. The reply is put into the pipe first; s_server passes it on to any client. */
static void one(const struct row *r, enum cloud_api api)
{
    struct err err = { "" };
    uint32_t id = 77;
    struct cloud *c = client(r, api);
    if (r->code == OK)
        CHECK(write(server.to, reply, sizeof(reply) - 1) == (ssize_t)sizeof(reply) - 1);
    int rc = call(c, &id, &err);
    bool right = rc == r->code && !strstr(err.msg, "connect to") && id == (rc ? 77 : 42) &&
                 (!rc || strstr(err.msg, r->says)) && !strstr(err.msg, KEY);
    CHECK_MSG(right, "%s, %s: %d %s", r->name, cloud_api_name(api), rc, err.msg);
    cloud_close(c);
}

/* The key must not leave before the certificate was checked. */
static void nothing_leaked(void)
{
    static char seen[1 << 16];
    size_t n = 0;
    for (struct pollfd p = { .fd = server.from, .events = POLLIN };
         poll(&p, 1, 50) > 0 && n + 1 < sizeof(seen);) {
        ssize_t got = read(server.from, seen + n, sizeof(seen) - 1 - n);
        if (got <= 0)
            break;
        n += (size_t)got;
    }
    seen[n] = 0;
    CHECK(!strstr(seen, KEY));
}

int main(void)
{
    static const enum cloud_api apis[] = { CLOUD_OPENAI, CLOUD_SGLANG, CLOUD_LLAMACPP };
    const size_t n = sizeof(rows) / sizeof(rows[0]);
    CHECK(atexit(stop) == 0);
    for (int i = 0; i < CERTIFICATES; i++)
        if (!make_certificate(i))
            SKIP("TLS: no openssl command to make certificates with");
    for (size_t i = 0; i < 3 * n; i++) {
        const struct row *r = &rows[i / 3];
        start(r);
        one(r, apis[i % 3]);
        if (r->code && !strstr(r->name, "asks for"))
            nothing_leaked();
        stop();
    }
    printf("%zu kinds of TLS in 3 dialects\n", n);
    return 0;
}
