#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "kernels/math.h"
#include "tools/demo/world.h"

/* Parameters of the world. Changing any of them makes another world, for which the demo pair must
 * be trained again. */
enum { THINGS = 1000 };
enum {
    KINDS = 32,
    CHOICES = 5,
    LETTERS = 6,
    MIN_PIECES = 3,
    MAX_PIECES = 4,
    NAME_MAX_BYTES = 2 * MAX_PIECES + 1
};

/* The thing of rank r (from 0) has the frequency 1 / (r + ZIPF_SHIFT) ^ exponent; exponent 0 is
 * uniform. ZIPF_READ applies to training texts, ZIPF_ASKED to the questions of world_question. */
static const double ZIPF_READ = 1.0, ZIPF_ASKED = 0.0, ZIPF_SHIFT = 10;

/* Shares of the training texts: questions with answers, and sentences that say where a kind is
 * found. The others are facts about one thing. */
static const double SHARE_QUESTIONS = 0.3, SHARE_KIND_FACTS = 0.05;

/* Training uses all pairs of a lead and a verb except those where (lead + verb) % HELD_OUT is 0;
 * these are reserved for the tests. */
enum { HELD_OUT = 4 };

static const char consonants[] = "bdfghklmnprstvz", vowels[] = "aeiou";

/* Each kind, its plural, and the place where all of the kind are found. No kind begins with a
 * vowel, so that its article is "a"; no word contains another, so that a word can be searched
 * for. */
static const struct {
    const char *kind, *plural, *place;
} kinds[KINDS] = {
    { "flower", "flowers", "garden" },
    { "fish", "fish", "lake" },
    { "tool", "tools", "garage" },
    { "book", "books", "library" },
    { "tree", "trees", "forest" },
    { "spice", "spices", "kitchen" },
    { "horse", "horses", "stable" },
    { "cow", "cows", "barn" },
    { "coin", "coins", "bank" },
    { "candle", "candles", "church" },
    { "sword", "swords", "castle" },
    { "fruit", "fruits", "market" },
    { "pencil", "pencils", "school" },
    { "statue", "statues", "museum" },
    { "ship", "ships", "harbor" },
    { "bell", "bells", "tower" },
    { "wine", "wines", "cellar" },
    { "goat", "goats", "meadow" },
    { "frog", "frogs", "swamp" },
    { "snake", "snakes", "desert" },
    { "bat", "bats", "cave" },
    { "pill", "pills", "hospital" },
    { "machine", "machines", "factory" },
    { "costume", "costumes", "theater" },
    { "cake", "cakes", "bakery" },
    { "bench", "benches", "park" },
    { "parrot", "parrots", "jungle" },
    { "whale", "whales", "ocean" },
    { "duck", "ducks", "pond" },
    { "coat", "coats", "closet" },
    { "train", "trains", "station" },
    { "wolf", "wolves", "valley" },
};

/* A question is a lead, a verb, an article with the name of the thing, and a tail. */
static const char *const leads[] = {
    "Where would you", "Where could you",  "Where can you",   "Where might you",
    "Where will you",  "Where may people", "Where do people", "Where should one",
};
static const char *const verbs[] = {
    "find", "see", "look for", "come across", "discover", "spot", "search for", "notice",
};
static const char *const articles[] = { "a", "the", "any" };
static const char *const tails[] = { "?", " today?", " most likely?", " in this world?" };

/* Forms: %n is the name of the thing, %k its kind, %s the plural of the kind, %p the place, %c the
 * letter. The text in brackets is to be learnt, the rest is given. */
static const char *const thing_facts[] = {
    "A %n[ is a kind of %k.]",    "The %n[ is a kind of %k.]", "Every %n[ is a kind of %k.]",
    "The %n[ is one of the %s.]", "A %n[ is a %k.]",           "Any %n[ is a %k.]",
};
static const char *const kind_facts[] = {
    "Every %k[ is found in the %p.]",
    "All %s[ are found in the %p.]",
    "You find any %k[ in the %p.]",
    "A %k[ is found in the %p.]",
};
static const char answer_form[] =
    "[ A %n is a kind of %k, and every %k is found in the %p. The answer is (%c).]";
