#include "tools/stand_in/request.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "kernels/sys/base.h"
#include "kernels/sys/os.h"
#include "net/http/json_input.h"
#include "tools/stand_in/header_checks.h"
#include "tools/stand_in/body.h"
#include "tools/stand_in/engine.h"
#include "tools/stand_in/reply.h"
#include "tools/stand_in/sending.h"

#define TOO_MANY "too many bytes of requests at a time"

enum {
    MAX_BODY = 4 << 20,
    MAX_BODIES = 128 << 20, /* all requests together */
    MAX_WASTE = 64 << 20,   /* of a body that is too large but read anyway */
    LARGE_BODY = 64 << 10,
    HUGE_HEADER = 100 << 10,
};

struct exchange {
    struct stand_in_service *s;
    struct MHD_Connection *c;
    int fd;
    enum stand_in_server server;
    const char *path;
    uint64_t start, due, until; /* due: the line is free again; until: deadline of the request */
    struct buf body;
    size_t received, claimed;
    struct stand_in_refusal no; /* why the body is refused */
    struct stand_in_question ask;
    struct stand_in_job *job;
    struct stand_in_reply say;
    struct stand_in_sending send;
    const struct stand_in_fault *fault;
    uint64_t key, way, trips; /* ns; trips: set-up of a new connection */
    size_t next;              /* event to send */
    bool broken;              /* an error event was sent */
};

/* Queue what x->send holds. header and value: one extra header, or NULL. */
static enum MHD_Result stand_in_request_queue(struct exchange *x, unsigned status, const char *type,
                                              bool length, const char *header, const char *value)
{
    static const char *const servers[] = { "mizzle", "uvicorn", "uvicorn", "llama.cpp" };
    x->send.hold = &x->s->hold;
    x->send.fd = x->fd;
    x->send.pace = x->s->net.down;
    stand_in_sending_begin(&x->send);
    struct MHD_Response *r = stand_in_sending_response(&x->send, length);
    if (!r)
        return MHD_NO; /* out of memory: MHD closes the connection */
    if (type)
        MHD_add_response_header(r, "Content-Type", type);
    MHD_add_response_header(r, "Server", servers[x->s->api.server]);
    MHD_add_response_header(r, "Accept-Encoding", STAND_IN_ENCODINGS);
    if (header && value)
        MHD_add_response_header(r, header, value);
    if (stand_in_waiting_closing(&x->s->hold))
        MHD_add_response_header(r, "Connection", "close");
    enum MHD_Result rc = MHD_queue_response(x->c, status, r);
    MHD_destroy_response(r);
    return rc;
}

static const char *stand_in_request_media(const struct exchange *x)
{
    return x->server == STAND_IN_LLAMACPP ? "application/json; charset=utf-8" : "application/json";
}

/* Append the JSON to out as text and release it; false if there is no memory. */
static bool stand_in_request_print(struct buf *out, json_t *json)
{
    char *text = json ? json_dumps(json, JSON_COMPACT) : NULL;
    bool fine = text && buf_str(out, text);
    free(text);
    json_decref(json);
    return fine;
}

/* Send an answer that is JSON or plain text. */
static enum MHD_Result stand_in_request_answer(struct exchange *x, struct stand_in_answer a,
                                               const char *header, const char *value)
{
    bool fine =
        a.plain ? buf_str(&x->send.bytes, a.plain) : stand_in_request_print(&x->send.bytes, a.json);
    return fine
               ? stand_in_request_queue(
                     x, a.status, a.plain ? "text/plain; charset=utf-8" : stand_in_request_media(x),
                     true, header, value)
               : MHD_NO;
}

static enum MHD_Result stand_in_request_refuse(struct exchange *x,
                                               const struct stand_in_refusal *no)
{
    struct stand_in_answer a = stand_in_refusal_answer(x->server, x->path, no);
    /* SGLang sends status 200 before it checks the question, so its error is an event. */
    if (x->ask.stream && x->ask.form == FORM_GENERATE &&
        (no->what == WRONG_VALUE || no->what == WRONG_LENGTH)) {
        struct buf *out = &x->send.bytes;
        bool fine = buf_str(out, "data: ") && stand_in_request_print(out, a.json) &&
                    buf_str(out, "\n\ndata: [DONE]\n\n");
        return fine ? stand_in_request_queue(x, 200, "text/event-stream; charset=utf-8", false,
                                             NULL, NULL)
                    : MHD_NO;
    }
    return stand_in_request_answer(x, a, no->what == WRONG_METHOD ? "Allow" : NULL, no->why);
}

