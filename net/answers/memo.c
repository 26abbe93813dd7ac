#include "net/answers/memo.h"

#include <stdlib.h>
#include <string.h>

#include "kernels/sys/base.h"

enum { MEMO_MOST = 1 << 24 };

struct entry {
    struct prefix_key key;
    uint32_t id;
};

struct memo {
    struct entry *at; /* [max], a ring buffer: the oldest entry is overwritten */
    size_t max, n, next;
    uint32_t *slots; /* [mask + 1], open addressing: index into at, plus 1; 0: free */
    size_t mask;
};

int memo_open(struct memo **out, size_t max, struct err *err)
{
    *out = NULL;
    if (!max || max > MEMO_MOST)
        return err_set(err, ERR_ARG, "memo: expected 1 to %d answers, found %zu", MEMO_MOST, max);
    struct memo *m = calloc(1, sizeof(*m));
    if (!m)
        return err_set(err, ERR_NOMEM, "memo: out of memory");
    size_t slots = 2;
    while (slots < 2 * max)
        slots *= 2;
    m->max = max;
    m->mask = slots - 1;
    m->at = calloc(max, sizeof(*m->at));
    m->slots = calloc(slots, sizeof(*m->slots));
    if (!m->at || !m->slots) {
        memo_close(m);
        return err_set(err, ERR_NOMEM, "memo: out of memory");
    }
    *out = m;
    return OK;
}

void memo_close(struct memo *m)
{
    if (!m)
        return;
    free(m->at);
    free(m->slots);
    free(m);
}

/* Return the slot of k, or the free slot where it would go; at least half of the slots are free. */
static size_t memo_find(const struct memo *m, const struct prefix_key *k)
{
    size_t s = (size_t)k->lo & m->mask;
    while (m->slots[s] && !prefix_key_same(&m->at[m->slots[s] - 1].key, k))
        s = (s + 1) & m->mask;
    return s;
}

/* Empty slot s and move back the entries that had been pushed beyond it. */
static void memo_take_out(struct memo *m, size_t s)
{
    size_t gap = s;
    m->slots[gap] = 0;
    for (size_t i = (s + 1) & m->mask; m->slots[i]; i = (i + 1) & m->mask) {
        size_t home = (size_t)m->at[m->slots[i] - 1].key.lo & m->mask;
        if (((i - home) & m->mask) < ((i - gap) & m->mask))
            continue;
        m->slots[gap] = m->slots[i];
        m->slots[i] = 0;
        gap = i;
    }
}

bool memo_get(const struct memo *m, const struct prefix_key *k, uint32_t *id)
{
    uint32_t i = m->slots[memo_find(m, k)];
    if (i)
        *id = m->at[i - 1].id;
    return i != 0;
}

void memo_put(struct memo *m, const struct prefix_key *k, uint32_t id)
{
    uint32_t i = m->slots[memo_find(m, k)];
    if (i) {
        m->at[i - 1].id = id;
        return;
    }
    if (m->n == m->max)
        memo_take_out(m, memo_find(m, &m->at[m->next].key));
    else
        m->n++;
    m->at[m->next] = (struct entry){ *k, id };
    m->slots[memo_find(m, k)] = (uint32_t)m->next + 1;
    m->next = m->next + 1 < m->max ? m->next + 1 : 0;
}

void memo_clear(struct memo *m)
{
    m->n = m->next = 0;
    memset(m->slots, 0, (m->mask + 1) * sizeof(*m->slots));
}

size_t memo_size(const struct memo *m)
{
    return m->n;
}
