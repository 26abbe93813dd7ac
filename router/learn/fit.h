/* fit.h - trains a router on collected samples.
 *
 * Source: CITER's recipe (arXiv 2502.01976, its training script): binary cross-entropy, Adam, 80/20
 * split, patience 5; without its traps: the split is by subject, not by token, and the best weights
 * are copied at the time when they are the best. Wrong tokens are rare: they weigh sqrt(rights /
 * wrongs) times as much as right ones.
 *
 * mlp: Linear, ReLU, Linear. Features are standardised once, with the mean and deviation of the
 * training part, which are folded into the first layer at the end. context: a table over the last
 * two ids, counted. combined: mlp on the features of features.h alone. mix: mlp
 * on the hidden state and these. Their table is counted as for context; a training sample is scored
 * by one that was counted without its subject, since otherwise the table would have seen the label.
 * query: mlp on one sample of each text, its first, which is right if all of them are; for the
 * policy of that name.
 *
 * gain: mix with two outputs, P(mends) and P(spoils) (router.h), on samples of labels gain; the
 * loss is the sum of both cross-entropies. gain-none: the same without the hidden state. A sample
 * where the models agree stands for SAMPLE_AGREED_FOR tokens, so it weighs as many, and all others
 * one: the outputs are chances, which can be subtracted. What mends counts as wrong, for the table
 * as well.
 *
 * Several members are one router. All have one held-out part, which no member learns from, and one
 * table, counted in the rest. Member m has the seed plus m: for its draw of the subjects, with
 * replacement, its initial weights and its order.
 *
 * The same samples, options and seed give the same bits on every machine, with any number of
 * threads and any exact kernel set. */
#ifndef ROUTER_LEARN_FIT_H
#define ROUTER_LEARN_FIT_H

#include "router/router.h"
#include "router/learn/measures.h"
#include "router/learn/samples.h"

struct pool;

enum fit_head { FIT_MLP, FIT_CONTEXT, FIT_COMBINED, FIT_MIX, FIT_QUERY, FIT_GAIN, FIT_GAIN_NONE };

#define FIT_RECALL_AT 0.065 /* the share of the tokens for which fit_report has a recall */

const char *fit_head_name(enum fit_head h);
/* Parse a name. False: there is no such head. */
bool fit_head_parse(enum fit_head *out, const char *name);
/* True for heads gain and gain-none, which learn from samples of labels gain alone. */
bool fit_head_gains(enum fit_head h);

struct fit_epoch {
    size_t epoch; /* counted from 1 */
    double loss, held_loss;
    bool best; /* true if it is the best so far */
};

struct fit_options {
    enum fit_head head;
    size_t width;                   /* units of the first layer; 0: twice its inputs */
    size_t epochs, patience, batch; /* at least 1 */
    size_t members;                 /* 1 to ROUTER_MEMBERS; FIT_CONTEXT: 1 */
    /* Of one member: draw as many subjects as there are, with replacement, before the split. */
    bool resample;
    bool shuffle_labels; /* a control: nothing can be learnt, and the AUC must be near 0.5 */
    float most, cover;   /* passed to measures_find_cut */
    uint64_t seed;
    const _Atomic int *stop; /* nonzero: give up with ERR_STOP; may be NULL */
    /* Called after each epoch; may be NULL. */
    void (*progress)(const struct fit_epoch *e);
};

struct fit_report {
    size_t trained, held;               /* tokens of the training part and of the held-out part */
    size_t trained_wrong, held_wrong;   /* heads gain: that mend */
    size_t trained_spoils, held_spoils; /* heads gain: that spoil */
    /* Of the last member: epochs run, and the one whose weights are kept; context: 0. */
    size_t epochs, best;
    double loss, held_loss;   /* of that epoch, on either part; context: NaN */
    struct measures measures; /* of the finished router on the held-out part */
    /* Heads gain, else NaN: AUC of what mends where the models differ, and against what spoils;
     * share of what mends among the FIT_RECALL_AT of the tokens with the lowest scores. */
    double differ_auc, spoils_auc, recall;
    struct measures_cut cut; /* a threshold from the held-out part, and what it does there */
};

/* Set head mlp, one member, epochs 40, patience 5, batch 256, most 0.05, cover 0.995, seed 1. */
void fit_defaults(struct fit_options *o);

/* Train a router. *out is the caller's to close; it has no threshold yet and says
 * nothing about itself. ERR_ARG when the samples do not have right and wrong tokens in both parts,
 * or the router would be too large for a file; ERR_NOMEM, ERR_STOP. pool may be NULL. */
int fit_router(struct router_form *out, struct fit_report *report, const struct samples *s,
               const struct fit_options *o, const struct kernels *k, struct pool *pool,
               struct err *err);

/* True for samples of a subject that is kept out of training. */
bool fit_holds_out(uint64_t seed, uint32_t group);

#endif
