#include "model/tuning.h"

#include "kernels/kernels.h"
#include "kernels/sys/os.h"

/* Prefetching displaces that of the hardware: Zen 3 to 5 want none of it for plain types and 2 to
 * 32 KB for those that decode between the products, Intel 4 KB and two panels (SPEED.md). */
static const struct tune ways[TUNING_WAYS] = {
    { .panels = 1, .ahead = 0 },     { .panels = 2, .ahead = 4096 },
    { .panels = 1, .ahead = 2048 },  { .panels = 1, .ahead = 4096 },
    { .panels = 1, .ahead = 8192 },  { .panels = 1, .ahead = 16384 },
    { .panels = 1, .ahead = 32768 },
};

void tuning_open(struct tuning *t, const struct kernels *k, enum ptype head)
{
    *t = (struct tuning){ .fixed = k->tune_fixed };
    for (size_t i = 0; i < TUNING_SLOTS; i++) {
        struct tuning_slot *s = &t->slot[i];
        size_t n = 1;
        s->now = s->way[0] = k->tune[i == TUNING_HEAD ? head : i];
        for (size_t w = 0; w < TUNING_WAYS && n < TUNING_WAYS; w++)
            if (ways[w].panels != s->now.panels || ways[w].ahead != s->now.ahead) {
                s->way[n] = ways[w];
                s->way[n++].run = s->now.run;
            }
    }
}

uint64_t tuning_begins(const struct tuning *t, size_t slot, size_t rows)
{
    if (rows != 1 || t->fixed || tuning_chosen(&t->slot[slot]))
        return 0;
    return os_thread_ns();
}

void tuning_ends(struct tuning *t, size_t slot, uint64_t began)
{
    if (began)
        t->slot[slot].ns += os_thread_ns() - began;
}

/* Return the fastest way: another one than the family's must be 3 % faster, more than chance. */
static size_t tuning_best(const struct tuning_slot *s)
{
    size_t best = 0;
    for (size_t i = 1; i < TUNING_WAYS; i++)
        if (s->least[i] < s->least[best] && s->least[i] < s->least[0] / 100 * 97)
            best = i;
    return best;
}

void tuning_pass(struct tuning *t, size_t first, size_t last, size_t rows)
{
    for (size_t i = first; i < last; i++) {
        struct tuning_slot *s = &t->slot[i];
        uint64_t ns = s->ns, *least = &s->least[s->passes % TUNING_WAYS];
        s->ns = 0;
        if (!ns || rows != 1)
            continue; /* what an interrupted pass has left */
        *least = !*least || ns < *least ? ns : *least;
        s->passes++;
        s->now = s->way[tuning_chosen(s) ? tuning_best(s) : s->passes % TUNING_WAYS];
    }
}

bool tuning_chosen(const struct tuning_slot *s)
{
    return s->passes == TUNING_PASSES;
}
