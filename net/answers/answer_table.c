#include "net/answers/answer_table.h"

#include <stdlib.h>
#include <string.h>

#include "kernels/sys/base.h"

enum { FIRST = 64 };

void answer_table_init(struct answer_table *t, size_t max)
{
    *t = (struct answer_table){ .max = max, .seed = prefix_key_seed() };
}

void answer_table_free(struct answer_table *t)
{
    answer_table_clear(t);
    free(t->at);
    free(t->slots);
    *t = (struct answer_table){ 0 };
}

/* Return the slot at which the search for k begins. */
static size_t answer_table_home(const struct answer_table *t, const struct prefix_key *k)
{
    return (size_t)prefix_key_mix(&t->seed, k) & t->mask;
}

/* Return the slot of k, or the free slot where it would go; at least half of the slots are free. */
static size_t answer_table_slot(const struct answer_table *t, const struct prefix_key *k)
{
    size_t s = answer_table_home(t, k);
    while (t->slots[s] && !prefix_key_same(&t->at[t->slots[s] - 1].key, k))
        s = (s + 1) & t->mask;
    return s;
}

/* Empty slot s and move back the answers that had been pushed beyond it. */
static void answer_table_take_out(struct answer_table *t, size_t s)
{
    size_t gap = s;
    t->slots[gap] = 0;
    for (size_t i = (s + 1) & t->mask; t->slots[i]; i = (i + 1) & t->mask) {
        size_t home = answer_table_home(t, &t->at[t->slots[i] - 1].key);
        if (((i - home) & t->mask) < ((i - gap) & t->mask))
            continue;
        t->slots[gap] = t->slots[i];
        t->slots[i] = 0;
        gap = i;
    }
}

/* Enlarge the table, which is not a ring yet, to cap answers. */
static bool answer_table_grow(struct answer_table *t, size_t cap)
{
    size_t bytes, nslots = 2;
    if (cap >= UINT32_MAX || !size_mul(&bytes, cap, sizeof(*t->at)))
        return false;
    struct answer *at = realloc(t->at, bytes);
    if (!at)
        return false;
    t->at = at;
    while (nslots < 2 * cap)
        nslots *= 2;
    uint32_t *slots = calloc(nslots, sizeof(*slots));
    if (!slots)
        return false;
    free(t->slots);
    t->slots = slots;
    t->mask = nslots - 1;
    t->cap = cap;
    for (size_t i = 0; i < t->n; i++)
        slots[answer_table_slot(t, &t->at[i].key)] = (uint32_t)i + 1;
    return true;
}

bool answer_table_reserve(struct answer_table *t)
{
    return t->cap == t->max || answer_table_grow(t, t->max);
}

struct answer *answer_table_find(const struct answer_table *t, const struct prefix_key *k)
{
    uint32_t i = t->slots ? t->slots[answer_table_slot(t, k)] : 0;
    return i ? &t->at[i - 1] : NULL;
}

bool answer_table_put(struct answer_table *t, const struct answer *a)
{
    struct answer *old = answer_table_find(t, &a->key);
    if (!old && t->n == t->cap && t->cap < t->max) {
        size_t cap = t->cap ? 2 * t->cap : FIRST;
        if (!answer_table_grow(t, cap < t->max ? cap : t->max))
            return false;
    }
    if (!old) {
        old = &t->at[t->next];
        if (t->n == t->max)
            answer_table_take_out(t, answer_table_slot(t, &old->key));
        else
            t->at[t->n++].message = NULL;
        t->slots[answer_table_slot(t, &a->key)] = (uint32_t)t->next + 1;
        t->next = t->next + 1 < t->max ? t->next + 1 : 0;
    }
    free(old->message);
    *old = *a;
    return true;
}

const struct answer *answer_table_at(const struct answer_table *t, size_t i)
{
    return &t->at[t->n < t->max ? i : (t->next + i) % t->max];
}

void answer_table_clear(struct answer_table *t)
{
    for (size_t i = 0; i < t->n; i++)
        free(t->at[i].message);
    t->n = t->next = 0;
    if (t->slots)
        memset(t->slots, 0, (t->mask + 1) * sizeof(*t->slots));
}
