/* chance.h - random events of calls: faults, and calls that fail. What happens to a question
 * depends on the seed, its prefix and how often that prefix was asked before, never on the order in
 * which questions arrive. */
#ifndef TOOLS_LAB_CLOCK_CHANCE_H
#define TOOLS_LAB_CLOCK_CHANCE_H

#include <stddef.h>
#include <stdint.h>

struct stand_in_chance; /* any thread may use it */

struct stand_in_chance *stand_in_chance_open(uint64_t seed);
void stand_in_chance_close(struct stand_in_chance *d);

/* Count one more attempt for ids[n], and return the key of everything that is drawn for it.
 * Attempts are counted for the latest quarter of a million prefixes. */
uint64_t stand_in_chance_key(struct stand_in_chance *d, const uint32_t *ids, size_t n);
/* Return a number in [0, 1), uniform, a function of key and purpose. */
double stand_in_chance_unit(uint64_t key, uint64_t purpose);

#endif