/* Send the status of a fault instead of the answer. */
static enum MHD_Result stand_in_request_fail(struct exchange *x)
{
    const struct stand_in_fault *f = x->fault;
    const char *value = f->value;
    char *filler = NULL;
    if (!f->body)
        return stand_in_request_answer(
            x, stand_in_refusal_status(x->server, f->status, "a fault was asked for"), f->header,
            value);
    if (f->header && !value) {
        value = filler = malloc(HUGE_HEADER + 1);
        if (!filler)
            return MHD_NO;
        memset(filler, 'x', HUGE_HEADER);
        filler[HUGE_HEADER] = 0;
    } else if (value && !*value) {
        value = x->path;
    }
    enum MHD_Result rc = MHD_NO;
    if (buf_str(&x->send.bytes, f->body) && (!f->text || f->text(&x->send.bytes)))
        rc = stand_in_request_queue(x, f->status, f->type ? f->type : stand_in_request_media(x),
                                    true, f->header, value);
    free(filler);
    return rc;
}

/* Wait until more than `have` tokens exist or none will follow. False: client gone, or time is
 * up. */
static bool next_text(struct exchange *x, struct stand_in_text *t, size_t have)
{
    for (;;) {
        *t = stand_in_engine_wait(x->job, have, STAND_IN_SLICE_MS);
        if (t->finished || t->n > have)
            return true;
        if (stand_in_waiting_gone(x->fd))
            return false;
    }
}

/* Wait until token i may be sent: its time of computation plus the latency. False: client gone. */
static bool stand_in_request_due(struct exchange *x, const struct stand_in_text *t, size_t i)
{
    uint64_t when = t->at[i] + x->way;
    if (x->fault && x->fault->way == WAY_LATE)
        when += STAND_IN_LATE_MS * UINT64_C(1000000);
    return stand_in_waiting_until(&x->s->hold, x->fd, when);
}

static bool stand_in_request_edit(struct exchange *x, json_t **reply)
{
    struct stand_in_case c = { .ask = &x->ask,
                               .vocab = stand_in_engine_vocab(x->s->api.engine),
                               .other = x->ask.ids[0] };
    return *reply && (!x->fault || !x->fault->json || x->fault->json(reply, &c));
}

static bool stand_in_request_event(struct exchange *x, struct buf *out, json_t *json, bool first)
{
    bool comments = x->fault && x->fault->events == EVENTS_COMMENTS;
    struct buf text = { 0 };
    bool fine = stand_in_request_print(&text, json);
    if (fine && first && x->fault && x->fault->text)
        fine = x->fault->text(&text);
    fine = fine && (!comments || buf_str(out, ": ping\r\n\r\n")) && buf_str(out, "data: ") &&
           buf_add(out, text.p, text.n) && buf_str(out, comments ? "\r\n\r\n" : "\n\n");
    buf_free(&text);
    return fine;
}

/* Write the event of the next token and, after the last one, those that close the stream. */
static bool put_events(struct exchange *x, struct buf *out, const struct stand_in_text *t)
{
    enum stand_in_events odd = x->fault ? x->fault->events : EVENTS_FINE;
    bool last = t->finished && x->next + 1 == t->n;
    json_t *json = stand_in_reply_event(&x->say, t, x->next, last);
    if (!stand_in_request_edit(x, &json)) {
        json_decref(json);
        return false;
    }
    if (odd == EVENTS_TWICE && !stand_in_request_event(x, out, json_incref(json), !x->next)) {
        json_decref(json);
        return false;
    }
    if (!stand_in_request_event(x, out, json, !x->next++))
        return false;
    if (odd == EVENTS_ERROR) {
        x->broken = true;
        return stand_in_request_event(
            x, out, stand_in_refusal_status(x->server, 500, "a fault was asked for").json, false);
    }
    if (!last)
        return true;
    json = stand_in_reply_closing(&x->say, t);
    if (odd == EVENTS_NO_DONE) {
        json_decref(json);
        return true;
    }
    if (json && !stand_in_request_event(x, out, json, false))
        return false;
    return !stand_in_reply_done(&x->ask) || buf_str(out, "data: [DONE]\n\n");
}

