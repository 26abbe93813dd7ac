#include "router/local_cloud.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "model/fingerprint.h"
#include "model/model.h"
#include "model/text/tokenizer.h"
#include "router/engine.h"
#include "router/mizzle.h"
#include "router/texts/turn.h"
#include "weights/weights.h"

enum {
    CONTEXT_MAX = 32768,
    USUAL = 2048,     /* positions of a text, by which the memory is shared out */
    QUEUE = 1 << 20,  /* those who ask are few */
    KEEP = 48,        /* texts whose keys and values are kept for their next call */
    PIECE_MS = 60000, /* prompts are read in pieces as large as a pass allows */
};

struct local_cloud {
    struct engine engine;
    struct turn turn;
    struct texts *texts;
    struct cloud_local calls;
    char name[LOCAL_CLOUD_NAME], says[96];
};

void local_cloud_name(char out[LOCAL_CLOUD_NAME], const char *path)
{
    size_t n = strlen(path);
    while (n > 1 && path[n - 1] == '/')
        n--;
    size_t start = n;
    while (start && path[start - 1] != '/')
        start--;
    n -= start;
    if (n > 5 && strncmp(path + start + n - 5, ".gguf", 5) == 0)
        n -= 5;
    if (n >= LOCAL_CLOUD_NAME)
        n = LOCAL_CLOUD_NAME - 1;
    memcpy(out, path + start, n);
    out[n] = '\0';
    for (size_t i = 0; i < n; i++) /* ASCII alone, because the name is put into JSON */
        if (out[i] <= 0x20 || out[i] > 0x7e)
            out[i] = '_';
}

/* Callbacks of the cloud. */
static int local_cloud_ask(void *arg, void **text, const uint32_t *ids, size_t n, size_t want,
                           void (*news)(void *news_arg), void *news_arg, struct err *err)
{
    const struct local_cloud *l = arg;
    struct text *t = NULL;
    const struct text_wish wish = { .prompt = ids,
                                    .n = n,
                                    .max = want,
                                    .sample = { .top_p = 1, .repeat_penalty = 1 },
                                    .model = TEXT_EDGE,
                                    .slot = -1,
                                    .news = news,
                                    .news_arg = news_arg };
    int rc = texts_ask(l->texts, &t, &wish, err);
    *text = t;
    return rc == ERR_ARG ? ERR_TEXT : rc;
}

static bool local_cloud_look(void *text, uint32_t *ids, size_t *n, int *rc, struct err *err)
{
    const struct text_view v = text_look(text);
    for (; *n < v.n; ++*n)
        ids[*n] = v.tokens[*n].t.id;
    if (v.finished && v.rc != OK)
        *rc = err_set(err, v.rc, "%s", v.why);
    return v.finished;
}

static void local_cloud_drop(void *text)
{
    text_drop(text);
}

/* Refuse a model where an id that both have in use means something else than for the edge. */
static int local_cloud_check(const struct local_cloud *l, const struct engine *edge,
                             const char *path, struct err *err)
{
    enum { NORMAL = 1, UNUSED = 5 };
    const struct tokenizer *own = l->engine.tokenizer, *its = edge->tokenizer;
    for (uint32_t id = 0; id < tokenizer_size(own) && id < tokenizer_size(its); id++) {
        struct str p, q;
        int type, other;
        tokenizer_piece(own, id, &p, &type);
        tokenizer_piece(its, id, &q, &other);
        bool same = p.n == q.n && !memcmp(p.p, q.p, p.n) && (type == NORMAL) == (other == NORMAL);
        if (!same && type != UNUSED && other != UNUSED)
            return err_set(err, ERR_FORMAT,
                           "%s: vocabulary: expected that of %s, found another token %u", path,
                           edge->name, (unsigned)id);
    }
    return OK;
}

/* Choose the positions of a text, which are those of the edge's as far as the model has them, and
 * how many texts there are at once. */
static int local_cloud_size(struct texts_options *to, const struct engine *edge, struct err *err)
{
    size_t own = model_config(to->engine->model)->context;
    size_t theirs = model_config(edge->model)->context;
    to->context = own < theirs ? own : theirs;
    to->context = to->context < CONTEXT_MAX ? to->context : CONTEXT_MAX;
    return texts_fit(&to->slots, to->engine, to->context < USUAL ? to->context : USUAL, to->kv,
                     err);
}

/* Load the model and start to take calls. */
static int local_cloud_start(struct local_cloud *l, const struct engine *edge,
                             const struct mizzle_options *o, struct err *err)
{
    const struct mizzle_options mo = { .model = o->cloud_model,
                                       .isa = o->isa,
                                       .threads = o->threads };
    struct texts_options to = {
        .engine = &l->engine, .keep = KEEP, .queue = QUEUE, .turn = &l->turn, .piece_ms = PIECE_MS
    };
    int rc = engine_open_alone(&l->engine, &mo, err);
    if (rc == OK)
        rc = local_cloud_check(l, edge, o->cloud_model, err);
    if (rc == OK)
        rc = engine_kv(&to.kv, o->kv, engine_best_kv(&l->engine), err);
    if (rc == OK)
        snprintf(l->says, sizeof(l->says),
                 "{\"fingerprint\":\"%016" PRIx64 "\",\"kv\":\"%s\",\"weights\":\"%s\"}",
                 model_exact_fingerprint(l->engine.model, l->engine.pool), kvcache_name(to.kv),
                 l->engine.weights);
    if (rc == OK)
        rc = local_cloud_size(&to, edge, err);
    return rc == OK ? texts_open(&l->texts, &to, err) : rc;
}

int local_cloud_open(struct local_cloud **out, const struct engine *edge,
                     const struct mizzle_options *o, struct err *err)
{
    *out = NULL;
    struct local_cloud *l = calloc(1, sizeof(*l));
    if (!l)
        return err_set(err, ERR_NOMEM, "%s: out of memory", o->cloud_model);
    turn_open(&l->turn);
    local_cloud_name(l->name, o->cloud_model);
    l->calls = (struct cloud_local){
        l, l->name, l->says, local_cloud_ask, local_cloud_look, local_cloud_drop
    };
    int rc = local_cloud_start(l, edge, o, err);
    if (rc != OK) {
        local_cloud_close(l);
        return rc;
    }
    *out = l;
    return OK;
}

void local_cloud_close(struct local_cloud *l)
{
    if (!l)
        return;
    texts_close(l->texts);
    engine_close(&l->engine);
    turn_close(&l->turn);
    free(l);
}

const struct cloud_local *local_cloud_calls(const struct local_cloud *l)
{
    return &l->calls;
}

struct turn *local_cloud_turn(struct local_cloud *l)
{
    return &l->turn;
}

struct texts *local_cloud_texts(const struct local_cloud *l)
{
    return l->texts;
}
