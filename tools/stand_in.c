#include <errno.h>
#include <microhttpd.h>
#include <netdb.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "kernels/base.h"
#include "net/buf.h"
#include "tools/setting.h"
#include "tools/stand_in.h"
#include "tools/stand_in_api.h"
#include "tools/stand_in_delay.h"
#include "tools/stand_in_engine.h"

enum { MAX_BODY = 4 << 20, CONNECTIONS = 256, IDLE_SECONDS = 60, GRACE_MS = 2000 };

struct stand_in {
    struct stand_in_api api;
    struct MHD_Daemon *daemon;
    int listener; /* -1: none */
    unsigned port;
    char url[300];
    char name[128];
    char *key;
    pthread_mutex_t lock;
    pthread_cond_t change; /* of busy or closing */
    size_t busy;           /* requests between first byte and last */
    bool closing;
};

/* One request while it is read and answered. */
struct exchange {
    struct buf body;
    bool too_long;
};

static void enter(struct stand_in *s, int step)
{
    pthread_mutex_lock(&s->lock);
    s->busy += (size_t)step;
    pthread_cond_broadcast(&s->change);
    pthread_mutex_unlock(&s->lock);
}

static struct timespec after_us(uint64_t us)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    uint64_t ns = (uint64_t)t.tv_nsec + us % 1000000 * 1000;
    t.tv_sec += (time_t)(us / 1000000 + ns / 1000000000);
    t.tv_nsec = (long)(ns % 1000000000);
    return t;
}

/* The network's share of the time; ends early when the server closes. */
static void hold_back(struct stand_in *s, uint64_t us)
{
    if (!us)
        return;
    struct timespec until = after_us(us);
    pthread_mutex_lock(&s->lock);
    while (!s->closing && pthread_cond_timedwait(&s->change, &s->lock, &until) == 0)
        ;
    pthread_mutex_unlock(&s->lock);
}

static enum MHD_Result reply(struct MHD_Connection *c, const struct stand_in_answer *a)
{
    size_t n = a->json ? json_dumpb(a->json, NULL, 0, JSON_COMPACT) : 0;
    char *text = n ? malloc(n) : NULL;
    if (!text)
        return MHD_NO; /* out of memory: the connection is closed */
    json_dumpb(a->json, text, n, JSON_COMPACT);
    struct MHD_Response *r = MHD_create_response_from_buffer(n, text, MHD_RESPMEM_MUST_COPY);
    free(text);
    if (!r)
        return MHD_NO;
    MHD_add_response_header(r, "Content-Type", "application/json; charset=utf-8");
    MHD_add_response_header(r, "Server", "mizzle");
    enum MHD_Result rc = MHD_queue_response(c, a->status, r);
    MHD_destroy_response(r);
    return rc;
}

/* Compares all of it whatever differs, so that time tells nothing. */
static bool same_key(const char *sent, const char *key)
{
    size_t n = strlen(sent), k = strlen(key), differ = n ^ k;
    for (size_t i = 0; i < n; i++)
        differ |= (unsigned char)sent[i] ^ (unsigned char)key[k ? i % k : 0];
    return differ == 0;
}

static bool allowed_in(const struct stand_in *s, struct MHD_Connection *c, const char *path)
{
    if (!s->key || strcmp(path, "/health") == 0)
        return true;
    const char *sent = MHD_lookup_connection_value(c, MHD_HEADER_KIND, "Authorization");
    return sent && strncmp(sent, "Bearer ", 7) == 0 && same_key(sent + 7, s->key);
}

static struct stand_in_answer answer(struct stand_in *s, struct MHD_Connection *c,
                                     const char *method, const char *path, const struct exchange *x)
{
    bool allowed;
    if (!allowed_in(s, c, path))
        return stand_in_api_error(path, 401, "authentication_error", "Invalid API Key");
    if (!stand_in_api_route(method, path, &allowed))
        return stand_in_api_error(path, 404, "not_found_error", "File Not Found");
    if (!allowed)
        return stand_in_api_error(path, 405, "invalid_request_error", "Method Not Allowed");
    if (x->too_long)
        return stand_in_api_error(path, 413, "invalid_request_error", "the request is too large");
    struct stand_in_answer a = stand_in_api_answer(&s->api, path, x->body.p, x->body.n);
    hold_back(s, a.delay_us);
    return a;
}

static enum MHD_Result on_request(void *arg, struct MHD_Connection *c, const char *path,
                                  const char *method, const char *version, const char *data,
                                  size_t *n, void **state)
{
    struct stand_in *s = arg;
    struct exchange *x = *state;
    (void)version;
    if (!x) { /* the headers are there, the body is not */
        x = calloc(1, sizeof(*x));
        if (!x)
            return MHD_NO;
        x->body.max = MAX_BODY;
        *state = x;
        enter(s, 1);
        return MHD_YES;
    }
    if (*n) {
        if (!x->too_long && !buf_add(&x->body, data, *n)) {
            x->too_long = true;
            buf_free(&x->body);
        }
        *n = 0;
        return MHD_YES;
    }
    struct stand_in_answer a = answer(s, c, method, path, x);
    if (!a.json)
        a = stand_in_api_error(path, 500, "server_error", "out of memory");
    enum MHD_Result rc = reply(c, &a);
    json_decref(a.json);
    return rc;
}

