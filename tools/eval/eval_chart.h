/* eval_chart.h - draws the results of `mizzle eval`: accuracy over the share of routed tokens. */
#ifndef TOOLS_EVAL_EVAL_CHART_H
#define TOOLS_EVAL_EVAL_CHART_H

#include <stdbool.h>
#include <stddef.h>

#include "tools/eval/eval_print.h"

struct err;

/* Write the results with `shown` as SVG to path: a line for each entry that has a threshold, with
 * the 95 % intervals as a band, or a point if it was measured once. Each model alone, shown or not,
 * is a dashed line. The title names the most accurate result. ERR_IO, ERR_NOMEM. */
int eval_chart(const char *path, const struct eval_about *about, const struct eval_result *r,
               const bool *shown, size_t n, struct err *err);

#endif
