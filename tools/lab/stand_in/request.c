#include "tools/lab/stand_in/request.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "kernels/sys/base.h"
#include "kernels/sys/os.h"
#include "tools/cli/json_report.h"
#include "tools/lab/stand_in/reply.h"
#include "tools/lab/stand_in/sending.h"
#include "tools/lab/stand_in/source.h"

#define ENCODINGS "gzip, deflate" /* as an Accept-Encoding response header (RFC 7694) */

enum {
    HUGE_HEADER = 100 << 10,
};

struct exchange {
    struct stand_in *s;
    struct server_request *r;
    const struct stand_in_route *route; /* NULL: refused with `no` */
    struct stand_in_net net;            /* as it was when the request began */
    uint64_t due;                       /* the line is free again */
    struct stand_in_refusal no;
    struct stand_in_question ask;
    struct text *text;
    struct stand_in_reply say;
    struct stand_in_sending send;
    const struct stand_in_fault *fault;
    uint64_t key, way, trips; /* ns; trips: set-up of a new connection */
    size_t next;              /* event to send */
    bool broken;              /* an error event was sent */
};

/* Answer with what x->send holds. header and value: one extra header, or NULL. */
static void stand_in_request_queue(struct exchange *x, unsigned status, const char *type,
                                   bool length, const char *header, const char *value)
{
    const char *const headers[][2] = { { "Accept-Encoding", ENCODINGS },
                                       { value ? header : NULL, value },
                                       { NULL, NULL } };
    x->send.r = x->r;
    x->send.pace = x->net.down;
    stand_in_sending_begin(&x->send, status, type, length, headers);
}

static const char *stand_in_request_media(const struct exchange *x)
{
    return x->no.server == CLOUD_LLAMACPP ? "application/json; charset=utf-8" : "application/json";
}

/* Send an answer that is JSON or plain text. Without memory the connection is closed, here and
 * below. */
static void stand_in_request_answer(struct exchange *x, struct stand_in_answer a,
                                    const char *header, const char *value)
{
    bool fine = a.plain ? buf_str(&x->send.bytes, a.plain)
                        : json_report_append(&x->send.bytes, a.json, JSON_COMPACT);
    if (fine)
        stand_in_request_queue(x, a.status,
                               a.plain ? "text/plain; charset=utf-8" : stand_in_request_media(x),
                               true, header, value);
}

/* Refuse the request for the reason in x->no. */
static void stand_in_request_refuse(struct exchange *x)
{
    const struct stand_in_refusal *no = &x->no;
    struct stand_in_answer a = stand_in_refusal_answer(server_path(x->r), no);
    /* SGLang sends status 200 before it checks the question, so its error is an event. */
    if (x->ask.stream && x->ask.form == FORM_GENERATE &&
        (no->what == WRONG_VALUE || no->what == WRONG_LENGTH)) {
        struct buf *out = &x->send.bytes;
        if (buf_str(out, "data: ") && json_report_append(out, a.json, JSON_COMPACT) &&
            buf_str(out, "\n\ndata: [DONE]\n\n"))
            stand_in_request_queue(x, 200, "text/event-stream; charset=utf-8", false, NULL, NULL);
        return;
    }
    stand_in_request_answer(x, a, no->what == WRONG_METHOD ? "Allow" : NULL, no->why);
}

/* Send the status of a fault instead of the answer. */
static void stand_in_request_fail(struct exchange *x)
{
    const struct stand_in_fault *f = x->fault;
    const char *value = f->value;
    char *filler = NULL;
    if (!f->body) {
        stand_in_request_answer(
            x, stand_in_refusal_status(x->no.server, f->status, "a fault was asked for"), f->header,
            value);
        return;
    }
    if (f->header && !value) {
        value = filler = malloc(HUGE_HEADER + 1);
        if (!filler)
            return;
        memset(filler, 'x', HUGE_HEADER);
        filler[HUGE_HEADER] = 0;
    } else if (value && !*value) {
        value = server_path(x->r);
    }
    if (buf_str(&x->send.bytes, f->body) && (!f->text || f->text(&x->send.bytes, f->with)))
        stand_in_request_queue(x, f->status, f->type ? f->type : stand_in_request_media(x), true,
                               f->header, value);
    free(filler);
}

