/* eval_journal_internal.h - a journal's lines (eval_journal_lines.c), of which eval_journal.c makes
 * answers. */
#ifndef TOOLS_EVAL_EVAL_JOURNAL_INTERNAL_H
#define TOOLS_EVAL_EVAL_JOURNAL_INTERNAL_H

#include <stdio.h>
#include <sys/types.h>

#include "tools/eval/eval_journal.h"
#include "tools/eval/eval_list.h"

/* A line after the first one. */
struct journal_entry {
    char policy[EVAL_LABEL];
    bool threshold; /* of this policy at this point, else an answer */
    bool missing;   /* the cloud failed to give tokens of it */
    size_t point, item;
    size_t file, line; /* where it is: number of the file and of the line in it, */
    off_t at;          /* which begins here */
};

struct eval_journal {
    const char *path; /* of the file read last or written; borrowed */
    FILE *f;
    struct journal_file {
        const char *path; /* borrowed */
        FILE *f;
    } * files;         /* [nfiles]: one, or the parts of a merge */
    json_t *beginning; /* the first line of the first file */
    size_t nfiles;
    struct journal_entry *entries; /* [n], sorted; of two with one key the last one counts */
    size_t n, room;
    size_t line;      /* number of the line read last */
    char *text;       /* of that line */
    size_t text_room; /* of text */
    json_t *json;     /* the line, parsed */
    struct asked_token *trace;
    size_t trace_room;
    struct caps caps; /* of the answer read last */
};

/* Write an object as one line, whole or not at all. Takes over the reference to `object`, which may
 * be NULL. */
int eval_journal_append(struct eval_journal *j, json_t *object, struct err *err);
/* Find the last entry with this key, and read its line. An answer that lacks tokens counts as none.
 */
int eval_journal_find(struct eval_journal *j, const struct eval_journal_key *key, bool threshold,
                      bool *found, struct err *err);

#endif
