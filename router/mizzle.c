#include "router/mizzle.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "model/text/chat.h"
#include "model/model.h"
#include "model/sample.h"
#include "model/session.h"
#include "model/text/tokenizer.h"
#include "router/decode/decode.h"
#include "router/decode/stops.h"
#include "router/mizzle_internal.h"
#include "router/routing.h"

enum { CONTEXT = 4096, ERR_BUSY = -MIZZLE_BUSY };

_Static_assert(MIZZLE_NOMEM == -ERR_NOMEM && MIZZLE_IO == -ERR_IO && MIZZLE_FORMAT == -ERR_FORMAT &&
                   MIZZLE_ARG == -ERR_ARG && MIZZLE_NET == -ERR_NET &&
                   MIZZLE_REMOTE == -ERR_REMOTE && MIZZLE_STOPPED == -ERR_STOP &&
                   MIZZLE_TEXT == -ERR_TEXT,
               "the codes of the library are those of base.h without the sign");
_Static_assert((int)MIZZLE_EDGE == SOURCE_EDGE && (int)MIZZLE_CLOUD == SOURCE_CLOUD &&
                   (int)MIZZLE_FALLBACK == SOURCE_FALLBACK,
               "sources are those of decode.h");
_Static_assert(ATOMIC_INT_LOCK_FREE == 2, "a signal handler may store into an atomic int");

struct mizzle {
    _Atomic int busy; /* 1 while a call is running */
    _Atomic int stop; /* 1 after mizzle_stop, until the call that it ends returns */
    struct engine engine;
    struct routing routing;
    struct session *session;
    struct sampler *sampler;
    size_t max_tokens;
    uint64_t seed;
    char **stops;    /* NULL-ended, one block with its texts; NULL: none */
    char *piece;     /* room for the longest token and a zero */
    double start_ms; /* time waited for the cloud; 0 once an answer's stats have reported it */
    /* That of the chat form is due once conversations are expected or one was encoded. */
    enum { NOTE_NONE, NOTE_DUE, NOTE_TOLD } form;
};

const char *mizzle_version(void)
{
    return MIZZLE_VERSION;
}

/* Acquire the handle; false if a call is running. */
static bool mizzle_take(struct mizzle *m)
{
    int idle = 0;
    return atomic_compare_exchange_strong(&m->busy, &idle, 1);
}

static void mizzle_give_back(struct mizzle *m)
{
    atomic_store(&m->busy, 0);
}

/* Copy the stop texts of the options into one block, and check them. */
static int mizzle_copy_stops(struct mizzle *m, const char *const *stops, struct err *err)
{
    size_t n = 0, bytes = 0;
    for (; stops && stops[n]; n++)
        bytes += strlen(stops[n]) + 1;
    if (!n)
        return OK;
    m->stops = malloc((n + 1) * sizeof(*m->stops) + bytes);
    if (!m->stops)
        return err_set(err, ERR_NOMEM, "stops: out of memory");
    char *to = (char *)(m->stops + n + 1);
    for (size_t i = 0; i < n; i++) {
        size_t size = strlen(stops[i]) + 1;
        m->stops[i] = memcpy(to, stops[i], size);
        to += size;
    }
    m->stops[n] = NULL;
    struct stops check;
    return stops_begin(&check, stops, err);
}

/* Allocate m->piece for the longest token of the vocabulary. */
static int mizzle_open_piece(struct mizzle *m, struct err *err)
{
    size_t longest = 0, n;
    for (size_t id = 0; id < tokenizer_size(m->engine.tokenizer); id++) {
        tokenizer_bytes(m->engine.tokenizer, (uint32_t)id, &n);
        longest = n > longest ? n : longest;
    }
    m->piece = malloc(longest + 1);
    return m->piece ? OK : err_set(err, ERR_NOMEM, "tokens: out of memory");
}

