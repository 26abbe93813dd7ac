/* step.c - the loop, step_next; what it wants and is given; the beginning and the end of a text. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kernels/sys/os.h"
#include "model/model.h"
#include "model/sample.h"
#include "model/text/tokenizer.h"
#include "router/cloud_port.h"
#include "router/decode/step_internal.h"
#include "router/router.h"

enum { POLL_NS = 50000 }; /* between looks for a draft that is awaited */

double step_lap(uint64_t *since)
{
    uint64_t now = os_now_ns();
    double ms = (double)(now - *since) / 1e6;
    *since = now;
    return ms;
}

void step_tell(const struct step *s, enum decode_event_kind kind, size_t at, size_t n,
               uint64_t since, enum gate_reason reason)
{
    static const struct traffic none = { 0 };
    const uint64_t now = os_now_ns();
    const struct decode_event e = { .kind = kind,
                                    .at = at,
                                    .n = n,
                                    .reason = reason,
                                    .ns = now,
                                    .took_ns = since ? now - since : 0,
                                    .moved = kind == DECODE_ANSWERED ? s->moved : none };
    if (s->o->event)
        s->o->event(s->o->arg, &e);
}

/* Say what is wanted. */
static void step_wants(struct step *s, enum step_want want)
{
    s->want = want;
    s->since = os_now_ns();
}

/* Want a pass over ids[n], which follow the first `keep` ids of the session. */
static void step_want_rows(struct step *s, size_t keep, const uint32_t *ids, size_t n)
{
    step_draft_end(s);
    view_rewind(&s->view, keep);
    s->ids = ids;
    s->nids = n;
    step_wants(s, STEP_ROWS);
}

const uint32_t *step_text_ids(const struct step *s)
{
    return s->lazy ? s->lazy : session_ids(s->text.session);
}

bool step_is_lazy(const struct step *s)
{
    return s->lazy != NULL;
}

/* True when a score needs what the head gives, beside the hidden state. */
static bool step_reads_features(const struct step *s)
{
    return policy_reads_network(s->o->policy) && router_reads_features(s->text.router);
}

/* Return how many of the first `most` ids of the text the session has. */
static size_t step_shared(const struct step *s, const uint32_t *ids, size_t most)
{
    const uint32_t *have = session_ids(s->text.session);
    size_t shared = 0, length = session_length(s->text.session);
    while (shared < length && shared < most && have[shared] == ids[shared])
        shared++;
    return shared;
}

/* Want the row of the prefix of `at` ids once more: its last id is evaluated again. */
static void step_want_again(struct step *s, size_t at)
{
    if (s->lazy) { /* and all that the session lacks */
        size_t shared = step_shared(s, s->lazy, at - 1);
        step_want_rows(s, shared, s->lazy + shared, at - shared);
        return;
    }
    s->some[0] = session_ids(s->text.session)[at - 1];
    step_want_rows(s, at - 1, s->some, 1);
}

/* True when the head will probably be read for this prefix, which begins with the text and may end
 * with a draft. Without a score it is not known who writes the token. */
static bool step_reads_head(struct step *s, size_t at)
{
    const struct decode_options *o = s->o;
    const struct view_row *row = view_row(&s->view, at);
    const uint32_t *ids = session_ids(s->text.session);
    uint32_t id;
    float score;
    bool cloud = o->policy == POLICY_ALWAYS;
    if (step_score_ids(s, at, &score))
        cloud = step_routes(s, score, at);
    else if (o->policy == POLICY_PRICE)
        cloud = row->scored && step_routes(s, step_price(s, 1 - row->score, at), at);
    else if (policy_reads_network(o->policy))
        cloud = row->scored && step_routes(s, row->score, at);
    if (!cloud || !s->cloud || s->o->edges)
        return true;
    return o->ahead && s->cloud->peek(s->cloud->arg, ids, at, &id) != CLOUD_HERE;
}

/* Want the head or the score for the prefix of `at` ids, and at the same time for those after it
 * that will probably want it. */
