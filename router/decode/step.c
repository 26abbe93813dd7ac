/* step.c - the loop, in the order of a token. It is scored (step_route), for which its row may have
 * to be evaluated (step_evaluate) and its head read (step_pick). It joins the queue (step_enqueue).
 * When its turn comes, it is asked for, decided and shown (step_decide_ready and below).
 *
 * Functions that need something first set s->need, and return false or OK. What they have changed
 * until then does not matter when they are called again. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/sys/os.h"
#include "model/model.h"
#include "model/sample.h"
#include "model/text/tokenizer.h"
#include "router/decode/step_internal.h"
#include "router/policy.h"
#include "router/router.h"

enum { POLL_NS = 50000 }; /* between looks for a draft that is awaited */

static void step_advance(struct step *s);
static bool step_route(struct step *s, struct step_token *e);
static bool step_judge(struct step *s, size_t at, float *score, bool *routed);
static bool step_pick(struct step *s, struct step_token *e);
static void step_want_head(struct step *s, size_t at);
static bool step_reads_head(struct step *s, size_t at);
static bool step_reach(struct step *s, size_t at);
static void step_evaluate(struct step *s, size_t at);
static struct step_row *step_row(struct step *s, size_t at);
static void step_enqueue(struct step *s, struct step_token *e);
static void step_write(struct step *s, uint32_t id);
static int step_decide_ready(struct step *s, bool wait);
static int step_begin_turn(struct step *s, struct step_token *e);
static int step_take_answer(struct step *s, struct step_token *e);
static int step_decide(struct step *s, struct step_token *e);
static void step_show(struct step *s, struct decode_token *t);
static enum cloud_sight step_known(struct step *s, size_t at, bool used, uint32_t *id);
static void step_end_call(struct step *s, enum cloud_end how);
static void step_tell(struct step *s, enum decode_event_kind kind, size_t at, size_t n,
                      uint64_t since, enum gate_reason reason);
static bool step_is_last(const struct step *s, uint32_t id);
static bool step_ends(const struct step *s, struct stops *stops, uint32_t id);
static double step_lap(uint64_t *since);
static void step_end(struct step *s, int rc);

/* Check what the text is made with, and make room for it. */
static int step_begin(struct step *s, struct err *err)
{
    const struct decode_options *o = s->o;
    const struct router *r = s->reads == READS_NETWORK ? s->text.router : NULL;
    size_t n = s->text.n;
    if (o->policy == POLICY_POSITION && !o->place)
        return err_set(err, ERR_ARG, "policy position needs a place");
    int rc = policy_check(o->policy, s->text.router, err);
    if (rc == OK)
        rc = stops_begin(&s->stops, o->stops, err);
    if (rc != OK)
        return rc;
    if (n == 0 || n > s->context)
        return n ? err_set(err, ERR_ARG, "prompt: expected at most %zu tokens, found %zu",
                           s->context, n)
                 : err_set(err, ERR_ARG, "the prompt is empty");
    size_t extra = r ? router_extra(r) : 0;
    s->ids = malloc((s->context + 1 + DRAFT_MOST) * sizeof(*s->ids));
    s->scratch = malloc((r ? router_scratch(r) : 1) * sizeof(*s->scratch));
    s->rows.extra = extra ? calloc(STEP_HEADS, extra * sizeof(*s->rows.extra)) : NULL;
    if (!s->ids || !s->scratch || (extra && !s->rows.extra))
        return err_set(err, ERR_NOMEM, "decode: out of memory");
    for (size_t i = 0; extra && i < STEP_HEADS; i++)
        s->rows.at[i].extra = s->rows.extra + i * extra;
    memcpy(s->ids, s->text.prompt, n * sizeof(*s->ids));
    s->length = n;
    s->tail = s->stops;
    draft_open(&s->draft, o->drafts, o->draft_max, s->text.cloud);
    return OK;
}

static void step_free(struct step *s)
{
    free(s->rows.extra);
    free(s->scratch);
    free(s->ids);
    free(s);
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
    s->reads = policy_reads(o->policy);
    s->stats = stats;
    s->gate = o->gate ? o->gate : &s->own;
    s->its = (struct gate_text){ .required = o->cloud_required,
                                 .limit = o->cloud_limit,
                                 .max_routed = o->max_routed,
                                 .patterns = o->patterns };
    s->tally.limit = o->cloud_limit;
    s->size = tokenizer_size(t->tok);
    s->context = session_context(t->session);
    s->begun = s->clock = os_now_ns();
    if (!t->cloud)
        err_set(&s->fault, OK, "there is no cloud");
    int rc = step_begin(s, err);
    if (rc != OK) {
        step_free(s);
        *out = NULL;
    } else {
        stats->finish = FINISH_LENGTH;
    }
    return rc;
}

