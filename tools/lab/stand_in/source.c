#include "tools/lab/stand_in/source.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "kernels/sys/base.h"
#include "kernels/sys/buf.h"
#include "model/model.h"
#include "model/text/tokenizer.h"
#include "router/mizzle.h"
#include "tools/lab/stand_in/known_texts.h"
#include "tools/lab/stand_in/question.h"
#include "weights/find.h"
#include "weights/weights.h"

enum { CONTEXT_MAX = 4096, QUEUE = 256 };

/* Open the model. */
static int stand_in_source_open_model(struct stand_in_source *s, const char *path,
                                      const struct stand_in_options *o, struct err *err)
{
    const struct mizzle_options mo = { .model = path, .isa = o->isa, .threads = o->threads };
    struct engine *e = &s->engine;
    int rc = engine_open_alone(e, &mo, err);
    if (rc != OK)
        return rc;
    s->tokenizer = e->tokenizer;
    s->vocab = model_config(e->model)->vocab;
    s->trained = model_config(e->model)->context;
    snprintf(s->fingerprint, sizeof(s->fingerprint), "%016" PRIx64,
             model_exact_fingerprint(e->model, e->pool));
    return OK;
}

/* Start to take questions. */
static int stand_in_source_start(struct stand_in_source *s, const struct stand_in_options *o,
                                 struct err *err)
{
    struct texts_options to = { .engine = s->engine.model ? &s->engine : NULL,
                                .tokenizer = s->tokenizer,
                                .slots = o->slots && o->slots < TEXTS_SLOTS ? o->slots
                                                                            : (size_t)TEXTS_SLOTS,
                                .queue = o->queue ? o->queue : (size_t)QUEUE };
    int rc = engine_kv(&to.kv, o->kv, KVCACHE_F32, err);
    s->kv = to.kv;
    s->trained = s->trained ? s->trained : o->context ? o->context : (size_t)CONTEXT_MAX;
    s->context = o->context                 ? o->context
                 : s->trained < CONTEXT_MAX ? s->trained
                                            : (size_t)CONTEXT_MAX;
    to.context = s->context;
    if (rc == OK && to.engine && !o->slots)
        rc = texts_fit(&to.slots, to.engine, s->context, to.kv, err);
    return rc == OK ? texts_open(&s->texts, &to, err) : rc;
}

/* True for a folder with a vocabulary but without weights. */
static bool stand_in_source_bare_folder(const char *path)
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

/* Open the vocabulary if the path has nothing else, which will do for known texts. */
static int stand_in_source_open_vocabulary(struct stand_in_source *s, const char *path,
                                           struct err *err)
{
    struct weights *w = NULL;
    bool folder = stand_in_source_bare_folder(path);
    int rc = folder ? OK : weights_open(&w, path, err);
    if (rc == OK && (folder || !weights_ntensors(w)))
        rc = folder ? tokenizer_open_path(&s->vocabulary, path, err)
                    : tokenizer_open(&s->vocabulary, w, err);
    weights_close(w);
    return rc;
}

/* Open what the path names. */
static int stand_in_source_open_path(struct stand_in_source *s, const char *name,
                                     const struct stand_in_options *o, struct err *err)
{
    char path[FIND_PATH];
    int rc = find_model(path, name, err);
    if (rc == OK && o->say)
        rc = stand_in_source_open_vocabulary(s, path, err);
    if (rc == OK && s->vocabulary) {
        s->tokenizer = s->vocabulary;
        s->vocab = tokenizer_size(s->tokenizer);
    } else if (rc == OK) {
        rc = stand_in_source_open_model(s, path, o, err);
    }
    return rc == OK && o->say ? known_texts_open(&s->known, o->say, s->tokenizer, err) : rc;
}

int stand_in_source_open(struct stand_in_source **out, const char *path,
                         const struct stand_in_options *o, struct err *err)
{
    *out = NULL;
    int rc = OK;
    struct stand_in_source *s = calloc(1, sizeof(*s));
    if (!s)
        return err_set(err, ERR_NOMEM, "%s: out of memory", path);
    if (o->oracle) {
        s->oracle = *o->oracle;
        s->tokenizer = s->oracle.tokenizer;
        s->vocab = tokenizer_size(s->tokenizer);
    } else {
        rc = stand_in_source_open_path(s, path, o, err);
    }
    if (rc == OK)
        rc = stand_in_source_start(s, o, err);
    if (rc != OK) {
        stand_in_source_close(s);
        return rc;
    }
    *out = s;
    return OK;
}

void stand_in_source_close(struct stand_in_source *s)
{
    if (!s)
        return;
    texts_close(s->texts);
    known_texts_close(s->known);
    tokenizer_close(s->vocabulary);
    engine_close(&s->engine);
    free(s);
}

/* Callbacks of texts: the next token as the oracle or the known texts have it. */
static int stand_in_source_oracle(void *arg, uint32_t *id, const uint32_t *ids, size_t n)
{
    const struct stand_in_oracle *o = arg;
    *id = o->next(o->arg, ids, n);
    return OK;
}

static int stand_in_source_known(void *arg, uint32_t *id, const uint32_t *ids, size_t n)
{
    return known_texts_next(id, arg, ids, n);
}

int stand_in_source_ask(struct stand_in_source *s, struct text **out,
                        const struct stand_in_question *q, struct err *err)
{
    struct text_wish wish = { .prompt = q->ids,
                              .n = q->n,
                              .max = q->max,
                              .sample = { .top_p = 1, .repeat_penalty = 1 },
                              .ignore_eos = q->go_on,
                              .model = TEXT_EDGE,
                              .slot = q->slot };
    if (s->oracle.next) {
        wish.next = stand_in_source_oracle;
        wish.next_arg = &s->oracle;
    } else if (s->known) {
        wish.next = stand_in_source_known;
        wish.next_arg = s->known;
    }
    return texts_ask(s->texts, out, &wish, err);
}
