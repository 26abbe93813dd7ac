/* task_shots.c - solved examples in front of a question, drawn as lm-evaluation-harness draws them:
 * for one question after the other, with Python's random.sample from one generator with seed 1234.
 * An item that is the question itself is passed over. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "tools/tasks/task_internal.h"

enum { SHOTS = 64, WORDS = 624, SEED = 1234, POOL = 21 + 4 * 4 * 4 * 4 };

/* Python's generator, MT19937 (Matsumoto and Nishimura, 1998). */
struct twister {
    uint32_t at[WORDS];
    size_t i;
};

static void twister_seed(struct twister *m, uint32_t key)
{
    uint32_t *a = m->at;
    size_t i = 1;
    a[0] = 19650218;
    for (uint32_t k = 1; k < WORDS; k++)
        a[k] = 1812433253 * (a[k - 1] ^ a[k - 1] >> 30) + k;
    for (size_t k = 0; k < 2 * WORDS - 1; k++) {
        uint32_t mixed = a[i - 1] ^ a[i - 1] >> 30;
        a[i] =
            k < WORDS ? (a[i] ^ mixed * 1664525) + key : (a[i] ^ mixed * 1566083941) - (uint32_t)i;
        if (++i == WORDS) {
            a[0] = a[WORDS - 1];
            i = 1;
        }
    }
    a[0] = 0x80000000;
    m->i = WORDS;
}

static uint32_t twister_next(struct twister *m)
{
    uint32_t *a = m->at, y;
    for (size_t k = 0; m->i == WORDS && k < WORDS; k++) {
        y = (a[k] & 0x80000000) | (a[(k + 1) % WORDS] & 0x7fffffff);
        a[k] = a[(k + 397) % WORDS] ^ y >> 1 ^ (y & 1 ? 0x9908b0df : 0);
    }
    m->i %= WORDS;
    y = a[m->i++];
    y ^= y >> 11;
    y ^= y << 7 & 0x9d2c5680;
    y ^= y << 15 & 0xefc60000;
    return y ^ y >> 18;
}

/* Return a number below n, 0 < n < 2^31: the high bits of a word, as many as n has. */
static uint32_t twister_below(struct twister *m, size_t n)
{
    unsigned bits = 0;
    uint32_t r;
    while (n >> bits)
        bits++;
    do
        r = twister_next(m) >> (32 - bits);
    while (r >= n);
    return r;
}

/* Append the answer of an example: the solution, the letter or, for arc, the choice. */
static int shots_answer(struct task_text *out, const struct task *train,
                        const struct task_item *item, struct err *err)
{
    const char *answer = item->key;
    if (!item->nchoices && !item->gold)
        return task_bad(train, "solution", "a string", "nothing", err);
    for (size_t i = 0; train->kind == &task_arc && i < item->nchoices; i++)
        if (strcmp(item->labels[i], item->key) == 0)
            answer = item->choices[i];
    task_put(out, item->nchoices ? " " : item->gold);
    task_put(out, item->nchoices ? answer : "");
    return OK;
}

/* Draw the examples of item i. From few items Python takes them out of a pool; from many it draws
 * again what it has. The harness draws one more where the examples are from the file that is asked,
 * in case it is the question. */
static int shots_draw(uint32_t *kept, struct task *t, size_t i, struct twister *random,
                      unsigned char *seen, struct err *err)
{
    struct task_item asked, item;
    uint32_t pool[POOL];
    size_t size = t->train->size, want = t->shots + !strcmp(t->digest, t->train->digest), few = 1;
    int rc = task_item(&asked, t, i, err);
    while (few < 3 * want)
        few *= 4;
    few = 21 + (want > 5 ? few : 0);
    for (uint32_t k = 0; size <= few && k < size; k++)
        pool[k] = k;
    memset(seen, 0, size);
    for (size_t n = 0, drawn = 0; rc == OK && (n < t->shots || drawn < want); drawn++) {
        uint32_t at, k;
        if (drawn == size)
            return err_set(err, ERR_ARG,
                           "--shots: %s: expected %zu items that are not asked, "
                           "found %zu",
                           t->train->path, t->shots, n);
        do {
            k = twister_below(random, size <= few ? size - drawn : size);
            at = size <= few ? pool[k] : k;
        } while (seen[at]);
        seen[at] = 1;
        if (size <= few)
            pool[k] = pool[size - drawn - 1];
        rc = n < t->shots ? task_item(&item, t->train, at, err) : OK;
        if (rc == OK && n < t->shots && strcmp(item.prompt, asked.prompt) != 0)
            kept[n++] = at;
    }
    return rc;
}

int task_shots_open(struct task *t, const char *shots, struct err *err)
{
    char *end = NULL;
    unsigned long n = isdigit((unsigned char)*shots) ? strtoul(shots, &end, 10) : 0;
    struct twister random;
    size_t room;
    if (n < 1 || n > SHOTS || *end != ':' || !end[1])
        return err_set(err, ERR_ARG, "--shots: expected N:FILE with N from 1 to %d, found %s",
                       SHOTS, shots);
    if (!t->kind->file || t->form != TASK_LM_EVAL)
        return err_set(err, ERR_ARG,
                       "--shots: expected --task csqa, arc or gsm8k with --prompt lm-eval");
    const struct task_options o = { .name = t->kind->name, .data = end + 1, .form = t->form };
    int rc = task_open(&t->train, &o, err);
    if (rc != OK)
        return rc;
    t->shots = n;
    unsigned char *seen = malloc(t->train->size);
    uint32_t *draws = size_mul(&room, t->size, n * sizeof(*draws)) ? malloc(room) : NULL;
    if (!seen || !draws)
        rc = err_set(err, ERR_NOMEM, "task: out of memory");
    twister_seed(&random, SEED);
    for (size_t i = 0; rc == OK && i < t->size; i++)
        rc = shots_draw(draws + i * n, t, i, &random, seen, err);
    free(seen);
    t->draws = draws; /* from now on items have their examples */
    return rc;
}

int task_shots_put(struct task *t, size_t i, struct err *err)
{
    int rc = OK;
    for (size_t k = 0; rc == OK && k < t->shots; k++) {
        struct task_item item;
        rc = task_item(&item, t->train, t->draws[i * t->shots + k], err);
        if (rc == OK) {
            task_put(&t->whole, item.prompt);
            rc = shots_answer(&t->whole, t->train, &item, err);
            task_put(&t->whole, "\n\n");
        }
    }
    task_put(&t->whole, t->item.prompt);
    t->item.prompt = t->whole.p;
    return rc;
}
