#include <errno.h>
#include <microhttpd.h>
#include <netdb.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "kernels/sys/base.h"
#include "kernels/sys/wipe.h"
#include "tools/cli/demo_files.h"
#include "tools/stand_in/stand_in.h"
#include "tools/stand_in/engine.h"
#include "tools/stand_in/request.h"

enum {
    CONNECTIONS = 512,
    IDLE_SECONDS = 60, /* a connection without a byte in either direction */
    GRACE_MS = 2000,
    STACK = 512 << 10,
    PEM_MAX = 256 << 10,
    HEADERS = 32 << 10,      /* of a request or a reply */
    MORE_HEADERS = 256 << 10 /* if a fault needs it */
};

/* A running server. */
struct stand_in {
    struct stand_in_service serve;
    struct MHD_Daemon *daemon;
    int listener; /* -1: not open */
    unsigned port;
    char url[300];
    char name[128];
    char *tls_cert, *tls_key; /* PEM */
};

/* Return a listening socket, or -1 with errno set. */
static int try_listen(const struct addrinfo *a)
{
    int on = 1, fd = socket(a->ai_family, a->ai_socktype, a->ai_protocol);
    if (fd < 0)
        return -1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (bind(fd, a->ai_addr, a->ai_addrlen) == 0 && listen(fd, 256) == 0)
        return fd;
    int why = errno;
    close(fd);
    errno = why;
    return -1;
}

/* True for ::1 and 127.0.0.0/8. */
static bool stand_in_is_loopback(const struct sockaddr *at)
{
    if (at->sa_family == AF_INET6)
        return IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)(const void *)at)->sin6_addr);
    return ntohl(((const struct sockaddr_in *)(const void *)at)->sin_addr.s_addr) >> 24 == 127;
}

/* Listen on host and port, and set s->port and s->url. A host that other machines can reach is
 * rejected without a key. */
static int listen_on(struct stand_in *s, const char *host, unsigned port, bool key, struct err *err)
{
    struct addrinfo *found, hints = { .ai_family = AF_UNSPEC,
                                      .ai_socktype = SOCK_STREAM,
                                      .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV };
    char service[12];
    if (port > 65535)
        return err_set(err, ERR_ARG, "port: expected 0 to 65535, found %u", port);
    snprintf(service, sizeof(service), "%u", port);
    if (getaddrinfo(strcmp(host, "localhost") == 0 ? "127.0.0.1" : host, service, &hints, &found))
        return err_set(err, ERR_ARG, "host: expected an IP address of this machine, found %s",
                       host);
    bool safe = key || stand_in_is_loopback(found->ai_addr);
    s->listener = safe ? try_listen(found) : -1;
    int why = errno;
    freeaddrinfo(found);
    if (!safe)
        return err_set(err, ERR_ARG,
                       "host %s: others reach it, so it needs a key: --api-key-file or "
                       "MIZZLE_SERVER_KEY",
                       host);
    if (s->listener < 0)
        return err_set(err, ERR_NET, "cannot listen on %s port %u: %s", host, port, strerror(why));
    struct sockaddr_storage at;
    socklen_t len = sizeof(at);
    if (getsockname(s->listener, (struct sockaddr *)&at, &len))
        return err_set(err, ERR_NET, "getsockname: %s", strerror(errno));
    bool six = at.ss_family == AF_INET6;
    s->port = ntohs(six ? ((struct sockaddr_in6 *)&at)->sin6_port
                        : ((struct sockaddr_in *)&at)->sin_port);
    const char *shown = strcmp(host, "0.0.0.0") == 0 ? "127.0.0.1"
                        : strcmp(host, "::") == 0    ? "::1"
                                                     : host;
    snprintf(s->url, sizeof(s->url), six ? "%s://[%s]:%u" : "%s://%s:%u",
             s->tls_cert ? "https" : "http", shown, s->port);
    return OK;
}

/* Set the display name: "dir/cloud.gguf" gives "cloud". */
static void set_name(struct stand_in *s, const char *path)
{
    size_t n = strlen(path);
    while (n > 1 && path[n - 1] == '/')
        n--;
    size_t start = n;
    while (start && path[start - 1] != '/')
        start--;
    n -= start;
    if (n > 5 && strncmp(path + start + n - 5, ".gguf", 5) == 0)
        n -= 5;
    if (n >= sizeof(s->name))
        n = sizeof(s->name) - 1;
    memcpy(s->name, path + start, n);
    for (size_t i = 0; i < n; i++) /* ASCII alone, because the name is put into JSON */
        if (s->name[i] <= 0x20 || s->name[i] > 0x7e)
            s->name[i] = '_';
}

