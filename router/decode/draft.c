#include "router/decode/draft.h"

#include <string.h>

#include "kernels/sys/os.h"
#include "net/cloud_port.h"

enum {
    FIRST = 4,  /* ids of the first draft from lookup */
    LEAST = 2,  /* ids in a row that lookup must have seen before */
    ENOUGH = 8, /* it looks for no more than this */
    SURE = 6,   /* with this many it drafts in spite of misses */
    PAUSES = 6, /* the longest pause is 1 << PAUSES passes */
    RECENT = 64 /* ids of the cloud that are remembered, about */
};

/* The rest of a reply often comes right behind its first token, and a draft made of it saves
 * passes. So it is awaited for an eighth of a pass, until that was three times in a row too
 * short. */
enum { PATIENCE = 8, PATIENCE_NS = 2000000, LATE_MOST = 3 };

bool draft_parse(enum draft_kind *out, const char *name)
{
    static const char *const names[] = { "off", "lookup", "cloud", "both" };
    for (int i = DRAFT_OFF; i <= DRAFT_BOTH; i++)
        if (!strcmp(name, names[i])) {
            *out = (enum draft_kind)i;
            return true;
        }
    return false;
}

/* A row of a few costs a sixteenth (Q8_0) to a fifth (Q4_0) of a pass, and the k-th id of a draft
 * stands if all before it do. So a draft from the cloud is as long as its last id stands with a
 * chance of an eighth, given how often they stood so far (at first: 4 of 5). */
static void draft_pace_cloud(struct draft *d, size_t made, size_t stood)
{
    struct draft_pace *p = &d->pace[1];
    p->right += stood;
    p->tried += stood + (stood < made);
    if (p->tried > RECENT) {
        p->right /= 2;
        p->tried /= 2;
    }
    double rate = (double)(p->right + 4) / (double)(p->tried + 5), chance = rate * rate;
    for (p->length = 1; p->length < d->most && chance > 0.125; p->length++)
        chance *= rate;
}

void draft_open(struct draft *d, enum draft_kind kinds, size_t most, const struct cloud_port *cloud)
{
    most = most < DRAFT_MOST ? most : DRAFT_MOST;
    *d = (struct draft){ .kinds = most ? kinds : DRAFT_OFF, .most = most, .cloud = cloud };
    if (!cloud)
        d->kinds &= DRAFT_LOOKUP;
    d->pace[0].length = most < FIRST ? most : FIRST;
    draft_pace_cloud(d, 0, 0);
}

/* Find the place, before the end of ids[n], that most of the last ids lead to, the latest of equal
 * ones. Returns how many ids lead there, at most ENOUGH, and 0 if fewer than LEAST do. */
static size_t draft_find(const uint32_t *ids, size_t n, size_t *place)
{
    size_t best = LEAST - 1;
    if (n <= LEAST)
        return 0;
    const uint32_t last = ids[n - 1], before = ids[n - 2];
    for (size_t i = n - 2; i > 0 && best < ENOUGH; i--) {
        size_t same = 2;
        if (ids[i] != last || ids[i - 1] != before)
            continue;
        while (same < ENOUGH && same <= i && ids[i - same] == ids[n - 1 - same])
            same++;
        if (same > best) {
            best = same;
            *place = i + 1;
        }
    }
    return best < LEAST ? 0 : best;
}

/* Draft what followed the last ids of ids[n] before. If the text ends meanwhile, it repeats
 * itself. */
static size_t draft_look_up(struct draft *d, uint32_t *ids, size_t n, size_t room)
{
    struct draft_pace *p = &d->pace[0];
    size_t place = 0, seen = draft_find(ids, n, &place);
    size_t most = seen >= SURE && p->length < FIRST ? FIRST : p->length;
    if (!seen || (p->pause && seen < SURE))
        return 0;
    most = most < room ? most : room;
    for (size_t i = 0; i < most; i++)
        ids[n + i] = ids[place + i];
    return most;
}

/* Draft what the cloud has sent after ids[n]. *more: it is still sending. */
static size_t draft_take(struct draft *d, uint32_t *ids, size_t n, size_t room, bool *more)
{
    const struct draft_pace *p = &d->pace[1];
    size_t most = p->pause ? 0 : p->length < room ? p->length : room, i = 0;
    enum cloud_sight sight = CLOUD_MEMO;
    while (i < most && sight >= CLOUD_MEMO) {
        sight = cloud_port_known(d->cloud, ids, n + i, false, &ids[n + i]);
        i += sight >= CLOUD_MEMO;
    }
    *more = sight == CLOUD_COMING;
    return i;
}

size_t draft_make(struct draft *d, uint32_t *ids, size_t n, size_t room)
{
    size_t made = 0;
    bool more;
    d->latest = NULL;
    room = room < d->most ? room : d->most;
    if (d->kinds == DRAFT_OFF || !room)
        return 0;
    if (d->kinds & DRAFT_CLOUD)
        made = draft_take(d, ids, n, room, &more);
    if (made)
        d->latest = &d->pace[1];
    else if (d->kinds & DRAFT_LOOKUP && (made = draft_look_up(d, ids, n, room)))
        d->latest = &d->pace[0];
    for (size_t i = 0; i < 2; i++)
        d->pace[i].pause -= d->pace[i].pause > 0;
    return made;
}

bool draft_awaits(struct draft *d, uint32_t *ids, size_t n, size_t room)
{
    uint64_t now = os_now_ns(), most = d->pass_ns / PATIENCE;
    size_t here = 0;
    bool more = false;
    room = room < d->most ? room : d->most;
    if (d->kinds & DRAFT_CLOUD && room && d->late < LATE_MOST && most)
        here = draft_take(d, ids, n, room, &more);
    if (more && !d->until)
        d->until = now + (most < PATIENCE_NS ? most : PATIENCE_NS);
    if (more && now < d->until)
        return true;
    if (d->until && (here || more)) /* else the call has failed */
        d->late = !more && now < d->until ? 0 : d->late + 1;
    d->until = 0;
    return false;
}

void draft_learn(struct draft *d)
{
    struct draft_pace *p = d->latest;
    size_t made = d->made, stood = d->stood;
    d->made = d->stood = 0;
    if (!p || !made)
        return;
    if (p == &d->pace[1])
        draft_pace_cloud(d, made, stood);
    if (stood) {
        size_t next = stood == made ? 2 * made : stood + 1;
        p->misses = 0;
        if (p == &d->pace[0] && (stood < made || next > p->length))
            p->length = next < d->most ? next : d->most;
        return;
    }
    p->misses += p->misses < PAUSES;
    p->pause = (size_t)1 << p->misses;
    if (p == &d->pace[0])
        p->length = d->most < LEAST ? d->most : LEAST;
}