const struct step_need *step_next(struct step *s)
{
    const _Atomic int *stop = s->o->stop;
    struct step_need *need = &s->need;
    if (need->want == STEP_CLOUD || need->want == STEP_MOMENT)
        s->stats->cloud_ms += step_lap(&s->since);
    if (need->want != STEP_ROWS) /* they are wanted until they are given */
        need->want = 0;
    while (!s->ended && !(stop && *stop)) {
        if (need->want)
            return need;
        int rc = step_decide_ready(s, false);
        if (rc == OK && !need->want && !s->ended)
            step_advance(s);
        step_end(s, rc);
        s->since = os_now_ns();
    }
    need->want = STEP_DONE;
    return need;
}

/* Do one step of work ahead of what is decided; wants the cloud if there is none. */
static void step_advance(struct step *s)
{
    struct step_queue *q = &s->queue;
    struct step_token *last = q->n ? &q->at[q->n - 1] : NULL, *next = &q->at[q->n];
    const struct decode_options *o = s->o;
    if (!o->max_tokens) {
        s->ended = step_reach(s, s->length); /* the prompt is read, no more */
    } else if (last && !last->written && o->ahead) {
        if (step_pick(s, last)) {
            last->written = true;
            step_write(s, last->t.id = last->t.edge_id);
        }
    } else if (last && (s->stats->tokens + q->n >= o->max_tokens || s->halted || !last->written ||
                        q->n == QUEUE_MOST || last->at == s->context)) {
        s->need.want = STEP_CLOUD; /* nothing can be written before more is decided */
    } else if (next->state != TOKEN_NEW || step_route(s, next)) {
        step_enqueue(s, next);
    }
}

/* Score the next token, and say in e->state whether it goes to the cloud. Only policies that need
 * the head read it. False: something is wanted first. */
static bool step_route(struct step *s, struct step_token *e)
{
    const struct step_row *row = step_row(s, s->length);
    bool routed;
    *e = (struct step_token){ .t = { .source = SOURCE_EDGE }, .at = s->length };
    if (s->reads == READS_LOGITS && !step_pick(s, e))
        return false;
    if (!step_judge(s, e->at, &e->t.score, &routed)) {
        if (s->rows.extra && !(row && row->picked))
            step_want_head(s, e->at);
        else
            step_evaluate(s, e->at);
        return false;
    }
    e->state = routed ? TOKEN_ROUTED : TOKEN_LOCAL;
    return true;
}

/* Score the token after the first `at` ids, and say whether it goes to the cloud. False: what its
 * score is made of is not there. */
static bool step_judge(struct step *s, size_t at, float *score, bool *routed)
{
    const struct decode_options *o = s->o;
    const struct router *r = s->text.router;
    struct step_row *row = step_row(s, at);
    uint64_t clock = os_now_ns();
    size_t i;
    *score = NAN;
    *routed = o->policy == POLICY_ALWAYS;
    if (s->reads == READS_NOTHING)
        return true;
    if (s->reads == READS_IDS) {
        const struct policy_text t = { s->ids, at, s->text.n, o->seed, o->place, s->text.tok, r };
        *score = policy_score_ids(o->policy, &t);
        s->stats->router_ms += step_lap(&clock);
    } else if (row && !row->scored && s->reads == READS_NETWORK &&
               (row->picked || !s->rows.extra) && session_row(&i, s->text.session, at)) {
        const float *hidden = batch_hidden(session_batch(s->text.session), i);
        const float *x = router_inputs(r, hidden, row->extra, s->scratch);
        row->score = router_score(r, x, s->scratch);
        row->scored = true;
        s->stats->router_ms += step_lap(&clock);
    }
    if (s->reads != READS_IDS) {
        if (!row || !row->scored)
            return false;
        *score = row->score;
    }
    *routed = policy_routes(*score, o->threshold, o->tie, o->seed, at);
    return true;
}

