/* summary.h - what an answer took, in two lines for a person. */
#ifndef TOOLS_RUN_SUMMARY_H
#define TOOLS_RUN_SUMMARY_H

#include <stdbool.h>

struct mizzle_stats;

/* Print tokens and times to stderr and, if the cloud was wanted, the calls and what became of them.
 * replays: they come from a recording. */
void summary(const struct mizzle_stats *s, bool replays);

#endif
