#include "tools/serve/serve.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kernels/sys/os.h"
#include "kernels/sys/sha256.h"
#include "model/model.h"
#include "model/text/chat.h"
#include "model/text/tokenizer.h"
#include "net/cloud.h"
#include "net/http/json_input.h"
#include "router/local_cloud.h"
#include "router/mizzle.h"
#include "tools/cli/demo_files.h"
#include "tools/cli/setup.h"
#include "tools/serve/serve_exchange.h"

#ifdef __GLIBC__
#include <malloc.h>
#endif

enum { CONTEXT_MAX = 4096, QUESTIONS = 15 };

int serve_open(struct serve **out, const struct serve_options *o, struct err *err)
{
    *out = NULL;
    struct serve *s = calloc(1, sizeof(*s));
    if (!s)
        return err_set(err, ERR_NOMEM, "serve: out of memory");
    s->o = *o;
    s->o.face = o->face ? o->face : &serve_routes_face;
#ifdef __GLIBC__
    if (!s->o.face->plain)
        mallopt(M_ARENA_MAX, 1); /* a connection's thread would keep what its requests once took */
#endif
    s->created = (int64_t)time(NULL);
    s->salt = os_now_ns() ^ (uint64_t)s->created << 32;
    struct server_options so = o->listen;
    serve_routes_serve(&so, s);
    int rc = server_open(&s->server, &so, err);
    if (rc == OK)
        *out = s;
    else
        serve_close(s, 0);
    return rc;
}

const char *serve_url(const struct serve *s)
{
    return server_url(s->server);
}

/* Set the name that requests use: "dir/edge-0.5.gguf" gives "edge-0.5". */
static void serve_set_name(struct serve *s, const char *path)
{
    char name[LOCAL_CLOUD_NAME];
    local_cloud_name(name, path);
    snprintf(s->name, sizeof(s->name), "%.*s", SERVE_NAME - 1, name);
    for (size_t i = 0; s->name[i]; i++) /* it becomes a part of paths */
        if (s->name[i] <= 0x20 || s->name[i] > 0x7e || strchr(":%?#\\\"", s->name[i]))
            s->name[i] = '_';
}

/* Compute a fingerprint of all that the small model's part of a text depends on. */
static void serve_set_fingerprint(struct serve *s, const struct routing_options *mo)
{
    const struct engine *e = &s->engine;
    unsigned char hash[SHA256_BYTES];
    char text[600], file[SHA256_HEX] = "", beside[ROUTING_PATH], hex[SHA256_HEX];
    struct sha256 h;
    if (s->routing.router &&
        (mo->router ||
         routing_find_router(beside, mo, e, mo->policy ? s->routing.how.policy : POLICY_MLP)))
        sha256_file(file, mo->router ? mo->router : beside);
    int n = snprintf(text, sizeof(text), "%016" PRIx64 " %s %zu %s %s %s %a %s %zu %a ",
                     model_fingerprint(e->model, e->tokenizer), e->weights ? e->weights : "",
                     e->model->bytes, kvcache_name(s->kv), file, policy_name(s->routing.how.policy),
                     (double)s->routing.how.threshold, MIZZLE_VERSION, s->routing.how.call_tokens,
                     (double)s->routing.how.max_routed);
    const char *place = s->routing.place ? s->routing.place : "";
    sha256_begin(&h);
    sha256_add(&h, text, (size_t)n);
    sha256_add(&h, place, strlen(place));
    sha256_end(hash, &h);
    sha256_text(hex, hash);
    snprintf(s->fingerprint, sizeof(s->fingerprint), "mz-%.16s", hex);
}

/* Print the notes of the routing, and keep why the cloud is off. */
static void serve_notes(struct serve *s)
{
    struct err note;
    while (routing_note(&s->routing, &note)) {
        if (strncmp(note.msg, "cloud off: ", 11) == 0 && s->cloud_url)
            s->cloud_off = note;
        setup_print_typed(&note);
    }
}

