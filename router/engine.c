#include "router/engine.h"

#include <stdio.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "kernels/sys/cpu.h"
#include "kernels/sys/pool.h"
#include "model/batch.h"
#include "model/model.h"
#include "model/text/chat.h"
#include "model/text/tokenizer.h"
#include "router/router.h"
#include "weights/find.h"
#include "weights/weights.h"

enum { LARGE = 64 << 20 }; /* bytes of weights that no cache holds */

/* The tokenizer, which is read while the model is packed. */
struct reading {
    struct engine *e;
    const struct weights *w;
    struct err err;
    int rc;
};

static void engine_read_tokenizer(void *arg)
{
    struct reading *r = arg;
    r->rc = tokenizer_open(&r->e->tokenizer, r->w, &r->err);
    if (r->rc != OK)
        r->e->tokenizer = NULL;
}

/* Load tokenizer and model from one file or folder. A bad model is reported first, a bad tokenizer
 * only if it is needed. */
static int engine_load(struct engine *e, const char *path, bool need_tokenizer, struct err *err)
{
    struct weights *w = NULL;
    int rc = weights_open(&w, path, err);
    if (rc == OK) {
        struct reading r = { .e = e, .w = w };
        rc = model_open(&e->model, w, &e->kernels, e->pool, engine_read_tokenizer, &r, err);
        if (rc == OK && r.rc != OK && need_tokenizer) {
            if (err)
                *err = r.err;
            rc = r.rc;
        }
    }
    if (rc == OK)
        rc = batch_open(&e->batch, e->model, e->pool, err);
    if (rc == OK) {
        model_file_name(e->name, w);
        e->weights = model_file_type(w);
    }
    weights_close(w);
    if (rc == OK && e->tokenizer && tokenizer_size(e->tokenizer) > e->model->config.vocab)
        rc = err_set(err, ERR_FORMAT, "%s: vocabulary: expected at most %zu ids, found %zu", path,
                     e->model->config.vocab, tokenizer_size(e->tokenizer));
    return rc;
}

int engine_open(struct engine *e, const struct engine_options *o, bool need_tokenizer,
                struct err *err)
{
    memset(e, 0, sizeof(*e));
    if (!o->model)
        return err_set(err, ERR_ARG, "model: expected a file or a folder, found none");
    char path[FIND_PATH];
    int rc = chat_check_options(o->chat_template, o->think, err); /* before the model is read */
    if (rc == OK)
        rc = engine_kernels(&e->kernels, o->isa, err);
    if (rc == OK)
        rc = find_model(path, o->model, err);
    if (rc == OK)
        rc = pool_open(&e->pool, o->threads, err);
    if (rc == OK)
        rc = engine_load(e, path, need_tokenizer, err);
    if (rc == OK && e->tokenizer)
        rc = chat_open(&e->chat, e->tokenizer, o->chat_template, o->think, err);
    if (rc != OK)
        engine_close(e);
    return rc;
}

int engine_open_alone(struct engine *e, const struct engine_options *o, struct err *err)
{
    int rc = engine_open(e, o, true, err);
    if (rc != OK || o->threads || e->model->bytes > LARGE)
        return rc;
    batch_close(e->batch);
    pool_close(e->pool);
    e->pool = NULL;
    e->batch = NULL;
    return batch_open(&e->batch, e->model, NULL, err);
}

void engine_close(struct engine *e)
{
    chat_close(e->chat);
    tokenizer_close(e->tokenizer);
    batch_close(e->batch);
    model_close(e->model);
    pool_close(e->pool);
    memset(e, 0, sizeof(*e));
}

int engine_kernels(struct kernels *out, const char *isa, struct err *err)
{
    return kernels_pick(out, isa && *isa ? isa : NULL, cpu_detect(), err);
}

int engine_kv(enum kvcache *out, const char *name, enum kvcache otherwise, struct err *err)
{
    *out = otherwise;
    if (name && !kvcache_parse(out, name))
        return err_set(err, ERR_ARG, "kv: expected f32, f16 or q8, found %s", name);
    return OK;
}

enum kvcache engine_best_kv(const struct engine *e)
{
    return e->model->layers[0].down.type == P_F32 ? KVCACHE_F32 : KVCACHE_F16;
}
