#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "net/server/server_internal.h"

/* Callback of libmicrohttpd: fill out with the next bytes of the body. */
static ssize_t server_reply_read(void *arg, uint64_t pos, char *out, size_t room)
{
    struct server_request *r = arg;
    (void)pos;
    server_watch_phase(r->guest, PHASE_NONE); /* what was there before has been sent */
    while (r->at == r->out.n) {
        r->out.n = r->at = 0;
        if (!r->more)
            return MHD_CONTENT_READER_END_OF_STREAM;
        bool over = atomic_load(&r->server->over);
        enum server_more more = over && r->farewell ? SERVER_BROKEN : r->more(r->more_arg, &r->out);
        r->farewell = over;
        if (more == SERVER_BROKEN)
            return MHD_CONTENT_READER_END_WITH_ERROR;
        if (more == SERVER_END)
            r->more = NULL;
    }
    size_t n = r->out.n - r->at;
    n = n < room ? n : room;
    n = n < SERVER_BLOCK ? n : (size_t)SERVER_BLOCK;
    memcpy(out, r->out.p + r->at, n);
    r->at += n;
    server_watch_phase(r->guest, PHASE_SEND);
    return (ssize_t)n;
}

static void server_reply_header(struct MHD_Response *m, const char *name, const char *value)
{
    if (value)
        MHD_add_response_header(m, name, value);
}

const char *server_reply_id(char id[SERVER_ID], uint64_t number)
{
    snprintf(id, SERVER_ID, "req-%016llx", (unsigned long long)number);
    return id;
}

void server_reply_raw(struct server *s, int fd, unsigned status, const char *json)
{
    char text[1024], id[SERVER_ID];
    int n = snprintf(text, sizeof(text),
                     "HTTP/1.1 %u %s\r\nConnection: close\r\nx-request-id: %s\r\n"
                     "%sContent-Length: %zu\r\n\r\n%s",
                     status, MHD_get_reason_phrase_for(status),
                     server_reply_id(id, atomic_fetch_add(&s->numbers, 1) + 1),
                     json ? "Content-Type: application/json\r\n" : "", json ? strlen(json) : 0,
                     json ? json : "");
    if (n > 0 && (size_t)n < sizeof(text))
        (void)!send(fd, text, (size_t)n, MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* Build the reply; without memory there is none, and the connection is closed. */
static void server_reply_begin(struct server_request *r, unsigned status, const char *type,
                               uint64_t size, const char *const headers[][2])
{
    struct MHD_Response *m =
        MHD_create_response_from_callback(size, SERVER_BLOCK, server_reply_read, r, NULL);
    char id[SERVER_ID];
    if (!m)
        return;
    server_reply_header(m, "Server", r->server->o.name);
    server_reply_header(m, "x-request-id", server_reply_id(id, r->number));
    server_reply_header(m, "Content-Type", type);
    for (size_t i = 0; headers && headers[i][0]; i++)
        server_reply_header(m, headers[i][0], headers[i][1]);
    if (status == 401)
        server_reply_header(m, "WWW-Authenticate", "Bearer");
    if (r->head.foreign) {
        server_reply_header(m, "Access-Control-Allow-Origin", r->head.single[SINGLE_ORIGIN]);
        server_reply_header(m, "Access-Control-Expose-Headers", "x-request-id, Retry-After");
    }
    if (r->server->o.origin)
        server_reply_header(m, "Vary", "Origin");
    if (r->last || atomic_load(&r->server->closing))
        server_reply_header(m, "Connection", "close");
    r->reply = m;
    r->status = status;
}

void server_reply(struct server_request *r, unsigned status, const char *type, struct buf *body,
                  const char *const headers[][2])
{
    buf_free(&r->out);
    r->out = *body;
    r->at = 0;
    *body = (struct buf){ 0 };
    server_reply_begin(r, status, type, r->out.n, headers);
}

void server_stream(struct server_request *r, unsigned status, const char *type, int64_t length,
                   const char *const headers[][2],
                   enum server_more (*more)(void *arg, struct buf *out), void *arg)
{
    r->more = more;
    r->more_arg = arg;
    server_reply_begin(r, status, type, length < 0 ? MHD_SIZE_UNKNOWN : (uint64_t)length, headers);
}

void server_reply_refuse(struct server_request *r, enum server_refusal what, const char *why)
{
    static const unsigned statuses[] = {
        [SERVER_BAD_HEAD] = 400, [SERVER_BAD_HOST] = 403,  [SERVER_BAD_ORIGIN] = 403,
        [SERVER_BAD_KEY] = 401,  [SERVER_TOO_LARGE] = 413, [SERVER_BAD_ENCODING] = 415,
        [SERVER_BUSY] = 503,     [SERVER_STOPPING] = 503,  [SERVER_NO_MEMORY] = 503,
    };
    const struct server_options *o = &r->server->o;
    struct buf text = { 0 };
    r->last |= what == SERVER_BAD_HEAD; /* where the next request begins is in doubt */
    if (o->refuse)
        o->refuse(o->arg, r, what, statuses[what], why);
    else if (buf_str(&text, why) && buf_str(&text, "\n"))
        server_reply(r, statuses[what], "text/plain; charset=utf-8", &text, NULL);
    buf_free(&text);
}

bool server_reply_is_preflight(const struct server_request *r)
{
    return r->head.foreign && strcmp(r->head.method, "OPTIONS") == 0 &&
           server_header(r, "Access-Control-Request-Method");
}

void server_reply_preflight(struct server_request *r)
{
    const char *const headers[][2] = {
        { "Access-Control-Allow-Methods", "GET, POST, OPTIONS" },
        { "Access-Control-Allow-Headers", server_header(r, "Access-Control-Request-Headers") },
        { "Access-Control-Max-Age", "600" },
        { "Access-Control-Allow-Private-Network",
          server_header(r, "Access-Control-Request-Private-Network") },
        { NULL, NULL },
    };
    struct buf none = { 0 };
    server_reply(r, 204, NULL, &none, headers);
}

enum MHD_Result server_reply_queue(struct server_request *r)
{
    if (!r->reply)
        return MHD_NO;
    server_watch_phase(r->guest, PHASE_SEND);
    enum MHD_Result rc = MHD_queue_response(r->c, r->status, r->reply);
    MHD_destroy_response(r->reply);
    r->reply = NULL;
    return rc;
}
