/* eval_journal.h - the answers of `mizzle eval` in a file of JSON lines, one for each answer, from
 * which an interrupted run continues.
 *
 * The first line has the settings of the run. A line for each threshold that was calibrated and for
 * each answer follows, in the order in which the run makes them, so a run that is repeated first
 * reads what it has written and then appends. */
#ifndef TOOLS_EVAL_EVAL_JOURNAL_H
#define TOOLS_EVAL_EVAL_JOURNAL_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "tools/eval/asking.h"

struct err;
struct eval_journal;

struct eval_journal_key { /* which answer it is */
    const char *policy;   /* label of the entry */
    double share;         /* the target; NaN: none */
    size_t item;          /* number of the item in the task; for a threshold, 0 */
};

/* Open or create a journal. settings is an object, which is borrowed. A last line that was not
 * finished is cut off. ERR_ARG if the file was written with other settings, which it names;
 * ERR_FORMAT, ERR_IO, ERR_NOMEM. */
int eval_journal_open(struct eval_journal **out, const char *path, const json_t *settings,
                      struct err *err);
void eval_journal_close(struct eval_journal *j); /* NULL is fine */

/* Read the next answer, if the file has one that was written before: *found. Its trace is valid
 * until the next call, and so are the counts of the limits; scores and text are not kept.
 * ERR_FORMAT when the line is another one. */
int eval_journal_read(struct eval_journal *j, const struct eval_journal_key *key, struct asked *out,
                      bool *found, struct err *err);
/* Append an answer. id is the item's. ERR_IO. */
int eval_journal_write(struct eval_journal *j, const struct eval_journal_key *key, const char *id,
                       const struct asked *one, struct err *err);

/* The same for a threshold. */
int eval_journal_read_threshold(struct eval_journal *j, const struct eval_journal_key *key,
                                float *threshold, bool *found, struct err *err);
int eval_journal_write_threshold(struct eval_journal *j, const struct eval_journal_key *key,
                                 float threshold, struct err *err);

#endif
