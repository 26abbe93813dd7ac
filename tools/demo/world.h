/* world.h - the invented world of the demo pair: things with names, kinds and places, from a seed.
 *
 * Every thing is of one kind, every kind is found in one place. Questions ask where a thing is
 * found, with five choices; an answer is one sentence of reason and the letter.
 * weights/milli/README.md tells what it is for. */
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

enum { WORLD_SEED = 1 }; /* of the world that the shipped demo pair knows */

int world_open(struct world **out, uint64_t seed, struct err *err);
void world_close(struct world *w);
size_t world_things(const struct world *w);
const char *world_name(const struct world *w, size_t thing);
const char *world_kind(const struct world *w, size_t thing);
const char *world_place(const struct world *w, size_t thing);

/* Everything is drawn from (seed of the world, stream, i): any item can be made on its own. Even
 * streams are for training, odd ones for tests: a test question's wording is a combination that no
 * even stream ever shows. */
static inline uint64_t world_test_stream(uint64_t seed)
{
    return 2 * seed + 1;
}

/* Question number i of a stream. */
void world_question(struct world_question *out, const struct world *w, uint64_t stream, uint64_t i);

/* Training text number i of a stream: a fact sentence, or a question with its answer; things are
 * met with Zipf frequencies, in questions too (world_question draws them by its own rule). Returns
 * the length; at most cap - 1 bytes are written, terminated; cap >= 1. learn (or NULL): [cap], true
 * for the bytes that a reader should learn to foresee; the others (a question, a name) are given.
 */
size_t world_text(char *out, bool *learn, size_t cap, const struct world *w, uint64_t stream,
                  uint64_t i);

/* Practice number i of a stream: a list of two to five choices and some of them in any order, whose
 * letters are to be learnt; easy: each letter follows its choice at once; else perhaps after a few
 * words as in an answer, or the practice is to begin the answer about an unknown thing by copying
 * its name. Small models that begin with these find the trick of looking back within minutes; from
 * questions alone they hardly do. */
size_t world_practice(char *out, bool *learn, size_t cap, const struct world *w, bool easy,
                      uint64_t stream, uint64_t i);

/* The letter an answer names ("The answer is (C)."; the last one, if there are several), or 0. */
char world_extract(const char *answer);

#endif
