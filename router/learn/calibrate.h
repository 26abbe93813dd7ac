/* calibrate.h - finds the threshold of a router by running the closed loop of edge and cloud.
 *
 * Cloud tokens become part of the text, so the scores depend on the threshold, and the share of
 * routed tokens cannot be read off the scores of the local model's own texts. Therefore everything
 * here is measured on answers that were written at the threshold in question.
 *
 * An answer depends on its item and on the threshold t alone, and only tokens with a score below t
 * are routed. Let L be the largest score below t and H the least score that is not: then the answer
 * is the same at every threshold in (L, H]. So an answer is written again only when the threshold
 * leaves this interval, and a search ends, exactly, when no threshold is left between the two that
 * bracket the target. It ends in any case, after at most CALIBRATE_STEPS thresholds.
 *
 * The bound on the risk. An answer is lost if the cloud alone gets it right and the router does
 * not. If items are drawn independently, the number of lost ones among those that the cloud gets
 * right is binomial, whatever the router is, and its rate has the exact upper bound of Clopper and
 * Pearson (Biometrika 26, 1934). Taking the best of many thresholds would void that bound. So the
 * thresholds are tested in an order that is fixed before any outcome is seen, from the safest down,
 * and the first that fails ends the test (fixed-sequence testing; Angelopoulos et al., "Learn then
 * Test", arXiv 2110.01052, 2021): a wrong threshold can pass only if the first wrong one in the
 * order does, so one test's error holds for all, with no correction, and even if the risk does not
 * fall with the threshold. The thresholds must not depend on the tested answers either. Hence they
 * are quantiles of the scores of every eighth answer, and those answers are not tested. */
#ifndef ROUTER_LEARN_CALIBRATE_H
#define ROUTER_LEARN_CALIBRATE_H

#include <stdbool.h>
#include <stddef.h>

struct err;
struct calibration; /* one text source and all answers written so far; for one thread */

/* A share within this distance of the target is near enough. */
#define CALIBRATE_TOLERANCE 0.0005

/* No search tries more thresholds; a typical one tries five. */
enum { CALIBRATE_STEPS = 112 };

struct calibrate_answer {
    size_t tokens, cloud; /* generated; of these, from the cloud */
    const float *scores;  /* [tokens], 0..1, or NaN where the policy has none; valid until the next
                           * call; may be NULL if there are no tokens */
    bool right;
    bool left_out; /* counts nowhere, such as an item that is longer than the context */
};

struct calibrate_source {
    /* Write answer i at this threshold, 0 to 1: tokens with a score below it are routed. The result
     * must depend on (i, threshold) alone. A returned error ends the calibration and is passed on.
     */
    int (*answer)(void *arg, size_t i, float threshold, struct calibrate_answer *out,
                  struct err *err);
    void *arg;
    size_t n; /* answers */
    /* Begin such an answer, which `answer` is called for later, in the order of the beginnings.
     * False: there is no room for one more, or *rc is an error. NULL: `answer` does it all. */
    bool (*begin)(void *arg, size_t i, float threshold, int *rc, struct err *err);
    /* NULL, or what `answer` also reads and its result depends on: the part, 0 to 1, of the tokens
     * scoring the threshold itself that are routed, drawn by seed and position. It breaks ties. */
    float *tie;
};

struct calibrate_result {
    float threshold; /* 0 to 1; never NaN */
    float tie;       /* 0 unless the source can break ties, and had to */
    bool reached;    /* the target is met; else these are the figures of the nearest attempt */
    size_t answers, right, tokens, cloud;
    double share; /* cloud / tokens; 0 if there is none */
    /* Standard error of that share on other items like these, each of which is one draw (ratio
     * estimator); 0 of fewer than two. */
    double share_error;
    /* By calibrate_risk alone; else 0. */
    size_t cloud_right, lost; /* tested answers that the cloud gets right; the lost ones of these */
    double bound;             /* upper bound on the rate of lost answers */
};

/* Open a calibration. The source is copied; its arg is borrowed. Several targets of one policy may
 * be searched one after the other and share the answers. ERR_ARG if n is 0, ERR_NOMEM. */
int calibrate_open(struct calibration **out, const struct calibrate_source *source,
                   struct err *err);
void calibrate_close(struct calibration *c); /* NULL is fine */

/* Return how many answers the source has written for this calibration. */
size_t calibrate_written(const struct calibration *c);

/* All functions below return OK, the source's errors or ERR_NOMEM. With OK, *out is set. */

/* Measure a threshold; reached is true. Threshold 0 is the local model alone, 1 routes every token
 * that does not score exactly 1. */
int calibrate_at(struct calibrate_result *out, struct calibration *c, float threshold,
                 struct err *err);

/* Find the threshold for a share: the part of the tokens, 0 to 1, from the cloud. The search steps
 * to the quantile of the scores of the latest text, and bisects once the target is bracketed. If no
 * threshold comes within CALIBRATE_TOLERANCE, because several tokens have one score, and the source
 * can break ties, a part of them is routed: the threshold is their score. Otherwise (a policy
 * without scores, few tokens) reached is false and the result is the nearest share below the
 * target; if even threshold 0 routes more, it is that one. */
int calibrate_find(struct calibrate_result *out, struct calibration *c, double target,
                   struct err *err);

/* Find the least share, in steps, at which with this confidence at most `risk` of the answers that
 * the cloud alone gets right are lost (both in (0, 1)). right[n] is 1 for items that the cloud
 * alone gets right. Figures are those of the tested answers. reached is false if the safest
 * threshold, which is the first in the order, already fails. */
int calibrate_risk(struct calibrate_result *out, struct calibration *c, const unsigned char *right,
                   double risk, double confidence, struct err *err);

/* Return how many answers, of those in calibrate_open, have to be right by the cloud so that the
 * bound can hold: with no loss at all among the seven in eight that are tested. It saturates at
 * SIZE_MAX / 2. risk and confidence in (0, 1). */
size_t calibrate_needed(double risk, double confidence);

#endif
