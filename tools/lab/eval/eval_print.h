/* eval_print.h - shows results of `mizzle eval` as a table and as JSON. */
#ifndef TOOLS_LAB_EVAL_EVAL_PRINT_H
#define TOOLS_LAB_EVAL_EVAL_PRINT_H

#include <stddef.h>
#include <stdio.h>

#include "tools/lab/eval/eval.h"
#include "tools/lab/eval/eval_result.h"

struct err;

/* Print one result as a line of JSON. ERR_NOMEM. */
int eval_print_json(const struct eval_options *o, const struct eval_result *r, struct err *err);
/* Print results as a table. */
void eval_print_table(FILE *to, const struct eval_options *o, const struct eval_result *r,
                      size_t n);
/* Print them with the columns of the paper's Table 1 (paper_table.h). */
void eval_print_paper(FILE *to, const struct eval_result *r, size_t n);

#endif
