/* fit_internal.h - what the files of training share.
 *
 * Matrices are kept as panels of 16 rows (kernels/panels.h), and so are all other parameters: a
 * vector is rounded up to a multiple of 16. Padding stays zero. */
#ifndef ROUTER_LEARN_FIT_INTERNAL_H
#define ROUTER_LEARN_FIT_INTERNAL_H

#include "kernels/kernels.h"
#include "router/learn/fit.h"

struct pool;

/* Keys of the kinds of random draws. */
enum fit_key {
    FIT_KEY_SPLIT = 1,
    FIT_KEY_INIT,
    FIT_KEY_ORDER,
    FIT_KEY_LABELS,
    FIT_KEY_RESAMPLE,
    FIT_KEY_FOLD
};

struct fit {
    const struct samples *s;
    const struct fit_options *o;
    const struct kernels *k;
    struct pool *pool;
    uint64_t seed;        /* of this member */
    size_t outs;          /* outputs: 2 of heads gain, else 1 */
    unsigned char *label; /* [s->n] the samples', or shuffled; of heads gain enum fit_gains */
    size_t dim, width;    /* inputs, units of the first layer */
    size_t room, npanels; /* the width rounded up to whole panels */
    size_t nparams;       /* all parameters */
    uint32_t *times;      /* [s->n] how often each sample is drawn; NULL: once */
    size_t *train, *held; /* indices of the samples of each part */
    size_t ntrain, nheld;
    float wrong_weight;
    double decay1, decay2; /* beta ^ steps */

    float *arena;
    size_t arena_bytes;
    float *mean, *inv;         /* [dim] */
    float *now, *best, *m, *v; /* [nparams] */
    float *xb;                 /* [batch][dim] features */
    float *xt;                 /* [dim][batch] the same, transposed, if the batch is learnt from */
    float *h;                  /* [batch][room] first layer */
    float *dh;                 /* [panels][batch][16] its gradient, as panels */
    float *g1;                 /* [dim][room] gradient of the first matrix */
    float *dz, *loss;          /* [outs][batch], [batch] */
    size_t n;                  /* samples in the current batch */
    const size_t *index;       /* [n] their indices */
    bool learns;               /* the current batch is learnt from */
    float scale1, scale2;      /* of the current step */
};

/* Labels of heads gain: as elsewhere 0 is wrong, and what is not 0 may stand. */
enum fit_gains { FIT_MENDS, FIT_CHANGES_NOTHING, FIT_SPOILS };

/* fit_split.c: label the samples and split them; both parts need right and wrong tokens, or some
 * that mend and some that spoil. draws: from subjects drawn with replacement. ERR_ARG, ERR_NOMEM.
 */
int fit_split(struct fit *t, struct fit_report *report, bool draws, struct err *err);
void fit_split_close(struct fit *t); /* of what was never split: nothing */
/* Return how many tokens sample i stands for. */
size_t fit_stands_for(const struct fit *t, size_t i);

/* Shuffle the indices of the training samples as an epoch, counted from 1, begins. They ascend
 * before the first one, and each epoch shuffles the order of the one before. */
void fit_order(size_t *index, size_t n, uint64_t seed, size_t epoch);

/* fit_mlp.c: the network. Set width, room, npanels and nparams. */
void fit_mlp_size(struct fit *t);
/* Draw the initial parameters; t->now is all zero. */
void fit_mlp_init(struct fit *t);
/* Compute loss and dz of the batch with the current parameters. */
void fit_mlp_forward(struct fit *t);
/* Make a step of Adam from dz. */
void fit_mlp_learn(struct fit *t);
/* Fill a form from the best parameters. */
void fit_mlp_fold(struct router_form *f, const struct fit *t);

/* Count a table over the last two ids in the training part. */
int fit_contexts(struct router_form *out, const struct fit *t, struct err *err);

/* Make *with the samples of t->s whose inputs are those of head combined or, with the hidden
 * states, mix. Only x and dim are its own, which fit_inputs_close frees. The table of *table, which
 * is empty, is counted in the training part. ERR_NOMEM, errors of fit_contexts. */
int fit_inputs(struct samples *with, struct router_form *table, const struct fit *t, bool hidden,
               struct err *err);
void fit_inputs_close(struct samples *with);

#endif
