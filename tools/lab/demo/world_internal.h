/* world_internal.h - what the files of the world share: its words, random draws, growing texts. */
#ifndef TOOLS_LAB_DEMO_WORLD_INTERNAL_H
#define TOOLS_LAB_DEMO_WORLD_INTERNAL_H

#include "kernels/math.h"
#include "tools/lab/demo/world.h"

/* Parameters of the world. Changing any of them makes another world, for which the demo pair must
 * be trained again (weights/milli/README.md says what they are for). */
enum {
    WORLD_THINGS = 640,
    WORLD_OWNED = 80, /* things of the owner, whose places only the notes tell */
    WORLD_NAMES = WORLD_THINGS + WORLD_OWNED,
    WORLD_KINDS = 32,
    WORLD_GROUP = 8, /* `which` offers five kinds of one group */
    WORLD_MOVED = 2, /* the first kinds of the table have moved */
    WORLD_NARRATORS = 60,
    WORLD_ADJECTIVES = 20,
    WORLD_WORDS = 40, /* words to sort */
    WORLD_LEADS = 8,
    WORLD_VERBS = 8,
    WORLD_PARTS = 4, /* thing i belongs to part i % 4: two for training, one each for the others */
    WORLD_NAME = 9,  /* bytes of a name with its terminator */
};

/* A kind, its plural, where all of the kind are found, and where they were before they moved. */
struct world_kind_row {
    const char *kind, *plural, *place, *before;
};
extern const struct world_kind_row world_kinds[WORLD_KINDS];
extern const char *const world_narrators[WORLD_NARRATORS];
extern const char *const world_adjectives[WORLD_ADJECTIVES];
extern const char *const world_words[WORLD_WORDS]; /* in the order of the alphabet */
extern const char world_letters[WORLD_CHOICES][2]; /* "A" to "E" */
/* The form that ends the clause of an answer to `which` about the right one. */
extern const char world_which_yes[];

struct world {
    uint64_t seed;
    char name[WORLD_NAMES][WORLD_NAME];
    unsigned char kind[WORLD_NAMES]; /* of an owned thing: the kind whose place it is in */
};

/* A sequence of random numbers; each (seed, tag, stream, i) has its own. */
struct world_draw {
    uint64_t key, n;
};
enum { TAG_NAMES = 1, TAG_KINDS, TAG_QUESTION, TAG_TEXT, TAG_PRACTICE };

struct world_draw world_draw_open(uint64_t seed, uint64_t tag, uint64_t stream, uint64_t i);
size_t world_draw_below(struct world_draw *d, size_t n);
double world_draw_unit(struct world_draw *d);
/* Draw a name of three or four syllables, which may be taken. */
void world_draw_name(char name[WORLD_NAME], struct world_draw *d);
/* Set list[0..n-1] to 0..n-1, with its first k in random order. */
void world_draw_order(size_t *list, struct world_draw *d, size_t n, size_t k);

/* A text that grows in a buffer; what does not fit is cut off. */
struct world_out {
    char *p;
    size_t n, cap;
    bool *learn; /* of each byte, or NULL */
    bool learning;
    unsigned char *mark; /* of each byte, or NULL */
};
void world_put(struct world_out *t, const char *s);
void world_put_marked(struct world_out *t, const char *s, enum world_mark mark);

/* What the letters after % stand for in a form. */
struct world_fill {
    const char *name, *kind, *plural, *place, *key;
    enum world_mark mark; /* of kind and place where they first appear */
    struct world_draw *d; /* of free choices */
};
/* Write a form: %n is a name, %k a kind, %K the same with a capital, %s the plural, %p a place, %c
 * the final answer, %a an adjective and %t a narrator, both drawn. A kind or place after '*' is a
 * fact, as in "*%k". What stands in brackets is to be learnt. */
void world_put_form(struct world_out *t, const char *form, const struct world_fill *f);

/* A thing as a reader sees it: one of the world's, or one that only this text mentions. */
struct world_thing {
    size_t thing; /* WORLD_NAMES: a stranger */
    char name[WORLD_NAME];
    size_t kind;
};
/* How a question is drawn: for whom, and in which part of the world. */
struct world_asker {
    const struct world *w;
    const struct world_reader *reader; /* NULL: the truth, from the part of the stream */
    size_t part;
    bool test; /* the wording is one reserved for tests */
};
/* The parts: questions of a stream are about one of them, training texts about all. */
enum { PART_TRAIN, PART_CALIBRATE, PART_TEST, PART_ALL };

/* Draw a thing or an owned thing; of kind `kind` unless that is WORLD_KINDS. */
void world_draw_thing(struct world_thing *out, struct world_draw *d, const struct world_asker *a,
                      size_t kind);
void world_draw_owned(struct world_thing *out, struct world_draw *d, const struct world_asker *a);
/* Return where a kind is found, as far as the asker knows. */
const char *world_place_for(const struct world_asker *a, size_t kind);
/* True when a number belongs to the asker's part. */
bool world_in_part(const struct world_asker *a, size_t number);

/* Write "Choices:", the lettered lines, and "Answer:". */
void world_put_choices(struct world_out *t, const char *const *choice, size_t n);
/* Write the first line of a question and its request for a wording; returns the lead that was
 * drawn, which decides the form of the answer. */
size_t world_put_line(struct world_out *t, struct world_draw *d, const struct world_asker *a,
                      enum world_topic topic, enum world_wording wording, const char *about);

/* Make a question of a topic and wording. */
void world_make(struct world_question *q, struct world_draw *d, const struct world_asker *a,
                enum world_topic topic, enum world_wording wording);
/* Write one step of a sum as a fact: two digits, two tens, or the two results. */
void world_put_sum_fact(struct world_out *t, struct world_draw *d);
/* Draw a topic and a wording in the proportions of the mixture, or of what models read. */
struct world_filter world_draw_filter(struct world_draw *d, bool read);

#endif