/* Callback of sending: fill out with the next events. */
static enum stand_in_more more_events(void *arg, struct buf *out)
{
    struct exchange *x = arg;
    struct stand_in_text t;
    if (x->broken)
        return MORE_END;
    if (!next_text(x, &t, x->next))
        return MORE_BROKEN;
    if (x->next == t.n) /* all tokens were sent, or the job was stopped */
        return t.rc ? MORE_BROKEN : MORE_END;
    if (!stand_in_request_due(x, &t, x->next))
        return MORE_BROKEN;
    out->n = 0;
    t.finished = t.finished && !t.rc;
    return put_events(x, out, &t) ? MORE_BYTES : MORE_BROKEN;
}

static enum MHD_Result stand_in_request_stream(struct exchange *x)
{
    const struct stand_in_fault *f = x->fault;
    const char *type = f && f->type                         ? f->type
                       : x->ask.server == STAND_IN_LLAMACPP ? "text/event-stream"
                                                            : "text/event-stream; charset=utf-8";
    x->send.arg = x;
    if (more_events(x, &x->send.bytes) != MORE_BYTES)
        return MHD_NO;
    x->send.more = more_events;
    return stand_in_request_queue(x, 200, type, false, f ? f->header : NULL, f ? f->value : NULL);
}

static enum MHD_Result stand_in_request_whole(struct exchange *x, struct stand_in_text *t)
{
    const struct stand_in_fault *f = x->fault;
    struct buf *out = &x->send.bytes;
    json_t *json = stand_in_reply_all(&x->say, t);
    if (!stand_in_request_edit(x, &json)) {
        json_decref(json);
        return MHD_NO;
    }
    if (!stand_in_request_print(out, json) || (f && f->text && !f->text(out)))
        return MHD_NO;
    x->way = x->trips + stand_in_chance_way(&x->s->net, x->key, x->received, out->n);
    if (!stand_in_request_due(x, t, t->n - 1))
        return MHD_NO;
    return stand_in_request_queue(x, 200, f && f->type ? f->type : stand_in_request_media(x),
                                  !(f && f->no_length), f ? f->header : NULL, f ? f->value : NULL);
}

/* Apply a fault that needs no answer of the model; *rc is the result of the request. */
static bool stand_in_request_failed(struct exchange *x, enum MHD_Result *rc)
{
    const struct stand_in_fault *f = x->fault;
    *rc = MHD_NO;
    if (!f || !(f->status || f->way == WAY_CLOSE || f->way == WAY_RESET || f->way == WAY_SILENT))
        return false;
    uint64_t until = f->way == WAY_SILENT ? UINT64_MAX : os_now_ns() + x->way;
    if (!stand_in_waiting_until(&x->s->hold, x->fd, until))
        return true;
    const struct linger rst = { .l_onoff = 1 };
    if (f->way == WAY_RESET)
        setsockopt(x->fd, SOL_SOCKET, SO_LINGER, &rst, sizeof(rst));
    if (f->status)
        *rc = stand_in_request_fail(x);
    return true;
}

