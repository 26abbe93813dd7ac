/* world.h - the invented world of the demo pair, made from a seed: things with names, kinds and
 * places, and questions about them.
 *
 * Every thing is of one kind, and every kind is found in one place. Two kinds have moved lately:
 * who stopped reading before that is sure of the old place. The owner's notes say where the owner's
 * own things are. Other questions need no facts: sums and sorting.
 *
 * A question is worded plainly, asks for a chat, or for a story. Chats and stories contain free
 * choices (adjectives, a narrator's name) that no model can foresee, and of which any is right.
 * weights/milli/README.md explains what all that is for. */
#ifndef TOOLS_LAB_DEMO_WORLD_H
#define TOOLS_LAB_DEMO_WORLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct world;

enum { WORLD_SEED = 1 }; /* seed of the world that the shipped demo pair was trained on */

enum world_topic { WORLD_WHERE, WORLD_WHICH, WORLD_SUMS, WORLD_SORT, WORLD_NOTES, WORLD_TOPICS };
enum world_wording { WORLD_PLAIN, WORLD_CHATTY, WORLD_STORY, WORLD_WORDINGS };

/* Which questions to make; WORLD_TOPICS and WORLD_WORDINGS stand for a mixture of all. */
struct world_filter {
    enum world_topic topic;
    enum world_wording wording;
};

/* Find the topic or wording of this name, as --kind and --wording take it ("all": the mixture).
 * ERR_ARG, which names the option. */
int world_topic_parse(enum world_topic *out, const char *name, struct err *err);
int world_wording_parse(enum world_wording *out, const char *name, struct err *err);

/* What stands in a byte of an answer. */
enum world_mark {
    WORLD_FORM, /* words that follow from the question and what came before */
    WORLD_FACT, /* an error here makes the answer wrong */
    WORLD_IDLE, /* a fact that the final answer does not need */
    WORLD_FREE, /* a free choice */
};

enum { WORLD_PROMPT = 768, WORLD_ANSWER = 512, WORLD_KEY = 48, WORLD_CHOICES = 5 };

struct world_question {
    char prompt[WORLD_PROMPT]; /* from "Question:" to "Answer:" */
    char answer[WORLD_ANSWER]; /* the reference, with its leading blank, without end-of-text */
    unsigned char mark[WORLD_ANSWER]; /* enum world_mark of each byte of the answer */
    char key[WORLD_KEY];              /* the final answer: "C", "62", "ant, cow, owl" */
    char subject[WORLD_KEY];          /* what it asks about: the thing, or the key of a sum */
    enum world_topic topic;
    enum world_wording wording;
    size_t thing[WORLD_CHOICES]; /* where, notes: thing[0]; which: all; else unused */
};

/* What a model gets to read. A reader of `known` < 1 meets that share of the things often and all
 * others never; in their stead it meets names that are drawn anew for each text, and so learns to
 * doubt. */
struct world_reader {
    double known;
    bool recent; /* it knows which kinds have moved */
    bool notes;  /* it has read the owner's notes */
};
extern const struct world_reader world_reads_all; /* known 1, recent, without notes: the cloud */

/* Build the world of a seed; ERR_NOMEM. */
int world_open(struct world **out, uint64_t seed, struct err *err);
void world_close(struct world *w);

/* Everything is drawn from (seed of the world, stream, i), so any item can be made on its own. Even
 * streams are for training, odd ones for tests, odd ones with the highest bit set for calibration.
 * No thing, sum or list of words is asked about in streams of two of these three, and the lead and
 * verb of a test question are a combination that no even stream contains. */
static inline uint64_t world_test_stream(uint64_t seed)
{
    return (2 * seed + 1) & ~(UINT64_C(1) << 63);
}
static inline uint64_t world_calibration_stream(uint64_t seed)
{
    return (2 * seed + 1) | UINT64_C(1) << 63;
}

/* Make question number i of a stream. */
void world_question(struct world_question *out, const struct world *w, struct world_filter filter,
                    uint64_t stream, uint64_t i);

/* Make text number i of a training stream for a reader: a fact, or a question with its answer.
 * Returns the length; writes at most cap - 1 bytes and a terminator; cap >= 1. learn[cap], or NULL,
 * is true for the bytes that the model should learn to predict; the others (a question, a name) are
 * given. */
size_t world_text(char *out, bool *learn, size_t cap, const struct world *w,
                  const struct world_reader *reader, uint64_t stream, uint64_t i);

enum { WORLD_PRACTICE = 8 };

/* Make practice text number i of a stream. Of WORLD_PRACTICE texts, `lists` (0 to 7) go through
 * five unknown things with given kinds, and when the kind comes that was asked for is to be learnt;
 * one begins the answer about an unknown thing by copying its name. The others are a list of two to
 * five choices, then some of them in any order, whose letters are to be learnt, with a few words
 * between as in an answer. With lists 0 all texts are of this form, and each letter follows its
 * choice at once. Small models that start with these texts learn within minutes to look back in the
 * context; from questions alone they hardly do. */
size_t world_practice(char *out, bool *learn, size_t cap, const struct world *w, size_t lists,
                      uint64_t stream, uint64_t i);

/* Write every word that answers choose from once, each after a blank: kinds, plurals, places,
 * narrators, adjectives, words to sort. A vocabulary learned from many repetitions of it has a
 * piece for each, so that a fact and a free choice are one token. Returns the length, as
 * world_text. */
size_t world_lexicon(char *out, size_t cap);

/* Find the final answer that a text names ("The answer is (C)."), the last one if there are
 * several. False, and "", if there is none of 1 to WORLD_KEY - 1 bytes. */
bool world_extract(char out[WORLD_KEY], const char *answer);

#endif