/* Callback of the server: the client has gone. */
static void stand_in_request_gone(void *text)
{
    text_cancel(text);
}

/* Wait until more than `have` tokens exist or none will follow. False: the client has gone. */
static bool next_text(struct exchange *x, struct text_view *t, size_t have)
{
    *t = text_wait(x->text, have);
    return !t->finished || t->rc != ERR_STOP || !server_gone(x->r);
}

/* Wait until token i may be sent: its time of computation plus the latency. False: client gone. */
static bool stand_in_request_due(struct exchange *x, const struct text_view *t, size_t i)
{
    uint64_t when = t->tokens[i].at + x->way;
    if (x->fault && x->fault->way == WAY_LATE)
        when += STAND_IN_LATE_MS * UINT64_C(1000000);
    return stand_in_sending_wait(x->r, when);
}

static bool stand_in_request_edit(struct exchange *x, json_t **reply)
{
    struct stand_in_case c = {
        .fault = x->fault, .ask = &x->ask, .vocab = x->s->api.source->vocab, .other = x->ask.ids[0]
    };
    return *reply && (!x->fault || !x->fault->json || x->fault->json(reply, &c));
}

static bool stand_in_request_event(struct exchange *x, struct buf *out, json_t *json, bool first)
{
    bool comments = x->fault && x->fault->events == EVENTS_COMMENTS;
    struct buf text = { 0 };
    bool fine = json_report_append(&text, json, JSON_COMPACT);
    if (fine && first && x->fault && x->fault->text)
        fine = x->fault->text(&text, x->fault->with);
    fine = fine && (!comments || buf_str(out, ": ping\r\n\r\n")) && buf_str(out, "data: ") &&
           buf_add(out, text.p, text.n) && buf_str(out, comments ? "\r\n\r\n" : "\n\n");
    buf_free(&text);
    return fine;
}

/* Write the event of the next token and, after the last one, those that close the stream. */
static bool put_events(struct exchange *x, struct buf *out, const struct text_view *t)
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
            x, out, stand_in_refusal_status(x->no.server, 500, "a fault was asked for").json,
            false);
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
    return x->ask.form == FORM_COMPLETION || buf_str(out, "data: [DONE]\n\n");
}

/* Callback of sending: fill out with the next events. */
static enum server_more more_events(void *arg, struct buf *out)
{
    struct exchange *x = arg;
    struct text_view t;
    if (x->broken)
        return SERVER_END;
    if (!next_text(x, &t, x->next))
        return SERVER_BROKEN;
    if (x->next == t.n) /* all tokens were sent, or the job was stopped */
        return t.rc ? SERVER_BROKEN : SERVER_END;
    if (!stand_in_request_due(x, &t, x->next))
        return SERVER_BROKEN;
    out->n = 0;
    t.finished = t.finished && !t.rc;
    return put_events(x, out, &t) ? SERVER_MORE : SERVER_BROKEN;
}

static void stand_in_request_stream(struct exchange *x)
{
    const struct stand_in_fault *f = x->fault;
    const char *type = f && f->type                      ? f->type
                       : x->ask.server == CLOUD_LLAMACPP ? "text/event-stream"
                                                         : "text/event-stream; charset=utf-8";
    x->send.arg = x;
    if (more_events(x, &x->send.bytes) != SERVER_MORE)
        return;
    x->send.more = more_events;
    stand_in_request_queue(x, 200, type, false, f ? f->header : NULL, f ? f->value : NULL);
}

static void stand_in_request_whole(struct exchange *x, struct text_view *t)
{
    const struct stand_in_fault *f = x->fault;
    struct buf *out = &x->send.bytes;
    json_t *json = stand_in_reply_all(&x->say, t);
    if (!stand_in_request_edit(x, &json)) {
        json_decref(json);
        return;
    }
    if (!json_report_append(out, json, JSON_COMPACT) || (f && f->text && !f->text(out, f->with)))
        return;
    x->way = x->trips + stand_in_chance_way(&x->net, x->key, server_received(x->r), out->n);
    if (stand_in_request_due(x, t, t->n - 1))
        stand_in_request_queue(x, 200, f && f->type ? f->type : stand_in_request_media(x),
                               !(f && f->no_length), f ? f->header : NULL, f ? f->value : NULL);
}

