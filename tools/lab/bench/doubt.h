/* doubt.h - which figures of a benchmark cannot be right, or come from a machine that was busy. */
#ifndef TOOLS_LAB_BENCH_DOUBT_H
#define TOOLS_LAB_BENCH_DOUBT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Write why a figure is doubtful; out is "" if it is not.
 *
 * of_limit: the figure as a share of its limit, 0 if there is none. Nothing is faster than its
 * limit: above 1, the limit was measured too low, often because the machine was slower then.
 *
 * one, all: the same figure with one thread and with this number of threads, 0 if not measured.
 * Where all is less than 1.05 times one, the threads get what one gets: the other processors were
 * busy, or one thread already takes all that there is. */
enum { DOUBT_TEXT = 256 };
void doubt_text(char out[DOUBT_TEXT], double of_limit, size_t threads, double one, double all);

/* Add to out that a limit was measured twice and the smaller figure is less than 0.8 times the
 * larger one: the machine changed in between. */
void doubt_changed(char out[DOUBT_TEXT], double before, double after);

/* Add to out that the machine was busy, and return true, if threads ran for less than 0.9 of the
 * time: other programs took the rest, or work was too short or too serial for all of them, and they
 * slept; or if others took more than a quarter of a processor: they take from caches, memory and
 * clock as well. on_cpu: the share; others: as doubt_look found. */
bool doubt_busy(char out[DOUBT_TEXT], double on_cpu, double others);
/* Add to a doubt of a busy machine what it disturbs least: the figure of the best of many short
 * windows, and that by the time in which the threads ran. */
void doubt_best(char out[DOUBT_TEXT], double best, double by_cpu, const char *unit);

/* Return the seconds that the threads of this process have run so far. */
double doubt_ran(void);

/* The processors that other programs, and other machines on the same processors, kept busy between
 * the last two looks; -1: not known. The rest is what the last look saw. */
struct doubt_others {
    double took;
    double ran, all; /* seconds: of this process, of all */
    uint64_t at;     /* ns; 0: it was none */
};
/* Look once more. The system counts in steps of 10 ms, so within a quarter of a second of the last
 * look nothing is done. What is zeroed was not looked at yet. */
void doubt_look(struct doubt_others *o);
/* The file that counts, as Linux has it; tests put one of their own here. */
extern const char *doubt_stat;

#endif
