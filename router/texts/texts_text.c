/* texts_text.c - one text: made from a wish, opened in its slot, and what its loop tells. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/sys/os.h"
#include "model/model.h"
#include "router/decode/stops.h"
#include "router/engine.h"
#include "router/private.h"
#include "router/router.h"
#include "router/routing.h"
#include "router/texts/texts_internal.h"

struct text_routing texts_routing(const struct texts *e)
{
    const struct routing *r = e->routing;
    struct text_routing out = { .policy = POLICY_NEVER, .max_cloud_tokens = UINT64_MAX };
    if (r) {
        out.policy = r->how.policy;
        out.threshold = r->how.threshold;
        out.max_routed = r->how.max_routed;
        out.ahead = r->how.ahead;
    }
    return out;
}

/* Refuse what the engine cannot do. */
static int texts_check(const struct texts *e, const struct text_wish *w, struct err *err)
{
    const struct router *router = w->routing ? w->routing->router : NULL;
    if (!router && e->routing)
        router = e->routing->router;
    if (!w->n || (!w->max && !w->score) || w->n > e->context)
        return err_set(err, ERR_ARG,
                       "prompt: expected 1 to %zu tokens, and one to write, found %zu and %zu",
                       e->context, w->n, w->max);
    if (w->top > TEXTS_TOP)
        return err_set(err, ERR_ARG, "top: expected 0 to %d, found %zu", TEXTS_TOP, w->top);
    for (size_t i = 0; i < w->n; i++)
        if (w->prompt[i] >= e->vocab)
            return err_set(err, ERR_ARG, "token id %lu: expected below %zu",
                           (unsigned long)w->prompt[i], e->vocab);
    int rc =
        w->model == TEXT_ROUTED && w->routing ? policy_check(w->routing->policy, router, err) : OK;
    return rc == OK ? sample_check(&w->sample, err) : rc;
}

/* Copy the stop strings into one block. */
static int texts_copy_stops(struct text *t, const char *const *stops, struct err *err)
{
    size_t n = 0, bytes = 0;
    struct stops check;
    int rc = stops_begin(&check, stops, err);
    if (rc != OK || !stops)
        return rc;
    for (; stops[n]; n++)
        bytes += strlen(stops[n]) + 1;
    if (!(t->stops = malloc((n + 1) * sizeof(*t->stops) + bytes)))
        return err_set(err, ERR_NOMEM, "texts: out of memory");
    char *to = (char *)(t->stops + n + 1);
    for (size_t i = 0; i < n; i++) {
        size_t size = strlen(stops[i]) + 1;
        t->stops[i] = memcpy(to, stops[i], size);
        to += size;
    }
    t->stops[n] = NULL;
    return OK;
}

/* Return zeroed memory for [n][per] elements; NULL, and *fine is false, if there is none. */
static void *texts_room(size_t n, size_t per, size_t size, bool *fine)
{
    size_t all;
    void *p = size_mul(&all, n, per) ? calloc(all ? all : 1, size) : NULL;
    *fine = *fine && p;
    return p;
}

/* Allocate the arrays of a text that has n, max and wish. */
static bool texts_make_room(struct text *t)
{
    const struct text_wish *w = &t->wish;
    bool fine = true;
    t->ids = texts_room(t->n + t->max, 1, sizeof(*t->ids), &fine);
    t->tokens = texts_room(t->max, 1, sizeof(*t->tokens), &fine);
    t->stop_ids = texts_room(w->nstop_ids, 1, sizeof(*t->stop_ids), &fine);
    t->bias = texts_room(w->sample.nbias, 1, sizeof(*t->bias), &fine);
    if (w->logprobs) {
        t->tops = texts_room(t->max, w->top, sizeof(*t->tops), &fine);
        t->lse = texts_room(t->max, 1, sizeof(*t->lse), &fine);
    }
    if (w->score) {
        t->scores = texts_room(t->n, 1, sizeof(*t->scores), &fine);
        t->score_tops = texts_room(t->n, w->top, sizeof(*t->score_tops), &fine);
        if (t->scores)
            t->scores[0] = (double)NAN;
    }
    return fine;
}

