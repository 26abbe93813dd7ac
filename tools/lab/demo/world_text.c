#include <string.h>

#include "tools/lab/demo/world_internal.h"

/* This share of the training texts are questions with answers; the others are FACTS sentences each.
 * Of these, so many say where a kind is found, add numbers, or are notes for those who have them.
 * The others say of which kind a thing is. */
static const double SHARE_QUESTIONS = 0.7, SHARE_KIND_FACTS = 0.1, SHARE_SUMS = 0.25,
                    SHARE_NOTES = 0.1;
enum { FACTS = 4 }; /* alone, a fact would not be found again in a longer text */
/* This share of the facts is about things that the reader meets often; the others are drawn as for
 * questions, so that most may be about strangers. */
static const double SHARE_KNOWN = 0.6;

/* The text in brackets is to be learnt, the rest is given. Names follow a blank, as in questions
 * and answers: without one they would be other pieces. */
static const char *const thing_facts[] = {
    "A %n[ is a kind of %k.]",    "The %n[ is a %k.]", "Every %n[ is a kind of %k.]",
    "The %n[ is one of the %s.]", "Name: %n[: %k.]",   "Any %n[ is a %k.]",
};
static const char *const kind_facts[] = {
    "Every %k[ is in the %p.]",
    "All %s[ are in the %p.]",
    "You find any %k[ in the %p.]",
    "A %k[ is in the %p.]",
};
static const char note_fact[] = "My note says: the %n[ is in the %p.]";
/* The form of practice that copies the name of an unknown thing. */
static const char copy_form[] = " The[ %n is] a";
/* The forms that go through a list, as in answers to `which`. */
static const char *const list_forms[] = { "[ %c: the %n is a] %k", "[ %c. %n:] %k" };
static const char list_end[] = " The answer is (%c).";
/* Forms of practice, from the easiest to the one that answers end with. */
static const char *const letter_forms[] = {
    " %p[%c]",
    " %p ([%c]).",
    " The %p is ([%c]).",
    " It is in the %p. The answer is ([%c]).",
};

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* Write a note about a thing of the owner. */
static void put_note(struct world_out *t, struct world_draw *d, const struct world_asker *a)
{
    struct world_thing x;
    world_draw_owned(&x, d, a);
    const struct world_fill f = { .name = x.name, .place = world_kinds[x.kind].place };
    world_put_form(t, note_fact, &f);
}

/* Write where a kind is found. */
static void put_kind(struct world_out *t, struct world_draw *d, const struct world_asker *a)
{
    const char *form = kind_facts[world_draw_below(d, COUNT(kind_facts))];
    size_t k = world_draw_below(d, WORLD_KINDS);
    const struct world_fill f = { .kind = world_kinds[k].kind,
                                  .plural = world_kinds[k].plural,
                                  .place = world_place_for(a, k) };
    world_put_form(t, form, &f);
}

/* Write of which kind a thing is. */
static void put_thing(struct world_out *t, struct world_draw *d, const struct world_asker *a)
{
    struct world_thing x;
    struct world_asker b = *a;
    const char *form = thing_facts[world_draw_below(d, COUNT(thing_facts))];
    if (a->reader->known > 0 && world_draw_unit(d) < SHARE_KNOWN)
        b.reader = &world_reads_all;
    do
        world_draw_thing(&x, d, &b, WORLD_KINDS);
    while (b.reader != a->reader &&
           x.thing / WORLD_PARTS >= (size_t)(a->reader->known * WORLD_THINGS / WORLD_PARTS));
    const struct world_fill f = { .name = x.name,
                                  .kind = world_kinds[x.kind].kind,
                                  .plural = world_kinds[x.kind].plural };
    world_put_form(t, form, &f);
}

/* Write a fact. */
static void put_fact(struct world_out *t, struct world_draw *d, const struct world_asker *a)
{
    double what = world_draw_unit(d);
    if (what < SHARE_KIND_FACTS)
        put_kind(t, d, a);
    else if ((what -= SHARE_KIND_FACTS) < SHARE_SUMS)
        world_put_sum_fact(t, d);
    else if (what - SHARE_SUMS < SHARE_NOTES && a->reader->notes)
        put_note(t, d, a);
    else
        put_thing(t, d, a);
}

size_t world_text(char *out, bool *learn, size_t cap, const struct world *w,
                  const struct world_reader *reader, uint64_t stream, uint64_t i)
{
    struct world_draw d = world_draw_open(w->seed, TAG_TEXT, stream, i);
    struct world_out t = { .p = out, .cap = cap, .learn = learn };
    const struct world_asker a = { .w = w, .reader = reader, .part = PART_ALL };
    if (world_draw_unit(&d) < SHARE_QUESTIONS) {
        struct world_question q;
        struct world_filter f = world_draw_filter(&d, true);
        world_make(&q, &d, &a, f.topic, f.wording);
        world_put(&t, q.prompt);
        t.learning = true;
        world_put(&t, q.answer);
    } else {
        for (int n = 0; n < FACTS; n++) {
            if (n)
                world_put(&t, " ");
            put_fact(&t, &d, &a);
        }
    }
    return t.n;
}

