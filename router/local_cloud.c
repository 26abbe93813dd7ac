#include "router/local_cloud.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "kernels/sys/os.h"
#include "model/fingerprint.h"
#include "model/model.h"
#include "model/text/tokenizer.h"
#include "router/routing.h"
#include "router/texts/turn.h"
#include "weights/weights.h"

enum {
    CONTEXT_MAX = 32768,
    USUAL = 2048,             /* positions of a text, by which the memory is shared out */
    QUEUE = 1 << 20,          /* those who ask are few */
    KEEP = 48,                /* texts whose keys and values are kept for their next call */
    PIECE_MS = 60000,         /* prompts are read in pieces as large as a pass allows */
    STOP_SLICE_NS = 20000000, /* how often to look for an interruption */
};

struct local_cloud {
    struct engine engine;
    struct turn turn;
    struct texts *texts;
    struct cloud_info info;
    char name[LOCAL_CLOUD_NAME];
    size_t vocab;            /* ids that the edge knows are below this */
    struct quota *quota;     /* or NULL */
    const _Atomic int *stop; /* may be NULL */
    pthread_mutex_t lock;
    pthread_cond_t changed; /* some text */
    void (*notify)(void *arg);
    void *notify_arg;
};

struct local_call {
    struct local_cloud *cloud;
    struct text *text; /* NULL: the model does not take it, for this reason: */
    int rc;
    struct err why;
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

/* The functions of the port. */

static struct cloud_info local_cloud_info(void *arg)
{
    const struct local_cloud *l = arg;
    return l->info;
}

/* Callback of a text: it has more to tell. */
static void local_cloud_news(void *arg)
{
    struct local_cloud *l = arg;
    pthread_mutex_lock(&l->lock);
    pthread_cond_broadcast(&l->changed);
    if (l->notify)
        l->notify(l->notify_arg);
    pthread_mutex_unlock(&l->lock);
}

static void local_cloud_notify(void *arg, void (*f)(void *), void *f_arg)
{
    struct local_cloud *l = arg;
    pthread_mutex_lock(&l->lock);
    l->notify = f;
    l->notify_arg = f_arg;
    pthread_mutex_unlock(&l->lock);
}

static int local_cloud_ask(void *arg, const uint32_t *ids, size_t n, size_t tokens,
                           struct cloud_tally *tally, void **call, struct err *err)
{
    struct local_cloud *l = arg;
    struct err why = { "" };
    if (l->stop && atomic_load(l->stop))
        return err_set(err, ERR_STOP, "cloud: interrupted");
    struct local_call *c = calloc(1, sizeof(*c));
    if (!c)
        return err_set(err, ERR_NOMEM, "cloud %s: out of memory", l->name);
    const struct text_wish wish = { .prompt = ids,
                                    .n = n,
                                    .max = tokens,
                                    .sample = { .top_p = 1, .repeat_penalty = 1 },
                                    .model = TEXT_EDGE,
                                    .slot = -1,
                                    .news = local_cloud_news,
                                    .news_arg = l };
    int rc = texts_ask(l->texts, &c->text, &wish, &why);
    c->cloud = l;
    c->rc = rc == ERR_ARG ? ERR_TEXT : rc;
    if (rc != OK)
        err_set(&c->why, c->rc, "cloud %s: %s", l->name, why.msg);
    if (rc != OK && l->quota)
        quota_give(l->quota, tokens, n);
    if (rc == OK && tally)
        tally->traffic.asked_tokens += tokens;
    *call = c;
    return OK;
}

static bool local_cloud_done(const void *call, size_t at)
{
    const struct local_call *c = call;
    if (!c->text)
        return true;
    const struct text_view v = text_look(c->text);
    return v.finished || at < v.n;
}

static int local_cloud_take(void *call, size_t at, uint32_t *id, struct err *err)
{
    const struct local_call *c = call;
    struct local_cloud *l = c->cloud;
    if (!c->text)
        return err_set(err, c->rc, "%s", c->why.msg);
    pthread_mutex_lock(&l->lock);
    while (!local_cloud_done(c, at) && !(l->stop && atomic_load(l->stop)))
        os_cond_wait(&l->changed, &l->lock, os_now_ns() + STOP_SLICE_NS);
    pthread_mutex_unlock(&l->lock);
    const struct text_view v = text_look(c->text);
    if (at >= v.n && !v.finished)
        return err_set(err, ERR_STOP, "cloud: interrupted");
    if (at >= v.n)
        return err_set(err, v.rc ? v.rc : ERR_NET, "cloud %s: %s", l->name,
                       v.rc ? v.why : "no further token");
    *id = v.tokens[at].t.id;
    if (*id < l->vocab)
        return OK;
    return err_set(err, ERR_NET, "cloud %s: expected a token id below %zu, found %u", l->name,
                   l->vocab, (unsigned)*id);
}

static void local_cloud_end(void *call, enum cloud_end how)
{
    struct local_call *c = call;
    (void)how;
    text_drop(c->text);
    free(c);
}

static struct traffic local_cloud_traffic(void *arg, struct cloud_tally *tally, bool last)
{
    (void)arg, (void)last;
    return tally->traffic;
}

static void local_cloud_close(void *arg)
{
    struct local_cloud *l = arg;
    texts_close(l->texts);
    engine_close(&l->engine);
    turn_close(&l->turn);
    pthread_cond_destroy(&l->changed);
    pthread_mutex_destroy(&l->lock);
    free(l);
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
    size_t own = to->engine->model->config.context;
    size_t theirs = edge->model->config.context;
    to->context = own < theirs ? own : theirs;
    to->context = to->context < CONTEXT_MAX ? to->context : CONTEXT_MAX;
    return texts_fit(&to->slots, to->engine, to->context < USUAL ? to->context : USUAL, to->kv,
                     err);
}

/* Load the model and start to take calls. */
static int local_cloud_start(struct local_cloud *l, const struct engine *edge,
                             const struct routing_options *o, struct err *err)
{
    const struct engine_options large = { .model = o->cloud_model,
                                          .isa = o->engine.isa,
                                          .threads = o->engine.threads };
    struct texts_options to = {
        .engine = &l->engine, .keep = KEEP, .queue = QUEUE, .turn = &l->turn, .piece_ms = PIECE_MS
    };
    int rc = engine_open_alone(&l->engine, &large, err);
    if (rc == OK)
        rc = local_cloud_check(l, edge, o->cloud_model, err);
    if (rc == OK)
        rc = engine_kv(&to.kv, o->engine.kv, engine_best_kv(&l->engine), err);
    if (rc == OK)
        snprintf(l->info.says, sizeof(l->info.says),
                 "{\"fingerprint\":\"%016" PRIx64 "\",\"kv\":\"%s\",\"weights\":\"%s\"}",
                 model_exact_fingerprint(l->engine.model, l->engine.pool), kvcache_name(to.kv),
                 l->engine.weights);
    if (rc == OK)
        rc = local_cloud_size(&to, edge, err);
    return rc == OK ? texts_open(&l->texts, &to, err) : rc;
}

int local_cloud_open(struct cloud_port *out, const struct engine *edge,
                     const struct routing_options *o, struct quota *quota, const _Atomic int *stop,
                     struct err *err)
{
    struct local_cloud *l = calloc(1, sizeof(*l));
    if (!l)
        return err_set(err, ERR_NOMEM, "%s: out of memory", o->cloud_model);
    turn_open(&l->turn);
    pthread_mutex_init(&l->lock, NULL);
    os_cond_open(&l->changed);
    local_cloud_name(l->name, o->cloud_model);
    l->info = (struct cloud_info){ .api = CLOUD_OPENAI, /* which its requests would be */
                                   .model = l->name,
                                   .tokenizer = "this process",
                                   .tokens = o->cloud_tokens,
                                   .ids = true };
    l->vocab = tokenizer_size(edge->tokenizer);
    l->quota = quota;
    l->stop = stop;
    int rc = local_cloud_start(l, edge, o, err);
    if (rc != OK) {
        local_cloud_close(l);
        return rc;
    }
    *out = (struct cloud_port){ .arg = l,
                                .info = local_cloud_info,
                                .ask = local_cloud_ask,
                                .done = local_cloud_done,
                                .take = local_cloud_take,
                                .end = local_cloud_end,
                                .traffic = local_cloud_traffic,
                                .notify = local_cloud_notify,
                                .close = local_cloud_close };
    return OK;
}

struct turn *local_cloud_turn(struct local_cloud *l)
{
    return &l->turn;
}

struct texts *local_cloud_texts(const struct local_cloud *l)
{
    return l->texts;
}
