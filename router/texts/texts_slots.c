/* texts_slots.c - which text gets which slot, and where it finds its beginning. */
#include "kernels/sys/os.h"
#include "router/texts/texts_internal.h"

enum { LEAST = 256 /* positions of a session, if the context allows it */ };

/* Return the length of the common beginning of a and b. */
static size_t texts_common(const uint32_t *a, size_t na, const uint32_t *b, size_t nb)
{
    size_t i = 0;
    while (i < na && i < nb && a[i] == b[i])
        i++;
    return i;
}

/* Return how many ids of the text, which is to be read, need no row of their own. */
static size_t texts_spared(const struct text *t)
{
    return t->wish.score ? t->wish.score - 1 : t->n + t->view.n;
}

/* Return how many of the first n ids of the text the slot's session holds. */
static size_t texts_kept(const struct texts_slot *slot, const struct text *t, size_t n)
{
    const struct session *s = slot->session;
    return s ? texts_common(session_ids(s), session_length(s), t->ids, n) : 0;
}

/* Give the slot a session with room for the text: one that it has may be too short. */
static bool texts_slot_open(struct texts *e, struct texts_slot *slot, const struct text *t)
{
    struct session *had = slot->session, *s;
    size_t need = t->n + t->max, context = had ? session_context(had) : (size_t)LEAST;
    while (context < need)
        context *= 2;
    context = context < e->context ? context : e->context;
    if (had && session_context(had) >= context)
        return true;
    if (session_open(&s, e->batch, context, e->kv, NULL) != OK)
        return false;
    if (had && session_copy(s, had, session_length(had), NULL) != OK)
        session_rewind(s, 0);
    session_close(had);
    slot->session = s;
    return true;
}

/* Open the slot's session if needed. Without memory for it, there are fewer slots from now on, and
 * the result is NULL. */
static struct texts_slot *texts_slot_ready(struct texts *e, struct texts_slot *slot,
                                           const struct text *t)
{
    if (texts_slot_open(e, slot, t)) {
        slot->used = ++e->clock;
        return slot;
    }
    e->nslots = (size_t)(slot - e->slot); /* at least 1: the first one has all the room */
    return NULL;
}

/* Return a free slot for the text, or NULL. That which shares the longest beginning is preferred,
 * unless what it holds beyond would be lost to another text that merely begins alike, as all do
 * that have the same examples or system message in front; such a text gets a copy of the beginning.
 * Otherwise it is one that was never used, of the first `keep` alone unless these are busy, as each
 * takes memory; else the least recently used one. */
static struct texts_slot *texts_choose(struct texts *e, const struct text *t)
{
    struct texts_slot *best = NULL, *oldest = NULL;
    size_t most = 0, wanted = (size_t)t->wish.slot;
    if (t->wish.slot >= 0 && wanted < e->nslots && e->slot[wanted].session)
        return e->slot[wanted].text ? NULL : texts_slot_ready(e, &e->slot[wanted], t);
    for (size_t i = 0; i < e->nslots; i++) {
        struct texts_slot *slot = &e->slot[i];
        if (slot->text)
            continue;
        if (oldest && i >= e->keep && !slot->used) /* so are all after it */
            break;
        size_t same = texts_kept(slot, t, texts_spared(t));
        if (same > most && session_length(slot->session) - same < TEXTS_WORTH) {
            best = slot;
            most = same;
        }
        if (!oldest || slot->used < oldest->used)
            oldest = slot;
    }
    if (!oldest)
        return NULL;
    struct texts_slot *slot = texts_slot_ready(e, best ? best : oldest, t);
    return slot ? slot : texts_choose(e, t);
}

void texts_admit(struct texts *e)
{
    for (size_t i = 0; e->forgets && i < TEXTS_SLOTS; i++)
        if (e->slot[i].session && !e->slot[i].text)
            session_rewind(e->slot[i].session, 0);
    e->forgets = false;
    for (struct text *t = e->queue, *next; t; t = next) {
        next = t->next;
        struct texts_slot *slot = texts_choose(e, t);
        if (!slot)
            continue;
        texts_take_out(e, t);
        e->count.waiting--;
        e->count.busy++;
        t->slot = slot;
        t->age = ++e->ages;
        t->state = TEXT_HELD;
        slot->text = t;
        t->view.slot = (size_t)(slot - e->slot);
        t->view.waiting = false;
        t->slot_at = os_now_ns();
        t->view.queue_ms = (double)(t->slot_at - t->asked_at) / 1e6;
    }
}

/* Return the most ids of t that any session holds, and which slot that is. */
static size_t texts_best(const struct texts *e, const struct text *t,
                         const struct texts_slot **slot)
{
    size_t most = texts_kept(t->slot, t, texts_spared(t));
    *slot = t->slot;
    for (size_t i = 0; i < TEXTS_SLOTS; i++) {
        size_t same = texts_kept(&e->slot[i], t, texts_spared(t));
        if (same > most) {
            most = same;
            *slot = &e->slot[i];
        }
    }
    return most;
}

bool texts_waits(const struct texts *e, const struct text *t)
{
    const struct texts_slot *slot;
    size_t have = texts_best(e, t, &slot);
    for (size_t i = 0; i < TEXTS_SLOTS; i++) {
        const struct text *other = e->slot[i].text;
        if (!other || other->age >= t->age || (other->step && other->need->want != STEP_ROWS))
            continue;
        size_t same = texts_common(other->ids, other->n, t->ids, texts_spared(t));
        if (same >= have + TEXTS_WORTH && texts_kept(other->slot, other, same) < same)
            return true;
    }
    return false;
}

size_t texts_enter(const struct texts *e, const struct text *t)
{
    const struct texts_slot *from = t->slot;
    struct session *s = t->slot->session;
    size_t all = t->n + t->view.n, same = texts_best(e, t, &from);
    if (same >= all)
        same = all - 1;
    if (same && from != t->slot && session_copy(s, from->session, same, NULL) != OK)
        same = 0;
    return session_sync(s, t->ids, same);
}
