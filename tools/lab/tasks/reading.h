/* reading.h - words and sentences of a text in which an answer is looked for. */
#ifndef TOOLS_LAB_TASKS_READING_H
#define TOOLS_LAB_TASKS_READING_H

#include <stdbool.h>
#include <stddef.h>

/* What is read. Bytes of it are named by their index, which may be n: there is no letter. */
struct reading {
    const char *s; /* [n] */
    size_t n;
};

/* True when the character that byte i is a part of belongs to a word, and when one begins there. */
bool reading_letter(const struct reading *r, size_t i);
bool reading_begins(const struct reading *r, size_t i);
/* Return the end of the word at i, and the beginning of the first word from i on, or n. */
size_t reading_word_end(const struct reading *r, size_t i);
size_t reading_next(const struct reading *r, size_t i);
/* True when the word at i is one of the list, which has a blank before and after each. */
bool reading_is(const struct reading *r, size_t i, const char *list);
/* True when a sentence or a line ends at i. */
bool reading_stops(const struct reading *r, size_t i);
/* Return where the answer begins behind the noun that ends at i, or 0: "the answer is", "Answer:",
 * "the choice that fits is", but not "option B is". */
size_t reading_verb(const struct reading *r, size_t i);

#endif