/* Copy what the wish points to. */
static int texts_copy_wish(struct text *t, const struct text_wish *w, struct err *err)
{
    struct texts *e = t->texts;
    size_t room = e->context - w->n + 1; /* the last token is not evaluated */
    t->wish = *w;
    t->n = w->n;
    t->max = w->max < room ? w->max : room;
    t->routing = w->routing ? *w->routing : texts_routing(e);
    if (!texts_make_room(t))
        return err_set(err, ERR_NOMEM, "texts: out of memory");
    memcpy(t->ids, w->prompt, w->n * sizeof(*t->ids));
    if (w->nstop_ids)
        memcpy(t->stop_ids, w->stop_ids, w->nstop_ids * sizeof(*t->stop_ids));
    if (w->sample.nbias)
        memcpy(t->bias, w->sample.bias, w->sample.nbias * sizeof(*t->bias));
    t->wish.sample.bias = t->bias;
    int rc = texts_copy_stops(t, w->stops, err);
    if (rc == OK && w->patterns)
        rc = private_open(&t->patterns, NULL, w->patterns, e->engine->tokenizer, err);
    t->view = (struct text_view){ .ids = t->ids,
                                  .tokens = t->tokens,
                                  .tops = t->tops,
                                  .scores = t->scores,
                                  .score_tops = t->score_tops,
                                  .top = w->top,
                                  .prompt_n = t->n,
                                  .waiting = true,
                                  .why = t->err.msg };
    return rc;
}

int texts_make(struct text **out, struct texts *e, const struct text_wish *wish, struct err *err)
{
    int rc = texts_check(e, wish, err);
    if (rc != OK)
        return rc;
    struct text *t = calloc(1, sizeof(*t));
    if (!t)
        return err_set(err, ERR_NOMEM, "texts: out of memory");
    t->texts = e;
    t->asked_at = os_now_ns();
    t->stats.finish = FINISH_ERROR;
    if (!os_cond_open(&t->news)) {
        free(t);
        return err_set(err, ERR_NOMEM, "texts: out of memory");
    }
    rc = texts_copy_wish(t, wish, err);
    if (rc == OK)
        *out = t;
    else
        texts_free(t);
    return rc;
}

void texts_free(struct text *t)
{
    for (struct text_fault *f = t->faults, *next; f; f = next) {
        next = f->next;
        free(f);
    }
    private_close(t->patterns);
    pthread_cond_destroy(&t->news);
    free(t->hidden);
    free(t->events);
    free(t->score_tops);
    free(t->scores);
    free(t->lse);
    free(t->tops);
    free(t->stops);
    free(t->stop_ids);
    free(t->bias);
    free(t->tokens);
    free(t->ids);
    free(t);
}

/* Callback of the loop: the prompt has been read so far. */
static void texts_on_reading(void *arg, size_t done, size_t all)
{
    struct text *t = arg;
    struct texts *e = t->texts;
    (void)all;
    pthread_mutex_lock(&e->lock);
    e->count.prompt_tokens += done - t->view.read;
    t->view.read = done;
    t->fresh = true;
    pthread_mutex_unlock(&e->lock);
}

/* Return a line that lives as long as the text: faults are often the same. NULL: out of memory. */
static const char *texts_keep_fault(struct text *t, const char *line)
{
    if (!line || (t->faults && !strcmp(t->faults->line, line)))
        return line ? t->faults->line : NULL;
    size_t n = strlen(line) + 1;
    struct text_fault *f = malloc(sizeof(*f) + n);
    if (!f)
        return "out of memory";
    memcpy(f->line, line, n);
    f->next = t->faults;
    t->faults = f;
    return f->line;
}

void texts_show_stats(struct text *t)
{
    t->view.stats = t->stats;
    t->view.stats.prompt_tokens = t->n;
    t->view.stats.tokens = t->view.n;
}

/* Add a token, all of it but ms, to what the caller sees. */
static void texts_publish(struct text *t, const struct text_token *token)
{
    struct texts *e = t->texts;
    struct text_view *v = &t->view;
    uint64_t since = v->n ? t->tokens[v->n - 1].at : t->slot_at;
    t->tokens[v->n] = *token; /* nobody reads it before v->n says so */
    t->tokens[v->n].t.ms = (double)(token->at - since) / 1e6;
    t->tokens[v->n].t.pos = v->n;
    t->ids[t->n + v->n] = token->t.id;
    pthread_mutex_lock(&e->lock);
    if (!v->n)
        t->first_at = token->at;
    v->prompt_ms = (double)(t->first_at - t->slot_at) / 1e6;
    v->text_ms = (double)(token->at - t->first_at) / 1e6;
    v->n++;
    texts_show_stats(t);
    t->fresh = true;
    e->count.tokens++;
    e->count.cloud_tokens += token->t.source == SOURCE_CLOUD;
    e->count.fallback_tokens += token->t.source == SOURCE_FALLBACK;
    pthread_mutex_unlock(&e->lock);
}

