#include "net/answers/answers.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "net/answers/prefix_key.h"
#include "net/answers/record.h"
#include "net/answers/store.h"

enum { MEMO = 65536 };

struct answers {
    pthread_mutex_t mutex;
    struct answer_table memo;
    struct store *store;   /* NULL: no store */
    struct record *record; /* what is recorded or replayed; NULL: neither */
    bool replays;
    uint64_t tokenizer;
    size_t vocab;
    struct answer_server server;
    bool named; /* the server is known; nothing is found or kept before */
    struct prefix_key print;
};

/* The answers are from this server. */
static void name_server(struct answers *c, const struct answer_server *s)
{
    c->server = *s;
    c->named = true;
    c->print = prefix_key_fingerprint(s->model, c->tokenizer);
}

/* Open memo, store, recording and replay as the options want them. */
static int answers_open_parts(struct answers *c, const struct answers_options *o, struct err *err)
{
    if (o->replay && (o->record || o->store))
        return err_set(err, ERR_ARG, "a replay answers from %s alone: neither store nor recording",
                       o->replay);
    answer_table_init(&c->memo, o->memo ? o->memo : MEMO);
    int rc =
        answer_table_reserve(&c->memo) ? OK : err_set(err, ERR_NOMEM, "answers: out of memory");
    if (rc == OK && o->store)
        rc = store_open(&c->store, o->store, o->store_limit, err);
    const char *file = c->replays ? o->replay : o->record;
    if (rc == OK && file)
        rc = record_open(&c->record, file, o->tokenizer, c->replays, err);
    if (rc == OK && c->replays)
        name_server(c, record_server(c->record));
    return rc;
}

int answers_open(struct answers **out, const struct answers_options *o, struct err *err)
{
    *out = NULL;
    struct answers *c = calloc(1, sizeof(*c));
    if (!c)
        return err_set(err, ERR_NOMEM, "answers: out of memory");
    if (pthread_mutex_init(&c->mutex, NULL)) {
        free(c);
        return err_set(err, ERR_NOMEM, "answers: cannot create a lock");
    }
    c->tokenizer = o->tokenizer;
    c->vocab = o->vocab;
    c->replays = o->replay != NULL;
    int rc = answers_open_parts(c, o, err);
    if (rc != OK) {
        answers_close(c, NULL);
        return rc;
    }
    *out = c;
    return OK;
}

int answers_close(struct answers *c, struct err *err)
{
    if (!c)
        return OK;
    int rc = record_close(c->record, err);
    store_close(c->store);
    answer_table_free(&c->memo);
    pthread_mutex_destroy(&c->mutex);
    free(c);
    return rc;
}

/* answers_server, with the lock held. */
static int set_server(struct answers *c, const char *model, const char *api, struct err *err)
{
    struct answer_server s;
    if (!model)
        return OK;
    answer_line_set_server(&s, model, api ? api : "", c->tokenizer);
    if (c->named)
        return strcmp(c->server.model, s.model) == 0
                   ? OK
                   : err_set(err, c->replays ? ERR_FORMAT : ERR_REMOTE,
                             "answers are kept of the model %s, found %s", c->server.model,
                             s.model);
    int rc = c->record ? record_begin(c->record, &s, err) : OK;
    if (rc == OK)
        name_server(c, &s);
    return rc;
}

int answers_server(struct answers *c, const char *model, const char *api, struct err *err)
{
    pthread_mutex_lock(&c->mutex);
    int rc = set_server(c, model, api, err);
    pthread_mutex_unlock(&c->mutex);
    return rc;
}

bool answers_replays(const struct answers *c)
{
    return c->replays;
}

const char *answers_model(const struct answers *c)
{
    return c->named ? c->server.model : NULL;
}

const char *answers_api(const struct answers *c)
{
    return c->named ? c->server.api : NULL;
}

/* Add a line to the recording, if there is one. */
static void answers_record(struct answers *c, const struct prefix_key *k, const uint32_t *ids,
                           size_t n, const struct answer *a, const char *why)
{
    if (c->record && !c->replays)
        record_put(c->record, k, ids, n, a, why);
}

/* Keep an answer in the memo, which has room. */
static void memo_put(struct answers *c, const struct prefix_key *k, uint32_t id)
{
    answer_table_put(&c->memo, &(struct answer){ .key = *k, .from = ORIGIN_MEMO, .id = id });
}

