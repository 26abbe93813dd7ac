/* step.c - the loop. step_next decides what can be decided (step_decide_ready) and writes on
 * (step_advance) until something is wanted. From there down, the file is in the order of a token:
 * it is evaluated, scored, queued, asked for, decided, shown. Beside it stand verdicts
 * (step_verdict.c), drafts (step_draft.c), and both ends of a text (step_open.c). */
#include <math.h>
#include <string.h>

#include "kernels/sys/os.h"
#include "model/model.h"
#include "model/sample.h"
#include "model/text/tokenizer.h"
#include "router/decode/step_internal.h"
#include "router/policy.h"
#include "router/router.h"

enum { POLL_NS = 50000 }; /* between looks for a draft that is awaited */

static void step_end(struct step *s, int rc);
static int step_advance(struct step *s);
static void step_append(struct step *s);
static void step_want_rows(struct step *s, size_t keep, const uint32_t *ids, size_t n);
static bool step_route(struct step *s, struct ahead_token *e);
static void step_enqueue_next(struct step *s);
static void step_written(struct step *s, struct ahead_token *e, uint32_t id);
static bool step_pick(struct step *s, size_t at, struct decode_token *t);
static struct view_row *step_row(struct step *s, size_t at);
static void step_want_of(struct step *s, size_t at, enum step_want want);
static bool step_reads_head(struct step *s, size_t at);
static int step_decide_ready(struct step *s, bool wait);
static int step_begin_turn(struct step *s, struct ahead_token *e);
static enum gate_reason step_own_rules(struct step *s, size_t at, bool own);
static int step_ask(struct step *s, struct ahead_token *e);
static int step_take_answer(struct step *s, struct ahead_token *e);
static void step_end_call(struct step *s, struct ahead_token *e, enum cloud_end how);
static int step_decide(struct step *s, struct ahead_token *e);
static void step_roll_back(struct step *s, struct ahead_token *e);
static void step_show(struct step *s, struct decode_token *t, size_t at);
static void step_tell(struct step *s, enum decode_event_kind kind, size_t at, size_t n,
                      uint64_t since, enum gate_reason reason);

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
    if (s->ended) {
        step_count(s);
        s->want = STEP_DONE;
    }
    s->since = os_now_ns();
    return s->want;
}

/* End the text with an error. */
static void step_end(struct step *s, int rc)
{
    s->rc = rc;
    s->ended = s->ended || rc != OK;
}

/* Writing on: the newest token is evaluated, then the next one is scored and queued. */

/* Do one step of work ahead of what is decided; wants the cloud if there is none. */
static int step_advance(struct step *s)
{
    struct ahead *a = &s->ahead;
    struct ahead_token *last = a->n ? &a->tokens[a->n - 1] : NULL;
    const struct decode_options *o = s->o;
    if (o->stop && *o->stop)
        return err_set(&s->err, ERR_STOP, "interrupted");
    if (last && !last->written && o->ahead) {
        if (last->t.has_edge || step_pick(s, last->at, &last->t))
            step_written(s, last, last->t.edge_id);
        return OK;
    }
    /* Nothing can be written before more is decided. */
    if (last && (s->stats->tokens + a->n >= o->max_tokens || s->halted || !last->written ||
                 a->n == AHEAD_MOST || last->at == session_context(s->text.session))) {
        s->want = STEP_CLOUD;
        return OK;
    }
    if (s->view.length < s->text.n + s->stats->tokens + a->n) {
        step_append(s);
        return OK;
    }
    if (s->next.state == AHEAD_NEW) {
        s->next = (struct ahead_token){ .t.source = SOURCE_EDGE, .at = s->view.length };
        if (!step_route(s, &s->next))
            return OK;
    }
    step_enqueue_next(s);
    return OK;
}

