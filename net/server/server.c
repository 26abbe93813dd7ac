#include "net/server/server.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "kernels/sys/base.h"
#include "kernels/sys/os.h"
#include "kernels/sys/wipe.h"
#include "net/http/json_input.h"
#include "net/server/server_internal.h"

enum {
    PLACES = 1100,
    SPARE_FILES = 80, /* descriptors of the process that are no connections */
    STACK = 256 << 10,
    HEAD_MAX = 32 << 10,
    BODY_MAX = 4 << 20,
    BODIES_MAX = 128 << 20,
    FAREWELL_MS = 1000, /* time to send status 503 after the grace */
};

/* Return how many of the wanted places the limit on open files allows, after raising it. */
static size_t server_places(size_t wanted)
{
    struct rlimit files;
    rlim_t needed = (rlim_t)wanted + wanted / 8 + SPARE_FILES;
    if (getrlimit(RLIMIT_NOFILE, &files))
        return wanted;
    if (files.rlim_cur != RLIM_INFINITY && files.rlim_cur < needed) {
        struct rlimit more = files;
        more.rlim_cur =
            files.rlim_max == RLIM_INFINITY || files.rlim_max > needed ? needed : files.rlim_max;
        if (setrlimit(RLIMIT_NOFILE, &more) == 0)
            files = more;
    }
    if (files.rlim_cur == RLIM_INFINITY || files.rlim_cur >= needed)
        return wanted;
    return files.rlim_cur > 2 * SPARE_FILES ? (size_t)(files.rlim_cur - SPARE_FILES) / 9 * 8
                                            : SPARE_FILES;
}

/* Start libmicrohttpd on the open socket, with one thread per connection. Its own timeout is off:
 * it starts again with each byte. */
static int server_start(struct server *s, struct err *err)
{
    static char versions[] = "NORMAL:-VERS-TLS1.0:-VERS-TLS1.1";
    struct MHD_OptionItem tls[] = { { MHD_OPTION_HTTPS_MEM_CERT, 0, s->tls },
                                    { MHD_OPTION_HTTPS_MEM_KEY, 0, s->tls },
                                    { MHD_OPTION_HTTPS_PRIORITIES, 0, versions },
                                    { MHD_OPTION_END, 0, NULL } };
    unsigned flags = MHD_USE_THREAD_PER_CONNECTION | MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_ITC |
                     MHD_USE_POLL | MHD_USE_ERROR_LOG | (s->tls ? (unsigned)MHD_USE_TLS : 0u);
    s->daemon = MHD_start_daemon(
        flags, 0, NULL, NULL, server_request_handle, s, MHD_OPTION_EXTERNAL_LOGGER,
        server_request_log, s, MHD_OPTION_LISTEN_SOCKET, s->listener, MHD_OPTION_NOTIFY_COMPLETED,
        server_request_done, s, MHD_OPTION_NOTIFY_CONNECTION, server_watch_connection, s,
        MHD_OPTION_URI_LOG_CALLBACK, server_request_begin, s, MHD_OPTION_UNESCAPE_CALLBACK,
        server_request_unescape, NULL, MHD_OPTION_CONNECTION_LIMIT, (unsigned)s->watch.limit,
        MHD_OPTION_CONNECTION_TIMEOUT, 0u, MHD_OPTION_THREAD_STACK_SIZE, (size_t)STACK,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, s->o.head_max, MHD_OPTION_ARRAY, s->tls ? tls : tls + 3,
        MHD_OPTION_END);
    if (s->daemon)
        return OK;
    if (s->tls)
        return err_set(err, ERR_FORMAT, "%s: not a certificate and its key", s->o.tls);
    return err_set(err, ERR_NET, "the HTTP server does not start on port %u", s->port);
}

/* Open everything; the caller cleans up after an error. */
static int server_build(struct server *s, struct err *err)
{
    struct server_options *o = &s->o;
    o->connections = server_places(o->connections ? o->connections : PLACES);
    o->head_max = o->head_max ? o->head_max : HEAD_MAX;
    o->body_max = o->body_max ? o->body_max : BODY_MAX;
    o->bodies_max = o->bodies_max ? o->bodies_max : BODIES_MAX;
    int rc = server_listen_tls(s, err);
    if (rc == OK)
        rc = server_listen_open(s, err);
    if (rc)
        return rc;
    s->layout = strncmp(MHD_get_version(), "0.9.", 4) == 0; /* 1.0 checks lines, and trims them */
    if (!server_watch_open(&s->watch, o, o->connections))
        return err_set(err, ERR_NOMEM, "server: no thread can be started");
    return server_start(s, err);
}

int server_open(struct server **out, const struct server_options *o, struct err *err)
{
    *out = NULL;
    struct server *s = calloc(1, sizeof(*s));
    if (!s)
        return err_set(err, ERR_NOMEM, "server: out of memory");
    json_input_watch();
    s->o = *o;
    s->listener = -1;
    atomic_store(&s->numbers, (os_now_ns() ^ (uint64_t)time(NULL) << 32) << 24);
    int rc = server_build(s, err);
    if (rc) {
        server_close(s, 0);
        return rc;
    }
    *out = s;
    return OK;
}

/* End what is in progress, then the threads of all connections. */
static void server_drain(struct server *s, unsigned grace_ms)
{
    const uint64_t ms = 1000000;
    uint64_t now = os_now_ns();
    MHD_socket fd = MHD_quiesce_daemon(s->daemon);
    if (fd != MHD_INVALID_SOCKET)
        close(fd);
    s->listener = -1;
    atomic_store(&s->closing, true);
    server_watch_dismiss(&s->watch, false);
    server_watch_settle(&s->watch, now + grace_ms * ms);
    atomic_store(&s->over, true);
    server_watch_dismiss(&s->watch, true);
    server_watch_settle(&s->watch, os_now_ns() + FAREWELL_MS * ms);
    MHD_stop_daemon(s->daemon);
}

void server_close(struct server *s, unsigned grace_ms)
{
    if (!s)
        return;
    if (s->daemon)
        server_drain(s, grace_ms);
    if (s->listener >= 0)
        close(s->listener);
    server_watch_close(&s->watch);
    wipe_text(s->tls);
    free(s);
}

unsigned server_port(const struct server *s)
{
    return s->port;
}

const char *server_url(const struct server *s)
{
    return s->url;
}

size_t server_connections(struct server *s)
{
    pthread_mutex_lock(&s->watch.lock);
    size_t n = s->watch.used;
    pthread_mutex_unlock(&s->watch.lock);
    return n;
}
