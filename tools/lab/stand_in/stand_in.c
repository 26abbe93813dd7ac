#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/model.h"
#include "tools/cli/demo_files.h"
#include "tools/lab/stand_in/stand_in_internal.h"

enum {
    PATIENCE_MS = 60000,
    GRACE_MS = 2000,
    QUEUE = 256,
    HEAD_MAX = 256 << 10 /* a fault sends a header of 100 KB */
};

static void stand_in_loaded(struct serve *serve)
{
    struct stand_in *s = serve->o.face_arg;
    snprintf(s->fingerprint, sizeof(s->fingerprint), "%016" PRIx64,
             model_exact_fingerprint(serve->engine.model, serve->engine.pool));
}

/* Open the server, whose address is checked before the model is read, and then the model. */
static int stand_in_start(struct stand_in *s, const struct stand_in_options *o,
                          const struct routing_options *mo, struct err *err)
{
    static const char *const names[] = { "mizzle", "uvicorn", "llama.cpp", "uvicorn" };
    struct serve_options so = { .listen = o->listen,
                                .face = &s->face,
                                .face_arg = s,
                                .parallel = o->slots < TEXTS_SLOTS ? o->slots : (size_t)TEXTS_SLOTS,
                                .queue = o->queue ? o->queue : (size_t)QUEUE,
                                .context = o->context };
    struct server_options *l = &so.listen;
    s->face = (struct serve_face){ .name = names[o->server],
                                   .routes = s->routes,
                                   .plain = true,
                                   .refuse = stand_in_refuse,
                                   .send = stand_in_line_send,
                                   .stream = stand_in_line_stream,
                                   .loaded = stand_in_loaded,
                                   .begin = stand_in_line_begin,
                                   .end = stand_in_line_end };
    l->head_ms = l->head_ms ? l->head_ms : PATIENCE_MS;
    l->body_ms = l->body_ms ? l->body_ms : PATIENCE_MS;
    l->send_ms = PATIENCE_MS;
    l->head_max = HEAD_MAX;
    l->any_host = l->key != NULL; /* else any site's page could ask it, by a name of that site */
    int rc = serve_open(&s->serve, &so, err);
    return rc == OK ? serve_load(s->serve, mo, err) : rc;
}

int stand_in_open(struct stand_in **out, const struct stand_in_options *o, struct err *err)
{
    struct routing_options mo = routing_defaults;
    *out = NULL;
    mo.engine.model = o->model ? o->model : demo_files_path("cloud.gguf");
    mo.engine.isa = o->isa;
    mo.engine.threads = o->threads;
    mo.engine.kv = o->kv ? o->kv : "f32";
    mo.policy = "never";
    if (!mo.engine.model)
        return err_set(err, ERR_IO, "the demo pair's cloud model is not found; name one with -m");
    struct stand_in *s = calloc(1, sizeof(*s));
    if (!s)
        return err_set(err, ERR_NOMEM, "cloud: out of memory");
    s->server = o->server;
    s->faults = o->faults;
    stand_in_set_latency(s, o->latency_ms);
    s->draw = stand_in_chance_open(o->seed);
    stand_in_routes(s);
    int rc =
        s->draw ? stand_in_start(s, o, &mo, err) : err_set(err, ERR_NOMEM, "cloud: out of memory");
    if (rc == OK)
        *out = s;
    else
        stand_in_close(s);
    return rc;
}

void stand_in_close(struct stand_in *s)
{
    if (!s)
        return;
    serve_close(s->serve, GRACE_MS);
    stand_in_chance_close(s->draw);
    free(s);
}

struct stand_in *stand_in_of(const struct serve_exchange *x)
{
    return x->s->o.face_arg;
}

void stand_in_set_latency(struct stand_in *s, size_t ms)
{
    s->latency = ms * UINT64_C(1000000);
}

unsigned stand_in_port(const struct stand_in *s)
{
    return server_port(s->serve->server);
}

const char *stand_in_url(const struct stand_in *s)
{
    return serve_url(s->serve);
}