/* Want the newest token to be evaluated, unless it has been. */
static void step_append(struct step *s)
{
    struct view *v = &s->view;
    if (s->lazy) {
        s->lazy[v->length++] = s->last;
        return;
    }
    if (step_row(s, v->length + 1) && s->ids[v->length] == s->last) { /* by a draft */
        if (++v->length > v->reached)
            v->reached = v->length;
        return;
    }
    if (step_draft_await(s)) {
        s->want = STEP_CLOUD;
        return;
    }
    s->asked.some[0] = s->last;
    step_want_rows(s, v->length, s->asked.some, 1);
    s->drafts.drafted = step_draft(s, s->asked.some + 1);
    s->asked.nids += s->drafts.drafted;
}

/* Want a pass over ids[n], which follow the first `keep` ids of the session. Earlier rows become
 * void, and what stood of the latest draft is known. */
static void step_want_rows(struct step *s, size_t keep, const uint32_t *ids, size_t n)
{
    step_draft_end(s);
    session_rewind(s->text.session, keep);
    s->view.n = 0;
    s->view.held = false;
    s->asked.ids = ids;
    s->asked.nids = n;
    s->want = STEP_ROWS;
}

void step_give_rows(struct step *s, size_t n)
{
    struct view *v = &s->view;
    size_t length = session_length(s->text.session), text = s->asked.nids - s->drafts.drafted;
    uint64_t since = s->since;
    s->drafts.pass_ns = s->reading ? 0 : os_now_ns() - since; /* 0: not known yet */
    s->drafts.drafted = n > text ? n - text : 0;
    v->pass = length - n + 1;
    v->base = v->reached = length - s->drafts.drafted;
    v->n = n < VIEW_ROWS ? n : VIEW_ROWS;
    v->first = length - v->n + 1;
    v->held = true;
    for (size_t i = 0; i < v->n; i++)
        v->rows[i].picked = v->rows[i].scored = false;
    s->stats->edge_ms += step_lap(&s->since);
    step_tell(s, DECODE_EVALUATED, v->pass - 1, n, since, GATE_OPEN);
    s->want = 0;
    if (!s->reading) {
        s->stats->passes++;
        v->length = s->lazy ? v->length : v->pass;
        return;
    }
    size_t rest = s->text.n - v->length; /* what follows may be a draft */
    v->length += n < rest ? n : rest;
    s->reading = v->length < s->text.n;
    if (s->o->reading)
        s->o->reading(s->o->arg, v->length, s->text.n);
    if (!s->reading)
        step_start(s);
}

void step_start(struct step *s)
{
    s->its.limit = s->tally.limit = s->o->cloud_limit;
    s->its.required = s->o->cloud_required;
    s->stats->prompt_ms = (double)(os_now_ns() - s->begun) / 1e6;
    s->ended = s->o->max_tokens == 0;
}

/* Score the token, and say in e->state whether it goes to the cloud. Only policies that need the
 * head read it. False: something is wanted first. */
static bool step_route(struct step *s, struct ahead_token *e)
{
    const struct decode_options *o = s->o;
    struct decode_token *t = &e->t;
    uint64_t clock = os_now_ns();
    if (!policy_scores(o->policy)) {
        t->score = NAN;
        e->state = o->policy == POLICY_ALWAYS ? AHEAD_ROUTED : AHEAD_LOCAL;
        return true;
    }
    if (!step_score_ids(s, e->at, &t->score)) {
        if (policy_reads_logits(o->policy) && !step_pick(s, e->at, t))
            return false;
        const struct view_row *row = step_row(s, e->at);
        if (!row || !row->scored) {
            bool head = s->view.extra && (!row || !row->picked);
            step_want_of(s, e->at, head ? STEP_HEAD : STEP_SCORE);
            return false;
        }
        t->score = row->score;
    }
    s->stats->router_ms += step_lap(&clock);
    e->state = step_routes(s, t->score, e->at) ? AHEAD_ROUTED : AHEAD_LOCAL;
    return true;
}

/* Append the next token, which has its score, to the queue. A routed one that follows undecided
 * tokens waits for its turn, unless it is known: then the text goes on behind it. */