static void step_want_of(struct step *s, size_t at, enum step_want want)
{
    struct view *v = &s->view;
    if (!view_row(v, at) || !v->held) {
        step_want_again(s, at);
        return;
    }
    s->nrows = 0;
    for (size_t n = at; n < v->first + v->n; n++) {
        const struct view_row *row = view_row(v, n);
        bool open = want == STEP_HEAD ? !row->picked
                                      : !row->scored && (row->picked || !step_reads_features(s));
        if (n == at || (open && (want == STEP_SCORE || step_reads_head(s, n))))
            s->rows[s->nrows++] = n - v->pass;
    }
    step_wants(s, want);
}

bool step_pick(struct step *s, size_t at, struct decode_token *t)
{
    const struct view_row *row = view_row(&s->view, at);
    if (!row || !row->picked) {
        step_want_of(s, at, STEP_HEAD);
        return false;
    }
    t->edge_id = row->id;
    t->has_edge = true;
    return true;
}

const struct view_row *step_score(struct step *s, size_t at)
{
    const struct view_row *row = view_row(&s->view, at);
    if (row && row->scored)
        return row;
    bool head = step_reads_features(s) ? !row || !row->picked : !policy_reads_network(s->o->policy);
    step_want_of(s, at, head ? STEP_HEAD : STEP_SCORE);
    return NULL;
}

bool step_is_last(const struct step *s, uint32_t id)
{
    return !s->o->ignore_eos && tokenizer_is_eog(s->text.tok, id);
}

bool step_stopped(const struct step *s, struct stops *stops, uint32_t id)
{
    const struct tokenizer *tok = s->text.tok;
    size_t n, at, length;
    const char *bytes = tokenizer_bytes(tok, id, &n);
    return bytes && !tokenizer_is_control(tok, id) && stops_feed(stops, bytes, n, &at, &length);
}

void step_append(struct step *s)
{
    if (s->lazy) {
        s->lazy[s->view.length++] = s->last;
        return;
    }
    if (view_append(&s->view, s->last))
        return;
    if (step_draft_await(s)) {
        s->want = STEP_CLOUD;
        return;
    }
    step_draft_end(s); /* the next one depends on what has stood of it */
    s->some[0] = s->last;
    size_t drafted = step_draft(s, s->some + 1);
    step_want_rows(s, s->view.length, s->some, 1 + drafted);
    s->drafted = drafted;
}

/* End the text with an error. */
static void step_end(struct step *s, int rc)
{
    s->rc = rc;
    s->ended = s->ended || rc != OK;
}

enum step_want step_next(struct step *s)
{
    const struct decode_options *o = s->o;
    if (s->want == STEP_CLOUD && !s->ended)
        s->stats->cloud_ms += step_lap(&s->since);
    bool stopped = o->stop && *o->stop;
    if (s->want == STEP_ROWS && !s->ended && !stopped)
        return s->want;
    if (!s->ended && stopped && (s->reading || s->want == STEP_ROWS))
        step_end(s, err_set(&s->err, ERR_STOP, "interrupted"));
    s->want = 0;
    if (!s->ended && s->reading)
        step_want_rows(s, s->view.length, s->text.prompt + s->view.length,
                       s->text.n - s->view.length);
    while (!s->ended && !s->want) {
        int rc = step_decide_ready(s, false);
        if (rc == OK && !s->want && !s->ended)
            rc = step_advance(s);
        step_end(s, rc);
    }
    if (s->ended && s->rc == OK && !s->abandoned && o->audit > 0)
        step_end(s, step_audit(s, false));
    if (s->ended && s->want != STEP_CLOUD)
        s->want = STEP_DONE;
    else if (s->want == STEP_CLOUD)
        s->since = os_now_ns();
    return s->want;
}

const uint32_t *step_ids(const struct step *s, size_t *n)
{
    *n = s->nids;
    return s->ids;
}

const size_t *step_rows(const struct step *s, size_t *n)
{
    *n = s->nrows;
    return s->rows;
}

/* Begin to write. */
static void step_start(struct step *s)
{
    gate_begin(s->gate, &s->its, s->text.prompt, s->text.n);
    s->its.limit = s->o->cloud_limit;
    s->ended = s->o->max_tokens == 0;
}

/* Note that the first n ids of the rest of the prompt have been read. */
static void step_read(struct step *s, size_t n)
{
    s->view.length += n;
    s->reading = s->view.length < s->text.n;
    if (s->o->reading)
        s->o->reading(s->o->arg, s->view.length, s->text.n);
    if (!s->reading)
        step_start(s);
}

