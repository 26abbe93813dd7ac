/* eval_print.h - shows results of `mizzle eval` as JSON, CSV and a table. */
#ifndef TOOLS_LAB_EVAL_EVAL_PRINT_H
#define TOOLS_LAB_EVAL_EVAL_PRINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "tools/lab/eval/eval_origin.h"
#include "tools/lab/eval/eval_result.h"

struct err;

struct eval_about { /* what all results of a run share */
    const char *task;
    const char *clock; /* "real" or "virtual" */
    struct eval_origin origin;
    const char *seed;
    size_t parallel; /* answers in flight; 0: several processes had other numbers */
};

/* Print one result as a line of JSON. ERR_NOMEM. */
int eval_print_json(const struct eval_about *about, const struct eval_result *r, struct err *err);
/* Print results as a table, those with `shown`. */
void eval_print_table(FILE *to, const struct eval_about *about, const struct eval_result *r,
                      const bool *shown, size_t n);
/* Print them with the columns of the paper's Table 1 (paper_table.h). */
void eval_print_paper(FILE *to, const struct eval_result *r, const bool *shown, size_t n);
/* Write the same results to a file of comma-separated values with one line of names, which are the
 * same for all options, so that tables can be joined; path "-" is stdout. ERR_IO, ERR_NOMEM. */
int eval_print_csv(const char *path, const struct eval_about *about, const struct eval_result *r,
                   const bool *shown, size_t n, struct err *err);

#endif