/* Open the session and the sampler; the engine must be open. */
static int mizzle_open_session(struct mizzle *m, const struct mizzle_options *o, struct err *err)
{
    const struct engine *e = &m->engine;
    const struct sample_params sample = { .temp = (float)o->temp,
                                          .top_k = o->top_k,
                                          .top_p = (float)o->top_p,
                                          .min_p = (float)o->min_p,
                                          .repeat_penalty = (float)o->repeat_penalty,
                                          .seed = o->seed };
    size_t most = e->model->config.context;
    size_t context = o->context ? o->context : most < CONTEXT ? most : CONTEXT;
    enum kvcache kv;
    int rc = engine_kv(&kv, o->kv, engine_best_kv(e), err);
    if (rc == OK)
        rc = session_open(&m->session, e->batch, context, kv, err);
    if (rc == OK)
        rc = sampler_open(&m->sampler, &sample, tokenizer_size(e->tokenizer), &e->kernels, err);
    return rc;
}

/* Open all that the handle holds. On error, the caller frees what was opened. The public struct
 * ends here: engine and routing have their own. */
static int mizzle_open_parts(struct mizzle *m, const struct mizzle_options *o, struct err *err)
{
    enum kvcache kv;
    struct routing_options to = { .on_score = o->on_score, .score_arg = o->score_arg };
#define X(type, name) to.engine.name = o->name;
    ENGINE_OPTIONS(X)
#undef X
#define X(type, name) to.name = o->name;
    ROUTING_OPTIONS(X)
#undef X
    m->max_tokens = o->max_tokens;
    m->seed = o->seed;
    int rc =
        engine_kv(&kv, o->kv, KVCACHE_F32, err); /* reports a wrong name before the model is read */
    if (rc == OK)
        rc = mizzle_copy_stops(m, o->stops, err);
    if (rc == OK)
        rc = engine_open(&m->engine, &to.engine, true, err);
    if (rc == OK)
        rc = mizzle_open_piece(m, err);
    if (rc == OK)
        rc = routing_open(&m->routing, &m->engine, &to, &m->stop, err);
    m->start_ms = m->routing.start_ms;
    if (rc == OK)
        rc = mizzle_open_session(m, o, err);
    return rc;
}

/* Free m, which may be only partly open. */
static void mizzle_free(struct mizzle *m)
{
    sampler_close(m->sampler);
    session_close(m->session);
    routing_close(&m->routing);
    engine_close(&m->engine);
    free(m->piece);
    free(m->stops);
    free(m);
}

/* Do the work of mizzle_open, with a struct err. */
static int mizzle_open_own(struct mizzle **out, const struct mizzle_options *from, struct err *err)
{
    struct mizzle_options o;
    if (!out)
        return err_set(err, ERR_ARG, "mizzle_open: expected a place for the handle, found NULL");
    *out = NULL;
    int rc = mizzle_read_options(&o, from, err);
    if (rc != OK)
        return rc;
    struct mizzle *m = calloc(1, sizeof(*m));
    if (!m)
        return err_set(err, ERR_NOMEM, "mizzle_open: out of memory");
    m->busy = 1; /* on_opening may hand it to another thread */
    if (o.on_opening)
        o.on_opening(o.opening_arg, m);
    rc = mizzle_open_parts(m, &o, err);
    if (rc == OK) {
        m->form = o.think ? NOTE_DUE : NOTE_NONE;
        *out = m;
        mizzle_give_back(m);
        return OK;
    }
    if (o.on_opening)
        o.on_opening(o.opening_arg, NULL);
    mizzle_free(m);
    return rc;
}

int mizzle_open(struct mizzle **out, const struct mizzle_options *o, struct mizzle_error *error)
{
    struct err err = { "" };
    int rc = mizzle_open_own(out, o, &err);
    mizzle_write_error(error, rc, rc == OK ? "" : err.msg);
    return -rc;
}

/* The callbacks of a running mizzle_generate. */
struct mizzle_call {
    struct mizzle *m;
    bool (*on_token)(void *arg, const struct mizzle_token *t);
    void (*on_reading)(void *arg, size_t done, size_t all);
    void *arg;
    const struct decode_stats *stats;
};

