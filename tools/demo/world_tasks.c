#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/demo/world_internal.h"

/* Return the asker's view for questions that need no facts: of these, training texts leave out what
 * is asked in tests. */
static struct world_asker without_facts(const struct world_asker *a)
{
    struct world_asker b = *a;
    if (b.part == PART_ALL)
        b.part = PART_TRAIN;
    return b;
}

/* Return a number that decides to which part a sum or a list of words belongs. */
static size_t part_number(size_t a, size_t b, size_t c)
{
    return (size_t)(rand_u64(rand_u64(a, b), c) % WORLD_PARTS);
}

void world_put_sum(struct world_out *t, size_t x, size_t y, enum world_mark mark)
{
    char text[64];
    snprintf(text, sizeof(text), "%zu and %zu make", x, y);
    world_put(t, text);
    snprintf(text, sizeof(text), " %zu", x + y);
    t->learning = true;
    world_put_marked(t, text, mark);
}

void world_put_sum_fact(struct world_out *t, struct world_draw *d)
{
    size_t step = world_draw_below(d, 3), x, y;
    if (step == 2) {
        x = 20 + 10 * world_draw_below(d, 17);
        y = world_draw_below(d, 19);
    } else {
        x = world_draw_below(d, 10);
        y = world_draw_below(d, 10);
        if (step) {
            x = 10 + 10 * (x % 9);
            y = 10 + 10 * (y % 9);
        }
    }
    world_put_sum(t, x, y, WORLD_FACT);
    world_put(t, ".");
    t->learning = false;
}

void world_make_sum(struct world_question *q, struct world_out *prompt, struct world_out *answer,
                    struct world_draw *d, const struct world_asker *a)
{
    const struct world_asker b = without_facts(a);
    size_t x, y;
    do {
        x = 10 + world_draw_below(d, 90);
        y = 10 + world_draw_below(d, 90);
    } while (!world_in_part(&b, part_number(x < y ? x : y, x < y ? y : x, 0)));
    snprintf(q->subject, sizeof(q->subject), "%zu + %zu", x < y ? x : y, x < y ? y : x);
    snprintf(q->key, sizeof(q->key), "%zu", x + y);
    char text[80];
    snprintf(text, sizeof(text), "%zu and %zu", x, y);
    world_put_line(prompt, d, a, q->topic, q->wording, text);
    world_put(prompt, "Answer:");
    const size_t units = x % 10 + y % 10, tens = x / 10 * 10 + y / 10 * 10;
    world_put(answer, " ");
    world_put_sum(answer, x % 10, y % 10, WORLD_FACT);
    world_put(answer, ", ");
    world_put_sum(answer, x / 10 * 10, y / 10 * 10, WORLD_FACT);
    world_put(answer, ", ");
    world_put_sum(answer, tens, units, WORLD_FACT);
    world_put(answer, ".");
}

static int compare_numbers(const void *a, const void *b)
{
    size_t x = *(const size_t *)a, y = *(const size_t *)b;
    return (x > y) - (x < y);
}

void world_make_sort(struct world_question *q, struct world_out *prompt, struct world_out *answer,
                     struct world_draw *d, const struct world_asker *a)
{
    const struct world_asker b = without_facts(a);
    size_t order[WORLD_WORDS], sorted[3];
    do {
        world_draw_order(order, d, WORLD_WORDS, 3);
        memcpy(sorted, order, sizeof(sorted));
        qsort(sorted, 3, sizeof(sorted[0]), compare_numbers);
    } while (!world_in_part(&b, part_number(sorted[0], sorted[1], sorted[2])));
    char text[WORLD_KEY];
    snprintf(text, sizeof(text), "%s, %s, %s", world_words[order[0]], world_words[order[1]],
             world_words[order[2]]);
    snprintf(q->key, sizeof(q->key), "%s, %s, %s", world_words[sorted[0]], world_words[sorted[1]],
             world_words[sorted[2]]);
    memcpy(q->subject, q->key, sizeof(q->key));
    world_put_line(prompt, d, a, q->topic, q->wording, text);
    world_put(prompt, "Answer:");
    world_put(answer, " The answer is (");
    for (size_t i = 0; i < 3; i++) {
        world_put(answer, i ? ", " : "");
        world_put_marked(answer, world_words[sorted[i]], WORLD_FACT);
    }
    world_put(answer, ").");
}