void step_give_rows(struct step *s, size_t n)
{
    uint64_t since = s->since;
    s->pass_ns = s->reading ? 0 : os_now_ns() - since; /* 0: not known yet */
    view_passed(&s->view, n);
    s->stats->edge_ms += step_lap(&s->since);
    step_tell(s, DECODE_EVALUATED, s->view.pass - 1, n, since, GATE_OPEN);
    s->want = 0;
    s->stats->passes += !s->reading;
    if (s->reading)
        step_read(s, n);
    else if (!s->lazy)
        s->view.length = s->view.pass;
    s->drafted = n - 1 < s->drafted ? n - 1 : s->drafted;
}

const float *step_features(struct step *s, size_t row)
{
    const struct view_row *r = view_row(&s->view, s->view.pass + row);
    return r && step_reads_features(s) ? r->features : NULL;
}

void step_give_score(struct step *s, size_t row, float score)
{
    struct view_row *r = view_row(&s->view, s->view.pass + row);
    if (r) {
        r->scored = true;
        r->score = score;
    }
    s->first = s->view.pass + row == s->text.n ? score : s->first;
    s->stats->router_ms += step_lap(&s->since);
}

void step_give_head(struct step *s, size_t row, const float *logits)
{
    enum policy p = s->o->policy;
    size_t n = s->view.pass + row;
    struct view_row *r = view_row(&s->view, n);
    if (r) {
        r->id = sampler_pick(s->text.sampler, logits, session_ids(s->text.session), n);
        r->picked = true;
    }
    s->stats->edge_ms += step_lap(&s->since);
    if (r && step_reads_features(s)) {
        const struct features_text t = { s->text.tok, session_ids(s->text.session), n, s->text.n };
        features_of(r->features, &t, logits, s->size, s->text.router, s->kernels);
    }
    if (!r || !policy_reads_logits(p))
        return;
    p = p == POLICY_ORACLE ? POLICY_MAX_PROB : p;
    r->score = policy_score_logits(p, logits, s->size, s->kernels);
    r->scored = true;
    s->stats->router_ms += step_lap(&s->since);
}

void step_fail(struct step *s, int code, const struct err *why)
{
    step_end(s, err_set(&s->err, code, "%s", why->msg));
}

void step_lose_rows(struct step *s)
{
    s->view.held = false;
}

bool step_awaits_draft(const struct step *s)
{
    return s->awaited_until != 0;
}

/* Sleep until the next look for a draft, but not beyond this time. */
static void step_doze(uint64_t until)
{
    uint64_t now = os_now_ns(), rest = until > now ? until - now : 0;
    nanosleep(&(struct timespec){ .tv_nsec = (long)(rest < POLL_NS ? rest : POLL_NS) }, NULL);
}

void step_wait(struct step *s)
{
    if (s->want != STEP_CLOUD)
        return;
    s->want = 0;
    if (s->ended) {
        step_end(s, step_audit(s, true));
        s->want = 0; /* it will be wanted again */
        return;
    }
    if (s->awaited_until)
        step_doze(s->awaited_until);
    else
        step_end(s, s->ahead.n ? step_decide_ready(s, true) : step_score_next(s, true));
    if (s->want) /* it will be wanted again */
        s->want = 0;
    s->stats->cloud_ms += step_lap(&s->since);
}

/* Rewind the session to what it shares with the prompt; at least its last id will be evaluated. */
static int step_find_prompt(struct step *s)
{
    size_t n = s->text.n;
    size_t context = session_context(s->text.session);
    if (n == 0)
        return err_set(&s->err, ERR_ARG, "the prompt is empty");
    if (n > context)
        return err_set(&s->err, ERR_ARG, "prompt: expected at most %zu tokens, found %zu", context,
                       n);
    s->view = (struct view){ .session = s->text.session,
                             .length = step_shared(s, s->text.prompt, n - 1) };
    return OK;
}

/* Return how many tokens can be undecided at once; 1 in step. */
static size_t step_most_ahead(const struct step *s)
{
    size_t room = session_context(s->text.session) - s->text.n + 1, most = s->o->max_tokens;
    if (!s->o->ahead)
        return 1;
    most = most < room ? most : room;
    return most ? most : 1;
}