/* Read a PEM file into malloc'ed text, which the caller frees, also after an error. */
static int read_pem(char **out, const char *path, struct err *err)
{
    FILE *f = fopen(path, "rb");
    if (!f)
        return err_set(err, ERR_IO, "%s: %s", path, strerror(errno));
    char *text = calloc(1, PEM_MAX + 1);
    size_t n = text ? fread(text, 1, PEM_MAX, f) : 0;
    bool bad = ferror(f) != 0, more = !feof(f);
    fclose(f);
    *out = text;
    if (!text)
        return err_set(err, ERR_NOMEM, "cloud: out of memory");
    if (bad || more || !n || !strstr(text, "-----BEGIN "))
        return err_set(err, ERR_FORMAT, "%s: expected a PEM file of at most %d bytes", path,
                       PEM_MAX);
    return OK;
}

/* Read certificate and key, if TLS was requested. */
static int read_tls(struct stand_in *s, const struct stand_in_options *o, struct err *err)
{
    if (!o->tls_cert && !o->tls_key)
        return OK;
    if (!o->tls_cert || !o->tls_key)
        return err_set(err, ERR_ARG, "--tls-cert and --tls-key: expected both");
    if (MHD_is_feature_supported(MHD_FEATURE_TLS) != MHD_YES)
        return err_set(err, ERR_ARG, "--tls-cert: this libmicrohttpd was built without TLS");
    int rc = read_pem(&s->tls_cert, o->tls_cert, err);
    if (rc == OK)
        rc = read_pem(&s->tls_key, o->tls_key, err);
    return rc;
}

/* True if a fault sends a header without a fixed value, which is a huge one. */
static bool needs_headers(const struct stand_in_faults *f)
{
    for (size_t i = 0; i < f->n; i++)
        if (f->at[i].fault->header && !f->at[i].fault->value)
            return true;
    return false;
}

/* Log nothing: libmicrohttpd would print GnuTLS's complaints about a bad certificate to stderr, but
 * the caller reports the error. */
static void stand_in_quiet(void *arg, const char *format, va_list args)
{
    (void)arg, (void)format, (void)args;
}

/* Decode %XX in a path. A path with an embedded NUL stays encoded, so it matches no route. */
static size_t unescape(void *arg, struct MHD_Connection *c, char *text)
{
    (void)arg, (void)c;
    return strstr(text, "%00") ? strlen(text) : MHD_http_unescape(text);
}

/* Start libmicrohttpd on the open socket, with one thread per connection. */
static int start_daemon(struct stand_in *s, const struct stand_in_options *o, struct err *err)
{
    struct MHD_OptionItem tls[] = { { MHD_OPTION_HTTPS_MEM_CERT, 0, s->tls_cert },
                                    { MHD_OPTION_HTTPS_MEM_KEY, 0, s->tls_key },
                                    { MHD_OPTION_END, 0, NULL } };
    unsigned flags = MHD_USE_THREAD_PER_CONNECTION | MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_ITC |
                     MHD_USE_POLL | MHD_USE_ERROR_LOG | (s->tls_cert ? (unsigned)MHD_USE_TLS : 0u);
    s->daemon = MHD_start_daemon(
        flags, 0, NULL, NULL, stand_in_request_handle, &s->serve, MHD_OPTION_EXTERNAL_LOGGER,
        stand_in_quiet, NULL, MHD_OPTION_LISTEN_SOCKET, s->listener, MHD_OPTION_NOTIFY_COMPLETED,
        stand_in_request_done, &s->serve, MHD_OPTION_NOTIFY_CONNECTION,
        stand_in_deadlines_connection, &s->serve.watch, MHD_OPTION_UNESCAPE_CALLBACK, unescape,
        NULL, MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_CONNECTION_LIMIT, (unsigned)CONNECTIONS,
        MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)IDLE_SECONDS, MHD_OPTION_THREAD_STACK_SIZE,
        (size_t)STACK, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
        (size_t)(needs_headers(&o->faults) ? MORE_HEADERS : HEADERS), MHD_OPTION_ARRAY,
        s->tls_cert ? tls : tls + 2, MHD_OPTION_END);
    if (s->daemon)
        return OK;
    if (s->tls_cert)
        return err_set(err, ERR_FORMAT, "%s, %s: not a certificate and its key", o->tls_cert,
                       o->tls_key);
    return err_set(err, ERR_NET, "the HTTP server does not start on port %u", s->port);
}

