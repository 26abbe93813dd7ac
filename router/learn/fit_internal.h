/* fit_internal.h - what the heads of fit.c share: batches, Adam, and one interface.
 *
 * Matrices are kept as panels of 16 rows (kernels/panels.h), and so are all other parameters: a
 * vector is rounded up to a multiple of 16. Padding stays zero. */
#ifndef ROUTER_LEARN_FIT_INTERNAL_H
#define ROUTER_LEARN_FIT_INTERNAL_H

#include "kernels/kernels.h"
#include "router/learn/fit.h"

struct pool;
struct fit;

/* Keys of the kinds of random draws. */
enum fit_key {
    FIT_KEY_SPLIT = 1,
    FIT_KEY_INIT,
    FIT_KEY_ORDER,
    FIT_KEY_LABELS,
    FIT_KEY_RESAMPLE,
    FIT_KEY_FOLD
};

/* A head that is trained in batches. */
struct fit_ops {
    bool standardises;
    size_t least; /* samples in a batch that can be learnt from */
    float rate;   /* unless the options name another */
    /* Set width, room, nparams and form_width. */
    void (*size)(struct fit *t);
    /* Take the head's own arrays with fit_take. */
    void (*carve)(struct fit *t, size_t *at);
    void (*init)(struct fit *t);
    /* Fold `params` for forward without learning and for fold; may be NULL. */
    void (*prepare)(struct fit *t, const float *params);
    /* Compute loss and dz of the batch with the current parameters. */
    void (*forward)(struct fit *t);
    /* Make a step from dz, whose sum for each output is given. */
    void (*learn)(struct fit *t, const float sum[2]);
    /* Fill a form from `params`, for which prepare was called. */
    void (*fold)(struct router_form *f, const struct fit *t, const float *params);
};

extern const struct fit_ops fit_ops_mlp, fit_ops_linear, fit_ops_citer;

/* What head citer has beyond the other heads. Its parameters are w1 [panels][dim][16], w4' (second
 * layer, transposed) [panels][mid][16], gamma, beta, running mean and variance [room], w6 (last
 * layer) and b4 [mid16], b6 [16]; the numbers below are their offsets. */
struct fit_citer {
    size_t mid, mid16; /* outputs of the second layer, rounded up */
    size_t w4, gamma, beta, mean, var, w6, b4, b6;
    size_t step;
    float *u;                      /* [panels][batch][16] the second layer's input */
    float *q;                      /* [batch][room] its gradient over dz; before that, nothing */
    float *deviation;              /* [room] 1 / sqrt(variance + eps) of the batch */
    float *mask, *v;               /* [batch][mid16] dropout after the second layer; times w6 */
    float *t;                      /* [mid][batch] mask times dz */
    float *g4, *g6, *gb;           /* [mid][room] G; [mid16] gradients of w6 and b4 */
    float *scale, *shift, *w2, b2; /* [room] folded for what is not learnt from */
};

struct fit {
    const struct samples *s;
    const struct fit_options *o;
    const struct kernels *k;
    struct pool *pool;
    const struct fit_ops *ops;
    uint64_t seed;              /* of this member */
    size_t outs;                /* outputs: 2 of heads gain, else 1 */
    unsigned char *label;       /* [s->n] the samples', or shuffled; of heads gain enum fit_gains */
    size_t dim, width;          /* inputs, units of the first layer */
    size_t room, npanels;       /* the width rounded up to whole panels */
    size_t nparams, form_width; /* all parameters; the width of the saved form */
    uint32_t *times;            /* [s->n] how often each sample is drawn; NULL: once */
    size_t *train, *held;       /* indices of the samples of each part */
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
    const struct fit_adam *adam;
    struct fit_citer citer;
};

struct fit_adam {
    float rate, scale1, scale2;
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

/* Take count floats, rounded up to a cache line, from the arena; with arena NULL only count. */
float *fit_take(struct fit *t, size_t *at, size_t count);

/* Set dz of an output for sample b of the batch, the weighted cross-entropy, from its logit; and
 * the loss, to which the second output adds. */
void fit_judge(struct fit *t, size_t b, size_t out, float z);
/* Compute panels [first, last) of the product y[n][room] = x[n][ldx] w, w as panels of cols. */
void fit_product(const struct fit *t, float *y, const float *w, size_t cols, const float *x,
                 size_t ldx, size_t first, size_t last);
/* Compute panel p of a matrix's gradient, g[cols][room], from that panel of the output's gradient,
 * d[n][16], and the transposed input, x[cols][batch]. */
void fit_gradient(const struct fit *t, float *g, const float *d, const float *x, size_t cols,
                  size_t p);

/* Begin a step of Adam and return its factors. */
struct fit_adam fit_adam_next(struct fit *t);
/* Make the step for the 16 parameters from offset `at` on, with gradients g[16]. */
void fit_adam_step(struct fit *t, size_t at, const float *g, const struct fit_adam *a);
/* Make the step for panel p of the matrix at offset `at`, with the gradient g[cols][room]. */
void fit_adam_panel(struct fit *t, size_t at, const float *g, size_t cols, size_t p,
                    const struct fit_adam *a);

/* Count a table over the last two ids in the training part. */
int fit_contexts(struct router_form *out, const struct fit *t, struct err *err);

/* Make *with the samples of t->s whose inputs are those of head combined or, with the hidden
 * states, mix. Only x and dim are its own, which fit_inputs_close frees. The table of *table, which
 * is empty, is counted in the training part. ERR_NOMEM, errors of fit_contexts. */
int fit_inputs(struct samples *with, struct router_form *table, const struct fit *t, bool hidden,
               struct err *err);
void fit_inputs_close(struct samples *with);

/* ---- head citer: how its initial weights and its dropout are drawn; another implementation, such
 * as a test, can make the same draws ---- */

/* The layers that have something to draw. */
enum fit_citer_layer { FIT_CITER_FIRST, FIT_CITER_SECOND, FIT_CITER_LAST };

/* Return initial weight i of a layer with this many inputs, row-major, uniform in +-1 / sqrt(fan):
 * first w1 [w][h]; second w4 [h][w], then its bias [h]; last w6 [h], then its bias. */
float fit_citer_initial(uint64_t seed, enum fit_citer_layer layer, size_t fan, size_t i);

/* Return what dropout multiplies the output of a unit with: 0, or 1 / (1 - p) with p = 6554 /
 * 65536. step: batches learnt from before this one; sample: place in the batch. */
float fit_citer_dropout(uint64_t seed, enum fit_citer_layer layer, size_t step, size_t sample,
                        size_t unit);

#endif
