/* explain_look.c - evaluates the text once more and keeps what is seen: norms, attention, lens,
 * router. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/sys/os.h"
#include "kernels/sys/pool.h"
#include "model/model.h"
#include "model/text/tokenizer.h"
#include "router/policy.h"
#include "router/router.h"
#include "tools/cli/progress.h"
#include "tools/cli/setup.h"
#include "tools/lab/explain/explain.h"

enum { PIECE = 16 }; /* rows looked at in one pass */

struct looking {
    struct explain *x;
    const struct model_config *c;
    size_t at;                      /* position of the pass's first row */
    size_t pos;                     /* of the lens that is computed */
    size_t layer;                   /* of the attention that is computed */
    float *states;                  /* [PIECE][layers][hidden]: what each layer leaves */
    double *weights;                /* [threads][positions] */
    float *scratch, *parts, *extra; /* of the router */
};

static float look_norm(const float *x, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += (double)x[i] * (double)x[i];
    return (float)sqrt(sum);
}

/* Keep what a layer leaves, for the lens. */
static void look_state(struct looking *l, size_t row, size_t layer, const float *x, float norm)
{
    size_t hidden = l->c->hidden;
    l->x->layer[(l->at + row) * l->c->layers + layer].out = norm;
    memcpy(l->states + (row * l->c->layers + layer) * hidden, x, hidden * sizeof(*x));
}

/* Keep the norms of the stream and of what is added to it. */
static void look_see(void *arg, size_t layer, enum batch_value value, const float *x, size_t ld,
                     size_t cols, size_t n)
{
    struct looking *l = arg;
    if (value < STREAM)
        return;
    for (size_t t = 0; t < n; t++) {
        float norm = look_norm(x + t * ld, cols);
        struct explain_layer *to = &l->x->layer[(l->at + t) * l->c->layers + layer];
        if (value == STREAM && layer)
            look_state(l, t, layer - 1, x + t * ld, norm);
        if (value == STREAM && layer < l->c->layers)
            to->in = norm;
        else if (value == ADDED_ATTN)
            to->attention = norm;
        else if (value == STREAM_MIDDLE)
            to->middle = norm;
        else if (value == ADDED_FFN)
            to->mlp = norm;
    }
}

/* Keep the largest weights of a row, and the sum of the others. */
static void look_head(struct explain_head *h, const double *weights, size_t n)
{
    double rest = 0;
    for (size_t p = 0; p < n; p++) {
        size_t i = h->n;
        for (; i > 0 && weights[p] > (double)h->weight[i - 1]; i--)
            if (i < EXPLAIN_LOOKS) {
                h->weight[i] = h->weight[i - 1];
                h->pos[i] = h->pos[i - 1];
            }
        if (i < EXPLAIN_LOOKS) {
            h->weight[i] = (float)weights[p];
            h->pos[i] = (uint32_t)p;
            h->n += h->n < EXPLAIN_LOOKS;
        }
    }
    for (size_t p = 0; p < n; p++)
        if (p != h->pos[0] && (h->n < 2 || p != h->pos[1]) && (h->n < 3 || p != h->pos[2]))
            rest += weights[p];
    h->rest = (float)rest;
}

/* Thread function: compute the attention of the units (row, head) from first to last. */
static void look_attention(void *arg, size_t thread, size_t first, size_t last)
{
    const struct looking *l = arg;
    struct explain *x = l->x;
    double *weights = l->weights + thread * x->positions;
    for (size_t u = first; u < last; u++) {
        size_t row = u / l->c->heads, head = u % l->c->heads, pos = l->at + row;
        struct explain_head *h = &x->head[(pos * l->c->layers + l->layer) * l->c->heads + head];
        batch_attention(x->engine.batch, l->layer, head, row, weights);
        *h = (struct explain_head){ .n = 0 };
        look_head(h, weights, pos + 1);
        for (size_t p = 0; p <= pos; p++)
            h->span += x->tokens[p].in_span ? (float)weights[p] : 0;
        if (!explain_row(x, pos, l->layer, head))
            continue;
        float *to = x->rows + explain_row_at(x, pos, l->layer, head);
        for (size_t p = 0; p <= pos; p++)
            to[p] = (float)weights[p];
    }
}

static void look_op(void *arg, enum batch_op op, size_t layer, size_t n, bool ends)
{
    struct looking *l = arg;
    if (op != OP_ATTENTION || !ends)
        return;
    l->layer = layer;
    pool_for(l->x->engine.pool, n * l->c->heads, 1, look_attention, l);
}

/* Thread function: find the guesses of some of the layers of l->pos. l->layer is the first one of
 * the lens. */
static void look_lens(void *arg, size_t thread, size_t first, size_t last)
{
    const struct looking *l = arg;
    size_t size = tokenizer_size(l->x->engine.tokenizer);
    (void)thread;
    for (size_t i = first; i < last; i++) {
        size_t layer = l->layer + i;
        struct likeliest top[EXPLAIN_TOP] = { { 0, 0 } };
        likeliest_ids(top, EXPLAIN_TOP, batch_lens_at(l->x->engine.batch, i), size);
        memcpy(l->x->layer[l->pos * l->c->layers + layer].lens, top, EXPLAIN_LENS * sizeof(*top));
        if (layer + 1 == l->c->layers)
            memcpy(l->x->at[l->pos].top, top, sizeof(top));
    }
}