static enum MHD_Result stand_in_request_complete(struct exchange *x)
{
    struct stand_in_service *s = x->s;
    struct stand_in_text t;
    struct err err = { "" };
    enum MHD_Result rc;
    x->key = stand_in_chance_key(s->draw, x->ask.ids, x->ask.n);
    x->fault = stand_in_fault_draw(&s->faults, x->key);
    x->way = x->trips + stand_in_chance_way(&s->net, x->key, x->received, 0);
    x->send.way = x->fault ? x->fault->way : WAY_WHOLE;
    if (stand_in_request_failed(x, &rc))
        return rc;
    stand_in_reply_begin(&x->say, s->api.engine, &x->ask, s->api.name, s->api.created, x->key);
    const struct stand_in_wish wish = { .prompt = x->ask.ids,
                                        .n = x->ask.n,
                                        .max = x->ask.max,
                                        .go_on = x->ask.go_on,
                                        .slot = x->ask.slot };
    int code = stand_in_engine_ask(s->api.engine, &x->job, &wish, &err);
    if (code == OK) {
        if (!next_text(x, &t, x->ask.stream ? 0 : SIZE_MAX))
            return MHD_NO;
        code = t.n && x->ask.stream ? OK : t.rc;
    }
    if (code) {
        struct stand_in_refusal no = stand_in_refusal_of(code, &err);
        x->ask.stream = false;
        return stand_in_request_refuse(x, &no);
    }
    return x->ask.stream ? stand_in_request_stream(x) : stand_in_request_whole(x, &t);
}

/* Parse the body and answer it, or read the question from it. */
static void parse_body(struct exchange *x, const struct stand_in_route *r, json_t **reply,
                       struct stand_in_refusal *no)
{
    struct stand_in_service *s = x->s;
    struct err err = { "" };
    json_t *in = NULL;
    if (json_input_parse(&in, x->body.p ? x->body.p : "", x->body.n, &err))
        stand_in_refusal_set(
            no, WRONG_JSON, "%s%s",
            x->server == STAND_IN_LLAMACPP ? "[json.exception.parse_error.101] " : "", err.msg);
    else if (r->answer)
        r->answer(&s->api, in, reply, no);
    else
        stand_in_question_read(&x->ask, s->api.engine, x->server, r->form,
                               s->api.server == STAND_IN_OPENAI ? s->api.name : NULL, in, no);
    json_decref(in);
}

/* Claim memory for the unpacked body; deflate makes at most 1,032 bytes of one. */
static bool claim_unpacked(struct exchange *x)
{
    size_t most = x->body.n < MAX_BODY / 1032 ? x->body.n * 1032 : (size_t)MAX_BODY;
    if (!stand_in_waiting_claim(&x->s->hold, most, MAX_BODIES))
        return false;
    x->claimed += most;
    return true;
}

static void read_body(struct exchange *x, const struct stand_in_route *r, json_t **reply,
                      struct stand_in_refusal *no)
{
    const char *encoding = MHD_lookup_connection_value(x->c, MHD_HEADER_KIND, "Content-Encoding");
    if (!stand_in_header_checks_media(x->c, x->s->api.server, x->path))
        stand_in_refusal_set(no, WRONG_TYPE,
                             "Unsupported Media Type: Only 'application/json' is allowed");
    else if (encoding && !claim_unpacked(x))
        stand_in_refusal_set(no, WRONG_BUSY, TOO_MANY);
    else
        stand_in_body_unpack(&x->body, encoding, no);
    bool large = x->body.n > LARGE_BODY;
    if (large)
        pthread_mutex_lock(&x->s->parser);
    if (!no->what)
        parse_body(x, r, reply, no);
    if (large)
        pthread_mutex_unlock(&x->s->parser);
    buf_free(&x->body);
    stand_in_waiting_release(&x->s->hold, x->claimed);
    x->claimed = 0;
}

static enum MHD_Result respond(struct exchange *x, const char *method)
{
    struct stand_in_service *s = x->s;
    struct stand_in_refusal no = { .what = WRONG_NOTHING };
    json_t *reply = NULL;
    const struct stand_in_route *r = stand_in_paths_find(&s->api, method, x->path, &x->server, &no);
    if (!stand_in_header_checks_length(x->c))
        return stand_in_request_answer(
            x,
            stand_in_refusal_status(x->server, 400,
                                    "Content-Length and Transfer-Encoding: expected one"),
            "Connection", "close");
    if (s->key && !(r && r->open) && !stand_in_header_checks_key(x->c, s->key))
        no.what = WRONG_KEY;
    else if (r && x->no.what)
        no = x->no;
    if (no.what)
        return stand_in_request_refuse(x, &no);
    if (strcmp(r->methods, "GET") != 0)
        read_body(x, r, &reply, &no);
    else if (r->answer)
        r->answer(&s->api, NULL, &reply, &no);
    if (no.what)
        return stand_in_request_refuse(x, &no);
    if (r->completion)
        return stand_in_request_complete(x);
    if (!reply)
        return stand_in_request_queue(x, 200, NULL, true, NULL, NULL);
    return stand_in_request_answer(x, (struct stand_in_answer){ .status = 200, .json = reply },
                                   NULL, NULL);
}

