#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/base.h"
#include "kernels/cpu.h"
#include "kernels/kernels.h"
#include "kernels/os.h"
#include "kernels/pool.h"
#include "model/model.h"
#include "model/session.h"
#include "model/tokenizer.h"
#include "tools/stand_in.h"
#include "tools/stand_in_engine.h"
#include "weights/weights.h"

enum { SLOTS = 4, CONTEXT_MAX = 4096 };

struct slot {
    struct session *session; /* NULL until first needed */
    uint64_t used;
};

struct stand_in_engine {
    struct kernels kernels;
    struct pool *pool;
    struct model *model;
    struct tokenizer *tokenizer;
    enum kvcache kv;
    size_t context;
    size_t size; /* ids that may be picked */
    pthread_mutex_t lock;
    struct slot slots[SLOTS];
    uint64_t clock;
    _Atomic int stop;
};

static int open_parts(struct stand_in_engine *e, const struct weights *w,
                      const struct stand_in_options *o, struct err *err)
{
    e->kv = KVCACHE_F32;
    if (o->kv && !kvcache_parse(&e->kv, o->kv))
        return err_set(err, ERR_ARG, "--kv: expected f32, f16 or q8, found %s", o->kv);
    int rc = kernels_pick(&e->kernels, o->isa, cpu_detect(), err);
    if (rc == OK)
        rc = tokenizer_open(&e->tokenizer, w, err);
    if (rc == OK)
        rc = pool_open(&e->pool, o->threads, err);
    if (rc == OK)
        rc = model_open(&e->model, w, &e->kernels, e->pool, err);
    if (rc)
        return rc;
    const struct model_config *c = model_config(e->model);
    e->context = c->context < CONTEXT_MAX ? c->context : (size_t)CONTEXT_MAX;
    if (o->context)
        e->context = o->context;
    e->size = tokenizer_size(e->tokenizer);
    if (e->size > c->vocab)
        e->size = c->vocab;
    return session_open(&e->slots[0].session, e->model, e->pool, e->context, e->kv, err);
}

int stand_in_engine_open(struct stand_in_engine **out, const char *path,
                         const struct stand_in_options *o, struct err *err)
{
    struct weights *w;
    *out = NULL;
    struct stand_in_engine *e = calloc(1, sizeof(*e));
    if (!e)
        return err_set(err, ERR_NOMEM, "%s: out of memory", path);
    pthread_mutex_init(&e->lock, NULL);
    int rc = weights_open(&w, path, err);
    if (rc == OK)
        rc = open_parts(e, w, o, err);
    weights_close(w);
    if (rc) {
        stand_in_engine_close(e);
        return rc;
    }
    *out = e;
    return OK;
}

void stand_in_engine_close(struct stand_in_engine *e)
{
    if (!e)
        return;
    for (size_t i = 0; i < SLOTS; i++)
        if (e->slots[i].session)
            session_close(e->slots[i].session);
    model_close(e->model);
    if (e->tokenizer)
        tokenizer_close(e->tokenizer);
    pool_close(e->pool);
    pthread_mutex_destroy(&e->lock);
    free(e);
}

size_t stand_in_engine_vocab(const struct stand_in_engine *e)
{
    return model_config(e->model)->vocab;
}

size_t stand_in_engine_context(const struct stand_in_engine *e)
{
    return e->context;
}

size_t stand_in_engine_slots(const struct stand_in_engine *e)
{
    (void)e;
    return SLOTS;
}

const struct tokenizer *stand_in_engine_tokenizer(const struct stand_in_engine *e)
{
    return e->tokenizer;
}

void stand_in_engine_stop(struct stand_in_engine *e)
{
    atomic_store(&e->stop, 1);
}

static size_t shared(const struct slot *s, const uint32_t *ids, size_t n)
{
    size_t have = s->session ? session_length(s->session) : 0, i = 0;
    const uint32_t *old = have ? session_ids(s->session) : NULL;
    while (i < n && i < have && old[i] == ids[i])
        i++;
    return i;
}

/* The slot that shares most goes on, unless more than half of it would be forgotten (another text
 * that happens to begin alike): then one not in use, else the least recently used. */
static struct slot *choose(struct stand_in_engine *e, const uint32_t *ids, size_t n)
{
    struct slot *best = NULL, *oldest = &e->slots[0];
    size_t most = 0;
    for (size_t i = 0; i < SLOTS; i++) {
        struct slot *s = &e->slots[i];
        size_t same = shared(s, ids, n);
        if (same > most && same * 2 >= session_length(s->session)) {
            best = s;
            most = same;
        }
        if (s->used < oldest->used)
            oldest = s;
    }
    struct slot *s = best ? best : oldest;
    /* Where memory is short, fewer slots do as well. */
    if (!s->session && session_open(&s->session, e->model, e->pool, e->context, e->kv, NULL))
        s = &e->slots[0];
    s->used = ++e->clock;
    return s;
}

static double ms_since(uint64_t start)
{
    return (double)(os_now_ns() - start) / 1e6;
}

static int generate(struct stand_in_engine *e, struct session *s, struct stand_in_text *out,
                    const uint32_t *prompt, size_t n, size_t max, bool go_on, struct err *err)
{
    uint64_t start = os_now_ns();
    int rc = OK;
    if (out->cached < n)
        rc = session_eval(s, prompt + out->cached, n - out->cached, &e->stop, err);
    out->prompt_ms = ms_since(start);
    start = os_now_ns();
    while (rc == OK) {
        uint32_t id = (uint32_t)e->kernels.argmax_f32(session_logits(s, 0), e->size);
        out->ids[out->n++] = id;
        out->ended = tokenizer_is_eog(e->tokenizer, id) && !go_on;
        if (out->ended || out->n == max)
            break;
        rc = session_eval(s, &id, 1, &e->stop, err);
    }
    out->text_ms = ms_since(start);
    return rc;
}

int stand_in_engine_generate(struct stand_in_engine *e, struct stand_in_text *out,
                             const uint32_t *prompt, size_t n, size_t max, bool go_on,
                             struct err *err)
{
    *out = (struct stand_in_text){ .ids = calloc(max, sizeof(*out->ids)) };
    if (!out->ids)
        return err_set(err, ERR_NOMEM, "out of memory");
    pthread_mutex_lock(&e->lock);
    struct slot *slot = choose(e, prompt, n);
    struct session *s = slot->session;
    out->cached = shared(slot, prompt, n);
    /* The last token is computed again, unless its logits are still there. */
    if (out->cached == n && (session_length(s) > n || !session_has_logits(s)))
        out->cached--;
    if (session_length(s) > out->cached)
        session_rewind(s, out->cached);
    int rc = generate(e, s, out, prompt, n, max, go_on, err);
    pthread_mutex_unlock(&e->lock);
    if (rc) {
        free(out->ids);
        out->ids = NULL;
        out->n = 0;
    }
    return rc;
}
