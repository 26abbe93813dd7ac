#include "router/decode/view.h"

void view_passed(struct view *v, size_t n, size_t drafted)
{
    size_t length = session_length(v->session), kept = n < VIEW_ROWS ? n : VIEW_ROWS;
    v->pass = length - n + 1;
    v->base = v->reached = length - drafted;
    v->first = length - kept + 1;
    v->n = kept;
    v->held = true;
    for (size_t i = 0; i < kept; i++)
        v->rows[i].picked = v->rows[i].scored = false;
}

void view_rewind(struct view *v, size_t n)
{
    session_rewind(v->session, n);
    v->n = 0;
    v->held = false;
}

struct view_row *view_row(struct view *v, size_t n)
{
    return n >= v->first && n - v->first < v->n ? &v->rows[n - v->first] : NULL;
}

bool view_append(struct view *v, uint32_t id)
{
    size_t n = v->length;
    if (!view_row(v, n + 1) || session_ids(v->session)[n] != id)
        return false;
    if (++v->length > v->reached)
        v->reached = v->length;
    return true;
}
