/* world.h - the invented world of the demo pair, made from a seed: things with names, kinds and
 * places.
 *
 * Every thing is of one kind, and every kind is found in one place. Questions ask where a thing is
 * found and offer five choices; an answer is one sentence of reasoning and the letter.
 * weights/milli/README.md explains what it is for. */
#ifndef TOOLS_DEMO_WORLD_H
#define TOOLS_DEMO_WORLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct world;

struct world_question {
    char prompt[640]; /* from "Question:" to "Answer:" */
    char answer[256]; /* the reference answer, with its leading blank, without end-of-text */
    char letter;      /* 'A' to 'E' */
    size_t thing, kind, place;
};

enum { WORLD_SEED = 1 }; /* seed of the world that the shipped demo pair was trained on */

/* Build the world of a seed; ERR_NOMEM. */
int world_open(struct world **out, uint64_t seed, struct err *err);
void world_close(struct world *w);
size_t world_things(const struct world *w);
const char *world_name(const struct world *w, size_t thing);
const char *world_kind(const struct world *w, size_t thing);
const char *world_place(const struct world *w, size_t thing);

/* Everything is drawn from (seed of the world, stream, i), so any item can be made on its own. Even
 * streams are for training, odd ones for tests: the wording of a test question is a combination
 * that no even stream contains. */
static inline uint64_t world_test_stream(uint64_t seed)
{
    return 2 * seed + 1;
}

/* Make question number i of a stream. */
void world_question(struct world_question *out, const struct world *w, uint64_t stream, uint64_t i);

/* Make training text number i of a stream: a fact, or a question with its answer. Things appear
 * with Zipf frequencies, in questions too; world_question draws them by its own rule. Returns the
 * length; writes at most cap - 1 bytes and a terminator; cap >= 1. learn[cap], or NULL, is true for
 * the bytes that the model should learn to predict; the others (a question, a name) are given. */
size_t world_text(char *out, bool *learn, size_t cap, const struct world *w, uint64_t stream,
                  uint64_t i);

/* Make practice text number i of a stream: a list of two to five choices, then some of them in any
 * order, whose letters are to be learnt. If easy, each letter follows its choice at once. Otherwise
 * a few words as in an answer may stand between, or the text practises beginning the answer about
 * an unknown thing by copying its name. Small models that start with these texts learn within
 * minutes to look back in the context; from questions alone they hardly do. */
size_t world_practice(char *out, bool *learn, size_t cap, const struct world *w, bool easy,
                      uint64_t stream, uint64_t i);

/* Return the letter that an answer names ("The answer is (C)."), the last one if there are several,
 * or 0. */
char world_extract(const char *answer);

#endif