/* Apply a fault that needs no answer of the model; false if there is none. */
static bool stand_in_request_failed(struct exchange *x)
{
    const struct stand_in_fault *f = x->fault;
    if (!f || !(f->status || f->way == WAY_CLOSE || f->way == WAY_RESET || f->way == WAY_SILENT))
        return false;
    uint64_t until = f->way == WAY_SILENT ? UINT64_MAX : os_now_ns() + x->way;
    if (!stand_in_sending_wait(x->r, until))
        return true;
    const struct linger rst = { .l_onoff = 1 };
    if (f->way == WAY_RESET)
        setsockopt(server_fd(x->r), SOL_SOCKET, SO_LINGER, &rst, sizeof(rst));
    if (f->status)
        stand_in_request_fail(x);
    return true;
}

static void stand_in_request_complete(struct exchange *x)
{
    struct stand_in *s = x->s;
    struct text_view t;
    struct err err = { "" };
    x->key = stand_in_chance_key(s->draw, x->ask.ids, x->ask.n);
    x->fault = stand_in_fault_draw(&s->faults, x->key);
    x->way = x->trips + stand_in_chance_way(&x->net, x->key, server_received(x->r), 0);
    x->send.way = x->fault ? x->fault->way : WAY_WHOLE;
    if (stand_in_request_failed(x))
        return;
    stand_in_reply_begin(&x->say, s->api.source, &x->ask, s->api.name, s->api.created, x->key);
    int code = stand_in_source_ask(s->api.source, &x->text, &x->ask, &err);
    if (code == OK) {
        server_on_gone(x->r, stand_in_request_gone, x->text);
        if (!next_text(x, &t, x->ask.stream ? 0 : SIZE_MAX))
            return;
        code = t.n && x->ask.stream ? OK : t.rc;
    }
    if (code) {
        stand_in_refusal_of(&x->no, code, &err);
        x->ask.stream = false;
        stand_in_request_refuse(x);
    } else if (x->ask.stream) {
        stand_in_request_stream(x);
    } else {
        stand_in_request_whole(x, &t);
    }
}

/* Return the reply to the body, or read the question from it. */
static json_t *stand_in_request_parse(struct exchange *x)
{
    const struct stand_in_paths *a = &x->s->api;
    struct err err = { "" };
    json_t *in = NULL, *reply = NULL;
    int rc = server_parse(x->r, &in, &err);
    if (rc != OK)
        stand_in_refusal_set(
            &x->no, rc == ERR_NOMEM ? WRONG_BUSY : WRONG_JSON, "%s%s",
            x->no.server == CLOUD_LLAMACPP ? "[json.exception.parse_error.101] " : "", err.msg);
    else if (x->route->answer)
        reply = x->route->answer(&(struct stand_in_query){ a, in, &x->no });
    else
        stand_in_question_read(&x->ask, a->source, x->route->form,
                               a->server == CLOUD_OPENAI ? a->name : NULL, in, &x->no);
    json_decref(in);
    server_drop_body(x->r);
    return reply;
}

/* Callback of the server: answer a complete request. */
static void stand_in_request_handle(void *arg, struct server_request *r)
{
    struct stand_in *s = arg;
    struct exchange *x = server_own(r);
    const struct stand_in_route *route = x->route;
    json_t *reply = NULL;
    if (strcmp(route->methods, "GET") != 0)
        reply = stand_in_request_parse(x);
    else if (route->answer)
        reply = route->answer(&(struct stand_in_query){ &s->api, NULL, &x->no });
    if (route->answer && !reply && !x->no.what)
        x->no.what = WRONG_MEMORY;
    if (x->no.what)
        stand_in_request_refuse(x);
    else if (route->completion)
        stand_in_request_complete(x);
    else if (!reply)
        stand_in_request_queue(x, 200, NULL, true, NULL, NULL);
    else
        stand_in_request_answer(x, (struct stand_in_answer){ .status = 200, .json = reply }, NULL,
                                NULL);
}