/* Callback of decode_run: report how much of the prompt is evaluated. Where the cloud writes first,
 * it is read amid the answer. */
static void mizzle_reading(void *arg, size_t done, size_t all)
{
    const struct mizzle_call *c = arg;
    if (!c->stats->tokens)
        c->on_reading(c->arg, done, all);
}

/* Callback of decode_run: pass a token on. Control tokens and the end of the answer have no text.
 */
static bool mizzle_emit(void *arg, const struct decode_token *t)
{
    const struct mizzle_call *c = arg;
    const struct tokenizer *tok = c->m->engine.tokenizer;
    bool shown = !t->eog && !tokenizer_is_control(tok, t->id);
    size_t n = 0;
    const char *bytes = shown ? tokenizer_bytes(tok, t->id, &n) : NULL;
    if (bytes)
        memcpy(c->m->piece, bytes, n);
    c->m->piece[n] = '\0';
    const struct mizzle_token out = {
        .size = sizeof(out),
        .piece = c->m->piece,
        .piece_size = n,
        .pos = t->pos,
        .id = t->id,
        .source = (int)t->source,
        .score = (double)t->score,
        .ms = t->ms,
        .fault = t->fault,
        .reason = t->fault ? gate_name(t->reason) : NULL,
        .end = t->eog,
        .has_edge = t->has_edge,
        .edge_id = t->edge_id,
    };
    return c->on_token(c->arg, &out);
}

/* Turn a conversation into token ids with the model's chat template. */
static int mizzle_encode_messages(struct mizzle *m, uint32_t **ids, size_t *n,
                                  const struct mizzle_prompt *p, struct err *err)
{
    struct chat_message *list = calloc(p->n_messages ? p->n_messages : 1, sizeof(*list));
    if (!list)
        return err_set(err, ERR_NOMEM, "messages: out of memory");
    int rc = OK;
    for (size_t i = 0; i < p->n_messages; i++) {
        const struct mizzle_message *from = &p->messages[i];
        if (!from->role || !from->text)
            rc = err_set(err, ERR_ARG, "messages[%zu]: expected a role and a text, found NULL", i);
        else
            list[i] =
                (struct chat_message){ from->role, from->text,
                                       from->text_size ? from->text_size : strlen(from->text) };
    }
    if (rc == OK)
        rc = chat_encode(m->engine.chat, ids, n, list, p->n_messages, CHAT_THINK_AUTO, err);
    if (rc == OK && m->form == NOTE_NONE)
        m->form = NOTE_DUE;
    free(list);
    return rc;
}

/* Set *n to the prompt's number of tokens, and *ids to its malloc'ed ids, or to NULL if the prompt
 * has ids itself. */
static int mizzle_prompt_ids(struct mizzle *m, uint32_t **ids, size_t *n,
                             const struct mizzle_prompt *p, struct err *err)
{
    int given = (p->text != NULL) + (p->ids != NULL) + (p->messages != NULL);
    *ids = NULL;
    if (given != 1)
        return err_set(err, ERR_ARG, "prompt: expected one of text, ids and messages, found %d",
                       given);
    if (p->messages)
        return mizzle_encode_messages(m, ids, n, p, err);
    if (p->text)
        return tokenizer_encode(m->engine.tokenizer, ids, n, p->text,
                                p->text_size ? p->text_size : strlen(p->text), true, err);
    *n = p->n_ids;
    return OK;
}

/* Reject prompts that do not fit. The message depends on whether a larger context would help. */
static int mizzle_check_length(const struct mizzle *m, size_t n, struct err *err)
{
    size_t room = session_context(m->session), most = m->engine.model->config.context;
    if (n <= room)
        return OK;
    if (n <= most)
        return err_set(err, ERR_ARG, "context: expected at least %zu for this prompt, found %zu", n,
                       room);
    return err_set(err, ERR_ARG,
                   "the prompt: expected at most %zu tokens, the context that the model was made "
                   "for, found %zu",
                   most, n);
}

