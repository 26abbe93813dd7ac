/* edit_distance.h - how similar two words are, for "did you mean". */
#ifndef TOOLS_CLI_EDIT_DISTANCE_H
#define TOOLS_CLI_EDIT_DISTANCE_H

#include <stddef.h>

/* Return how many letters must be inserted, deleted or replaced to turn a into b (the Levenshtein
 * distance), or SIZE_MAX if either is longer than 32 bytes. */
size_t edit_distance(const char *a, const char *b);

#endif
