/* engine_open.c - opens what the engine of the stand-in answers from: a model, texts, an oracle. */
#include <stdlib.h>
#include <unistd.h>

#include "kernels/sys/base.h"
#include "kernels/sys/cpu.h"
#include "net/http/buf.h"
#include "tools/stand_in/engine_internal.h"
#include "tools/stand_in/known_texts.h"
#include "weights/weights.h"

enum { CONTEXT_MAX = 4096, QUEUE = 256 };

/* Models larger than this do not fit in cache, so every token streams all weights from memory, and
 * more threads help. A smaller one computes a token in less time than they would spin for the next,
 * and with many clients their requests cost more than the model: 64 clients of the demo model get
 * 2,200 to 2,700 tokens/s with one thread and with two (AMD Zen 4, two processors). So it has one
 * thread unless the user asks for more. */
static const size_t large = (size_t)64 << 20;

static int stand_in_engine_start_workers(struct stand_in_engine *e, size_t n, struct err *err)
{
    for (; e->nworkers < n; e->nworkers++)
        if (pthread_create(&e->workers[e->nworkers], NULL, stand_in_engine_work, e))
            return err_set(err, ERR_IO, "cloud: threads cannot be made");
    return OK;
}

/* Open the model and its sessions. One worker computes all of them in one pass. */
static int stand_in_engine_open_model(struct stand_in_engine *e, const struct weights *w,
                                      const struct stand_in_options *o, struct err *err)
{
    e->slots.kv = KVCACHE_F32;
    if (o->kv && !kvcache_parse(&e->slots.kv, o->kv))
        return err_set(err, ERR_ARG, "--kv: expected f32, f16 or q8, found %s", o->kv);
    int rc = kernels_pick(&e->kernels, o->isa, cpu_detect(), err);
    if (rc == OK)
        rc = pool_open(&e->pool, o->threads, err);
    if (rc == OK)
        rc = model_open(&e->model, w, &e->kernels, e->pool, err);
    if (rc)
        return rc;
    const struct model_config *c = model_config(e->model);
    e->vocab = c->vocab;
    e->trained = c->context;
    e->size = tokenizer_size(e->tokenizer);
    if (e->size > c->vocab)
        e->size = c->vocab;
    if (!o->threads && model_bytes(e->model) <= large) {
        pool_close(e->pool);
        e->pool = NULL;
    }
    rc = batch_open(&e->batch, e->model, e->pool, err);
    if (rc)
        return rc;
    e->slots.batch = e->batch;
    e->slots.context = o->context                 ? o->context
                       : c->context < CONTEXT_MAX ? c->context
                                                  : (size_t)CONTEXT_MAX;
    rc = stand_in_slots_open(&e->slots, o->slots, err);
    return rc ? rc : stand_in_engine_start_workers(e, 1, err);
}

/* Set up an engine that has no model and keeps no sessions. */
static int stand_in_engine_open_bare(struct stand_in_engine *e, const struct stand_in_options *o,
                                     struct err *err)
{
    e->vocab = tokenizer_size(e->tokenizer);
    e->trained = e->slots.context = o->context ? o->context : (size_t)CONTEXT_MAX;
    int rc = stand_in_slots_open(&e->slots, o->slots, err);
    return rc ? rc : stand_in_engine_start_workers(e, WORKERS_MAX, err);
}

/* True for a folder with a vocabulary but without weights. */
static bool stand_in_engine_bare_folder(const char *path)
{
    static const char *const files[] = { "vocab.json", "tokenizer.json", "model.safetensors",
                                         "model.safetensors.index.json" };
    bool found[4] = { false };
    for (size_t i = 0; i < 4; i++) {
        struct buf name = { 0 };
        found[i] = buf_str(&name, path) && buf_str(&name, "/") && buf_str(&name, files[i]) &&
                   buf_add(&name, "", 1) && access(name.p, F_OK) == 0;
        buf_free(&name);
    }
    return (found[0] || found[1]) && !found[2] && !found[3];
}

/* Open the model, or the vocabulary alone if there are known texts and no weights. */
static int stand_in_engine_open_path(struct stand_in_engine *e, const char *path,
                                     const struct stand_in_options *o, struct err *err)
{
    struct weights *w = NULL;
    bool bare = o->say && stand_in_engine_bare_folder(path);
    int rc = bare ? tokenizer_open_path(&e->own, path, err) : weights_open(&w, path, err);
    if (rc == OK && !bare)
        rc = tokenizer_open(&e->own, w, err);
    e->tokenizer = e->own;
    if (rc == OK && o->say)
        rc = known_texts_open(&e->known, o->say, e->tokenizer, err);
    if (rc == OK && (bare || (o->say && !weights_ntensors(w))))
        rc = stand_in_engine_open_bare(e, o, err);
    else if (rc == OK)
        rc = stand_in_engine_open_model(e, w, o, err);
    weights_close(w);
    return rc;
}

int stand_in_engine_open(struct stand_in_engine **out, const char *path,
                         const struct stand_in_options *o, struct err *err)
{
    *out = NULL;
    struct stand_in_engine *e = calloc(1, sizeof(*e));
    if (!e)
        return err_set(err, ERR_NOMEM, "%s: out of memory", path);
    pthread_mutex_init(&e->lock, NULL);
    pthread_cond_init(&e->work, NULL);
    e->queue.end = &e->queue.first;
    e->ready.end = &e->ready.first;
    e->limit = o->queue ? o->queue : (size_t)QUEUE;
    int rc;
    if (o->oracle) {
        e->oracle = *o->oracle;
        e->tokenizer = e->oracle.tokenizer;
        rc = stand_in_engine_open_bare(e, o, err);
    } else {
        rc = stand_in_engine_open_path(e, path, o, err);
    }
    if (rc) {
        stand_in_engine_close(e);
        return rc;
    }
    *out = e;
    return OK;
}
