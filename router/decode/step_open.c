/* step_open.c - the beginning and the end of a text. */
#include <stdlib.h>
#include <string.h>

#include "kernels/sys/os.h"
#include "model/model.h"
#include "model/text/tokenizer.h"
#include "router/decode/step_internal.h"
#include "router/router.h"

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
    s->view.length = session_sync(s->text.session, s->text.prompt, n - 1);
    return OK;
}

/* Keep the ids aside, and leave the prompt unread. */
static int step_be_lazy(struct step *s)
{
    size_t n = s->text.n, all = session_context(s->text.session);
    if (!(s->lazy = malloc(all * sizeof(*s->lazy))))
        return err_set(&s->err, ERR_NOMEM, "decode: out of memory");
    memcpy(s->lazy, s->text.prompt, n * sizeof(*s->lazy));
    s->ids = s->lazy;
    s->view.length = n;
    s->reading = false;
    step_start(s);
    return OK;
}

/* Give the view's rows room for what the router reads besides the hidden state. */
static int step_open_extra(struct step *s)
{
    size_t n =
        s->text.router && policy_reads_network(s->o->policy) ? router_extra(s->text.router) : 0;
    if (n && !(s->view.extra = calloc(VIEW_ROWS, n * sizeof(*s->view.extra))))
        return err_set(&s->err, ERR_NOMEM, "decode: out of memory");
    for (size_t i = 0; n && i < VIEW_ROWS; i++)
        s->view.rows[i].extra = s->view.extra + i * n;
    return OK;
}

static void step_free(struct step *s)
{
    free(s->lazy);
    free(s->view.extra);
    free(s);
}

/* Set up the loop. */
static int step_begin(struct step *s)
{
    const struct decode_options *o = s->o;
    if (o->policy == POLICY_POSITION && !o->place)
        return err_set(&s->err, ERR_ARG, "policy position needs a place");
    int rc = policy_check(o->policy, s->text.router, &s->err);
    if (rc == OK)
        rc = stops_begin(&s->stops, o->stops, &s->err);
    if (rc == OK)
        rc = step_find_prompt(s);
    if (rc == OK)
        rc = step_open_extra(s);
    if (rc == OK)
        rc = draft_open(&s->drafts.draft, o->drafts, o->draft_max, s->text.cloud,
                        session_context(s->text.session), &s->err);
    if (rc != OK)
        return rc;
    s->tail = s->stops;
    s->reading = true;
    s->ended = false;
    if (o->lazy && o->policy == POLICY_ALWAYS && !o->ahead && !o->edges && s->text.cloud)
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
    s->gate = o->gate ? o->gate : &s->own;
    s->ids = session_ids(t->session);
    s->size = tokenizer_size(t->tok);
    s->begun = s->clock = os_now_ns();
    int rc = step_begin(s);
    if (rc == OK)
        return OK;
    err_set(err, rc, "%s", s->err.msg);
    stats->finish = FINISH_ERROR;
    draft_close(&s->drafts.draft);
    step_free(s);
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
    draft_close(&s->drafts.draft);
    step_count(s);
    gate_end(&s->its);
    if (rc == OK && !s->ended)
        rc = err_set(&s->err, ERR_STOP, "interrupted");
    if (rc != OK)
        stats->finish = FINISH_ERROR;
    size_t shown = s->text.n + stats->tokens;
    shown = shown < s->view.length ? shown : s->view.length; /* what follows may be a draft */
    shown = rc == OK ? s->end : shown;
    if (s->lazy)
        session_sync(s->text.session, s->lazy, shown);
    else
        session_rewind(s->text.session, shown);
    if (s->text.cloud)
        stats->traffic = s->text.cloud->traffic(s->text.cloud->arg, &s->tally, true);
    if (rc != OK)
        err_set(err, rc, "%s", s->err.msg);
    step_free(s);
    return rc;
}