/* vLLM and SGLang read a /v1 body only if it is declared as JSON. */
static bool stand_in_request_is_json(const struct exchange *x)
{
    enum cloud_api played = x->s->api.server;
    if ((played != CLOUD_OPENAI && played != CLOUD_SGLANG) ||
        strncmp(server_path(x->r), "/v1/", 4) != 0 || strcmp(x->route->methods, "GET") == 0)
        return true;
    return server_is_json(x->r);
}

/* Callback of the server: true if the head is fine. */
static bool stand_in_request_head(void *arg, struct server_request *r)
{
    struct exchange *x = server_own(r);
    (void)arg;
    if (x->route && !stand_in_request_is_json(x))
        stand_in_refusal_set(&x->no, WRONG_TYPE,
                             "Unsupported Media Type: Only 'application/json' is allowed");
    if (x->no.what)
        stand_in_request_refuse(x);
    return !x->no.what;
}

/* Callback of the server: true if the request needs no key. */
static bool stand_in_request_open(void *arg, struct server_request *r)
{
    struct exchange *x = server_own(r);
    (void)arg;
    return x->route && x->route->open;
}

/* Callback of the server: refuse in the words of the imitated server. */
static void stand_in_request_refused(void *arg, struct server_request *r, enum server_refusal what,
                                     unsigned status, const char *why)
{
    static const enum stand_in_wrong wrongs[] = {
        [SERVER_BAD_KEY] = WRONG_KEY,
        [SERVER_TOO_LARGE] = WRONG_SIZE,
        [SERVER_BAD_ENCODING] = WRONG_ENCODING,
        [SERVER_BAD_BODY] = WRONG_JSON,
        [SERVER_BUSY] = WRONG_BUSY,
        [SERVER_STOPPING] = WRONG_STOPPING,
        [SERVER_NO_MEMORY] = WRONG_MEMORY,
    };
    struct exchange *x = server_own(r);
    (void)arg;
    x->ask.stream = false;
    buf_free(&x->send.bytes);
    stand_in_refusal_set(&x->no, wrongs[what], "%s", why);
    if (x->no.what)
        stand_in_request_refuse(x);
    else
        stand_in_request_answer(x, stand_in_refusal_status(x->no.server, status, why), NULL, NULL);
}

static void stand_in_request_drop(void *own)
{
    struct exchange *x = own;
    text_drop(x->text);
    stand_in_reply_end(&x->say);
    buf_free(&x->send.bytes);
    free(x->ask.ids);
    free(x);
}

/* Begin an exchange once the head is there. */
static bool stand_in_request_begin(struct stand_in *s, struct server_request *r)
{
    struct exchange *x = calloc(1, sizeof(*x));
    if (!x)
        return false;
    server_set_own(r, x, stand_in_request_drop);
    x->s = s;
    x->r = r;
    pthread_mutex_lock(&s->line);
    x->net = s->net;
    pthread_mutex_unlock(&s->line);
    x->due = os_now_ns();
    x->route = stand_in_paths_find(&s->api, server_method(r), server_path(r), &x->no);
    if (server_first(r))
        x->trips = x->net.trips * (uint64_t)x->net.latency_ms * 1000000;
    return true;
}

/* Callback of the server: let n bytes take their time on the line. The head's delay is counted, but
 * only a body waits for it. */
static bool stand_in_request_received(void *arg, struct server_request *r, size_t n)
{
    struct stand_in *s = arg;
    struct exchange *x = server_own(r);
    bool head = !x;
    if (head && !stand_in_request_begin(s, r))
        return false;
    x = server_own(r);
    if (!x->net.up)
        return true;
    uint64_t now = os_now_ns();
    x->due = (x->due > now ? x->due : now) + n * UINT64_C(1000000000) / x->net.up;
    return head || stand_in_sending_wait(r, x->due);
}

void stand_in_request_serve(struct server_options *o, struct stand_in *s)
{
    static const char *const servers[] = { [CLOUD_AUTO] = "mizzle",
                                           [CLOUD_OPENAI] = "uvicorn",
                                           [CLOUD_SGLANG] = "uvicorn",
                                           [CLOUD_LLAMACPP] = "llama.cpp" };
    o->name = servers[s->api.server];
    o->open = stand_in_request_open;
    o->head = stand_in_request_head;
    o->received = stand_in_request_received;
    o->handle = stand_in_request_handle;
    o->refuse = stand_in_request_refused;
    o->arg = s;
}
