/* samples.h - tokens to learn from: hidden states, and whether the local model's token was
 * right. */
#ifndef ROUTER_LEARN_SAMPLES_H
#define ROUTER_LEARN_SAMPLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "router/features.h"

struct err;
struct router;

struct samples { /* all zero with dim set is an empty one */
    size_t dim, n, room;
    float *x;                    /* [n][dim] hidden states */
    unsigned char *label;        /* [n] 1: the edge's token may stand; 0: it may not */
    uint32_t *group;             /* [n] hash of the subject; a subject is never split */
    uint32_t *text;              /* [n] number of the text */
    float (*features)[FEATURES]; /* [n] as features.h has them; the context's is 0 */
    uint32_t (*before)[2];       /* [n] the ids before the token: the one before the last, the last;
                                  * SAMPLES_NONE where the text has no such token */
};

#define SAMPLES_NONE UINT32_MAX

struct sample { /* one row of the above */
    const float *x;
    bool label;
    uint32_t group, text, before[2];
    const float *features; /* [FEATURE_CONTEXT]; NULL: all 0 */
};

/* Make room for n more samples, so that the arrays can be filled beyond s->n. ERR_NOMEM. */
int samples_reserve(struct samples *s, size_t n, struct err *err);
/* Append a sample; x is copied. ERR_NOMEM. */
int samples_add(struct samples *s, const struct sample *one, struct err *err);
void samples_close(struct samples *s);
/* Make *out, which is all zero, the sample of each text's first token, right if all of its samples
 * are. A text whose first token was left out is, too. ERR_NOMEM; *out is the caller's to close
 * then, too. */
int samples_of_texts(struct samples *out, const struct samples *s, struct err *err);

/* Return a router's score of sample i: a network reads x, which must have the router's dim, a table
 * the ids before. scratch: [router_scratch] floats. */
float samples_score_one(const struct samples *s, size_t i, const struct router *r, float *scratch);

/* Compute the area under the ROC curve: the chance that a right token scores above a wrong one
 * (equal scores count half). NaN when one kind is missing. */
int samples_auc(double *auc, const float *score, const unsigned char *label, size_t n,
                struct err *err);

struct samples_cut {
    float threshold;
    double routed; /* share of all tokens that score below the threshold */
    double caught; /* share of the wrong tokens that do; 1 when none is wrong */
};

/* Find the least threshold that catches `cover` of the wrong tokens, or, if that would route more
 * than `most` of all tokens, the largest that does not. n >= 1. */
int samples_calibrate(struct samples_cut *out, const float *score, const unsigned char *label,
                      size_t n, double most, double cover, struct err *err);
/* Measure what a given threshold does. */
void samples_measure(struct samples_cut *out, float threshold, const float *score,
                     const unsigned char *label, size_t n);

#endif
