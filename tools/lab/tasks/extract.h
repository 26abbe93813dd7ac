/* extract.h - finds the final answer in a text that a model has written. No model is needed.
 *
 *   citer   CITER's own rule, as its published scores use it: route_extract_answer and
 *           extract_math_answer (aiming-lab/CITER, src/utils/io_format.py), with all that Python's
 *           regular expressions and Unicode make of them. It may name a letter that is no label.
 *   answer  What a reader takes for the answer: of the text before the model runs on to another
 *           question, the statement that comes last ("the answer is (B)", "Answer: b", \boxed{B},
 *           "B is the right choice"); without one, a text that begins with a label or is a choice,
 *           and then a label or choice that is the only one to be named and is not denied.
 *
 * Texts are terminated UTF-8; bytes that are not count as U+FFFD. Time is linear in their length.
 * The rules allocate nothing and cannot fail. */
#ifndef TOOLS_LAB_TASKS_EXTRACT_H
#define TOOLS_LAB_TASKS_EXTRACT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;

struct extract_choices {                        /* of one question */
    const char *const *labels, *const *choices; /* [n]; a label is one letter or digit */
    size_t n;
};

enum {
    EXTRACT_NUMBER = 64, /* bytes of a number, with its terminator; longer ones are cut */
    EXTRACT_NAMED = 256, /* choices of more bytes are never found by `answer` */
};

/* Return the label or letter that CITER takes for the answer, or 0: none. */
char extract_citer_label(const char *text, const struct extract_choices *c);
/* Return the beginning of what CITER takes for the answer to a mathematical question, *n bytes of
 * the text, or NULL: none. */
const char *extract_citer_number(size_t *n, const char *text);

/* Return the label of the choice that the text gives for an answer, or 0: none. */
char extract_label(const char *text, const struct extract_choices *c);
/* Write the number that the text gives for an answer: without separators, units and zeros at the
 * end of a fraction; thousands, millions and powers of ten are multiplied. False: there is none. */
bool extract_number(char out[EXTRACT_NUMBER], const char *text);

/* Return the part of a text that is an answer, *n bytes: behind the model's thoughts, if it has
 * thought aloud, and before it runs on to another question than one it begins with. */
const char *extract_segment(size_t *n, const char *text);

/* Apply both rules to the lines of a file, objects with `text` and, unless the answer is a number,
 * `labels` and `choices`, and print what each finds: a line {"citer":...,"answer":...} for each, or
 * a table. All lines are checked first. ERR_FORMAT names file, line and field; ERR_IO, ERR_NOMEM,
 * ERR_STOP. */
int extract_file(const char *path, bool json, struct err *err);

/* Return the lower case of a letter of the alphabets that reading.c lists; any other
 * character is itself, and so is U+0130, whose lower case is two. */
uint32_t extract_lower(uint32_t c);

#endif