static void step_enqueue_next(struct step *s)
{
    struct ahead_token *e = &s->next;
    uint32_t id = 0;
    bool goes_on = e->state == AHEAD_LOCAL;
    if (goes_on) {
        if (!e->t.has_edge && !step_pick(s, e->at, &e->t))
            return;
        id = e->t.edge_id;
    } else if (s->ahead.n) {
        goes_on = cloud_port_here(cloud_port_known(s->text.cloud, s->ids, e->at, false, &id)) &&
                  id < s->size;
        if (!goes_on) {
            s->want = STEP_CLOUD;
            return;
        }
    }
    struct ahead_token *last = &s->ahead.tokens[s->ahead.n++];
    *last = *e;
    if (goes_on)
        step_written(s, last, id);
    e->state = AHEAD_NEW;
}

/* Append the newest token; generation continues after it. */
static void step_written(struct step *s, struct ahead_token *e, uint32_t id)
{
    e->t.id = s->last = id;
    e->written = true;
    s->halted = step_is_last(s, id) || step_stopped(s, &s->tail, id);
}

/* What a row gives: the local model's own token, a score. */

/* Find the local model's own token after the prefix of `at` ids. False: it is wanted. */
static bool step_pick(struct step *s, size_t at, struct decode_token *t)
{
    const struct view_row *row = step_row(s, at);
    if (!row || !row->picked) {
        step_want_of(s, at, STEP_HEAD);
        return false;
    }
    t->edge_id = row->id;
    t->has_edge = true;
    return true;
}

/* Return the row of the prefix of `at` ids, or NULL. */
static struct view_row *step_row(struct step *s, size_t at)
{
    struct view *v = &s->view;
    return at >= v->first && at - v->first < v->n ? &v->rows[at - v->first] : NULL;
}

/* Want the head or the score for the prefix of `at` ids, and at the same time for those after it
 * that will probably want it. Without its row, its last id is evaluated again, and before it what
 * the session of a lazy text lacks. */
static void step_want_of(struct step *s, size_t at, enum step_want want)
{
    struct view *v = &s->view;
    if (!step_row(s, at) || !v->held) {
        s->asked.some[0] = s->ids[at - 1];
        size_t keep = s->lazy ? session_sync(s->text.session, s->lazy, at - 1) : at - 1;
        step_want_rows(s, keep, s->lazy ? s->lazy + keep : s->asked.some, at - keep);
        return;
    }
    s->asked.nrows = 0;
    for (size_t n = at; n < v->first + v->n; n++) {
        const struct view_row *row = step_row(s, n);
        bool open = want == STEP_HEAD ? !row->picked : !row->scored && (row->picked || !v->extra);
        if (n == at || (open && (want == STEP_SCORE || step_reads_head(s, n))))
            s->asked.rows[s->asked.nrows++] = n - v->pass;
    }
    s->want = want;
}

/* True when the head will probably be read for this prefix, which begins with the text and may end
 * with a draft. Without a score it is not known who writes the token. */
static bool step_reads_head(struct step *s, size_t at)
{
    const struct decode_options *o = s->o;
    const struct view_row *row = step_row(s, at);
    uint32_t id;
    float score;
    bool cloud = o->policy == POLICY_ALWAYS;
    if (step_score_ids(s, at, &score))
        cloud = step_routes(s, score, at);
    else if (policy_reads_network(o->policy))
        cloud = row->scored && step_routes(s, row->score, at);
    if (!cloud || !s->text.cloud || s->o->edges)
        return true;
    return o->ahead && !cloud_port_here(cloud_port_known(s->text.cloud, s->ids, at, false, &id));
}

void step_give_head(struct step *s, size_t row, const float *logits)
{
    enum policy p = s->o->policy;
    size_t n = s->view.pass + row;
    struct view_row *r = step_row(s, n);
    if (r) {
        r->id = sampler_pick(s->text.sampler, logits, s->ids, n);
        r->picked = true;
    }
    s->stats->edge_ms += step_lap(&s->since);
    if (r && s->view.extra)
        step_look(s, r, n, logits);
    if (!r || !policy_reads_logits(p))
        return;
    r->score =
        policy_score_logits(p, logits, s->size, model_kernels(session_model(s->text.session)));
    r->scored = true;
    s->stats->router_ms += step_lap(&s->since);
}

