/* loop_help.h - what tests of the decoding loop open: the tiny model, and routers for it. */
#ifndef TESTS_ROUTER_LOOP_HELP_H
#define TESTS_ROUTER_LOOP_HELP_H

#include <stdio.h>

#include "kernels/math.h"
#include "kernels/sys/base.h"
#include "model/model.h"
#include "router/engine.h"
#include "router/mizzle.h"
#include "router/price.h"
#include "router/router.h"
#include "tests/support/test.h"
#include "tests/support/tiny.h"

/* Open the engine of the tiny model. Returns the model's path; the engine needs it no longer. */
static inline const char *tiny_engine(struct engine *e)
{
    const struct mizzle_options o = { .model = tiny_make(), .threads = 1 };
    CHECK(engine_open(e, &o, true, NULL) == OK);
    return o.model;
}

/* What a call costs policy price: less for a text that the cloud has begun to read. */
static const struct price prices = {
    .worth = 12, .call = 0.5, .up = 1, .cached = 0.25, .down = 2.5
};

/* Open a network that looks at one hidden value. */
static inline struct router *network_open(const struct engine *e)
{
    struct router_form form;
    struct router *r;
    size_t hidden = model_config(e->model)->hidden;
    CHECK(router_form_open(&form, hidden, 2, NULL) == OK);
    form.w1[0] = 4;
    form.w1[hidden] = -4;
    form.w2[0] = 1;
    form.w2[1] = -1;
    CHECK(router_make(&r, &form, "test", &e->kernels, NULL) == OK);
    router_form_close(&form);
    return r;
}

/* Open a router that is a table: every last id has a score, and so has every fourth pair of ids. */
static inline struct router *table_open(const struct kernels *k)
{
    struct router_form form;
    struct router *r;
    size_t n = 0;
    CHECK(router_form_open_contexts(&form, 1 + TINY_VOCAB * (1 + TINY_VOCAB / 4), NULL) == OK);
    form.contexts[n++] = (struct router_context){ -1, -1, 0.5f };
    for (int before = -1; before < TINY_VOCAB; before += before < 0 ? 1 : 4)
        for (int last = 0; last < TINY_VOCAB; last++) {
            float score = (float)rand_unit(5, (uint64_t)(before * TINY_VOCAB + last));
            form.contexts[n++] = (struct router_context){ (float)before, (float)last, score };
        }
    CHECK(n == form.ncontexts && router_make(&r, &form, "table", k, NULL) == OK);
    router_form_close(&form);
    return r;
}

/* Open a network of random weights that reads features, behind `dim` values of a hidden state. */
static inline struct router *featured_open(const struct engine *e, size_t dim)
{
    struct router_form form, contexts;
    struct router *r;
    CHECK(router_form_open(&form, dim + FEATURES, 40, NULL) == OK);
    CHECK(router_form_open_contexts(&contexts, 1, NULL) == OK);
    contexts.contexts[0] = (struct router_context){ -1, -1, 0.5f };
    form.contexts = contexts.contexts;
    form.ncontexts = 1;
    for (size_t i = 0; i < form.width * form.dim; i++)
        form.w1[i] = (float)rand_unit(21, i) - 0.5f;
    for (size_t i = 0; i < form.width; i++)
        form.w2[i] = (float)rand_unit(22, i) - 0.5f;
    CHECK(router_make(&r, &form, "network with features", &e->kernels, NULL) == OK);
    router_form_close(&form);
    return r;
}

#endif
