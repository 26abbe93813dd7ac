#include "tests/support/script.h"

#include "model/sample.h"
#include "tests/support/port.h"

enum { TICK_NS = 50000 };

struct script_call {
    struct script *script;
    size_t looks; /* until it is done */
    int rc;
    uint32_t id;
    size_t n, tokens;
    uint32_t ids[]; /* [n + tokens] */
};

static uint64_t script_key(const struct script *s, const uint32_t *ids, size_t n)
{
    return port_key(rand_u64(s->seed, n), ids, n);
}

/* True when this prefix belongs to this share of all prefixes. */
static bool script_falls(uint64_t key, unsigned which, unsigned percent)
{
    return rand_below(key, which, 100) < percent;
}

/* Return what the small model would write. */
static uint32_t script_edge(struct script *s, const uint32_t *ids, size_t n)
{
    port_reach(s->edge, ids, n);
    return sampler_pick(s->greedy, session_logits(s->edge, 0), ids, n);
}

static uint32_t script_answer(struct script *s, const uint32_t *ids, size_t n, uint64_t key)
{
    if (s->edge && script_falls(key, 1, s->agree))
        return script_edge(s, ids, n);
    return (uint32_t)rand_below(key, 2, s->size);
}

static bool script_knows(const struct script *s, uint64_t key)
{
    for (size_t i = 0; i < s->nkept; i++)
        if (s->kept[i] == key)
            return true;
    return script_falls(key, 3, s->store);
}

/* Keep the answer to a prefix. */
static void script_keep(struct script *s, uint64_t key)
{
    s->kept = realloc(s->kept, (s->nkept + 1) * sizeof(*s->kept));
    CHECK(s->kept);
    s->kept[s->nkept++] = key;
}

static enum cloud_sight script_known(void *arg, const uint32_t *ids, size_t n, bool used,
                                     uint32_t *id)
{
    struct script *s = arg;
    (void)used;
    uint64_t key = script_key(s, ids, n);
    if (!script_knows(s, key))
        return CLOUD_UNKNOWN;
    *id = script_answer(s, ids, n, key);
    return CLOUD_STORE;
}

static struct cloud_info script_info(void *arg)
{
    const struct script *s = arg;
    return (struct cloud_info){ .tokens = s->tokens ? s->tokens : 1 };
}

static int script_ask(void *arg, const uint32_t *ids, size_t n, size_t tokens,
                      struct cloud_tally *tally, void **call, struct err *err)
{
    struct script *s = arg;
    CHECK(tokens && (tokens == 1 || tokens <= s->tokens));
    uint64_t key = script_key(s, ids, n);
    struct script_call *c = calloc(1, sizeof(*c) + (n + tokens) * sizeof(*ids));
    if (!c)
        return err_set(err, ERR_NOMEM, "script: out of memory");
    CHECK(n && tally);
    c->script = s;
    c->looks = (size_t)rand_below(key, 4, s->delay + 1);
    c->rc = script_falls(key, 5, s->unfit) ? ERR_TEXT : OK;
    c->id = script_answer(s, ids, n, key);
    c->n = n;
    c->tokens = tokens;
    memcpy(c->ids, ids, n * sizeof(*ids));
    tally->traffic.bytes_up += n;
    tally->traffic.asked_tokens += tokens;
    s->live++;
    *call = c;
    return OK;
}

static bool script_done(const void *call, size_t at)
{
    (void)at;
    struct script_call *c = (struct script_call *)(size_t)call;
    if (c->looks && !c->script->dead)
        c->looks--;
    return !c->looks && !c->script->dead;
}

static int script_take(void *call, size_t at, uint32_t *id, struct err *err)
{
    struct script_call *c = call;
    CHECK(at == 0 && !c->script->dead);
    if (c->rc != OK)
        return err_set(err, c->rc, "unfit");
    *id = c->id;
    return OK;
}

/* Keep all tokens of the reply, whose ids make the prefixes. */
static void script_use(struct script_call *c)
{
    struct script *s = c->script;
    size_t most = s->edge ? session_context(s->edge) : SIZE_MAX;
    for (size_t i = 0; c->rc == OK && s->tokens > 1 && i < c->tokens && c->n <= most; i++, c->n++) {
        uint64_t key = script_key(s, c->ids, c->n);
        uint32_t id = script_answer(s, c->ids, c->n, key);
        script_keep(s, key);
        c->ids[c->n] = id;
    }
}

static void script_end(void *call, enum cloud_end how)
{
    struct script_call *c = call;
    if (how == CLOUD_USE)
        script_use(c);
    c->script->live--;
    free(c);
}

static void script_notify(void *arg, void (*f)(void *), void *f_arg)
{
    struct script *s = arg;
    pthread_mutex_lock(&s->lock);
    s->notify = f;
    s->notify_arg = f_arg;
    pthread_mutex_unlock(&s->lock);
}

/* Say that something may have come. */
static void *script_run(void *arg)
{
    struct script *s = arg;
    pthread_mutex_lock(&s->lock);
    while (!s->closing) {
        if (s->notify)
            s->notify(s->notify_arg);
        pthread_mutex_unlock(&s->lock);
        nanosleep(&(struct timespec){ .tv_nsec = TICK_NS }, NULL);
        pthread_mutex_lock(&s->lock);
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

void script_open(struct script *s)
{
    s->port = (struct cloud_port){ .arg = s,
                                   .known = script_known,
                                   .info = script_info,
                                   .ask = script_ask,
                                   .done = script_done,
                                   .take = script_take,
                                   .end = script_end,
                                   .traffic = port_traffic,
                                   .notify = script_notify };
    pthread_mutex_init(&s->lock, NULL);
    CHECK(pthread_create(&s->thread, NULL, script_run, s) == 0);
}

void script_forget(struct script *s)
{
    free(s->kept);
    s->kept = NULL;
    s->nkept = 0;
}

void script_close(struct script *s)
{
    script_forget(s);
    pthread_mutex_lock(&s->lock);
    s->closing = true;
    pthread_mutex_unlock(&s->lock);
    pthread_join(s->thread, NULL);
    pthread_mutex_destroy(&s->lock);
    CHECK(!s->live);
}
