/* compare.h - whether the kernels of one measurement are faster than those of another. */
#ifndef TOOLS_LAB_TUNING_COMPARE_H
#define TOOLS_LAB_TUNING_COMPARE_H

#include <stdbool.h>
#include <stddef.h>

struct err;

/* A ratio of times, after / before, with its interval of 95 % or more; known: there were enough
 * rounds for one. */
struct compare_ratio {
    double ratio, low, high;
    bool known;
};

/* Compare rounds that took turns: before[i] and after[i] come from round i. The ratio is the median
 * of the n >= 1 ratios; the interval is that of the sign test, which takes six rounds at least and
 * assumes nothing about the distribution. False: out of memory. */
bool compare_rounds(struct compare_ratio *out, const double *before, const double *after, size_t n);

/* Print how the rows of two files of `bench kernels -o json` or `-o jsonl` compare, on stdout, as
 * text for a commit. A row that stands several times in a file is a round each time. FILE:SET is
 * the rows of one set, so that one set can be compared with another, also in the same file. Takes
 * time and memory in proportion to the files. ERR_IO, ERR_NOMEM; ERR_ARG: only one name has a set;
 * ERR_FORMAT: not such a file, measured on another processor, or no row in both. */
int compare_kernels(const char *before, const char *after, struct err *err);

#endif
