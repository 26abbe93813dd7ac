/* eval_journal_internal.h - the lines of a journal (eval_journal_file.c), of which eval_journal.c
 * makes answers. */
#ifndef TOOLS_LAB_EVAL_EVAL_JOURNAL_INTERNAL_H
#define TOOLS_LAB_EVAL_EVAL_JOURNAL_INTERNAL_H

#include <stdio.h>

#include "tools/lab/eval/eval_journal.h"

struct eval_journal {
    const char *path; /* of the file that is read or written; borrowed */
    FILE *f;
    size_t line;        /* number of the line read last */
    json_t *json;       /* that line */
    json_t *settings;   /* of this run; its `on` is of the latest line about a machine */
    json_t *lines;      /* by key; `where` of each is its place for messages */
    const json_t *read; /* the one that is taken apart */
};

/* Write an object as one line, whole or not at all. Takes over the reference to `object`, which may
 * be NULL. */
int eval_journal_append(struct eval_journal *j, json_t *object, struct err *err);
/* Let j->read be the line with this key: false if there is none. */
bool eval_journal_find(struct eval_journal *j, const struct eval_journal_key *key, bool threshold);

#endif