/* Keep the ids aside, and leave the prompt unread. */
static int step_be_lazy(struct step *s)
{
    size_t n = s->text.n, all = session_context(s->text.session);
    if (!(s->lazy = malloc(all * sizeof(*s->lazy))))
        return err_set(&s->err, ERR_NOMEM, "decode: out of memory");
    memcpy(s->lazy, s->text.prompt, n * sizeof(*s->lazy));
    s->view.length = n;
    s->reading = false;
    step_start(s);
    return OK;
}

/* Set up the loop. */
static int step_begin(struct step *s)
{
    const struct decode_options *o = s->o;
    const struct router *router = s->text.router;
    if (policy_reads_router(o->policy) &&
        (!router || strcmp(router_kind(router), policy_router(o->policy)) != 0))
        return err_set(&s->err, ERR_ARG, "policy %s needs a router that is a %s",
                       policy_name(o->policy), policy_router(o->policy));
    if (o->policy == POLICY_POSITION && !o->place)
        return err_set(&s->err, ERR_ARG, "policy position needs a place");
    int rc = stops_begin(&s->stops, o->stops, &s->err);
    if (rc == OK)
        rc = step_find_prompt(s);
    if (rc == OK)
        rc = ahead_open(&s->ahead, s->cloud, s->gate, step_most_ahead(s), &s->err);
    if (rc == OK)
        rc = draft_open(&s->draft, o->drafts, o->draft_max, s->cloud,
                        session_context(s->text.session), &s->err);
    if (rc != OK)
        return rc;
    s->tail = s->stops;
    s->reading = true;
    s->ended = false;
    if (o->lazy && o->policy == POLICY_ALWAYS && !o->ahead && !o->edges && s->cloud)
        rc = step_be_lazy(s);
    s->end = s->text.n;
    s->stats->finish = FINISH_LENGTH;
    return rc;
}

int step_open(struct step **out, const struct step_text *t, const struct decode_options *o,
              struct decode_stats *stats, struct err *err)
{
    *stats = (struct decode_stats){ .prompt_tokens = t->n, .finish = FINISH_ERROR };
    struct step *s = *out = calloc(1, sizeof(*s));
    if (!s)
        return err_set(err, ERR_NOMEM, "decode: out of memory");
    s->text = *t;
    s->o = o;
    s->stats = stats;
    s->cloud = t->cloud;
    s->gate = o->gate ? o->gate : &s->own;
    s->kernels = model_kernels(session_model(t->session));
    s->size = tokenizer_size(t->tok);
    s->begun = s->clock = os_now_ns();
    step_audit_open(s);
    int rc = step_begin(s);
    if (rc == OK)
        return OK;
    err_set(err, rc, "%s", s->err.msg);
    stats->finish = FINISH_ERROR;
    ahead_close(&s->ahead);
    draft_close(&s->draft);
    free(s->lazy);
    free(s);
    *out = NULL;
    return rc;
}

int step_close(struct step *s, struct err *err)
{
    if (!s)
        return OK;
    struct decode_stats *stats = s->stats;
    int rc = s->rc;
    step_draft_end(s);
    draft_close(&s->draft);
    step_audit_begin(s);
    ahead_close(&s->ahead);
    step_audit_close(s);
    gate_end(s->gate, &s->its);
    private_text_end(&s->spans);
    if (rc == OK && !s->ended)
        rc = err_set(&s->err, ERR_STOP, "interrupted");
    if (rc != OK)
        stats->finish = FINISH_ERROR;
    size_t shown = s->text.n + stats->tokens;
    shown = shown < s->view.length ? shown : s->view.length; /* what follows may be a draft */
    shown = rc == OK ? s->end : shown;
    session_rewind(s->text.session, s->lazy ? step_shared(s, s->lazy, shown) : shown);
    if (s->cloud) {
        s->cloud->end_tally(s->cloud->arg, &s->tally);
        stats->traffic = s->cloud->traffic(s->cloud->arg, &s->tally);
    }
    stats->cost = s->its.cost;
    if (rc != OK)
        err_set(err, rc, "%s", s->err.msg);
    free(s->lazy);
    free(s);
    return rc;
}