/* Keep the hidden units that add most to the router's sum, and those that take most from it. */
static void look_units(struct looking *l, struct explain_position *at)
{
    struct explain *x = l->x;
    size_t width = router_net(x->routing.router).width;
    double others = 0;
    x->bias = router_parts(x->routing.router, l->scratch, l->parts);
    for (size_t u = 0; u < width; u++) {
        float adds = l->parts[u];
        struct explain_unit *list = adds < 0 ? at->down : at->up;
        size_t *n = adds < 0 ? &at->ndown : &at->nup, i = *n;
        if (!(fabsf(adds) > 0))
            continue;
        others += (double)adds;
        for (; i > 0 && fabsf(adds) > fabsf(list[i - 1].adds); i--)
            if (i < EXPLAIN_UNITS)
                list[i] = list[i - 1];
        if (i < EXPLAIN_UNITS) {
            list[i] = (struct explain_unit){ (uint32_t)u, adds };
            *n += *n < EXPLAIN_UNITS;
        }
    }
    for (size_t i = 0; i < at->nup; i++)
        others -= (double)at->up[i].adds;
    for (size_t i = 0; i < at->ndown; i++)
        others -= (double)at->down[i].adds;
    at->others = (float)others;
}

/* Score the token after a position, as the decoding loop does. `last` is the lens of the last
 * layer, which is the logits. */
static void look_score(struct looking *l, size_t row, const float *last)
{
    struct explain *x = l->x;
    const struct routing *r = &x->routing;
    size_t pos = l->at + row;
    struct explain_position *at = &x->at[pos];
    at->score = NAN;
    if (policy_reads_network(r->how.policy)) {
        const struct tokenizer *tok = x->engine.tokenizer;
        const float *hidden = batch_hidden(x->engine.batch, row);
        const struct router_token t = { .text = { tok, x->ids, pos + 1, x->prompt },
                                        .logits = last,
                                        .hidden = hidden,
                                        .size = tokenizer_size(tok),
                                        .id = at->top[0].id,
                                        .embedding = &x->engine.model->embedding };
        if (router_extra(r->router))
            router_look(r->router, l->extra, &t);
        at->score = router_score(r->router, router_inputs(r->router, hidden, l->extra, l->scratch),
                                 l->scratch);
        look_units(l, at);
    } else if (policy_reads(r->how.policy) == READS_IDS &&
               (pos + 1 >= x->prompt || r->how.policy != POLICY_POSITION)) {
        const struct policy_text t = { x->ids,    pos + 1,  x->prompt,
                                       x->o.seed, r->place, x->engine.tokenizer,
                                       r->router };
        at->score = policy_score_ids(r->how.policy, &t);
    } else if (policy_reads_logits(r->how.policy)) {
        at->score = policy_score_logits(r->how.policy, last, tokenizer_size(x->engine.tokenizer),
                                        &x->engine.kernels);
    }
    at->threshold = r->how.threshold;
    at->routed = r->how.policy == POLICY_ALWAYS || at->score < at->threshold;
}

/* Look at a row of the latest pass: the lens of all layers, and the score. */
static int look_row(struct looking *l, size_t row, struct err *err)
{
    struct batch *b = l->x->engine.batch;
    const float *states = l->states + row * l->c->layers * l->c->hidden;
    int rc = OK;
    l->pos = l->at + row;
    for (size_t layer = 0, n; rc == OK && layer < l->c->layers; layer += n) {
        n = l->c->layers - layer < PIECE ? l->c->layers - layer : PIECE;
        l->layer = layer;
        rc = batch_lens(b, states + layer * l->c->hidden, l->c->hidden, n, err);
        if (rc == OK)
            pool_for(l->x->engine.pool, n, 1, look_lens, l);
        if (rc == OK && layer + n == l->c->layers)
            look_score(l, row, batch_lens_at(b, n - 1));
    }
    return rc;
}

static int look_all(struct looking *l, struct err *err)
{
    struct explain *x = l->x;
    int rc = OK;
    const struct batch_watch watch = { .op = look_op, .see = look_see, .arg = l };
    struct progress_count shown = { .what = "looking, tokens", .since = os_now_ns() };
    session_rewind(x->session, 0);
    batch_watch(x->engine.batch, &watch);
    for (size_t n; rc == OK && l->at < x->positions; l->at += n) {
        n = x->positions - l->at < PIECE ? x->positions - l->at : PIECE;
        rc = session_eval(x->session, x->ids + l->at, n, &interrupted, err);
        for (size_t row = 0; rc == OK && row < n; row++) {
            rc = interrupted ? err_set(err, ERR_STOP, "interrupted") : look_row(l, row, err);
            progress_counted(&shown, l->at + row, x->positions);
        }
    }
    batch_watch(x->engine.batch, NULL);
    progress_wipe(&shown);
    return rc;
}

int explain_look(struct explain *x, struct err *err)
{
    const struct model_config *c = &x->engine.model->config;
    const struct router *r = policy_reads_network(x->routing.how.policy) ? x->routing.router : NULL;
    struct looking l = { .x = x, .c = c };
    l.states = calloc(PIECE * c->layers * c->hidden, sizeof(*l.states));
    l.weights = calloc(pool_threads(x->engine.pool) * x->positions, sizeof(*l.weights));
    l.scratch = calloc(r ? router_scratch(r) : 1, sizeof(*l.scratch));
    l.parts = calloc(r ? router_net(r).width : 1, sizeof(*l.parts));
    l.extra = calloc(r ? router_extra(r) + 1 : 1, sizeof(*l.extra));
    int rc = l.states && l.weights && l.scratch && l.parts && l.extra
                 ? look_all(&l, err)
                 : err_set(err, ERR_NOMEM, "out of memory");
    free(l.states);
    free(l.weights);
    free(l.scratch);
    free(l.parts);
    free(l.extra);
    return rc;
}
