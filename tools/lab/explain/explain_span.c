/* explain_span.c - attention summed over a part of the text: which heads look at a name. */
#include <stdlib.h>
#include <string.h>

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
    size_t size = 0, all = strlen(x->o.span_of), n;
    bool found = false;
    for (size_t p = 0; p < x->positions; p++, size += n)
        tokenizer_bytes(x->engine.tokenizer, x->ids[p], &n);
    char *text = malloc(size + 1);
    if (!text)
        return err_set(err, ERR_NOMEM, "out of memory");
    size = 0;
    for (size_t p = 0; p < x->positions; p++, size += n) {
        const char *s = tokenizer_bytes(x->engine.tokenizer, x->ids[p], &n);
        if (n)
            memcpy(text + size, s, n);
    }
    for (size_t at = 0; all && at + all <= size; at++)
        if (memcmp(text + at, x->o.span_of, all) == 0) {
            found = true;
            span_mark(x, at, at + all);
        }
    free(text);
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
    const struct model_config *c = model_config(x->engine.model);
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
