/* router_look.c - what can be asked of a router, and routers that read more than the hidden state:
 * mixed ones, those of several layers (deep.c), and a program's own function. */
#include <stdlib.h>
#include <string.h>

#include "kernels/kernels.h"
#include "kernels/sys/base.h"
#include "router/deep.h"
#include "router/mizzle.h"
#include "router/router_internal.h"

bool router_is_table(const struct router *r)
{
    return !r->dim;
}

size_t router_dim(const struct router *r)
{
    return r->dim;
}

const struct router_about *router_about(const struct router *r)
{
    return &r->about;
}

bool router_threshold(const struct router *r, float *threshold)
{
    if (r->has_threshold)
        *threshold = r->threshold;
    return r->has_threshold;
}

struct router_net router_net(const struct router *r)
{
    return (struct router_net){ r->width, r->members, r->gain, r->deep != NULL, r->high };
}

float router_parts(const struct router *r, const float *scratch, float *parts)
{
    float bias = 0, n = (float)r->members;
    for (size_t m = 0; m < r->members; m++) {
        panels_row(parts + m * r->w2.cols, &r->w2, m * PANEL + (r->gain ? 2 : 0));
        bias += r->gain ? r->b2[2 * m + 1] - r->b2[2 * m] : r->b2[m];
    }
    for (size_t i = 0; i < r->width; i++)
        parts[i] = parts[i] * scratch[i] / n;
    return bias / n;
}

int router_deepen(struct router *r, const struct router_form *f, struct err *err)
{
    int rc = deep_open(&r->deep, f->deep, f->softmax, r->k, err);
    if (rc != OK)
        return rc;
    struct deep_sizes in = deep_sizes(r->deep);
    r->extra = in.logits + in.token;
    r->dim = in.hidden + r->extra;
    r->width = in.width;
    const float *last = deep_output(r->deep, r->b2);
    r->b2[0] = -r->b2[0];
    return router_pack_last(r, last, true) ? OK : err_set(err, ERR_NOMEM, "router: out of memory");
}

int router_make_own(struct router **out,
                    float (*on_score)(void *arg, const struct mizzle_state *state), void *arg,
                    const struct kernels *k, struct err *err)
{
    struct router *r = *out = calloc(1, sizeof(*r));
    if (!r)
        return err_set(err, ERR_NOMEM, "on_score: out of memory");
    *r = (struct router){ .k = k, .on_score = on_score, .arg = arg, .members = 1 };
    r->dim = r->extra = 1;
    return OK;
}

size_t router_extra(const struct router *r)
{
    return r->extra;
}

size_t router_logits(const struct router *r)
{
    return r->deep ? deep_sizes(r->deep).logits : 0;
}

enum router_kind router_kind(const struct router *r)
{
    bool blind = r->dim == r->extra && !r->on_score && !r->deep;
    return router_is_table(r) ? ROUTER_TABLE : blind ? ROUTER_PLAIN : ROUTER_NETWORK;
}

const char *router_kind_name(enum router_kind k)
{
    static const char *const names[] = { "", "table", "network without hidden states", "network" };
    return names[k];
}

const char *router_head(size_t hidden, size_t besides, bool gain)
{
    if (gain)
        return hidden ? "gain" : "gain-none";
    return !hidden && !besides ? "context" : !hidden ? "combined" : besides ? "mix" : "mlp";
}

const char *router_name(const struct router *r)
{
    return r->deep       ? "deep"
           : r->on_score ? "on_score"
                         : router_head(r->dim - r->extra, r->extra, r->gain);
}

void router_look(const struct router *r, float *extra, const struct router_token *t)
{
    if (r->on_score) {
        const struct mizzle_state state = { sizeof(state),      t->text.ids, t->text.n, t->hidden,
                                            t->embedding->cols, t->logits,   t->size,   t->id };
        *extra = r->on_score(r->arg, &state);
        return;
    }
    if (!r->deep)
        features_of(extra, &t->text, t->logits, t->size, r, r->k);
    if (router_logits(r))
        deep_largest(extra, router_logits(r), t->logits, t->size);
    if (r->deep && deep_sizes(r->deep).token)
        panels_row(extra + router_logits(r), t->embedding, t->id);
}

const float *router_inputs(const struct router *r, const float *hidden, const float *extra,
                           float *scratch)
{
    size_t dim = r->dim - r->extra;
    if (!r->extra)
        return hidden;
    float *x = scratch + r->from;
    memmove(x, hidden, dim * sizeof(*x)); /* it may be there */
    memcpy(x + dim, extra, r->extra * sizeof(*x));
    return x;
}