/* The form of practice that copies the name of an unknown thing. */
static const char copy_form[] = " A[ %n is] a";
/* Forms of practice, from the easiest to the one that answers end with. */
static const char *const letter_forms[] = {
    " %p[%c]",
    " %p ([%c]).",
    " The %p is ([%c]).",
    " Found in the %p. The answer is ([%c]).",
};

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

struct world {
    uint64_t seed;
    char name[THINGS][NAME_MAX_BYTES];
    unsigned char kind[THINGS];
    double read[THINGS], asked[THINGS]; /* cumulative frequencies, the last is 1 */
};

enum { TAG_NAMES = 1, TAG_KINDS, TAG_QUESTION, TAG_TEXT, TAG_PRACTICE };

/* A sequence of random numbers; each (seed, tag, stream, i) has its own. */
struct draw {
    uint64_t key, n;
};

/* Start the sequence of (seed, tag, stream, i). */
static struct draw draw_open(uint64_t seed, uint64_t tag, uint64_t stream, uint64_t i)
{
    return (struct draw){ rand_u64(rand_u64(rand_u64(seed, tag), stream), i), 0 };
}

static size_t draw_below(struct draw *d, size_t n)
{
    return (size_t)rand_below(d->key, d->n++, n);
}

/* Draw a rank by binary search in its cumulative frequencies. */
static size_t draw_rank(struct draw *d, const double cumulative[THINGS])
{
    double u = rand_unit(d->key, d->n++);
    size_t lo = 0, hi = THINGS - 1;
    while (lo < hi) {
        size_t mid = (lo + hi) / 2;
        if (u < cumulative[mid])
            hi = mid;
        else
            lo = mid + 1;
    }
    return lo;
}

/* Fill in the cumulative frequencies of an exponent. */
static void world_zipf(double cumulative[THINGS], double exponent)
{
    double sum = 0;
    for (size_t i = 0; i < THINGS; i++)
        cumulative[i] = sum += 1 / pow_f64((double)i + ZIPF_SHIFT, exponent);
    for (size_t i = 0; i < THINGS; i++)
        cumulative[i] /= sum;
    cumulative[THINGS - 1] = 1;
}

/* True if the name contains no other word or name of the world, and none contains it. */
static bool name_is_free(const struct world *w, size_t thing, const char *name)
{
    for (size_t k = 0; k < KINDS; k++)
        if (strstr(name, kinds[k].kind) || strstr(name, kinds[k].place) ||
            strstr(kinds[k].plural, name) || strstr(kinds[k].place, name))
            return false;
    for (size_t i = 0; i < thing; i++)
        if (strstr(name, w->name[i]) || strstr(w->name[i], name))
            return false;
    return true;
}

/* Draw a name of three or four syllables. */
static void draw_name(char name[NAME_MAX_BYTES], struct draw *d)
{
    size_t pieces = MIN_PIECES + draw_below(d, MAX_PIECES - MIN_PIECES + 1);
    for (size_t p = 0; p < pieces; p++) {
        name[2 * p] = consonants[draw_below(d, sizeof(consonants) - 1)];
        name[2 * p + 1] = vowels[draw_below(d, sizeof(vowels) - 1)];
    }
    name[2 * pieces] = 0;
}

/* Draw names until each is free; the order of the draws makes them reproducible. */
static void make_names(struct world *w)
{
    struct draw d = draw_open(w->seed, TAG_NAMES, 0, 0);
    for (size_t i = 0; i < THINGS; i++) {
        char *name = w->name[i];
        do
            draw_name(name, &d);
        while (!name_is_free(w, i, name));
    }
}

