#include "net/answers/answers.h"

#include <pthread.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/sys/sha256.h"
#include "net/answers/answer_file.h"

enum { MEMORY = 65536 /* answers */ };

struct answer {
    struct prefix_key key; /* of the prefix */
    uint32_t id;
    enum cloud_sight from;
    bool filed; /* it is in the file, too */
};

struct answers {
    pthread_mutex_t mutex;
    void *root; /* of the tree of answers, n of at most `most` */
    size_t n, most;
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

static int answers_compare(const void *a, const void *b)
{
    return memcmp(&((const struct answer *)a)->key, &((const struct answer *)b)->key,
                  sizeof(struct prefix_key));
}

/* Keep an answer, unless there is one with its key, and return that. Without memory NULL. */
static struct answer *answers_add(struct answers *c, struct answer a)
{
    struct answer *own = malloc(sizeof(*own)), **at;
    if (own)
        *own = a;
    at = own ? tsearch(own, &c->root, answers_compare) : NULL;
    if (at && *at == own)
        c->n++;
    else
        free(own);
    return at ? *at : NULL;
}

/* Forget all answers; those of the file can be read again. */
static void answers_clear(struct answers *c)
{
    for (struct answer *a; c->root; free(a)) {
        a = *(struct answer **)c->root; /* that of the root */
        tdelete(a, &c->root, answers_compare);
    }
    c->n = 0;
    c->file.read = 0;
    c->file.old_read = false;
}

/* Take an answer from the file. */
static void answers_take(void *arg, const struct prefix_key *k, uint32_t id)
{
    struct answers *c = arg;
    if (id < c->vocab)
        answers_add(c, (struct answer){ *k, id, CLOUD_STORE, true });
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
    answers_clear(c);
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
    const struct answer key = { .key = *k };
    struct answer **a = tfind(&key, &c->root, answers_compare);
    if (!a && c->named) {
        answer_file_read(&c->file);
        a = tfind(&key, &c->root, answers_compare);
    }
    return a ? *a : NULL;
}

/* Put an answer to n tokens that is used into the file, unless it is there. With the lock held. */
static void answers_use(struct answers *c, struct answer *a, size_t n)
{
    a->from = CLOUD_MEMO;
    a->filed = a->filed || answer_file_append(&c->file, &a->key, n, a->id);
}

enum cloud_sight answers_get(struct answers *c, const uint32_t *ids, size_t n, bool used,
                             uint32_t *id)
{
    const struct prefix_key k = prefix_key(c, ids, n);
    pthread_mutex_lock(&c->mutex);
    struct answer *a = answers_find(c, &k);
    enum cloud_sight from = a ? a->from : CLOUD_UNKNOWN;
    if (a)
        *id = a->id;
    if (a && used)
        answers_use(c, a, n);
    pthread_mutex_unlock(&c->mutex);
    return from;
}

void answers_put(struct answers *c, const uint32_t *ids, size_t n, bool used, uint32_t id)
{
    const struct prefix_key k = prefix_key(c, ids, n);
    pthread_mutex_lock(&c->mutex);
    if (c->n >= c->most)
        answers_clear(c);
    struct answer *a = answers_find(c, &k);
    if (c->named && !a)
        a = answers_add(c, (struct answer){ k, id, CLOUD_MEMO, false });
    if (a && used)
        answers_use(c, a, n);
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
