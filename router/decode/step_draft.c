/* step_draft.c - which tokens are evaluated together with the newest one. */
#include <string.h>

#include "kernels/sys/os.h"
#include "router/decode/step_internal.h"

/* The rest of a reply often comes right behind its first token, and a draft made of it saves
 * passes. So it is awaited for an eighth of a pass, until that was three times in a row too
 * short. */
enum { PATIENCE = 8, PATIENCE_NS = 2000000, LATE_MOST = 3 };

/* Return how many of the ids can be of use: those before one that ends the text. */
static size_t step_draft_cut(const struct step *s, const uint32_t *ids, size_t n)
{
    struct stops stops;
    bool any = s->tail.list != NULL;
    if (any)
        stops = s->tail;
    for (size_t i = 0; i < n; i++)
        if (ids[i] >= s->size || step_is_last(s, ids[i]) ||
            (any && step_stopped(s, &stops, ids[i])))
            return i;
    return n;
}

/* Return how many ids a draft after the first n of the text may have. The last token of the text is
 * not evaluated. */
static size_t step_draft_room(const struct step *s, size_t n)
{
    const struct decode_options *o = s->o;
    size_t all = s->stats->tokens + s->ahead.n + 1;
    size_t left = all < o->max_tokens ? o->max_tokens - all : 0;
    size_t room = session_context(s->text.session) - n;
    room = room < left ? room : left;
    room = room < o->draft_max ? room : o->draft_max;
    return room < VIEW_ROWS - 1 ? room : VIEW_ROWS - 1;
}

bool step_draft_await(struct step *s)
{
    uint64_t now = os_now_ns(), most = s->drafts.pass_ns / PATIENCE;
    size_t here = 0;
    bool more = false;
    if (!s->ahead.n && s->drafts.late < LATE_MOST && most)
        here = draft_sent(&s->drafts.draft, s->ids, s->view.length, s->last,
                          step_draft_room(s, s->view.length + 1), &more);
    if (more && !s->drafts.until)
        s->drafts.until = now + (most < PATIENCE_NS ? most : PATIENCE_NS);
    if (more && now < s->drafts.until)
        return true;
    if (s->drafts.until && (here || more)) /* else the call has failed */
        s->drafts.late = !more && now < s->drafts.until ? 0 : s->drafts.late + 1;
    s->drafts.until = 0;
    return false;
}

size_t step_draft(struct step *s, uint32_t *out)
{
    size_t n = s->view.length, room = step_draft_room(s, n + 1);
    s->drafts.draft.latest = NULL;
    size_t made = draft_make(&s->drafts.draft, s->ids, n, s->last, room, out);
    return step_draft_cut(s, out, made);
}

void step_draft_end(struct step *s)
{
    struct view *v = &s->view;
    size_t stood = v->reached - v->base;
    s->stats->drafted += s->drafts.drafted;
    s->stats->accepted += stood;
    draft_learn(&s->drafts.draft, s->drafts.drafted, stood);
    s->drafts.drafted = 0;
    v->reached = v->base;
}