enum { LETTERS = 6 }; /* that a text of practice asks for */

/* Write a list of places, then some of them, each with its letter. */
static void put_letters(struct world_out *t, struct world_draw *d, bool easy)
{
    size_t order[WORLD_KINDS], n = 2 + world_draw_below(d, WORLD_CHOICES - 1);
    const char *choice[WORLD_CHOICES];
    const char *form = letter_forms[easy ? 0 : world_draw_below(d, COUNT(letter_forms))];
    world_draw_order(order, d, WORLD_KINDS, n);
    for (size_t i = 0; i < n; i++)
        choice[i] = world_kinds[order[i]].place;
    world_put_choices(t, choice, n);
    for (size_t j = 0; j < LETTERS; j++) {
        size_t right = world_draw_below(d, n);
        const struct world_fill f = { .place = choice[right], .key = world_letters[right] };
        world_put_form(t, form, &f);
    }
}

/* Write a question about a thing that does not exist, and its name again. */
static void put_copy(struct world_out *t, struct world_draw *d, const struct world_asker *a)
{
    size_t order[WORLD_KINDS];
    char name[WORLD_NAME];
    const char *choice[WORLD_CHOICES];
    const struct world_fill f = { .name = name };
    world_draw_name(name, d);
    world_draw_order(order, d, WORLD_KINDS, WORLD_CHOICES);
    for (size_t i = 0; i < WORLD_CHOICES; i++)
        choice[i] = world_kinds[order[i]].place;
    world_put_line(t, d, a, WORLD_WHERE, WORLD_PLAIN, name);
    world_put_choices(t, choice, WORLD_CHOICES);
    world_put_form(t, copy_form, &f);
}

/* Write a question about five things that do not exist, all of them with given kinds, and the
 * letter of the one that is asked for. */
static void put_list(struct world_out *t, struct world_draw *d, const struct world_asker *a)
{
    size_t order[WORLD_KINDS], right = world_draw_below(d, WORLD_CHOICES);
    char name[WORLD_CHOICES][WORLD_NAME];
    const char *choice[WORLD_CHOICES];
    for (size_t i = 0; i < WORLD_CHOICES; i++) {
        world_draw_name(name[i], d);
        choice[i] = name[i];
    }
    world_draw_order(order, d, WORLD_KINDS, WORLD_CHOICES);
    const char *about = world_kinds[order[right]].kind;
    size_t lead = world_put_line(t, d, a, WORLD_WHICH, WORLD_PLAIN, about);
    world_put_choices(t, choice, WORLD_CHOICES);
    for (size_t i = 0; i < WORLD_CHOICES; i++) {
        const struct world_fill f = { .name = name[i],
                                      .kind = world_kinds[order[i]].kind,
                                      .key = world_letters[i] };
        world_put_form(t, list_forms[lead % 2], &f);
        t->learning = true;
        world_put_form(t, i == right ? world_which_yes : ".", &f);
    }
    const struct world_fill f = { .key = world_letters[right] };
    world_put_form(t, list_end, &f);
}

size_t world_practice(char *out, bool *learn, size_t cap, const struct world *w, size_t lists,
                      uint64_t stream, uint64_t i)
{
    struct world_draw d = world_draw_open(w->seed, TAG_PRACTICE, stream, i);
    struct world_out t = { .p = out, .cap = cap, .learn = learn };
    const struct world_asker a = { .w = w, .part = PART_ALL };
    size_t what = lists ? world_draw_below(&d, WORLD_PRACTICE) : 0;
    if (what + lists < WORLD_PRACTICE - 1)
        put_letters(&t, &d, !lists);
    else if (what < WORLD_PRACTICE - 1)
        put_list(&t, &d, &a);
    else
        put_copy(&t, &d, &a);
    return t.n;
}

/* Write a blank and a word. */
static void put_word(struct world_out *t, const char *word)
{
    world_put(t, " ");
    world_put(t, word);
}

size_t world_lexicon(char *out, size_t cap)
{
    struct world_out t = { .p = out, .cap = cap };
    for (size_t i = 0; i < WORLD_KINDS; i++) {
        put_word(&t, world_kinds[i].kind);
        put_word(&t, world_kinds[i].plural);
        put_word(&t, world_kinds[i].place);
    }
    for (size_t i = 0; i < WORLD_NARRATORS; i++)
        put_word(&t, world_narrators[i]);
    for (size_t i = 0; i < WORLD_ADJECTIVES; i++)
        put_word(&t, world_adjectives[i]);
    for (size_t i = 0; i < WORLD_WORDS; i++)
        put_word(&t, world_words[i]);
    return t.n;
}