static void on_done(void *arg, struct MHD_Connection *c, void **state,
                    enum MHD_RequestTerminationCode why)
{
    struct exchange *x = *state;
    (void)c, (void)why;
    if (!x)
        return;
    buf_free(&x->body);
    free(x);
    *state = NULL;
    enter(arg, -1);
}

static int try_listen(const struct addrinfo *a)
{
    int on = 1, fd = socket(a->ai_family, a->ai_socktype, a->ai_protocol);
    if (fd < 0)
        return -1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (bind(fd, a->ai_addr, a->ai_addrlen) == 0 && listen(fd, 64) == 0)
        return fd;
    int why = errno;
    close(fd);
    errno = why;
    return -1;
}

static int listen_on(struct stand_in *s, const char *host, unsigned port, struct err *err)
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
    s->listener = try_listen(found);
    int why = errno;
    freeaddrinfo(found);
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
    snprintf(s->url, sizeof(s->url), six ? "http://[%s]:%u" : "http://%s:%u", shown, s->port);
    return OK;
}

/* "dir/cloud.gguf" -> "cloud". */
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
    for (size_t i = 0; i < n; i++) /* it goes into JSON: ASCII always fits */
        if (s->name[i] <= 0x20 || s->name[i] > 0x7e)
            s->name[i] = '_';
}

static int start(struct stand_in *s, const struct stand_in_options *o, const char *path,
                 struct err *err)
{
    int rc = listen_on(s, o->host ? o->host : "127.0.0.1", o->port, err);
    if (rc == OK)
        rc = stand_in_engine_open(&s->api.engine, path, o, err);
    if (rc)
        return rc;
    s->api.delay = stand_in_delay_open(o->latency_ms, o->jitter_ms, o->seed);
    if (!s->api.delay)
        return err_set(err, ERR_NOMEM, "cloud: out of memory");
    set_name(s, path);
    s->api.name = s->name;
    s->api.created = time(NULL);
    s->daemon = MHD_start_daemon(
        MHD_USE_THREAD_PER_CONNECTION | MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_ITC, 0, NULL,
        NULL, on_request, s, MHD_OPTION_LISTEN_SOCKET, s->listener, MHD_OPTION_NOTIFY_COMPLETED,
        on_done, s, MHD_OPTION_CONNECTION_LIMIT, (unsigned)CONNECTIONS,
        MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)IDLE_SECONDS, MHD_OPTION_END);
    if (!s->daemon)
        return err_set(err, ERR_NET, "the HTTP server does not start on port %u", s->port);
    return OK;
}

int stand_in_open(struct stand_in **out, const struct stand_in_options *o, struct err *err)
{
    *out = NULL;
    const char *path = o->model ? o->model : demo_path("cloud.gguf");
    if (!path)
        return err_set(err, ERR_IO, "the demo pair's cloud model is not found; name one with -m");
    struct stand_in *s = calloc(1, sizeof(*s));
    if (!s)
        return err_set(err, ERR_NOMEM, "cloud: out of memory");
    s->listener = -1;
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->change, NULL);
    int rc = OK;
    if (o->key) {
        s->key = malloc(strlen(o->key) + 1);
        if (s->key)
            memcpy(s->key, o->key, strlen(o->key) + 1);
        else
            rc = err_set(err, ERR_NOMEM, "cloud: out of memory");
    }
    if (rc == OK)
        rc = start(s, o, path, err);
    if (rc) {
        stand_in_close(s);
        return rc;
    }
    *out = s;
    return OK;
}

/* No new connections; replies in progress get GRACE_MS, then the engine is told to give up. */
static void drain(struct stand_in *s)
{
    struct timespec until = after_us(GRACE_MS * 1000);
    MHD_socket fd = MHD_quiesce_daemon(s->daemon);
    if (fd != MHD_INVALID_SOCKET)
        close(fd);
    s->listener = -1;
    pthread_mutex_lock(&s->lock);
    s->closing = true;
    pthread_cond_broadcast(&s->change);
    while (s->busy && pthread_cond_timedwait(&s->change, &s->lock, &until) == 0)
        ;
    pthread_mutex_unlock(&s->lock);
    stand_in_engine_stop(s->api.engine);
    MHD_stop_daemon(s->daemon);
}

void stand_in_close(struct stand_in *s)
{
    if (!s)
        return;
    if (s->daemon)
        drain(s);
    if (s->listener >= 0)
        close(s->listener);
    stand_in_engine_close(s->api.engine);
    stand_in_delay_close(s->api.delay);
    pthread_cond_destroy(&s->change);
    pthread_mutex_destroy(&s->lock);
    if (s->key)
        memset(s->key, 0, strlen(s->key));
    free(s->key);
    free(s);
}

unsigned stand_in_port(const struct stand_in *s)
{
    return s->port;
}

const char *stand_in_url(const struct stand_in *s)
{
    return s->url;
}

const char *stand_in_model(const struct stand_in *s)
{
    return s->name;
}
