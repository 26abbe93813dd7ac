/* measures.h - how well scores tell right tokens from wrong ones, and thresholds. */
#ifndef ROUTER_LEARN_MEASURES_H
#define ROUTER_LEARN_MEASURES_H

#include <stddef.h>
#include <stdint.h>

struct err;

enum { MEASURES_BINS = 10 }; /* bins of equal width; a score of 1 is in the last one */

struct measures {
    double auc; /* measures_auc */
    /* The same among pairs (wrong, right) that share their last two ids: what a score knows beyond
     * the place. NaN when there is no such pair. */
    double context_auc;
    double context_pairs; /* how many such pairs there are */
    /* Expected calibration error: the mean distance, over tokens, between the mean score and the
     * share of right tokens of a bin. */
    double ece;
    size_t wrong[MEASURES_BINS], right[MEASURES_BINS]; /* a histogram of scores */
};

/* Measure score[n] (0..1) against label[n]; before[n] holds the last two ids before each token.
 * ERR_NOMEM. */
int measures_of(struct measures *out, const float *score, const unsigned char *label,
                const uint32_t (*before)[2], size_t n, struct err *err);

/* Compute the area under the ROC curve: the chance that a right token scores above a wrong one
 * (equal scores count half), among *pairs pairs. before NULL: of all pairs, else of those that
 * share their last two ids. NaN when there is no pair. ERR_NOMEM. */
int measures_auc(double *auc, double *pairs, const float *score, const unsigned char *label,
                 const uint32_t (*before)[2], size_t n, struct err *err);

struct measures_cut {
    float threshold;
    double routed; /* share of all tokens that score below the threshold */
    double caught; /* share of the wrong tokens that do; 1 when none is wrong */
};

/* Find the least threshold that catches `cover` of the wrong tokens, or, if that would route more
 * than `most` of all tokens, the largest that does not. n >= 1. ERR_NOMEM. */
int measures_find_cut(struct measures_cut *out, const float *score, const unsigned char *label,
                      size_t n, double most, double cover, struct err *err);
#endif
