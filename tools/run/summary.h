/* summary.h - what an answer took, for a person. */
#ifndef TOOLS_RUN_SUMMARY_H
#define TOOLS_RUN_SUMMARY_H

#include <stdbool.h>

struct mizzle_stats;

/* Print tokens, their sources and speed to stderr, and the calls wherever one failed or a token is
 * a fallback. offline: there is no network. */
void summary(const struct mizzle_stats *s, bool offline);

#endif