/* Find the local model's own token. False: it is wanted. */
static bool step_pick(struct step *s, struct step_token *e)
{
    const struct step_row *row = step_row(s, e->at);
    if (e->t.has_edge)
        return true;
    if (row && row->picked)
        e->t.edge_id = row->id;
    else
        step_want_head(s, e->at);
    return e->t.has_edge = row && row->picked;
}

/* Want the head for the prefix of `at` ids, and at the same time for those after it that will
 * probably want it. */
static void step_want_head(struct step *s, size_t at)
{
    struct step_need *need = &s->need;
    if (!step_reach(s, at))
        return;
    need->n = 0;
    for (size_t n = at; n < s->rows.first + s->rows.n; n++)
        if (n == at || (!step_row(s, n)->picked && step_reads_head(s, n)))
            need->at[need->n++] = n;
    need->want = STEP_HEAD;
}

/* True when the head will probably be read for this prefix, which begins with the text and may end
 * with a draft. Without a score it is not known who writes the token. */
static bool step_reads_head(struct step *s, size_t at)
{
    uint32_t id;
    float score;
    bool routed;
    step_judge(s, at, &score, &routed);
    if (!routed || !s->text.cloud || s->o->edges)
        return true;
    return s->o->ahead && step_known(s, at, false, &id) < CLOUD_MEMO;
}

void step_give_head(struct step *s, size_t at, const float *logits)
{
    const struct session *session = s->text.session;
    const struct model *model = session_model(session);
    struct step_row *r = step_row(s, at);
    if (!r)
        return;
    r->id = sampler_pick(s->text.sampler, logits, s->ids, at);
    r->picked = true;
    s->stats->edge_ms += step_lap(&s->since);
    if (s->rows.extra) {
        size_t answer = s->text.answer ? s->text.answer : s->text.n;
        const struct router_token t = { .text = { s->text.tok, s->ids, at, answer },
                                        .logits = logits,
                                        .hidden =
                                            session_hidden(session, session_length(session) - at),
                                        .size = s->size,
                                        .id = r->id,
                                        .embedding = &model->embedding };
        router_look(s->text.router, r->extra, &t);
    }
    if (s->reads == READS_LOGITS) {
        r->score = policy_score_logits(s->o->policy, logits, s->size, model->kernels);
        r->scored = true;
    }
    s->stats->router_ms += step_lap(&s->since);
}

/* True when the row of the prefix of `at` ids is there, and can be read; else it is wanted. */
static bool step_reach(struct step *s, size_t at)
{
    size_t row;
    if (step_row(s, at) && session_row(&row, s->text.session, at))
        return true;
    step_evaluate(s, at);
    return false;
}

/* Want a pass over what the session lacks of the first `at` ids, the last one of these in any case,
 * and over a draft behind the newest one. Earlier rows become void. */
static void step_evaluate(struct step *s, size_t at)
{
    struct draft *d = &s->draft;
    size_t all = at - s->text.n + 1, most = s->o->max_tokens, room = 0, made = 0, n;
    struct stops stops = s->tail;
    if (at == s->length && all > 1 && at < s->context && all < most) {
        room = most - all; /* the last token of the text is not evaluated */
        room = room < s->context - at ? room : s->context - at;
        room = room < s->o->draft_max ? room : s->o->draft_max;
    }
    draft_learn(d);
    s->rows.first = s->rows.n = 0;
    if (!s->queue.n && draft_awaits(d, s->ids, at, room)) {
        s->need.want = STEP_MOMENT;
        return;
    }
    for (n = draft_make(d, s->ids, at, room); made < n; made++) {
        uint32_t id = s->ids[at + made];
        if (id >= s->size || step_ends(s, &stops, id))
            break; /* of use are those before one that ends the text */
    }
    size_t keep = session_sync(s->text.session, s->ids, at - 1);
    d->from = at;
    s->need.ids = s->ids + keep;
    s->need.n = at + made - keep;
    s->need.want = STEP_ROWS;
}

