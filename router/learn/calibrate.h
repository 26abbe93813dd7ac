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
 * bracket the target. It ends in any case, after at most CALIBRATE_STEPS thresholds. */
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
};

/* Open a calibration. The source is copied; its arg is borrowed. Several targets of one policy may
 * be searched one after the other and share the answers. ERR_ARG if n is 0, ERR_NOMEM. */
int calibrate_open(struct calibration **out, const struct calibrate_source *source,
                   struct err *err);
void calibrate_close(struct calibration *c); /* NULL is fine */

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

#endif