const float *step_extra(struct step *s, size_t row)
{
    const struct view_row *r = step_row(s, s->view.pass + row);
    return r ? r->extra : NULL;
}

void step_give_score(struct step *s, size_t row, float score)
{
    struct view_row *r = step_row(s, s->view.pass + row);
    if (r) {
        r->scored = true;
        r->score = score;
    }
    s->stats->router_ms += step_lap(&s->since);
}

/* The turn of the oldest token: ask, take the answer, decide, show. */

/* Decide what can be decided, oldest first. wait: wait for the answer of the oldest. */
static int step_decide_ready(struct step *s, bool wait)
{
    while (s->ahead.n && !s->ended) {
        struct ahead_token *e = &s->ahead.tokens[0];
        uint32_t id;
        bool turn = e->state == AHEAD_ROUTED;
        bool comes = turn && cloud_port_known(s->text.cloud, s->ids, e->at, false, &id) ==
                                 CLOUD_COMING; /* the turn cannot begin without waiting */
        if (comes && !wait)
            return OK;
        wait = wait && !comes;
        int rc = turn ? step_begin_turn(s, e) : OK;
        if (rc == OK && e->state == AHEAD_ASKED) {
            /* Ahead, the guess comes before the answer, however soon that is there. */
            if (!wait && ((s->o->ahead && !e->written) || !s->text.cloud->done(e->call, 0)))
                return OK;
            wait = false;
            rc = step_take_answer(s, e);
        }
        if (rc == OK)
            rc = step_decide(s, e);
        if (rc != OK || s->want)
            return rc;
    }
    return OK;
}

/* Begin the turn of a routed token: all tokens before it are decided. Afterwards it is known or
 * requested, or the gate has said why not. */
static int step_begin_turn(struct step *s, struct ahead_token *e)
{
    e->state = AHEAD_HELD;
    e->gate = GATE_NO_CLOUD;
    if (!s->text.cloud)
        return err_set(&s->fault, OK, "there is no cloud");
    bool own = private_holds(s->o->patterns, &s->its.own, s->ids, e->at);
    bool held = own || gate_holds(s->gate, &s->its, s->ids, e->at);
    e->gate = step_own_rules(s, e->at, own);
    if (e->gate != GATE_OPEN)
        return OK;
    enum cloud_sight known = cloud_port_known(s->text.cloud, s->ids, e->at, true, &e->answer);
    if (cloud_port_here(known) && e->answer < s->size) {
        s->stats->memo += known == CLOUD_MEMO;
        s->stats->store += known == CLOUD_STORE;
        e->state = AHEAD_HERE;
        return OK;
    }
    e->tokens = s->text.cloud->info(s->text.cloud->arg).tokens;
    e->gate = gate_decide(s->gate, &s->its, e->at, held, &e->tokens, &s->fault);
    if (e->gate == GATE_OPEN)
        return step_ask(s, e);
    gate_held(s->gate, e->gate);
    return OK;
}

/* Decide whether the text's own patterns or limits keep the cloud's token out. They come before
 * what is known without a call, which depends on what other texts have asked. */
static enum gate_reason step_own_rules(struct step *s, size_t at, bool own)
{
    uint64_t limit = s->o->cloud_limit;
    const double spare = 2, share = (double)s->o->max_routed;
    double most = share * (double)(at - s->text.n + 1) + spare;
    if (share > 0 && (double)(s->stats->cloud + 1) > most) {
        err_set(&s->fault, OK, "max_routed: more than %.3g %% and 2 tokens of this text so far",
                100 * share);
        return GATE_CAPPED;
    }
    if (own) {
        err_set(&s->fault, OK, "the text matches a private pattern");
        return GATE_PRIVATE;
    }
    if (!limit || s->stats->cloud + 1 < limit)
        return GATE_OPEN;
    err_set(&s->fault, OK, "the limit on cloud tokens of this text is reached");
    return GATE_CAPPED;
}

