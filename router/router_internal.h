/* router_internal.h - a router at work, for router.c, router_look.c and router_meta.c. */
#ifndef ROUTER_ROUTER_INTERNAL_H
#define ROUTER_ROUTER_INTERNAL_H

#include "kernels/panels.h"
#include "router/router.h"

struct deep;
struct weights;

struct router {
    const struct kernels *k;
    struct pool *pool;                                              /* borrowed, or NULL */
    float (*on_score)(void *arg, const struct mizzle_state *state); /* NULL: what follows */
    void *arg;
    size_t dim, width; /* width: units of all members */
    size_t extra;      /* of dim: inputs besides the hidden state */
    size_t room, from; /* the scratch: of the last layer; where copied inputs begin */
    size_t members;
    bool gain;
    struct deep *deep; /* the layers before the last one, or NULL: these: */
    struct panels w1;  /* [width][dim] */
    /* [members * PANEL][width / members]: a panel for each member, with a row for each output, and
     * of a gain router a third one for router_parts: P(spoils) less P(mends). */
    struct panels w2;
    float *b1;                    /* [width] */
    float b2[2 * ROUTER_MEMBERS]; /* [members][outputs] */
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
/* Pack the last layer w2[members][outputs][width / members], turned around if its values are high
 * where a token is critical. False: out of memory. */
bool router_pack_last(struct router *r, const float *w2, bool high);
/* router_form.c: read rows and columns of a matrix whose shape determines those of others.
 * ERR_FORMAT. */
int router_shape(size_t *rows, size_t *cols, const struct weights *w, const char *name,
                 struct err *err);
/* router_look.c: read the layers of a deep form. */
int router_deepen(struct router *r, const struct router_form *f, struct err *err);

/* router_meta.c: read the metadata of a form. ERR_FORMAT names the entry. */
int router_meta_read(struct router_form *f, const struct weights *w, const char *path,
                     struct err *err);
/* True if the metadata has this text. */
bool router_meta_says(const struct weights *w, const char *key, const char *text);

#endif