/* Open everything the server needs, then start it. The caller cleans up after an error. */
static int stand_in_start(struct stand_in *s, const struct stand_in_options *o, const char *path,
                          struct err *err)
{
    struct stand_in_service *serve = &s->serve;
    int rc = read_tls(s, o, err);
    if (rc == OK)
        rc = listen_on(s, o->host ? o->host : "127.0.0.1", o->port, o->key != NULL, err);
    if (rc == OK)
        rc = stand_in_engine_open(&serve->api.engine, path, o, err);
    if (rc)
        return rc;
    if (!stand_in_deadlines_open(&serve->watch, o->patience_ms))
        return err_set(err, ERR_NOMEM, "cloud: no thread can be started");
    serve->draw = stand_in_chance_open(o->seed);
    if (o->key)
        serve->key = malloc(strlen(o->key) + 1);
    if (!serve->draw || (o->key && !serve->key))
        return err_set(err, ERR_NOMEM, "cloud: out of memory");
    if (o->key)
        memcpy(serve->key, o->key, strlen(o->key) + 1);
    set_name(s, path);
    serve->api.name = s->name;
    serve->api.server = o->server;
    serve->api.created = time(NULL);
    serve->faults = o->faults;
    serve->net = (struct stand_in_net){ .latency_ms = o->latency_ms,
                                        .jitter_ms = o->jitter_ms,
                                        .up = o->up,
                                        .down = o->down,
                                        .loss = o->loss,
                                        .trips = o->trips };
    return start_daemon(s, o, err);
}

int stand_in_open(struct stand_in **out, const struct stand_in_options *o, struct err *err)
{
    *out = NULL;
    const char *path = o->model || o->oracle ? o->model : demo_files_path("cloud.gguf");
    if (o->oracle && !path)
        path = "oracle";
    if (!path)
        return err_set(err, ERR_IO, "the demo pair's cloud model is not found; name one with -m");
    struct stand_in *s = calloc(1, sizeof(*s));
    if (!s)
        return err_set(err, ERR_NOMEM, "cloud: out of memory");
    s->listener = -1;
    stand_in_waiting_open(&s->serve.hold);
    pthread_mutex_init(&s->serve.parser, NULL);
    int rc = stand_in_start(s, o, path, err);
    if (rc) {
        stand_in_close(s);
        return rc;
    }
    *out = s;
    return OK;
}

/* Accept no new connections, give replies in progress GRACE_MS, then stop the engine and the
 * daemon. */
static void stand_in_drain(struct stand_in *s)
{
    MHD_socket fd = MHD_quiesce_daemon(s->daemon);
    if (fd != MHD_INVALID_SOCKET)
        close(fd);
    s->listener = -1;
    stand_in_waiting_drain(&s->serve.hold, GRACE_MS);
    stand_in_engine_stop(s->serve.api.engine);
    MHD_stop_daemon(s->daemon);
}

void stand_in_close(struct stand_in *s)
{
    if (!s)
        return;
    if (s->daemon)
        stand_in_drain(s);
    if (s->listener >= 0)
        close(s->listener);
    stand_in_deadlines_close(&s->serve.watch);
    stand_in_engine_close(s->serve.api.engine);
    stand_in_chance_close(s->serve.draw);
    stand_in_waiting_close(&s->serve.hold);
    pthread_mutex_destroy(&s->serve.parser);
    wipe_text(s->serve.key);
    wipe_text(s->tls_key);
    free(s->tls_cert);
    free(s);
}

void stand_in_forget(struct stand_in *s)
{
    stand_in_chance_forget(s->serve.draw);
}

unsigned stand_in_port(const struct stand_in *s)
{
    return s->port;
}

const char *stand_in_url(const struct stand_in *s)
{
    return s->url;
}
