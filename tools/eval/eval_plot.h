/* eval_plot.h - draws accuracy over the share of tokens from the cloud. */
#ifndef TOOLS_EVAL_EVAL_PLOT_H
#define TOOLS_EVAL_EVAL_PLOT_H

#include <stdbool.h>
#include <stddef.h>

#include "tools/eval/eval_result.h"

struct err;

/* Draw the results with `shown` as SVG (chart.h): a line for each entry that has a threshold, with
 * its 95 % intervals as a band, and a dashed line for each model alone; edge and cloud may be NULL.
 * path "-" is stdout. ERR_IO, ERR_NOMEM. */
int eval_plot(const char *path, const struct eval_result *r, const bool *shown, size_t n,
              const struct eval_result *edge, const struct eval_result *cloud, struct err *err);

#endif