void step_give_rows(struct step *s, size_t n)
{
    struct step_rows *r = &s->rows;
    struct decode_stats *stats = s->stats;
    size_t length = session_length(s->text.session), prompt = s->text.n, before = length - n;
    uint64_t since = s->since, now = os_now_ns();
    r->n = n < STEP_HEADS ? n : STEP_HEADS;
    r->first = length - r->n + 1;
    for (size_t i = 0; i < r->n; i++)
        r->at[i].picked = r->at[i].scored = false;
    s->draft.made = length > s->draft.from ? length - s->draft.from : 0;
    s->draft.pass_ns = before < prompt ? 0 : now - since;
    stats->drafted += s->draft.made;
    stats->passes += length > prompt;
    stats->edge_ms += step_lap(&s->since);
    step_tell(s, DECODE_EVALUATED, before, n, since, GATE_OPEN);
    s->need.want = 0;
    if (before >= prompt)
        return;
    if (s->o->reading)
        s->o->reading(s->o->arg, length < prompt ? length : prompt, prompt);
    if (length >= prompt && !stats->tokens && !(stats->prompt_ms > 0))
        stats->prompt_ms = (double)(now - s->begun) / 1e6;
}

/* Return the row of the prefix of `at` ids, or NULL. */
static struct step_row *step_row(struct step *s, size_t at)
{
    struct step_rows *r = &s->rows;
    return at >= r->first && at - r->first < r->n ? &r->at[at - r->first] : NULL;
}

/* Append the next token, which has its score, to the queue. A routed one that follows undecided
 * tokens waits for its turn, unless it is known: then the text goes on behind it. */
static void step_enqueue(struct step *s, struct step_token *e)
{
    if (e->state == TOKEN_LOCAL) {
        if (!step_pick(s, e))
            return;
        e->t.id = e->t.edge_id;
        e->written = true;
    } else if (s->queue.n) {
        e->written = step_known(s, e->at, false, &e->t.id) >= CLOUD_MEMO;
        if (!e->written) {
            s->need.want = STEP_CLOUD;
            return;
        }
    }
    s->queue.at[++s->queue.n].state = TOKEN_NEW;
    if (e->written)
        step_write(s, e->t.id);
}

/* Write on behind this id. A row that a draft has left there stands if it is the same. */
static void step_write(struct step *s, uint32_t id)
{
    struct step_rows *r = &s->rows;
    struct draft *d = &s->draft;
    size_t at = s->length++;
    bool evaluated = at + 1 < r->first + r->n, same = evaluated && s->ids[at] == id;
    if (evaluated && !same)
        r->n = at + 1 > r->first ? at + 1 - r->first : 0;
    if (same && at == d->from + d->stood && d->stood < d->made) {
        d->stood++;
        s->stats->accepted++;
    }
    s->ids[at] = id;
    s->halted = step_ends(s, &s->tail, id);
}

/* The turn of the oldest token: ask, take the answer, decide, show. */

/* Decide what can be decided, oldest first. wait: wait for the answer of the oldest. */
static int step_decide_ready(struct step *s, bool wait)
{
    while (s->queue.n && !s->ended) {
        struct step_token *e = &s->queue.at[0];
        uint32_t id;
        int rc = OK;
        if (e->state == TOKEN_ROUTED) {
            bool comes = step_known(s, e->at, false, &id) == CLOUD_COMING;
            if (comes && !wait) /* the turn cannot begin without waiting */
                return OK;
            wait = wait && !comes;
            rc = step_begin_turn(s, e);
        }
        if (rc == OK && e->state == TOKEN_ASKED) {
            /* Ahead, the guess comes before the answer, however soon that is there. */
            bool guesses = s->o->ahead && !e->written;
            if (!wait && (guesses || !s->text.cloud->done(s->turn.call, 0)))
                return OK;
            wait = false;
            rc = step_take_answer(s, e);
        }
        if (rc == OK)
            rc = step_decide(s, e);
        if (rc != OK || s->need.want)
            return rc;
    }
    return OK;
}

/* Begin the turn of a routed token: all tokens before it are decided. Afterwards it is known or
 * requested, or the gate has said why not. Returns the port's errors. */
