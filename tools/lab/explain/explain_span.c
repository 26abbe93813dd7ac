/* explain_span.c - attention summed over a part of the text: which heads look at a name. */
#include <stdlib.h>
#include <string.h>

#include "kernels/sys/buf.h"
#include "model/model.h"
#include "model/text/tokenizer.h"
#include "tools/lab/explain/explain.h"

/* Mark the tokens that have a byte of [from, to) of the text. */
static void span_mark(struct explain *x, size_t from, size_t to)
{
    for (size_t p = 0, at = 0, n; p < x->positions && at < to; p++, at += n) {
        tokenizer_bytes(x->engine.tokenizer, x->ids[p], &n);
        x->tokens[p].in_span |= at + n > from && n;
    }
}

int explain_span(struct explain *x, struct err *err)
{
    struct buf text = { 0 };
    size_t all = strlen(x->o.span_of), n;
    bool found = false, fine = true;
    for (size_t p = 0; fine && p < x->positions; p++) {
        const char *s = tokenizer_bytes(x->engine.tokenizer, x->ids[p], &n);
        fine = buf_add(&text, s, n);
    }
    for (size_t at = 0; fine && all && at + all <= text.n; at++)
        if (memcmp(text.p + at, x->o.span_of, all) == 0) {
            found = true;
            span_mark(x, at, at + all);
        }
    buf_free(&text);
    if (!fine)
        return err_set(err, ERR_NOMEM, "out of memory");
    return found ? OK
                 : err_set(err, ERR_ARG, "--span-of: expected a part of the text, found '%s'",
                           x->o.span_of);
}

static int share_order(const void *a, const void *b)
{
    const struct explain_share *x = a, *y = b;
    if (x->share < y->share || x->share > y->share)
        return x->share < y->share ? 1 : -1;
    return x->layer != y->layer ? (x->layer > y->layer) - (x->layer < y->layer)
                                : (x->head > y->head) - (x->head < y->head);
}

struct explain_share *explain_shares(const struct explain *x, size_t pos)
{
    const struct model_config *c = &x->engine.model->config;
    size_t n = c->layers * c->heads;
    struct explain_share *list = calloc(n, sizeof(*list));
    for (size_t i = 0; list && i < n; i++) {
        list[i] = (struct explain_share){ .layer = i / c->heads, .head = i % c->heads };
        list[i].share = explain_head(x, pos, list[i].layer, list[i].head)->span;
    }
    if (list)
        qsort(list, n, sizeof(*list), share_order);
    return list;
}

double explain_even(const struct explain *x, size_t pos)
{
    size_t n = 0;
    for (size_t p = 0; p <= pos; p++)
        n += x->tokens[p].in_span;
    return (double)n / (double)(pos + 1);
}
