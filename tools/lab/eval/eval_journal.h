/* eval_journal.h - the answers of `mizzle eval` in a file of JSON lines, one for each answer, from
 * which an interrupted run continues.
 *
 * The first line has the settings of the run. A line for each threshold and for each answer
 * follows, in the order in which the run makes them. A run that is repeated reads what is there and
 * appends the rest, after a line about its machine. An answer that lacks tokens
 * ("missing", up to 0.5.1) is none. tools/lab/study/README.md has the fields. */
#ifndef TOOLS_LAB_EVAL_EVAL_JOURNAL_H
#define TOOLS_LAB_EVAL_EVAL_JOURNAL_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "tools/lab/eval/asking.h"
#include "tools/lab/eval/eval_result.h"

struct err;
struct eval_journal;

/* Open or create a journal. settings is an object, which is borrowed. A last line that was not
 * finished is cut off. ERR_ARG if the file was written with other settings, which it names;
 * ERR_FORMAT, ERR_IO, ERR_NOMEM. */
int eval_journal_open(struct eval_journal **out, const char *path, json_t *settings,
                      struct err *err);
void eval_journal_close(struct eval_journal *j); /* NULL is fine */

/* An answer is that of a result, by the label of its policy and its point, to an item. */

/* True if the file had this answer when it was opened. NULL, which is no journal, has none. */
bool eval_journal_has(const struct eval_journal *j, const struct eval_result *r, size_t item);
/* Read it, if it is there. Its id is valid as long as the journal; subject, trace, scores and text
 * are not kept, and older files have no hash. */
bool eval_journal_read(const struct eval_journal *j, const struct eval_result *r, size_t item,
                       struct asked *out);
/* Append an answer. ERR_IO. */
int eval_journal_write(struct eval_journal *j, const struct eval_result *r, size_t item,
                       const struct asked *one, struct err *err);

/* Set the result's threshold, if the file has it. */
bool eval_journal_read_threshold(const struct eval_journal *j, struct eval_result *r);
int eval_journal_write_threshold(struct eval_journal *j, const struct eval_result *r,
                                 struct err *err);

#endif