/* Encode the prompt and run the decoding loop. */
static int mizzle_write_answer(struct mizzle *m, struct mizzle_call *call,
                               struct decode_stats *stats, const struct mizzle_prompt *p,
                               struct err *err)
{
    uint32_t *ids;
    size_t n;
    const struct routing *r = &m->routing;
    struct decode_options o = r->how;
    o.max_tokens = p->max_tokens ? p->max_tokens : m->max_tokens;
    o.seed = p->seed ? p->seed : m->seed;
    o.stops = p->stops ? p->stops : (const char *const *)m->stops;
    o.stop = &m->stop;
    o.reading = p->on_reading ? mizzle_reading : NULL;
    o.emit = call->on_token ? mizzle_emit : NULL;
    o.arg = call;
    int rc = mizzle_prompt_ids(m, &ids, &n, p, err);
    if (rc != OK)
        return rc;
    call->on_reading = p->on_reading;
    call->stats = stats;
    stats->prompt_tokens = n;
    rc = mizzle_check_length(m, n, err);
    sampler_seed(m->sampler, o.seed);
    if (rc == OK)
        rc = decode_run(stats, m->session, m->engine.tokenizer, m->sampler, r->router,
                        routing_port(r), ids ? ids : p->ids, n, &o, err);
    free(ids);
    return rc;
}

/* Do the work of mizzle_generate, with a struct err. */
static int mizzle_generate_own(struct mizzle *m, const struct mizzle_prompt *from,
                               struct mizzle_call *call, struct mizzle_stats *stats,
                               struct err *err)
{
    struct mizzle_prompt p;
    struct decode_stats s = { .finish = FINISH_ERROR };
    if (!m)
        return err_set(err, ERR_ARG, "mizzle_generate: expected a handle, found NULL");
    if (!mizzle_has_room(stats))
        return err_set(err, ERR_ARG, "stats: size: expected sizeof the struct, found %zu",
                       stats->size);
    if (!mizzle_take(m))
        return err_set(err, ERR_BUSY, "a call on this handle is running");
    int rc = mizzle_read_prompt(&p, from, err);
    if (rc == OK)
        rc = mizzle_write_answer(m, call, &s, &p, err);
    mizzle_write_stats(stats, &s, m->start_ms);
    m->start_ms = 0;
    atomic_store(&m->stop, 0);
    mizzle_give_back(m);
    return rc;
}

int mizzle_generate(struct mizzle *m, const struct mizzle_prompt *prompt,
                    bool (*on_token)(void *arg, const struct mizzle_token *token), void *arg,
                    struct mizzle_stats *stats, struct mizzle_error *error)
{
    struct err err = { "" };
    struct mizzle_call call = { .m = m, .on_token = on_token, .arg = arg };
    int rc = mizzle_generate_own(m, prompt, &call, stats, &err);
    mizzle_write_error(error, rc, rc == OK ? "" : err.msg);
    return -rc;
}

void mizzle_stop(struct mizzle *m)
{
    if (m)
        atomic_store(&m->stop, 1);
}

int mizzle_close(struct mizzle *m)
{
    if (!m)
        return MIZZLE_OK;
    if (!mizzle_take(m))
        return MIZZLE_BUSY;
    mizzle_free(m);
    return MIZZLE_OK;
}

/* Take the next note: of the routing or the chat template. */
static bool mizzle_next_note(struct mizzle *m, struct err *note)
{
    if (routing_note(&m->routing, note))
        return true;
    if (m->form != NOTE_DUE)
        return false;
    m->form = NOTE_TOLD;
    return chat_note(m->engine.chat, note);
}

bool mizzle_note(struct mizzle *m, struct mizzle_error *out)
{
    struct err note = { "" };
    if (!m || !mizzle_take(m))
        return false;
    bool told = mizzle_next_note(m, &note);
    mizzle_give_back(m);
    if (told)
        mizzle_write_error(out, OK, note.msg);
    return told;
}
