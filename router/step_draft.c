/* step_draft.c - which tokens are evaluated together with the newest one. */
#include <string.h>

#include "model/text/tokenizer.h"
#include "router/step_internal.h"

/* Return how many of the ids can be of use: those before one that ends the text. */
static size_t step_draft_cut(const struct step *s, const uint32_t *ids, size_t n)
{
    struct stops stops;
    bool any = s->tail.list != NULL;
    if (any)
        stops = s->tail;
    for (size_t i = 0; i < n; i++)
        if (ids[i] >= s->size || tokenizer_is_eog(s->text.tok, ids[i]) ||
            (any && step_stopped(s, &stops, ids[i])))
            return i;
    return n;
}

size_t step_draft(struct step *s, uint32_t *out)
{
    const struct decode_options *o = s->o;
    const uint32_t *text = session_ids(s->text.session);
    size_t n = s->view.length, all = s->stats->tokens + s->ahead.n, made = 0;
    /* The last token of the text is not evaluated. */
    size_t room = session_context(s->text.session) - n - 1, left = o->max_tokens - all - 1;
    room = room < left ? room : left;
    room = room < o->draft_max ? room : o->draft_max;
    room = room < VIEW_ROWS - 1 ? room : VIEW_ROWS - 1;
    s->draft.latest = NULL;
    if (o->guess)
        made = o->guess(o->arg, text, n, s->last, out, room);
    if (!made)
        made = draft_make(&s->draft, text, n, s->last, room, out);
    return step_draft_cut(s, out, made);
}

void step_draft_end(struct step *s)
{
    struct view *v = &s->view;
    size_t stood = v->reached > v->pass ? v->reached - v->pass : 0;
    s->stats->drafted += s->drafted;
    s->stats->accepted += stood;
    draft_learn(&s->draft, s->drafted, stood);
    s->drafted = 0;
    v->reached = v->pass;
}