/* Accept a part of the body. False: the connection is not worth keeping. */
static bool receive(struct exchange *x, const char *data, size_t n)
{
    struct stand_in_service *s = x->s;
    uint64_t now = os_now_ns();
    x->received += n;
    if (x->received > MAX_WASTE)
        return false;
    if (s->net.up) {
        uint64_t takes = n * UINT64_C(1000000000) / s->net.up;
        x->due = (x->due > now ? x->due : now) + takes;
        stand_in_deadlines_until(&s->watch, x->c, x->until += takes);
        if (!stand_in_waiting_until(&s->hold, x->fd, x->due))
            return false;
    }
    if (x->no.what)
        return true;
    if (!stand_in_waiting_claim(&s->hold, n, MAX_BODIES)) {
        stand_in_refusal_set(&x->no, WRONG_BUSY, TOO_MANY);
    } else {
        x->claimed += n;
        if (!buf_add(&x->body, data, n))
            stand_in_refusal_set(&x->no, WRONG_SIZE, "the request is too large");
    }
    if (x->no.what)
        buf_free(&x->body);
    return true;
}

static struct exchange *stand_in_request_begin(struct stand_in_service *s, struct MHD_Connection *c,
                                               const char *path)
{
    struct exchange *x = calloc(1, sizeof(*x));
    if (!x)
        return NULL;
    const union MHD_ConnectionInfo *fd =
        MHD_get_connection_info(c, MHD_CONNECTION_INFO_CONNECTION_FD);
    const union MHD_ConnectionInfo *header =
        MHD_get_connection_info(c, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
    x->s = s;
    x->c = c;
    x->path = path;
    x->fd = fd ? fd->connect_fd : -1;
    x->body.max = MAX_BODY;
    x->start = os_now_ns();
    if (s->net.up && header)
        x->due = x->start + header->header_size * UINT64_C(1000000000) / s->net.up;
    x->until = (x->due ? x->due : x->start) + s->watch.patience;
    stand_in_deadlines_until(&s->watch, c, x->until);
    if (stand_in_deadlines_first(c))
        x->trips = s->net.trips * (uint64_t)s->net.latency_ms * 1000000;
    stand_in_waiting_enter(&s->hold);
    return x;
}

enum MHD_Result stand_in_request_handle(void *arg, struct MHD_Connection *c, const char *path,
                                        const char *method, const char *version, const char *data,
                                        size_t *n, void **state)
{
    (void)version;
    if (!*state) { /* first call: headers only */
        *state = stand_in_request_begin(arg, c, path);
        return *state ? MHD_YES : MHD_NO;
    }
    struct exchange *x = *state;
    if (!*n) {
        stand_in_deadlines_until(&x->s->watch, c, 0);
        return respond(x, method);
    }
    bool go_on = receive(x, data, *n);
    *n = 0;
    return go_on ? MHD_YES : MHD_NO;
}

void stand_in_request_done(void *arg, struct MHD_Connection *c, void **state,
                           enum MHD_RequestTerminationCode why)
{
    struct stand_in_service *s = arg;
    struct exchange *x = *state;
    (void)why;
    if (!x)
        return;
    stand_in_deadlines_until(&s->watch, c,
                             os_now_ns() + s->watch.patience); /* for the next request */
    *state = NULL;
    stand_in_engine_drop(x->job);
    stand_in_reply_end(&x->say);
    buf_free(&x->send.bytes);
    buf_free(&x->body);
    free(x->ask.ids);
    stand_in_waiting_release(&s->hold, x->claimed);
    free(x);
    stand_in_waiting_leave(&s->hold);
}
