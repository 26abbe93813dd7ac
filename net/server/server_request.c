#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "kernels/sys/os.h"
#include "net/server/server_internal.h"

enum {
    WASTE_MAX = 64 << 20, /* of a body that is refused but read */
    LINGER_MS = 2000,     /* time for a client to stop sending after an early reply */
    LINGER_TLS_MS = 250,  /* without a byte; TLS clients are not told that no more will come */
};

/* Return what libmicrohttpd knows of the connection. */
static struct server_guest *server_request_guest(struct MHD_Connection *c)
{
    const union MHD_ConnectionInfo *state =
        MHD_get_connection_info(c, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    return state ? state->socket_context : NULL;
}

static _Thread_local int reading = -1; /* the socket of this thread's connection */

/* After a reply that came before the end of the request, read on for a while: to close a socket
 * with unread bytes would reset it, and the client might never see the reply. */
static void server_request_linger(int fd, bool tls)
{
    char sink[SERVER_BLOCK];
    uint64_t until = os_now_ns() + LINGER_MS * UINT64_C(1000000);
    size_t n = 0;
    if (!tls)
        shutdown(fd, SHUT_WR);
    while (n < WASTE_MAX && os_now_ns() < until) {
        struct pollfd p = { .fd = fd, .events = POLLIN };
        ssize_t got = poll(&p, 1, tls ? LINGER_TLS_MS : LINGER_MS) > 0
                          ? recv(fd, sink, sizeof(sink), MSG_DONTWAIT)
                          : 0;
        if (got <= 0)
            break;
        n += (size_t)got;
    }
}

/* Called with what libmicrohttpd would print to stderr: GnuTLS's complaints about a certificate, an
 * error that the caller reports; and, before it answers what it finds wrong, that. Its reply to a
 * malformed Content-Length has two heads in version 0.9.75, and that to a chunk's line without end
 * is status 500. So the reply is sent here, and the socket takes no other. */
void server_request_log(void *arg, const char *format, va_list args)
{
    struct server *s = arg;
    bool length = strstr(format, "Content-Length' header. Closing") != NULL;
    int fd = reading;
    if (fd < 0 || !(length || strncmp(format, "Error processing request", 24) == 0))
        return;
    if (s->tls) {
        if (length)
            shutdown(fd, SHUT_WR);
        return;
    }
    unsigned status = length ? 400 : va_arg(args, unsigned);
    reading = -1;
    server_reply_raw(s, fd, status == 500 ? 400 : status, s->o.malformed);
    server_request_linger(fd, false);
}

/* Called with the target of a request, before it is decoded. */
void *server_request_begin(void *arg, const char *uri, struct MHD_Connection *c)
{
    struct server *s = arg;
    struct server_guest *g = server_request_guest(c);
    size_t n = strlen(uri);
    struct server_request *r = g ? calloc(1, sizeof(*r) + n + 1) : NULL;
    if (!r)
        return NULL; /* server_request_handle then closes the connection */
    reading = g->fd;
    r->server = s;
    r->guest = g;
    r->c = c;
    r->raw = uri;
    r->raw_n = n;
    r->number = atomic_fetch_add(&s->numbers, 1) + 1;
    memcpy(r->target, uri, n + 1);
    r->body.max = s->o.body_max;
    server_watch_started(g, r, false);
    return r;
}

/* Targets and queries are left as they are; server_head_target decodes. */
size_t server_request_unescape(void *arg, struct MHD_Connection *c, char *text)
{
    (void)arg, (void)c;
    return strlen(text);
}

/* Where the head lies in memory. */
struct server_layout {
    struct server_request *r;
    uintptr_t end; /* where the next line is expected */
    bool fine;
};

/* Callback of libmicrohttpd for each header. */
static enum MHD_Result server_request_field(void *arg, enum MHD_ValueKind kind, const char *name,
                                            const char *value)
{
    struct server_layout *l = arg;
    (void)kind;
    value = value ? value : "";
    server_head_field(&l->r->head, name, value);
    l->fine = l->fine && (uintptr_t)name == l->end && (uintptr_t)value > (uintptr_t)name;
    l->end = (uintptr_t)value + strlen(value) + 2; /* CRLF */
    return MHD_YES;
}

/* Read the head, which libmicrohttpd has cut into texts in place. It ends a text at a NUL and does
 * not tell what it skips, so the texts must follow each other in memory with nothing but CRLF
 * between them. That shows hidden bytes behind a NUL, folded lines, and lines that end in a lone
 * LF. */
static void server_request_read_head(struct server_request *r, const char *method,
                                     const char *version)
{
    size_t size = server_facts(r).head;
    struct server_layout l = { .r = r, .end = (uintptr_t)version + strlen(version) + 2 };
    struct server_head *h = &r->head;
    l.fine = (uintptr_t)method + strlen(method) + 1 == (uintptr_t)r->raw &&
             (uintptr_t)r->raw + r->raw_n + 1 == (uintptr_t)version;
    server_head_begin(h, method, version);
    MHD_get_connection_values(r->c, MHD_HEADER_KIND, server_request_field, &l);
    server_head_target(h, r->target);
    if (r->server->layout && !h->why && !(l.fine && l.end + 2 == (uintptr_t)method + size)) {
        h->what = SERVER_BAD_HEAD;
        h->why = "a line holds NUL, is folded, or does not end in CRLF";
    }
    server_head_end(h, &r->server->o);
    r->last = h->single[SINGLE_TRANSFER] != NULL;
}

/* Decide from the head; r->reply is set if that is all. */
static void server_request_judge(struct server_request *r)
{
    const struct server_options *o = &r->server->o;
    struct server_head *h = &r->head;
    bool key = o->key && !(h->why && h->what == SERVER_BAD_HEAD) && !server_reply_is_preflight(r) &&
               !(o->open && o->open(o->arg, r)) && !server_head_has_key(h, o->key);
    if (h->why && h->what != SERVER_TOO_LARGE)
        server_reply_refuse(r, h->what, h->why);
    else if (key)
        server_reply_refuse(r, SERVER_BAD_KEY, "Authorization: expected a valid key");
    else if (h->why)
        server_reply_refuse(r, h->what, h->why);
    else if (server_reply_is_preflight(r))
        server_reply_preflight(r);
    else if (o->head && !o->head(o->arg, r) && !r->reply)
        server_reply_refuse(r, SERVER_NO_MEMORY, "out of memory");
}

/* The head is complete. */
static enum MHD_Result server_request_first(struct server_request *r, const char *method,
                                            const char *version)
{
    r->begun = r->busy = true;
    server_watch_started(r->guest, r, true);
    server_watch_phase(r->guest, PHASE_NONE);
    server_request_read_head(r, method, version);
    server_request_judge(r);
    bool body = server_head_has_body(&r->head);
    r->last |= r->reply && body;
    if (r->reply)
        reading = -1;
    if (r->reply && r->last) /* libmicrohttpd closes the connection after a reply at this time */
        return server_reply_queue(r);
    if (body)
        server_watch_phase(r->guest, PHASE_BODY);
    return MHD_YES;
}

/* The request is complete. */
static enum MHD_Result server_request_answer(struct server_request *r)
{
    const struct server_options *o = &r->server->o;
    reading = -1;
    server_watch_phase(r->guest, PHASE_NONE);
    if (!r->reply && r->why)
        server_reply_refuse(r, r->what, r->why);
    else if (!r->reply)
        o->handle(o->arg, r);
    server_drop_body(r);
    if (!r->reply && atomic_load(&r->server->over))
        server_reply_refuse(r, SERVER_STOPPING, "the server is stopping");
    return server_reply_queue(r);
}

enum MHD_Result server_request_handle(void *arg, struct MHD_Connection *c, const char *path,
                                      const char *method, const char *version, const char *data,
                                      size_t *n, void **state)
{
    struct server_request *r = *state;
    (void)arg, (void)c, (void)path;
    if (!r)
        return MHD_NO;
    if (!r->begun)
        return server_request_first(r, method, version);
    if (!*n)
        return server_request_answer(r);
    size_t size = *n;
    *n = 0;
    r->received += size;
    if (r->received > WASTE_MAX)
        return MHD_NO;
    if (!r->why)
        server_body_add(r, data, size);
    return MHD_YES;
}

void server_request_done(void *arg, struct MHD_Connection *c, void **state,
                         enum MHD_RequestTerminationCode why)
{
    struct server_request *r = *state;
    (void)arg, (void)c;
    if (!r)
        return;
    *state = NULL;
    bool linger = why == MHD_REQUEST_TERMINATED_COMPLETED_OK && r->last;
    bool tls = r->server->tls != NULL;
    int fd = r->guest->fd;
    r->guest->known = true;
    server_watch_leave(r->guest, r->busy);
    if (r->drop)
        r->drop(r->own);
    if (r->reply)
        MHD_destroy_response(r->reply);
    server_drop_body(r);
    buf_free(&r->out);
    free(r);
    if (linger)
        server_request_linger(fd, tls);
}

uint64_t server_number(const struct server_request *r)
{
    return r->number;
}

struct server_facts server_facts(const struct server_request *r)
{
    const union MHD_ConnectionInfo *head =
        MHD_get_connection_info(r->c, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
    return (struct server_facts){ .head = head ? head->header_size : 0,
                                  .body = r->received,
                                  .fd = r->guest->fd,
                                  .status = r->status };
}

const char *server_method(const struct server_request *r)
{
    return r->head.method;
}

const char *server_path(const struct server_request *r)
{
    return r->head.path;
}

const char *server_header(const struct server_request *r, const char *name)
{
    return MHD_lookup_connection_value(r->c, MHD_HEADER_KIND, name);
}

const struct buf *server_body(const struct server_request *r)
{
    return &r->body;
}

const char *server_peer(const struct server_request *r, char out[SERVER_PEER])
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(r->c, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    const struct sockaddr *a = info ? info->client_addr : NULL;
    socklen_t n =
        a && a->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
    if (!a || getnameinfo(a, n, out, SERVER_PEER, NULL, 0, NI_NUMERICHOST))
        snprintf(out, SERVER_PEER, "-");
    return out;
}

bool server_first(const struct server_request *r)
{
    return !r->guest->known;
}

void server_set_own(struct server_request *r, void *own, void (*drop)(void *own))
{
    r->own = own;
    r->drop = drop;
}

void *server_own(const struct server_request *r)
{
    return r->own;
}

bool server_closing(const struct server_request *r)
{
    return atomic_load(&r->server->closing);
}