static int step_begin_turn(struct step *s, struct step_token *e)
{
    const struct cloud_port *c = s->text.cloud;
    struct step_turn *t = &s->turn;
    *t = (struct step_turn){ .gate = GATE_NO_CLOUD };
    e->state = TOKEN_HELD;
    if (!c)
        return OK;
    t->gate = gate_own(&s->its, s->ids, e->at, e->at - s->text.n, s->stats->cloud, &s->fault);
    if (t->gate != GATE_OPEN)
        return OK;
    enum cloud_sight known = step_known(s, e->at, true, &t->answer);
    if (known >= CLOUD_MEMO) {
        s->stats->memo += known == CLOUD_MEMO;
        s->stats->store += known == CLOUD_STORE;
        e->state = TOKEN_HERE;
        return OK;
    }
    t->tokens = c->info(c->arg).tokens;
    t->gate = gate_decide(s->gate, &s->its, s->ids, e->at, &t->tokens, &s->fault);
    if (t->gate != GATE_OPEN)
        return OK;
    t->asked_ns = os_now_ns(); /* the thread of the network may go on with it before this one */
    t->moved = c->traffic(c->arg, &s->tally, false);
    int rc = c->ask(c->arg, s->ids, e->at, t->tokens, &s->tally, &t->call, &s->err);
    if (rc != OK) {
        t->call = NULL;
        if (s->gate->quota)
            quota_give(s->gate->quota, t->tokens, e->at);
        return rc;
    }
    e->state = TOKEN_ASKED;
    s->stats->calls++;
    s->gate->out++;
    step_tell(s, DECODE_ASKED, e->at, t->tokens, 0, GATE_OPEN);
    return OK;
}

/* Take the answer, or the fault, of the call of a token whose turn it is. */
static int step_take_answer(struct step *s, struct step_token *e)
{
    const struct cloud_port *c = s->text.cloud;
    struct step_turn *t = &s->turn;
    enum cloud_end how = CLOUD_USE;
    int rc = c->take(t->call, 0, &t->answer, &s->fault);
    struct traffic now = c->traffic(c->arg, &s->tally, false);
    t->moved = traffic_since(&now, &t->moved);
    if (rc == OK && t->answer >= s->size) {
        rc = err_set(&s->fault, ERR_NET, "cloud: token id: expected below %zu, found %u", s->size,
                     (unsigned)t->answer);
        how = CLOUD_DROP; /* it must not be kept */
    }
    if (rc != OK && rc != ERR_NET && rc != ERR_REMOTE && rc != ERR_TEXT) {
        s->err = s->fault;
        return rc;
    }
    t->gate = rc == OK           ? GATE_OPEN
              : rc == ERR_REMOTE ? GATE_REFUSED
              : rc == ERR_TEXT   ? GATE_UNFIT
                                 : GATE_FAULT;
    t->called = rc == OK;
    e->state = rc == OK ? TOKEN_HERE : TOKEN_HELD;
    gate_done(s->gate, &s->its, t->gate, t->moved.asked_tokens, &s->fault);
    step_end_call(s, how);
    s->stats->committed += t->called;
    s->stats->failed += !t->called;
    step_tell(s, DECODE_ANSWERED, e->at, t->tokens, t->asked_ns, t->gate);
    return OK;
}

/* Make the oldest token part of the text; roll back what was written behind another one. */
static int step_decide(struct step *s, struct step_token *e)
{
    const struct step_turn *turn = &s->turn;
    bool here = e->state == TOKEN_HERE, held = e->state == TOKEN_HELD;
    bool limit = turn->gate == GATE_PRIVATE || turn->gate == GATE_CAPPED;
    if (held && s->o->cloud_required && (s->o->cloud_alone || !limit)) {
        s->err = s->fault;
        return turn->gate == GATE_REFUSED ? ERR_REMOTE
               : turn->gate == GATE_UNFIT ? ERR_TEXT
                                          : ERR_NET;
    }
    /* Without an answer, the local model's own token stands. Ahead, a token that took a call shows
     * the guess. */
    bool guessed = s->o->edges || (s->o->ahead && turn->called);
    if ((held || (here && guessed)) && !step_pick(s, e))
        return OK;
    struct decode_token t = e->t;
    if (here) {
        t.source = SOURCE_CLOUD;
        t.id = turn->answer;
        /* A guess made while another call's reply was about to bring the token was chance. */
        t.has_edge = guessed || s->reads == READS_LOGITS;
    } else if (held) {
        t.source = SOURCE_FALLBACK;
        t.id = t.edge_id;
        t.reason = turn->gate;
        t.fault = s->fault.msg;
        s->stats->fallback++;
        s->stats->reasons[turn->gate]++;
    }
    bool back = !e->written || t.id != e->t.id;
    size_t gone = back ? s->queue.n - !e->written : 0;
    if (gone)
        step_tell(s, DECODE_ROLLED_BACK, e->at, gone, 0, GATE_OPEN);
    if (back) {
        s->queue.n = 1;
        s->queue.at[1].state = TOKEN_NEW;
        s->length = e->at;
        s->tail = s->stops;
        step_write(s, t.id);
    }
    memmove(e, e + 1, s->queue.n-- * sizeof(*e));
    step_show(s, &t);
    return OK;
}