/* Keep what is known of the cloud: later only the engine thread may use it. */
static void serve_know_cloud(struct serve *s)
{
    const struct cloud_port *p = routing_port(&s->routing);
    const struct cloud_info info = p ? p->info(p->arg) : (struct cloud_info){ .api = CLOUD_AUTO };
    s->cloud_api = s->routing.local ? NULL : cloud_api_name(info.api);
    if (info.model)
        json_input_line(s->cloud_model, sizeof(s->cloud_model), info.model, strlen(info.model));
}

/* Read questions of the demo world for the page, which can do without. */
static int serve_ask_world(struct serve *s, struct err *err)
{
    json_t *all = NULL;
    int rc = s->o.demo ? demo_questions_read(&all, QUESTIONS, err) : OK;
    s->questions = json_array();
    if (rc == ERR_IO) {
        fprintf(stderr, "mizzle: %s\n", err->msg);
        rc = OK;
    }
    for (size_t i = 0; all && i < QUESTIONS; i++)
        json_array_append(s->questions, json_object_get(json_array_get(all, i), "prompt"));
    json_decref(all);
    return rc;
}

/* Open the texts. */
static int serve_open_texts(struct serve *s, struct err *err)
{
    size_t trained = s->engine.model->config.context;
    s->context = s->o.context ? s->o.context : trained < CONTEXT_MAX ? trained : CONTEXT_MAX;
    int rc = s->o.parallel ? OK : texts_fit(&s->o.parallel, &s->engine, s->context, s->kv, err);
    if (rc != OK)
        return rc;
    const struct texts_options to = { .engine = &s->engine,
                                      .routing = &s->routing,
                                      .slots = s->o.parallel,
                                      .queue = s->o.queue,
                                      .context = s->context,
                                      .kv = s->kv };
    return texts_open(&s->texts, &to, err);
}

int serve_load(struct serve *s, const struct routing_options *mo, struct err *err)
{
    s->cloud_url = mo->cloud_url;
    serve_set_name(s, mo->engine.model);
    int rc = engine_kv(&s->kv, mo->engine.kv, KVCACHE_F32, err); /* before the model is read */
    if (rc == OK)
        rc = s->o.face->plain ? engine_open_alone(&s->engine, &mo->engine, err)
                              : engine_open(&s->engine, &mo->engine, true, err);
    if (rc == OK)
        rc = engine_kv(&s->kv, mo->engine.kv, engine_best_kv(&s->engine), err);
    if (rc == OK)
        rc = routing_open(&s->routing, &s->engine, mo, NULL, err);
    if (rc != OK)
        return rc;
    s->vocab = tokenizer_size(s->engine.tokenizer);
    serve_notes(s);
    serve_set_fingerprint(s, mo);
    s->lost = s->routing.gate.lost; /* which has been said */
    s->unreached = s->lost && !s->routing.gate.refused;
    serve_know_cloud(s);
    rc = serve_ask_world(s, err);
    if (rc == OK)
        rc = serve_open_texts(s, err);
    if (rc != OK)
        return rc;
    struct err note; /* the chat form is a guess or ignores --think, or why there is none */
    if (!s->o.face->plain &&
        (chat_note(s->engine.chat, &note) || chat_check(s->engine.chat, &note) != OK))
        setup_print_typed(&note);
    if (s->o.face->loaded)
        s->o.face->loaded(s);
    atomic_store(&s->ready, 1);
    return OK;
}

void serve_look(void *serve)
{
    struct serve *s = serve;
    const struct texts_counts c = texts_count(s->texts);
    if (c.lost == s->lost)
        return;
    s->lost = c.lost;
    fprintf(stderr, c.lost ? "mizzle: the cloud is lost: %s\n" : "mizzle: the cloud is back\n",
            c.why.msg);
}

void serve_close(struct serve *s, unsigned grace_ms)
{
    if (!s)
        return;
    server_close(s->server, grace_ms);
    texts_close(s->texts);
    if (s->engine.model)
        serve_notes(s); /* those of background work */
    routing_close(&s->routing);
    engine_close(&s->engine);
    json_decref(s->questions);
    free(s);
}
