#include "tools/lab/stand_in/source.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "kernels/sys/base.h"
#include "model/model.h"
#include "model/text/tokenizer.h"
#include "router/mizzle.h"
#include "tools/lab/stand_in/question.h"

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
        rc = stand_in_source_open_model(s, path, o, err);
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
    engine_close(&s->engine);
    free(s);
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
                              .slot = q->slot,
                              .next = s->oracle.next,
                              .next_arg = s->oracle.arg };
    return texts_ask(s->texts, out, &wish, err);
}