/* Look in memo, store and replay, without changing them. With the lock held. */
static enum origin answers_look(struct answers *c, const struct prefix_key *k, uint32_t *id)
{
    const struct answer *a = answer_table_find(&c->memo, k);
    if (!a && c->store && store_get(c->store, k, id) && *id < c->vocab)
        return ORIGIN_STORE;
    if (!a && c->replays) {
        a = record_get(c->record, k);
        if (a && (a->from == ORIGIN_CALL || a->fault || a->id >= c->vocab))
            a = NULL;
    }
    if (a)
        *id = a->id;
    return a ? a->from : ORIGIN_NONE;
}

/* Keep an answer that is used now in the places that the next look asks first, and record it. */
static void answers_keep(struct answers *c, const struct prefix_key *k, const uint32_t *ids,
                         size_t n, uint32_t id, enum origin from)
{
    if (c->replays || from == ORIGIN_NONE)
        return;
    if (from == ORIGIN_STORE)
        memo_put(c, k, id);
    else if (c->store) /* a further token of a reply, wanted for the first time */
        store_put(c->store, k, id);
    answers_record(c, k, ids, n, &(struct answer){ .from = from, .id = id }, NULL);
}

/* Look an answer up; `used` also keeps and records it. */
static enum origin answers_find(struct answers *c, const uint32_t *ids, size_t n, uint32_t *id,
                                bool used)
{
    enum origin from = ORIGIN_NONE;
    uint32_t found = 0;
    pthread_mutex_lock(&c->mutex);
    if (c->named) {
        struct prefix_key k = prefix_key_of(&c->print, ids, n);
        from = answers_look(c, &k, &found);
        if (used)
            answers_keep(c, &k, ids, n, found, from);
    }
    pthread_mutex_unlock(&c->mutex);
    if (from != ORIGIN_NONE)
        *id = found;
    return from;
}

enum origin answers_peek(struct answers *c, const uint32_t *ids, size_t n, uint32_t *id)
{
    return answers_find(c, ids, n, id, false);
}

enum origin answers_get(struct answers *c, const uint32_t *ids, size_t n, uint32_t *id)
{
    return answers_find(c, ids, n, id, true);
}

int answers_replay(struct answers *c, const uint32_t *ids, size_t n, uint32_t *id, struct err *err)
{
    int rc = OK;
    if (!c->replays)
        return err_set(err, ERR_ARG, "there is no replay");
    pthread_mutex_lock(&c->mutex);
    const struct prefix_key k = prefix_key_of(&c->print, ids, n);
    const struct answer *a = record_get(c->record, &k);
    if (!a)
        rc = record_miss(c->record, &k, ids, n, err);
    else if (a->fault)
        rc = err_set(err, a->fault, "replay: %s", a->message);
    else if (a->id >= c->vocab)
        rc = err_set(err, ERR_NET, "replay: token id: expected below %zu, found %u", c->vocab,
                     (unsigned)a->id);
    else
        *id = a->id;
    pthread_mutex_unlock(&c->mutex);
    return rc;
}

void answers_put(struct answers *c, const uint32_t *ids, size_t n, int code, uint32_t id,
                 const char *why)
{
    const struct answer a = { .from = ORIGIN_CALL, .fault = code, .id = code ? 0 : id };
    bool repeated = code == OK || code == ERR_NET || code == ERR_REMOTE || code == ERR_TEXT;
    pthread_mutex_lock(&c->mutex);
    if (c->named && repeated) {
        const struct prefix_key k = prefix_key_of(&c->print, ids, n);
        if (code == OK) {
            memo_put(c, &k, id);
            if (c->store)
                store_put(c->store, &k, id);
        }
        answers_record(c, &k, ids, n, &a, why);
    }
    pthread_mutex_unlock(&c->mutex);
}

void answers_extra(struct answers *c, const uint32_t *ids, size_t n, uint32_t id)
{
    pthread_mutex_lock(&c->mutex);
    if (c->named) {
        struct prefix_key k = prefix_key_of(&c->print, ids, n);
        memo_put(c, &k, id);
    }
    pthread_mutex_unlock(&c->mutex);
}

void answers_forget(struct answers *c)
{
    pthread_mutex_lock(&c->mutex);
    answer_table_clear(&c->memo);
    pthread_mutex_unlock(&c->mutex);
}

bool answers_note(struct answers *c, struct err *note)
{
    pthread_mutex_lock(&c->mutex);
    bool told =
        (c->store && store_note(c->store, note)) || (c->record && record_note(c->record, note));
    pthread_mutex_unlock(&c->mutex);
    return told;
}

int answers_recorded(struct answers *c, struct err *err)
{
    pthread_mutex_lock(&c->mutex);
    int rc = record_whole(c->record, err);
    pthread_mutex_unlock(&c->mutex);
    return rc;
}
