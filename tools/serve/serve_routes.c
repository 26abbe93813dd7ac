/* serve_routes.c - which request is answered by what, and the form of all answers. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/sys/os.h"
#include "net/http/json_input.h"
#include "tools/cli/json_report.h"
#include "tools/serve/serve_exchange.h"

enum { SMALL = 16 << 10 /* bytes of an answer that is sent even when there is no room for more */ };

static const struct serve_route routes[] = {
    { "/v1/chat/completions", .post = true, .answer = serve_write },
    { "/v1/completions", .post = true, .answer = serve_write },
    { "/v1/models", .answer = serve_info_models },
    { "/v1/models/", .answer = serve_info_model },
    { "/tokenize", .post = true, .answer = serve_tokens_encode, .room = serve_tokens_room },
    { "/detokenize", .post = true, .answer = serve_tokens_decode, .room = serve_tokens_room },
    { "/tokenizer_info", .answer = serve_tokens_info },
    { "/health", .open = true, .early = true, .answer = serve_info_health },
    { "/metrics", .answer = serve_metrics },
    { "/mizzle/info", .answer = serve_info_all },
    { "/", .open = true, .early = true, .answer = serve_page },
    { "/page.css", .open = true, .early = true, .answer = serve_page },
    { "/page.js", .open = true, .early = true, .answer = serve_page },
    { .path = NULL },
};

void serve_routes_refuse_busy(struct serve_exchange *x)
{
    struct serve_error e = { 503, "busy", "", "too many bytes of answers at a time" };
    serve_routes_refuse(x, &e);
}

void serve_routes_send(struct serve_exchange *x, unsigned status, const char *type,
                       struct buf *text, const char *const (*more)[2])
{
    if (!serve_routes_hold(x, text->cap) && text->cap > SMALL) {
        serve_routes_refuse_busy(x);
        return;
    }
    const char *headers[9][2] = { { "X-Content-Type-Options", "nosniff" },
                                  { "Cache-Control", "no-store" } };
    for (size_t i = 2; more && more[0][0] && i < 8; i++, more++)
        memcpy(headers[i], more[0], sizeof(headers[i]));
    if (x->s->o.face->send)
        x->s->o.face->send(x, status, type, text, (const char *const(*)[2])headers);
    else
        server_reply(x->r, status, type, text, (const char *const(*)[2])headers);
}

bool serve_routes_print(struct buf *out, json_t *json)
{
    /* More digits than a logprob has, so that different ones stay different. */
    return json_report_append(out, json, JSON_COMPACT | JSON_REAL_PRECISION(12));
}

/* Answer with JSON, which is released. */
static void serve_routes_object(struct serve_exchange *x, unsigned status, json_t *json,
                                const char *const (*more)[2])
{
    struct buf text = { 0 };
    if (serve_routes_print(&text, json))
        serve_routes_send(x, status, "application/json", &text, more);
    buf_free(&text);
}

void serve_routes_json(struct serve_exchange *x, unsigned status, json_t *json)
{
    struct serve_error e = { 500, "internal_error", "", "the answer cannot be made" };
    json ? serve_routes_object(x, status, json, NULL) : serve_routes_refuse(x, &e);
}

void serve_routes_refuse(struct serve_exchange *x, const struct serve_error *e)
{
    x->s->o.face->refuse(x, e);
}

/* Refuse as OpenAI's clients expect it. */
static void serve_routes_explain(struct serve_exchange *x, const struct serve_error *e)
{
    const char *const later[][2] = { { "Retry-After", "1" }, { NULL, NULL } };
    const char *const never[][2] = { { "x-should-retry", "false" }, { NULL, NULL } };
    const char *const allow[][2] = { { "Allow", e->param }, { NULL, NULL } };
    struct serve_error shown = *e;
    if (e->status == 405)
        shown.param[0] = '\0';
    serve_routes_object(x, e->status, serve_error_json(&shown),
                        e->status == 503   ? later
                        : e->status == 502 ? never
                        : e->status == 405 ? allow
                                           : NULL);
}

void serve_routes_stream(struct serve_exchange *x,
                         enum server_more (*more)(void *arg, struct buf *out), void *arg)
{
    const char *const headers[][2] = { { "X-Content-Type-Options", "nosniff" },
                                       { "Cache-Control", "no-store" },
                                       { "X-Accel-Buffering", "no" },
                                       { NULL, NULL } };
    atomic_fetch_add(&x->s->streams, 1);
    if (x->s->o.face->stream)
        x->s->o.face->stream(x, headers, more, arg);
    else
        server_stream(x->r, 200, "text/event-stream", -1, headers, more, arg);
}

const struct serve_face serve_routes_face = { .name = "mizzle",
                                              .routes = routes,
                                              .refuse = serve_routes_explain };

/* Find the route; if there is none x->error says why. */
static void serve_routes_find(struct serve_exchange *x)
{
    const char *method = server_method(x->r), *path = server_path(x->r);
    bool get = strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0;
    bool post = strcmp(method, "POST") == 0;
    for (const struct serve_route *r = x->s->o.face->routes; r->path && !x->route; r++) {
        size_t n = strlen(r->path);
        bool all = n > 1 && r->path[n - 1] == '/';
        if (all ? strncmp(path, r->path, n) != 0 || !path[n] : strcmp(path, r->path) != 0)
            continue;
        x->rest = path + n;
        if (r->post ? post : get)
            x->route = r;
        else
            serve_error_set(&x->error, 405, "method_not_allowed", r->post ? "POST" : "GET, HEAD",
                            "%s: expected %s", r->path, r->post ? "POST" : "GET");
    }
    if (!x->rest)
        serve_error_set(&x->error, 404, "not_found", NULL,
                        "there is nothing at this path; /v1/completions, /v1/chat/completions and "
                        "/v1/models are served");
}

