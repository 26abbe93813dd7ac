#include "net/answers/answers.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/sys/os.h"
#include "kernels/sys/sha256.h"
#include "net/answers/answer_file.h"

enum { PLACES = 128, MEMORY = 65536 /* answers */ };

struct answer {
    struct prefix_key key; /* of the prefix */
    uint32_t id;
    enum origin from; /* ORIGIN_NONE: a free place */
    bool filed;       /* it is in the file, too */
};

struct answers {
    pthread_mutex_t mutex;
    struct answer *at; /* [mask + 1], open addressing; at most half of it is used */
    size_t n, mask, most;
    struct prefix_key seed; /* odd and secret, so that no file has keys that share a place */
    struct answer_file file;
    size_t vocab;
    bool named; /* the model is known; nothing is found or kept before */
};

static struct prefix_key prefix_key(const struct answers *c, const uint32_t *ids, size_t n)
{
    struct sha256 s;
    unsigned char hash[SHA256_BYTES];
    struct prefix_key k = { 0, 0 };
    sha256_begin(&s);
    sha256_add(&s, &c->file.tokenizer, sizeof(c->file.tokenizer));
    sha256_add(&s, ids, n * sizeof(*ids));
    sha256_end(hash, &s);
    for (size_t i = 0; i < 8; i++) {
        k.hi = k.hi << 8 | hash[i];
        k.lo = k.lo << 8 | hash[8 + i];
    }
    return k;
}

/* Return the place of k, or the free place where it would go, valid until the next change. */
static struct answer *answers_place(const struct answers *c, const struct prefix_key *k)
{
    size_t i = (size_t)((k->hi * c->seed.hi + k->lo * c->seed.lo) >> 32) & c->mask;
    while (c->at[i].from != ORIGIN_NONE && memcmp(&c->at[i].key, k, sizeof(*k)) != 0)
        i = (i + 1) & c->mask;
    return &c->at[i];
}

/* Return the answer with this key, valid until the next change, or NULL. */
static struct answer *answers_at(const struct answers *c, const struct prefix_key *k)
{
    struct answer *a = c->n ? answers_place(c, k) : NULL;
    return a && a->from != ORIGIN_NONE ? a : NULL;
}

/* Keep an answer, unless there is one with its key. Without memory it is not kept. */
static void answers_add(struct answers *c, const struct answer *a)
{
    struct answer *was = c->at;
    size_t places = was ? c->mask + 1 : 0;
    if (answers_at(c, &a->key))
        return;
    if (c->n >= places / 2) {
        struct answer *new = calloc(places ? 2 * places : PLACES, sizeof(*new));
        if (!new)
            return;
        c->at = new;
        c->mask = places ? 2 * places - 1 : PLACES - 1;
        for (size_t i = 0; i < places; i++)
            if (was[i].from != ORIGIN_NONE)
                *answers_place(c, &was[i].key) = was[i];
        free(was);
    }
    *answers_place(c, &a->key) = *a;
    c->n++;
}

/* Forget all answers; those of the file can be read again. */
static void answers_clear(struct answers *c)
{
    free(c->at);
    c->at = NULL;
    c->n = 0;
    c->file.read = 0;
    c->file.old_read = false;
}

/* Take an answer from the file. */
static void answers_take(void *arg, const struct prefix_key *k, uint32_t id)
{
    struct answers *c = arg;
    if (id < c->vocab)
        answers_add(c, &(struct answer){ *k, id, ORIGIN_STORE, true });
}

int answers_open(struct answers **out, const struct answers_options *o, struct err *err)
{
    *out = NULL;
    struct answers *c = calloc(1, sizeof(*c));
    if (!c || pthread_mutex_init(&c->mutex, NULL)) {
        free(c);
        return err_set(err, ERR_NOMEM, "answers: out of memory");
    }
    c->vocab = o->vocab;
    c->file = (struct answer_file){ .fd = -1,
                                    .limit = o->limit ? o->limit : ANSWER_FILE_LIMIT,
                                    .offline = o->offline,
                                    .tokenizer = o->tokenizer,
                                    .take = answers_take,
                                    .arg = c };
    c->most = MEMORY + (o->file ? (size_t)(c->file.limit / ANSWER_FILE_LEAST_LINE * 2) : 0);
    c->seed = (struct prefix_key){ os_now_ns() << 16 | 1, (uint64_t)(uintptr_t)c << 16 | 1 };
    int rc = o->file ? answer_file_open(&c->file, o->file, err) : OK;
    if (rc == OK)
        *out = c;
    else
        answers_close(c);
    return rc;
}

void answers_close(struct answers *c)
{
    if (!c)
        return;
    answer_file_close(&c->file);
    free(c->at);
    pthread_mutex_destroy(&c->mutex);
    free(c);
}

int answers_server(struct answers *c, const char *model, struct err *err)
{
    int rc = OK;
    pthread_mutex_lock(&c->mutex);
    if (!c->named) {
        rc = answer_file_server(&c->file, model, err);
        c->named = rc == OK;
    } else if (model && strcmp(model, c->file.model) != 0) {
        rc = err_set(err, ERR_REMOTE, "answers are kept of the model %s, found %s", c->file.model,
                     model);
    }
    pthread_mutex_unlock(&c->mutex);
    return rc;
}

const char *answers_model(struct answers *c)
{
    pthread_mutex_lock(&c->mutex);
    const char *model = c->named ? c->file.model : NULL;
    pthread_mutex_unlock(&c->mutex);
    return model;
}

/* Find an answer, also one that another process has added to the file since. With the lock held. */
static struct answer *answers_find(struct answers *c, const struct prefix_key *k)
{
    struct answer *a = answers_at(c, k);
    if (a || !c->named)
        return a;
    answer_file_read(&c->file);
    return answers_at(c, k);
}

/* Put an answer that is used into the file, unless it is there. With the lock held. */
static void answers_file(struct answers *c, const struct prefix_key *k, size_t n)
{
    struct answer *a = answers_at(c, k);
    if (!a)
        return;
    a->from = ORIGIN_MEMO;
    if (a->filed || !answer_file_append(&c->file, k, n, a->id))
        return;
    a = answers_at(c, k); /* others' lines may have been read */
    if (a)
        a->filed = true;
}

enum origin answers_get(struct answers *c, const uint32_t *ids, size_t n, bool used, uint32_t *id)
{
    const struct prefix_key k = prefix_key(c, ids, n);
    pthread_mutex_lock(&c->mutex);
    const struct answer *a = answers_find(c, &k);
    enum origin from = a ? a->from : ORIGIN_NONE;
    if (a)
        *id = a->id;
    if (used)
        answers_file(c, &k, n);
    pthread_mutex_unlock(&c->mutex);
    return from;
}

void answers_put(struct answers *c, const uint32_t *ids, size_t n, bool used, uint32_t id)
{
    const struct prefix_key k = prefix_key(c, ids, n);
    pthread_mutex_lock(&c->mutex);
    if (c->n >= c->most)
        answers_clear(c);
    if (c->named && !answers_find(c, &k))
        answers_add(c, &(struct answer){ k, id, ORIGIN_MEMO, false });
    if (used)
        answers_file(c, &k, n);
    pthread_mutex_unlock(&c->mutex);
}

void answers_forget(struct answers *c)
{
    pthread_mutex_lock(&c->mutex);
    answers_clear(c);
    pthread_mutex_unlock(&c->mutex);
}

bool answers_note(struct answers *c, struct err *note)
{
    pthread_mutex_lock(&c->mutex);
    bool told = answer_file_note(&c->file, note);
    pthread_mutex_unlock(&c->mutex);
    return told;
}
