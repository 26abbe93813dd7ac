/* router_internal.h - a router at work, for router.c and router_look.c. */
#ifndef ROUTER_ROUTER_INTERNAL_H
#define ROUTER_ROUTER_INTERNAL_H

#include "kernels/panels.h"
#include "router/router.h"

struct deep;

struct router {
    const struct kernels *k;
    struct pool *pool;                                              /* borrowed, or NULL */
    float (*on_score)(void *arg, const struct mizzle_state *state); /* NULL: what follows */
    void *arg;
    size_t dim, width;
    struct deep *deep;    /* the layers before the last one, or NULL: these: */
    struct panels w1, w2; /* [width][dim], [1][width] */
    float *b1;            /* [width] */
    float b2;
    enum tap tap;
    bool has_threshold;
    float threshold;
    bool high;
    struct router_about about;
    struct router_context *contexts; /* [ncontexts] a table, alone or for the features; or NULL */
    size_t ncontexts;
};

/* router.c: pack a row-major matrix of bounded size. False: out of memory. */
bool router_pack(struct panels *out, const float *w, size_t rows, size_t cols,
                 const struct tune *tune);
/* Pack the last layer w2[r->width], turned around if its values are high where a token is critical.
 * False: out of memory. */
bool router_pack_last(struct router *r, const float *w2, bool high);
/* router_look.c: read the layers of a deep form. */
int router_deepen(struct router *r, const struct router_form *f, struct err *err);

#endif