void serve_routes_read(struct serve_exchange *x)
{
    json_decref(x->in);
    x->in = NULL;
    server_drop_body(x->r);
}

bool serve_routes_hold(struct serve_exchange *x, size_t n)
{
    size_t all = atomic_load(&x->s->held);
    do /* giving back never fails */
        if (n > x->held && (n > SERVE_ANSWERS || all - x->held > SERVE_ANSWERS - n))
            return false;
    while (!atomic_compare_exchange_weak(&x->s->held, &all, all - x->held + n));
    x->held = n;
    return true;
}

/* Print the line of --log. Its last field is the only one with blanks. */
static void serve_routes_log(const struct serve_exchange *x)
{
    char line[300], clean[300], peer[SERVER_PEER];
    snprintf(line, sizeof(line),
             "method=%s status=%u ms=%.1f tokens=%zu cloud=%zu client=%s path=%s",
             server_method(x->r), server_facts(x->r).status, (double)(os_now_ns() - x->begun) / 1e6,
             x->tokens, x->cloud, server_peer(x->r, peer), server_path(x->r));
    json_input_line(clean, sizeof(clean), line, strlen(line));
    fprintf(stderr, "%s\n", clean);
}

/* Callback of the server: the request is over. */
static void serve_routes_drop(void *own)
{
    struct serve_exchange *x = own;
    serve_routes_hold(x, 0);
    serve_write_drop(x->writing);
    if (x->s->o.log)
        serve_routes_log(x);
    if (x->s->o.face->end)
        x->s->o.face->end(x);
    serve_request_free(&x->ask);
    free(x);
}

/* Return the exchange of a request, which begins with the first callback; NULL without memory. */
static struct serve_exchange *serve_routes_of(struct serve *s, struct server_request *r)
{
    struct serve_exchange *x = server_own(r);
    if (x || !(x = calloc(1, sizeof(*x))))
        return x;
    x->s = s;
    x->r = r;
    x->begun = os_now_ns();
    serve_routes_find(x);
    if (s->o.face->begin && !s->o.face->begin(x)) {
        free(x);
        return NULL;
    }
    server_set_own(r, x, serve_routes_drop);
    return x;
}

/* Callback of the server: true if the request needs no key. */
static bool serve_routes_open(void *arg, struct server_request *r)
{
    const struct serve_exchange *x = serve_routes_of(arg, r);
    return x && x->route && x->route->open;
}

/* Callback of the server: true if the head is fine. */
static bool serve_routes_head(void *arg, struct server_request *r)
{
    struct serve_exchange *x = serve_routes_of(arg, r);
    if (!x)
        return false;
    if (x->route && !x->route->early && !atomic_load(&x->s->ready))
        serve_error_set(&x->error, 503, "loading", NULL, "the model is being loaded");
    else if (x->route && x->route->post && !x->route->any_type && !server_is_json(r))
        serve_error_set(&x->error, 415, "unsupported_media_type", NULL,
                        "Content-Type: expected application/json");
    if (x->error.status)
        serve_routes_refuse(x, &x->error);
    return !x->error.status;
}

/* Callback of the server: answer a complete request. */
static void serve_routes_handle(void *arg, struct server_request *r)
{
    struct serve *s = arg;
    struct serve_exchange *x = serve_routes_of(s, r);
    struct serve_error e = { 0 };
    struct err err = { "" };
    if (!x || !x->route)
        return;
    if (!x->route->post) {
        x->route->answer(x);
        return;
    }
    if (x->route->room && !x->route->room(x)) {
        serve_routes_read(x);
        return;
    }
    int rc = server_parse(r, &x->in, &err);
    if (rc == OK) {
        x->route->answer(x);
    } else {
        serve_error_of(&e, rc, err.msg);
        if (rc == ERR_FORMAT)
            serve_error_set(&e, 400, "invalid_json", NULL, "the body: %s", err.msg);
        serve_routes_refuse(x, &e);
    }
    serve_routes_read(x);
}

/* Callback of the server: answer what it refuses by itself. */
static void serve_routes_refused(void *arg, struct server_request *r, enum server_refusal what,
                                 unsigned status, const char *why)
{
    static const char *const codes[] = {
        [SERVER_BAD_HEAD] = "bad_request",
        [SERVER_BAD_HOST] = "host_not_allowed",
        [SERVER_BAD_ORIGIN] = "origin_not_allowed",
        [SERVER_BAD_KEY] = "invalid_api_key",
        [SERVER_TOO_LARGE] = "request_too_large",
        [SERVER_BAD_ENCODING] = "unsupported_encoding",
        [SERVER_BUSY] = "busy",
        [SERVER_STOPPING] = "stopping",
        [SERVER_NO_MEMORY] = "out_of_memory",
    };
    struct serve_exchange *x = serve_routes_of(arg, r);
    struct serve_error e;
    if (!x)
        return;
    serve_error_set(&e, status, codes[what], NULL, "%s", why);
    serve_routes_refuse(x, &e);
}

void serve_routes_serve(struct server_options *o, struct serve *s)
{
    o->name = s->o.face->name;
    o->late = "{\"error\":{\"message\":\"the request took too long to arrive\","
              "\"type\":\"timeout_error\",\"param\":null,\"code\":\"timeout\"}}";
    o->malformed =
        "{\"error\":{\"message\":\"the request is malformed, or a part of it has no end\","
        "\"type\":\"invalid_request_error\",\"param\":null,\"code\":\"bad_request\"}}";
    o->open = serve_routes_open;
    o->head = serve_routes_head;
    o->handle = serve_routes_handle;
    o->refuse = serve_routes_refused;
    o->arg = s;
}