/* Show the token, and see whether the text ends with it. */
static void step_show(struct step *s, struct decode_token *t)
{
    struct decode_stats *stats = s->stats;
    const struct decode_options *o = s->o;
    size_t at = s->text.n + stats->tokens;
    t->pos = stats->tokens++;
    t->eog = step_is_last(s, t->id);
    t->ms = step_lap(&s->clock);
    if (t->pos == 0)
        stats->ttft_ms = t->ms;
    stats->cloud += t->source == SOURCE_CLOUD;
    bool goes_on = !o->emit || o->emit(o->arg, t);
    s->ended = true;
    stats->finish = t->eog ? FINISH_EOS : FINISH_STOP;
    if (step_ends(s, &s->stops, t->id) || !goes_on)
        return;
    stats->finish = FINISH_LENGTH;
    s->ended = stats->tokens >= o->max_tokens || at == s->context;
}

void step_wait(struct step *s)
{
    uint64_t now = os_now_ns(), rest = s->draft.until > now ? s->draft.until - now : 0;
    bool moment = s->need.want == STEP_MOMENT;
    s->need.want = 0;
    if (moment)
        os_nap(rest < POLL_NS ? rest : POLL_NS);
    else
        step_end(s, step_decide_ready(s, true));
    s->need.want = 0; /* it will be wanted again */
    s->stats->cloud_ms += step_lap(&s->since);
}

void step_fail(struct step *s, int code, const struct err *why)
{
    s->err = *why;
    step_end(s, code);
}

int step_close(struct step *s, struct err *err)
{
    if (!s)
        return OK;
    struct decode_stats *stats = s->stats;
    int rc = s->rc;
    if (s->turn.call)
        step_end_call(s, CLOUD_DROP);
    gate_end(s->gate, &s->its);
    if (rc == OK && !s->ended)
        rc = err_set(&s->err, ERR_STOP, "interrupted");
    if (rc != OK)
        stats->finish = FINISH_ERROR;
    if (rc != OK && err)
        *err = s->err;
    size_t shown = s->text.n + stats->tokens - (rc == OK && stats->tokens);
    session_sync(s->text.session, s->ids, shown);
    if (s->text.cloud)
        stats->traffic = s->text.cloud->traffic(s->text.cloud->arg, &s->tally, true);
    stats->total_ms = step_lap(&s->begun);
    step_free(s);
    return rc;
}

/* Look for the token after the first `at` ids without a call. */
static enum cloud_sight step_known(struct step *s, size_t at, bool used, uint32_t *id)
{
    enum cloud_sight known = cloud_port_known(s->text.cloud, s->ids, at, used, id);
    return known >= CLOUD_MEMO && *id >= s->size ? CLOUD_UNKNOWN : known;
}

/* End the call in flight: it is used or dropped. */
static void step_end_call(struct step *s, enum cloud_end how)
{
    if (s->turn.call)
        s->text.cloud->end(s->turn.call, how);
    s->gate->out -= s->turn.call != NULL;
    s->turn.call = NULL;
}

/* Tell the caller's hook. */
static void step_tell(struct step *s, enum decode_event_kind kind, size_t at, size_t n,
                      uint64_t since, enum gate_reason reason)
{
    const uint64_t now = os_now_ns();
    struct decode_event e = { .kind = kind, .at = at, .n = n, .reason = reason, .ns = now };
    e.took_ns = since ? now - since : 0;
    if (kind == DECODE_ANSWERED)
        e.moved = s->turn.moved;
    if (s->o->event)
        s->o->event(s->o->arg, &e);
}

/* True when this token is end-of-text, and ends the text. */
static bool step_is_last(const struct step *s, uint32_t id)
{
    return !s->o->ignore_eos && tokenizer_is_eog(s->text.tok, id);
}

/* True when it ends the text, by itself or with the end of a stop string. */
static bool step_ends(const struct step *s, struct stops *stops, uint32_t id)
{
    return step_is_last(s, id) || stops_token(stops, s->text.tok, id);
}

/* Return the milliseconds since *since, which becomes now. */
static double step_lap(uint64_t *since)
{
    uint64_t now = os_now_ns();
    double ms = (double)(now - *since) / 1e6;
    *since = now;
    return ms;
}

/* End the text with an error. */
static void step_end(struct step *s, int rc)
{
    s->rc = rc;
    s->ended = s->ended || rc != OK;
}
