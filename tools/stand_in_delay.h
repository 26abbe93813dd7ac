/* stand_in_delay.h - how long a reply is held back: the same for the same question, whatever the
 * order in which questions arrive. */
#ifndef TOOLS_STAND_IN_DELAY_H
#define TOOLS_STAND_IN_DELAY_H

#include <stddef.h>
#include <stdint.h>

struct stand_in_delay; /* any thread */

struct stand_in_delay *stand_in_delay_open(unsigned latency_ms, unsigned jitter_ms, uint64_t seed);
void stand_in_delay_close(struct stand_in_delay *d);

/* Microseconds for this prefix: uniform in latency +- jitter, never below 0, drawn from (seed,
 * prefix, how often this prefix was drawn before). */
uint64_t stand_in_delay_draw(struct stand_in_delay *d, const uint32_t *ids, size_t n);

#endif
