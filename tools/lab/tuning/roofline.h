/* roofline.h - the picture of `bench kernels --plot`. */
#ifndef TOOLS_LAB_TUNING_ROOFLINE_H
#define TOOLS_LAB_TUNING_ROOFLINE_H

#include "tools/lab/bench/bench.h"
#include "tools/lab/machine/read_probe.h"

/* Write the rooflines of these points as SVG: a chart for each operation, whose points follow each
 * other, with the roofs of all levels and of each set's peak. The note counts points
 * above their roof, which have no share of it, because it was measured too low. ERR_IO, ERR_NOMEM;
 * ERR_ARG: no point. */
int roofline_plot(const char *path, const struct bench_point *points, size_t n,
                  const struct read_level levels[READ_LEVELS], struct err *err);

/* Return the speed of a point as a share of its roof, which is the lower one of two: its level's
 * and its set's peak. */
double roofline_share(const struct bench_point *p);

#endif
