/* doubt.h - which figures of a benchmark cannot be right, or come from a machine that was busy. */
#ifndef TOOLS_LAB_BENCH_DOUBT_H
#define TOOLS_LAB_BENCH_DOUBT_H

#include <stddef.h>

/* Write why a figure is doubtful; out is "" if it is not.
 *
 * of_limit: the figure as a share of its limit, 0 if there is none. Nothing is faster than its
 * limit: above 1, the limit was measured too low, often because the machine was slower then.
 *
 * one, all: the same figure with one thread and with this number of threads, 0 if not measured.
 * Where all is less than 1.05 times one, the threads get what one gets: the other processors were
 * busy, or one thread already takes all that there is. */
enum { DOUBT_TEXT = 160 };
void doubt_text(char out[DOUBT_TEXT], double of_limit, size_t threads, double one, double all);

/* Add to out that a limit was measured twice and the smaller figure is less than 0.8 times the
 * larger one: the machine changed in between. */
void doubt_changed(char out[DOUBT_TEXT], double before, double after);

/* Add to out that threads ran for less than 0.9 of the time: other programs took the rest, or work
 * was too short or too serial for all of them, and they slept. on_cpu: the share. */
void doubt_busy(char out[DOUBT_TEXT], double on_cpu);

#endif
