#include <stdlib.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "tools/lab/demo/world_internal.h"

enum { MIN_PIECES = 3, MAX_PIECES = 4 };

static const char consonants[] = "bdfghklmnprstvz", vowels[] = "aeiou";

const struct world_reader world_reads_all = { .known = 1, .recent = true };

struct world_draw world_draw_open(uint64_t seed, uint64_t tag, uint64_t stream, uint64_t i)
{
    return (struct world_draw){ rand_u64(rand_u64(rand_u64(seed, tag), stream), i), 0 };
}

size_t world_draw_below(struct world_draw *d, size_t n)
{
    return (size_t)rand_below(d->key, d->n++, n);
}

double world_draw_unit(struct world_draw *d)
{
    return rand_unit(d->key, d->n++);
}

void world_draw_order(size_t *list, struct world_draw *d, size_t n, size_t k)
{
    for (size_t i = 0; i < n; i++)
        list[i] = i;
    for (size_t i = 0; i < k; i++) {
        size_t j = i + world_draw_below(d, n - i), other = list[j];
        list[j] = list[i];
        list[i] = other;
    }
}

void world_draw_name(char name[WORLD_NAME], struct world_draw *d)
{
    size_t pieces = MIN_PIECES + world_draw_below(d, MAX_PIECES - MIN_PIECES + 1);
    for (size_t p = 0; p < pieces; p++) {
        name[2 * p] = consonants[world_draw_below(d, sizeof(consonants) - 1)];
        name[2 * p + 1] = vowels[world_draw_below(d, sizeof(vowels) - 1)];
    }
    name[2 * pieces] = 0;
}

/* True if the name contains no other word or name of the world, and none contains it. */
static bool name_is_free(const struct world *w, size_t thing, const char *name)
{
    for (size_t k = 0; k < WORLD_KINDS; k++)
        if (strstr(name, world_kinds[k].kind) || strstr(name, world_kinds[k].place) ||
            strstr(world_kinds[k].plural, name) || strstr(world_kinds[k].place, name))
            return false;
    for (size_t i = 0; i < thing; i++)
        if (strstr(name, w->name[i]) || strstr(w->name[i], name))
            return false;
    return true;
}

/* Draw names until each is free; the order of the draws makes them reproducible. */
static void make_names(struct world *w)
{
    struct world_draw d = world_draw_open(w->seed, TAG_NAMES, 0, 0);
    for (size_t i = 0; i < WORLD_NAMES; i++)
        do
            world_draw_name(w->name[i], &d);
        while (!name_is_free(w, i, w->name[i]));
}

int world_open(struct world **out, uint64_t seed, struct err *err)
{
    struct world *w = *out = calloc(1, sizeof(*w));
    if (!w)
        return err_set(err, ERR_NOMEM, "world: out of memory");
    w->seed = seed;
    make_names(w);
    /* In each part all kinds have equally many things, in random order. */
    struct world_draw d = world_draw_open(seed, TAG_KINDS, 0, 0);
    for (size_t i = 0; i < WORLD_THINGS; i++) {
        size_t n = i / WORLD_PARTS, j = world_draw_below(&d, n + 1) * WORLD_PARTS + i % WORLD_PARTS;
        w->kind[i] = w->kind[j];
        w->kind[j] = (unsigned char)(n % WORLD_KINDS);
    }
    for (size_t i = WORLD_THINGS; i < WORLD_NAMES; i++)
        w->kind[i] = (unsigned char)world_draw_below(&d, WORLD_KINDS);
    return OK;
}

void world_close(struct world *w)
{
    free(w);
}

bool world_in_part(const struct world_asker *a, size_t number)
{
    size_t part = number % WORLD_PARTS;
    return a->part == PART_ALL || (a->part == PART_TRAIN ? part < 2 : part == a->part + 1);
}

/* Make a thing that only this text mentions. */
static void world_stranger(struct world_thing *out, struct world_draw *d, size_t kind)
{
    out->thing = WORLD_NAMES;
    world_draw_name(out->name, d);
    out->kind = kind < WORLD_KINDS ? kind : world_draw_below(d, WORLD_KINDS);
}

/* Set *out to a thing of the world. */
static void world_known(struct world_thing *out, const struct world *w, size_t thing)
{
    out->thing = thing;
    memcpy(out->name, w->name[thing], sizeof(out->name));
    out->kind = w->kind[thing];
}

void world_draw_thing(struct world_thing *out, struct world_draw *d, const struct world_asker *a,
                      size_t kind)
{
    enum { TRIES = 1 << 14 }; /* more are needed only if a reader knows no thing of the kind */
    double known = a->reader ? a->reader->known : 1;
    size_t among = (size_t)(known * WORLD_THINGS / WORLD_PARTS) * WORLD_PARTS;
    if (world_draw_unit(d) < known && among)
        for (size_t i = 0; i < TRIES; i++) {
            size_t thing = world_draw_below(d, among);
            if (world_in_part(a, thing) && (kind == WORLD_KINDS || a->w->kind[thing] == kind)) {
                world_known(out, a->w, thing);
                return;
            }
        }
    world_stranger(out, d, kind);
}

void world_draw_owned(struct world_thing *out, struct world_draw *d, const struct world_asker *a)
{
    if (a->reader && !a->reader->notes) {
        world_stranger(out, d, WORLD_KINDS);
        return;
    }
    size_t thing;
    do
        thing = WORLD_THINGS + world_draw_below(d, WORLD_OWNED);
    while (!world_in_part(a, thing));
    world_known(out, a->w, thing);
}

const char *world_place_for(const struct world_asker *a, size_t kind)
{
    bool old = a->reader && !a->reader->recent && kind < WORLD_MOVED;
    return old ? world_kinds[kind].before : world_kinds[kind].place;
}

void world_put_marked(struct world_out *t, const char *s, enum world_mark mark)
{
    size_t n = strlen(s);
    if (n >= t->cap - t->n)
        n = t->cap - t->n - 1;
    memcpy(t->p + t->n, s, n);
    for (size_t i = 0; t->learn && i < n; i++)
        t->learn[t->n + i] = t->learning;
    for (size_t i = 0; t->mark && i < n; i++)
        t->mark[t->n + i] = (unsigned char)mark;
    t->n += n;
    t->p[t->n] = 0;
}

void world_put(struct world_out *t, const char *s)
{
    world_put_marked(t, s, WORLD_FORM);
}

/* Write what one letter after % stands for. */
static void put_filled(struct world_out *t, char what, const struct world_fill *f,
                       enum world_mark mark)
{
    switch (what) {
    case 'a':
        world_put_marked(t, world_adjectives[world_draw_below(f->d, WORLD_ADJECTIVES)], WORLD_FREE);
        return;
    case 't':
        world_put_marked(t, world_narrators[world_draw_below(f->d, WORLD_NARRATORS)], WORLD_FREE);
        return;
    default:
        world_put_marked(t,
                         what == 'n'   ? f->name
                         : what == 'k' ? f->kind
                         : what == 's' ? f->plural
                         : what == 'p' ? f->place
                                       : f->key,
                         mark);
    }
}

void world_put_form(struct world_out *t, const char *form, const struct world_fill *f)
{
    enum world_mark mark = WORLD_FORM;
    for (; *form; form++) {
        if (*form == '[' || *form == ']') {
            t->learning = *form == '[';
        } else if (*form == '*' || *form == '~') {
            mark = *form == '*' ? f->mark : WORLD_IDLE;
        } else if (*form == '%') {
            put_filled(t, *++form, f, mark);
            mark = WORLD_FORM;
        } else {
            world_put(t, (char[]){ *form, 0 });
        }
    }
}