int world_open(struct world **out, uint64_t seed, struct err *err)
{
    struct world *w = *out = calloc(1, sizeof(*w));
    if (!w)
        return err_set(err, ERR_NOMEM, "world: out of memory");
    w->seed = seed;
    make_names(w);
    /* All kinds have equally many things, but for rounding, in random order. */
    struct draw d = draw_open(seed, TAG_KINDS, 0, 0);
    for (size_t i = 0; i < THINGS; i++) {
        size_t j = draw_below(&d, i + 1);
        w->kind[i] = w->kind[j];
        w->kind[j] = (unsigned char)(i % KINDS);
    }
    world_zipf(w->read, ZIPF_READ);
    world_zipf(w->asked, ZIPF_ASKED);
    return OK;
}

void world_close(struct world *w)
{
    free(w);
}

size_t world_things(const struct world *w)
{
    return COUNT(w->name);
}

const char *world_name(const struct world *w, size_t thing)
{
    return w->name[thing];
}

const char *world_kind(const struct world *w, size_t thing)
{
    return kinds[w->kind[thing]].kind;
}

const char *world_place(const struct world *w, size_t thing)
{
    return kinds[w->kind[thing]].place;
}

/* A text that grows in a buffer; what does not fit is cut off. */
struct text {
    char *p;
    size_t n, cap;
    bool *learn; /* of each byte, or NULL */
    bool learning;
};

/* Append s, and mark its bytes as to be learnt or given. */
static void world_put(struct text *t, const char *s)
{
    size_t n = strlen(s);
    if (n >= t->cap - t->n)
        n = t->cap - t->n - 1;
    memcpy(t->p + t->n, s, n);
    for (size_t i = 0; t->learn && i < n; i++)
        t->learn[t->n + i] = t->learning;
    t->n += n;
    t->p[t->n] = 0;
}

/* Write a form with its placeholders filled in. */
static void put_form(struct text *t, const char *form, const char *name, size_t kind, char letter)
{
    for (; *form; form++) {
        if (*form == '[' || *form == ']') {
            t->learning = *form == '[';
            continue;
        }
        char c[2] = { *form, 0 };
        const char *s = c;
        if (*form == '%') {
            form++;
            c[0] = letter;
            s = *form == 'n'   ? name
                : *form == 'k' ? kinds[kind].kind
                : *form == 's' ? kinds[kind].plural
                : *form == 'p' ? kinds[kind].place
                               : c;
        }
        world_put(t, s);
    }
}

/* Write the line of a question, with a lead and a verb that are reserved for tests or not. */
static void put_line(struct text *t, struct draw *d, const char *name, bool test)
{
    size_t lead, verb;
    do {
        lead = draw_below(d, COUNT(leads));
        verb = draw_below(d, COUNT(verbs));
    } while (((lead + verb) % HELD_OUT == 0) != test);
    world_put(t, "Question: ");
    world_put(t, leads[lead]);
    world_put(t, " ");
    world_put(t, verbs[verb]);
    world_put(t, " ");
    world_put(t, articles[draw_below(d, COUNT(articles))]);
    world_put(t, " ");
    world_put(t, name);
    world_put(t, tails[draw_below(d, COUNT(tails))]);
}

/* Set choice[0..CHOICES-1] to `place` and random other places, and return the index of `place`. */
static size_t draw_choices(size_t choice[KINDS], struct draw *d, size_t place)
{
    size_t right = draw_below(d, CHOICES);
    for (size_t i = 0; i < KINDS; i++)
        choice[i] = i;
    choice[place] = choice[0];
    choice[0] = place;
    for (size_t i = 1; i < CHOICES; i++) {
        size_t j = i + draw_below(d, KINDS - i), other = choice[j];
        choice[j] = choice[i];
        choice[i] = other;
    }
    choice[0] = choice[right];
    choice[right] = place;
    return right;
}

static void put_choices(struct text *t, const size_t choice[], size_t n)
{
    world_put(t, "Choices:\n");
    for (size_t i = 0; i < n; i++) {
        world_put(t, (char[]){ (char)('A' + i), '.', ' ', 0 });
        world_put(t, kinds[choice[i]].place);
        world_put(t, "\n");
    }
    world_put(t, "Answer:");
}