/* Request it; returns the port's errors. */
static int step_ask(struct step *s, struct ahead_token *e)
{
    const struct cloud_port *c = s->text.cloud;
    e->asked_ns = os_now_ns(); /* the thread of the network may go on with it before this one */
    e->moved = c->traffic(c->arg, &s->tally, false);
    int rc = c->ask(c->arg, s->ids, e->at, e->tokens, &s->tally, &e->call, &s->err);
    if (rc != OK) {
        e->call = NULL;
        if (s->gate->quota)
            quota_give(s->gate->quota, e->tokens, e->at);
        return rc;
    }
    e->state = AHEAD_ASKED;
    s->stats->calls++;
    s->gate->out++;
    step_tell(s, DECODE_ASKED, e->at, e->tokens, 0, GATE_OPEN);
    return OK;
}

/* Take the answer, or the fault, of the call of a token whose turn it is. */
static int step_take_answer(struct step *s, struct ahead_token *e)
{
    const struct cloud_port *c = s->text.cloud;
    int rc = c->take(e->call, 0, &e->answer, &s->fault);
    struct traffic now = c->traffic(c->arg, &s->tally, false);
    e->moved = traffic_since(&now, &e->moved);
    if (rc == OK && e->answer >= s->size) {
        rc = err_set(&s->fault, ERR_NET, "cloud: token id: expected below %zu, found %u", s->size,
                     (unsigned)e->answer);
        step_end_call(s, e, CLOUD_DROP); /* it must not be kept */
    }
    if (rc != OK && rc != ERR_NET && rc != ERR_REMOTE && rc != ERR_TEXT)
        return err_set(&s->err, rc, "%s", s->fault.msg);
    e->called = rc == OK;
    e->state = rc == OK ? AHEAD_HERE : AHEAD_HELD;
    e->gate = rc == OK           ? GATE_OPEN
              : rc == ERR_REMOTE ? GATE_REFUSED
              : rc == ERR_TEXT   ? GATE_UNFIT
                                 : GATE_FAULT;
    gate_done(s->gate, &s->its, e->gate, e->moved.asked_tokens, &s->fault);
    if (e->call)
        step_end_call(s, e, CLOUD_USE);
    s->stats->committed += e->called;
    s->stats->failed += !e->called;
    step_tell(s, DECODE_ANSWERED, e->at, e->tokens, e->asked_ns, e->gate);
    return OK;
}

/* End the call in flight: it is used or dropped. */
static void step_end_call(struct step *s, struct ahead_token *e, enum cloud_end how)
{
    s->text.cloud->end(e->call, how);
    e->call = NULL;
    s->gate->out--;
}

/* Make the oldest token part of the text; roll back the tokens after it if they follow a different
 * token. */
static int step_decide(struct step *s, struct ahead_token *e)
{
    bool here = e->state == AHEAD_HERE, held = e->state == AHEAD_HELD;
    bool limit = e->gate == GATE_PRIVATE || e->gate == GATE_CAPPED;
    int code = e->gate == GATE_REFUSED ? ERR_REMOTE : e->gate == GATE_UNFIT ? ERR_TEXT : ERR_NET;
    if (held && s->o->cloud_required && (s->o->cloud_alone || !limit))
        return err_set(&s->err, code, "%s", s->fault.msg);
    /* Without an answer, the local model's own token stands. Ahead, a token that took a call shows
     * the guess. One that was known ahead of its turn, and no longer when that came, has none yet.
     */
    if (!e->t.has_edge && (held || (here && (s->o->edges || (s->o->ahead && e->called))))) {
        if (s->view.length > e->at)
            step_roll_back(s, e);
        if (!step_pick(s, e->at, &e->t))
            return OK;
    }
    struct decode_token t = e->t;
    if (here)
        t.source = SOURCE_CLOUD;
    /* A guess made while another call's reply was about to bring the token was made by chance. */
    if (here && !e->called && !policy_reads_logits(s->o->policy) && !s->o->edges)
        t.has_edge = false;
    if (held) {
        t.source = SOURCE_FALLBACK;
        t.reason = e->gate;
        t.fault = s->fault.msg;
        s->stats->fallback++;
        s->stats->reasons[e->gate]++;
    }
    if (e->state != AHEAD_LOCAL)
        t.id = here ? e->answer : t.edge_id;
    bool back = !e->written || t.id != e->t.id;
    if (back) {
        step_roll_back(s, e);
        s->last = t.id;
    }
    size_t at = e->at;
    memmove(&s->ahead.tokens[0], &s->ahead.tokens[1], --s->ahead.n * sizeof(*e));
    step_show(s, &t, at);
    if (back)
        s->tail = s->stops;
    return OK;
}

