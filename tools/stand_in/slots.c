#include "tools/stand_in/slots.h"

#include "kernels/sys/base.h"

enum {
    SLOTS_MIN = 4,
    FIRST = 8 /* more are opened only while all of these are busy: each costs time and memory */
};

static const size_t budget = (size_t)512 << 20;

int stand_in_slots_open(struct stand_in_slots *s, size_t n, struct err *err)
{
    int rc = s->batch ? session_open(&s->slot[0].session, s->batch, s->context, s->kv, err) : OK;
    if (rc)
        return rc;
    size_t fit = s->batch ? budget / session_bytes(s->slot[0].session) : (size_t)SLOTS_MAX;
    if (!n)
        n = fit < SLOTS_MIN ? (size_t)SLOTS_MIN : fit;
    s->n = n < SLOTS_MAX ? n : (size_t)SLOTS_MAX;
    return OK;
}

void stand_in_slots_close(struct stand_in_slots *s)
{
    for (size_t i = 0; i < SLOTS_MAX; i++)
        if (s->slot[i].session)
            session_close(s->slot[i].session);
}

/* Return the length of the common prefix of a and b. */
static size_t stand_in_slots_common(const uint32_t *a, size_t na, const uint32_t *b, size_t nb)
{
    size_t i = 0;
    while (i < na && i < nb && a[i] == b[i])
        i++;
    return i;
}

/* Return how many tokens of the prompt the slot's session holds. */
static size_t stand_in_slots_kept(const struct stand_in_slot *slot, const uint32_t *prompt,
                                  size_t n)
{
    size_t have = slot->session ? session_length(slot->session) : 0;
    return have ? stand_in_slots_common(session_ids(slot->session), have, prompt, n) : 0;
}

/* Open the slot's session if needed. Without memory for it, reduce the number of slots and return
 * NULL. */
static struct stand_in_slot *stand_in_slots_ready(struct stand_in_slots *s,
                                                  struct stand_in_slot *slot)
{
    if (slot->session || !s->batch ||
        session_open(&slot->session, s->batch, s->context, s->kv, NULL) == OK) {
        slot->used = ++s->clock;
        return slot;
    }
    s->n = (size_t)(slot - s->slot); /* sessions are opened in order */
    return NULL;
}

/* Prefer the slot that shares the longest prefix, unless more than half of its text would be lost
 * to another text that merely begins alike. Otherwise take one of the FIRST that was never used,
 * else the least recently used one. */
struct stand_in_slot *stand_in_slots_choose(struct stand_in_slots *s, const uint32_t *prompt,
                                            size_t n, long wanted)
{
    struct stand_in_slot *best = NULL, *oldest = NULL;
    size_t most = 0;
    if (wanted >= 0 && (size_t)wanted < s->n && s->slot[wanted].session)
        return s->slot[wanted].job ? NULL : stand_in_slots_ready(s, &s->slot[wanted]);
    for (size_t i = 0; i < s->n; i++) {
        struct stand_in_slot *slot = &s->slot[i];
        if (slot->job)
            continue;
        if (oldest && i >= FIRST && !slot->used) /* so are all after it */
            break;
        size_t same = stand_in_slots_kept(slot, prompt, n);
        if (same > most && same * 2 >= session_length(slot->session)) {
            best = slot;
            most = same;
        }
        if (!oldest || slot->used < oldest->used)
            oldest = slot;
    }
    if (!oldest)
        return NULL;
    struct stand_in_slot *slot = stand_in_slots_ready(s, best ? best : oldest);
    return slot ? slot : stand_in_slots_choose(s, prompt, n, wanted);
}

size_t stand_in_slots_enter(const struct stand_in_slots *s, struct stand_in_slot *slot,
                            const uint32_t *prompt, size_t n)
{
    const struct stand_in_slot *from = slot;
    size_t same = stand_in_slots_kept(slot, prompt, n), length = session_length(slot->session);
    for (size_t i = 0; i < s->n; i++) {
        size_t shared = stand_in_slots_kept(&s->slot[i], prompt, n);
        if (shared > same) {
            same = shared;
            from = &s->slot[i];
        }
    }
    if (same == n && (from != slot || length > n || slot->known != n))
        same--;
    if (from != slot && session_copy(slot->session, from->session, same, NULL) != OK)
        same = 0;
    session_rewind(slot->session, same);
    return same;
}
