/* eval_print.h - shows results of `mizzle eval`. */
#ifndef TOOLS_LAB_EVAL_EVAL_PRINT_H
#define TOOLS_LAB_EVAL_EVAL_PRINT_H

#include <stddef.h>
#include <stdio.h>

#include "tools/lab/eval/eval.h"
#include "tools/lab/eval/eval_result.h"

struct err;

/* Print one result as a line of JSON. ERR_NOMEM. */
int eval_print_json(const struct eval_options *o, const struct eval_result *r, struct err *err);
/* Print results as a table. With --as-paper it has the columns of Table 1 of She et al. (arXiv
 * 2504.07878): seconds are for 100 tokens, TBT is the small model's time by token that it wrote,
 * and the overall time is the sum of the small model's and the rest. In the paper's row of
 * threshold 0.60 the rest is not in the sum. */
void eval_print_table(FILE *to, const struct eval_options *o, const struct eval_result *r,
                      size_t n);

#endif