/* Take back what was written from the oldest token on. */
static void step_roll_back(struct step *s, struct ahead_token *e)
{
    size_t n = s->ahead.n - !e->written;
    s->ahead.n = 1;
    s->view.length = e->at;
    s->next.state = AHEAD_NEW;
    if (n)
        step_tell(s, DECODE_ROLLED_BACK, e->at, n, 0, GATE_OPEN);
    e->written = false;
}

/* Show the token, and see whether the text ends with it. */
static void step_show(struct step *s, struct decode_token *t, size_t at)
{
    struct decode_stats *stats = s->stats;
    const struct decode_options *o = s->o;
    t->pos = stats->tokens;
    t->eog = step_is_last(s, t->id);
    t->ms = step_lap(&s->clock);
    if (stats->tokens++ == 0)
        stats->ttft_ms = t->ms;
    stats->cloud += t->source == SOURCE_CLOUD;
    bool goes_on = !o->emit || o->emit(o->arg, t);
    s->end = at;
    s->ended = true;
    stats->finish = t->eog ? FINISH_EOS : FINISH_STOP;
    if (t->eog || step_stopped(s, &s->stops, t->id) || !goes_on)
        return;
    stats->finish = FINISH_LENGTH;
    s->ended = stats->tokens >= o->max_tokens || at == session_context(s->text.session);
}

void step_count(struct step *s)
{
    struct ahead_token *e = s->ahead.n ? &s->ahead.tokens[0] : NULL;
    if (s->counted)
        return;
    s->counted = true;
    gate_drop(s->gate, &s->its);
    if (e && e->call)
        step_end_call(s, e, CLOUD_DROP);
    s->ahead.n = 0;
    s->stats->total_ms = step_lap(&s->begun);
}

/* What else the caller asks and says. */

const uint32_t *step_ids(const struct step *s, size_t *n)
{
    *n = s->asked.nids;
    return s->asked.ids;
}

const size_t *step_rows(const struct step *s, size_t *n)
{
    *n = s->asked.nrows;
    return s->asked.rows;
}

bool step_is_lazy(const struct step *s)
{
    return s->lazy != NULL;
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
    return s->drafts.until != 0;
}

void step_wait(struct step *s)
{
    if (s->want != STEP_CLOUD)
        return;
    s->want = 0;
    uint64_t now = os_now_ns(), rest = s->drafts.until - now;
    if (s->drafts.until)
        os_nap(now > s->drafts.until ? 0 : rest < POLL_NS ? rest : POLL_NS);
    else
        step_end(s, step_decide_ready(s, true));
    s->want = 0; /* it will be wanted again */
    s->stats->cloud_ms += step_lap(&s->since);
}

/* What many of the above use. */

double step_lap(uint64_t *since)
{
    uint64_t now = os_now_ns();
    double ms = (double)(now - *since) / 1e6;
    *since = now;
    return ms;
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

/* Tell the caller's hook. */
static void step_tell(struct step *s, enum decode_event_kind kind, size_t at, size_t n,
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
                                    .moved =
                                        kind == DECODE_ANSWERED ? s->ahead.tokens[0].moved : none };
    if (s->o->event)
        s->o->event(s->o->arg, &e);
}