/* True if this id ends the text because the wish says so. */
static bool texts_is_stop_id(const struct text *t, uint32_t id)
{
    for (size_t i = 0; i < t->wish.nstop_ids; i++)
        if (t->stop_ids[i] == id)
            return true;
    return false;
}

/* Callback of the loop: a token has been decided. */
static bool texts_on_token(void *arg, const struct decode_token *d)
{
    struct text *t = arg;
    size_t pos = t->view.n;
    bool called = t->called_at == t->n + pos;
    struct text_token token = {
        .t = *d,
        .memo = d->source == SOURCE_CLOUD && !called,
        .at = os_now_ns(),
        .logprob = t->lse ? texts_logprob(t, pos, d->id) : (double)NAN,
    };
    token.t.fault = texts_keep_fault(t, d->fault);
    if (called) {
        token.call_ms = t->call_ms;
        token.call = t->call;
    }
    texts_publish(t, &token);
    return !texts_is_stop_id(t, d->id);
}

/* Callback of the loop: something has happened. Events that no memory is left for are lost. */
static void texts_on_event(void *arg, const struct decode_event *d)
{
    struct text *t = arg;
    struct texts *e = t->texts;
    if (d->kind == DECODE_ANSWERED) {
        t->called_at = d->at;
        t->call_ms = (double)d->took_ns / 1e6;
        t->call = d->moved;
    }
    if (!t->wish.events)
        return;
    pthread_mutex_lock(&e->lock);
    size_t n = t->view.nevents, room = t->events_cap ? 2 * t->events_cap : 64;
    if (n == t->events_cap && room <= TEXTS_EVENTS) {
        struct decode_event *more = realloc(t->events, room * sizeof(*more));
        if (more) {
            t->events = more;
            t->events_cap = room;
        }
    }
    if (n < t->events_cap) {
        t->events[n] = *d;
        t->view.nevents++;
    }
    t->fresh = true;
    pthread_mutex_unlock(&e->lock);
}

/* Set up the options of the loop. */
static void texts_set_options(struct text *t)
{
    const struct texts *e = t->texts;
    const struct text_wish *w = &t->wish;
    const struct routing *r = e->routing;
    struct decode_options *o = &t->options;
    uint64_t limit = t->routing.max_cloud_tokens;
    *o = r ? r->how : (struct decode_options){ .call_tokens = 1, .drafts = DRAFT_LOOKUP };
    o->policy = t->routing.policy;
    o->threshold = t->routing.threshold;
    o->tie = t->routing.tie;
    o->max_routed = t->routing.max_routed;
    o->ahead = t->routing.ahead;
    o->cloud_required = o->cloud_required || w->required;
    o->cloud_alone = w->alone;
    o->gate = r ? &e->routing->gate : NULL;
    o->draft_max = DRAFT_DEFAULT;
    o->cloud_limit = limit == UINT64_MAX ? 0 : limit + 1;
    o->patterns = t->patterns;
    o->edges = w->edges || w->logprobs;
    o->max_tokens = t->max - t->view.n;
    o->seed = w->sample.seed;
    o->ignore_eos = w->ignore_eos;
    o->stops = (const char *const *)t->stops;
    o->stop = &t->stop;
    o->reading = texts_on_reading;
    o->emit = texts_on_token;
    o->event = texts_on_event;
    o->arg = t;
    if (w->apart && r) {
        t->gate = (struct gate){ .patterns = r->gate.patterns, .refused = r->gate.refused };
        t->gate.fault = r->gate.fault;
        o->gate = &t->gate;
    }
    if (w->model == TEXT_CLOUD) {
        o->policy = POLICY_ALWAYS;
        o->max_routed = 0;
    }
    if (w->model == TEXT_EDGE || w->score)
        o->policy = POLICY_NEVER;
}

const struct router *texts_router(const struct text *t)
{
    const struct routing *r = t->texts->routing;
    return t->routing.router || !r ? t->routing.router : r->router;
}

int texts_begin(struct text *t, struct err *err)
{
    struct texts *e = t->texts;
    t->reads = t->n + t->view.n;
    texts_set_options(t);
    const struct step_text of = {
        .session = t->slot->session,
        .tok = e->engine->tokenizer,
        .sampler = e->sampler,
        .router = texts_router(t),
        .cloud = t->options.policy == POLICY_NEVER ? NULL : e->port,
        .prompt = t->ids,
        .n = t->reads,
        .answer = t->wish.answer ? t->wish.answer : t->n,
    };
    return step_open(&t->step, &of, &t->options, &t->stats, err);
}