/* Make a question about a thing; `test` chooses the wording. */
static void make_question(struct world_question *q, const struct world *w, struct draw *d,
                          size_t thing, bool test)
{
    size_t choice[KINDS];
    q->thing = thing;
    q->kind = q->place = w->kind[thing];
    q->letter = (char)('A' + draw_choices(choice, d, q->place));
    struct text t = { q->prompt, 0, sizeof(q->prompt), NULL, false };
    put_line(&t, d, w->name[thing], test);
    world_put(&t, "\n");
    put_choices(&t, choice, CHOICES);
    t = (struct text){ q->answer, 0, sizeof(q->answer), NULL, false };
    put_form(&t, answer_form, w->name[thing], q->kind, q->letter);
}

void world_question(struct world_question *out, const struct world *w, uint64_t stream, uint64_t i)
{
    struct draw d = draw_open(w->seed, TAG_QUESTION, stream, i);
    size_t thing = draw_rank(&d, w->asked);
    make_question(out, w, &d, thing, stream & 1);
}

size_t world_text(char *out, bool *learn, size_t cap, const struct world *w, uint64_t stream,
                  uint64_t i)
{
    struct draw d = draw_open(w->seed, TAG_TEXT, stream, i);
    struct text t = { out, 0, cap, learn, false };
    double what = rand_unit(d.key, d.n++);
    size_t thing = draw_rank(&d, w->read);
    if (what < SHARE_QUESTIONS) {
        struct world_question q;
        make_question(&q, w, &d, thing, stream & 1);
        world_put(&t, q.prompt);
        t.learning = true;
        world_put(&t, q.answer);
    } else if (what < SHARE_QUESTIONS + SHARE_KIND_FACTS) {
        put_form(&t, kind_facts[draw_below(&d, COUNT(kind_facts))], "", draw_below(&d, KINDS), 0);
    } else {
        const char *form = thing_facts[draw_below(&d, COUNT(thing_facts))];
        put_form(&t, form, w->name[thing], w->kind[thing], 0);
    }
    return t.n;
}

/* Write a list of choices, then some of them, each with its letter. */
static void put_letters(struct text *t, struct draw *d, bool easy)
{
    size_t choice[KINDS], n = 2 + draw_below(d, CHOICES - 1);
    const char *form = letter_forms[easy ? 0 : draw_below(d, COUNT(letter_forms))];
    draw_choices(choice, d, draw_below(d, KINDS));
    put_choices(t, choice, n);
    for (size_t j = 0; j < LETTERS; j++) {
        size_t right = draw_below(d, n);
        put_form(t, form, "", choice[right], (char)('A' + right));
    }
}

/* Write a question about a thing that does not exist, and its name again. */
static void put_copy(struct text *t, struct draw *d)
{
    size_t choice[KINDS];
    char name[NAME_MAX_BYTES];
    draw_name(name, d);
    put_line(t, d, name, false);
    world_put(t, "\n");
    draw_choices(choice, d, draw_below(d, KINDS));
    put_choices(t, choice, CHOICES);
    put_form(t, copy_form, name, 0, 0);
}

size_t world_practice(char *out, bool *learn, size_t cap, const struct world *w, bool easy,
                      uint64_t stream, uint64_t i)
{
    struct draw d = draw_open(w->seed, TAG_PRACTICE, stream, i);
    struct text t = { out, 0, cap, learn, false };
    if (easy || draw_below(&d, 4))
        put_letters(&t, &d, easy);
    else
        put_copy(&t, &d);
    return t.n;
}

char world_extract(const char *answer)
{
    static const char before[] = "answer is (";
    char letter = 0;
    for (const char *p = answer; (p = strstr(p, before)) != NULL;) {
        p += sizeof(before) - 1;
        if (p[0] >= 'A' && p[0] < 'A' + CHOICES && p[1] == ')')
            letter = p[0];
    }
    return letter;
}
