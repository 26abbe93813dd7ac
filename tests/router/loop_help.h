/* loop_help.h - what tests of the decoding loop open: the tiny model, and routers for it. */
#ifndef TESTS_ROUTER_LOOP_HELP_H
#define TESTS_ROUTER_LOOP_HELP_H

#include "model/model.h"
#include "model/sample.h"
#include "router/engine.h"
#include "router/mizzle.h"
#include "router/router.h"
#include "tests/support/test.h"

#include "tests/support/tiny.h"
#include "router/learn/safetensors_write.h"

/* Open the engine of the tiny model. Returns the model's path; the engine needs it no longer. */
static inline const char *tiny_engine(struct engine *e)
{
    const struct engine_options o = { .model = tiny_make(), .threads = 1 };
    CHECK(engine_open(e, &o, true, NULL) == OK);
    return o.model;
}

/* Make a router of the form, and close that. */
static inline struct router *form_made(struct router_form *form, const struct kernels *k)
{
    struct router *r;
    CHECK(router_make(&r, form, "form", k, NULL) == OK);
    router_form_close(form);
    return r;
}

/* Open a network that looks at one hidden value. */
static inline struct router *network_open(const struct engine *e)
{
    struct router_form form;
    size_t hidden = e->model->config.hidden;
    CHECK(router_form_open(&form, hidden, 2, NULL) == OK);
    form.w1[0] = 4;
    form.w1[hidden] = -4;
    form.w2[0] = 1;
    form.w2[1] = -1;
    return form_made(&form, &e->kernels);
}

/* Open a router that is a table: every last id has a score, and so has every fourth pair of ids. */
static inline struct router *table_open(const struct kernels *k)
{
    struct router_form form;
    size_t n = 0;
    CHECK(router_form_open_contexts(&form, 1 + TINY_VOCAB * (1 + TINY_VOCAB / 4), NULL) == OK);
    form.contexts[n++] = (struct router_context){ -1, -1, 0.5f };
    for (int before = -1; before < TINY_VOCAB; before += before < 0 ? 1 : 4)
        for (int last = 0; last < TINY_VOCAB; last++) {
            float score = (float)rand_unit(5, (uint64_t)(before * TINY_VOCAB + last));
            form.contexts[n++] = (struct router_context){ (float)before, (float)last, score };
        }
    CHECK(n == form.ncontexts);
    return form_made(&form, k);
}

/* Fill a form with random numbers; with features there is a table. */
static inline void form_random(struct router_form *f, uint64_t seed, size_t members, bool gain,
                               size_t dim, size_t units, bool features)
{
    static const struct router_context rows[] = { { -1, -1, 0.5f }, { -1, 3, 0.25f } };
    struct router_form table;
    CHECK(router_form_open(f, dim, members * units, NULL) == OK);
    f->members = members;
    f->gain = gain;
    for (size_t i = 0; i < f->width * dim; i++)
        f->w1[i] = (float)(rand_unit(seed, i) - 0.5);
    for (size_t i = 0; i < f->width; i++)
        f->b1[i] = (float)(rand_unit(seed + 1, i) - 0.5);
    for (size_t i = 0; i < f->width * (gain ? 2 : 1); i++)
        f->w2[i] = (float)(rand_unit(seed + 2, i) * 2 - 1);
    for (size_t i = 0; i < members * (gain ? 2 : 1); i++)
        f->b2[i] = (float)(rand_unit(seed + 3, i) - 0.5);
    if (!features)
        return;
    CHECK(router_form_open_contexts(&table, 2, NULL) == OK);
    memcpy(table.contexts, rows, sizeof(rows));
    f->contexts = table.contexts;
    f->ncontexts = 2;
}

/* Open a network of random weights that reads features, behind `dim` values of the hidden state;
 * several members weigh both, mends and spoils. */
static inline struct router *featured_open(const struct engine *e, size_t dim, size_t members)
{
    struct router_form form;
    form_random(&form, 21, members, members > 1, dim + FEATURES, 40 / members, true);
    return form_made(&form, &e->kernels);
}

/* What a class of R2R's reads, and how much of each. */
enum { DEEP_HIDDEN = 32, DEEP_LOGITS = 7 };
struct deep_class {
    bool hidden, logits, token;
};
static const char *const deep_meta[] = { "softmax", "1", "high", "critical", NULL };

/* Write a router of several layers with random weights that reads the hidden state, logits and the
 * embedding of a token, or some of that, all normalised, in R2R's names; blocks of 8, 12 and 12
 * numbers. Without the tensors whose names begin or end with `without`, if it is not NULL. */
static inline void deep_write(const char *path, struct deep_class of, const char *const *meta,
                              const char *without)
{
    static const size_t sizes[] = { 8, 12, 12 };
    struct {
        char name[64];
        size_t rows, cols;
    } list[64];
    struct tensor tensors[64];
    float *data = malloc(64 * 4096 * sizeof(*data));
    size_t n = 0, kept = 0;
#define DEEP(rows_, cols_, ...)                      \
    (list[n].rows = (rows_), list[n].cols = (cols_), \
     (void)snprintf(list[n++].name, sizeof(list[0].name), __VA_ARGS__))
#define DEEP_PAIR(rows_, cols_, ...)                               \
    (DEEP(rows_, cols_, __VA_ARGS__), DEEP(rows_, 0, __VA_ARGS__), \
     (void)strcat(list[n - 2].name, ".weight"), (void)strcat(list[n - 1].name, ".bias"))
    size_t reads = (size_t)of.hidden + of.logits + of.token;
    const char *alone = reads == 1 && of.hidden ? "hidden_states_projection" : NULL;
    if (of.hidden)
        DEEP_PAIR(DEEP_HIDDEN, 0, alone ? "layer_norm" : "layer_norm_hidden_states");
    if (of.token)
        DEEP_PAIR(DEEP_HIDDEN, 0, "layer_norm_token");
    if (of.logits)
        DEEP_PAIR(reads > 1 ? DEEP_HIDDEN : sizes[0], DEEP_LOGITS, "logits_projection");
    if (of.hidden)
        DEEP_PAIR(sizes[0], reads * DEEP_HIDDEN, "%s", alone ? alone : "combined_projection");
    DEEP_PAIR(sizes[0], sizes[0], "backbone.input_projection");
    for (size_t i = 0; i < 2; i++) {
        DEEP_PAIR(sizes[i], 0, "backbone.blocks.%zu.layer_norm", i);
        DEEP_PAIR(4 * sizes[i], sizes[i], "backbone.blocks.%zu.mlp.0", i);
        DEEP_PAIR(sizes[i + 1], 4 * sizes[i], "backbone.blocks.%zu.mlp.3", i);
        if (sizes[i] != sizes[i + 1])
            DEEP_PAIR(sizes[i + 1], sizes[i], "backbone.blocks.%zu.dim_change", i);
    }
    DEEP_PAIR(sizes[2], 0, "backbone.output_layer.0");
    DEEP_PAIR(1, sizes[2], "backbone.output_layer.1");
    CHECK(data);
    for (size_t i = 0; i < n; i++) {
        size_t at = strlen(list[i].name), count = list[i].rows * (list[i].cols ? list[i].cols : 1);
        if (without && at >= strlen(without) &&
            (!strncmp(list[i].name, without, strlen(without)) ||
             !strcmp(list[i].name + at - strlen(without), without)))
            continue;
        CHECK(count <= 4096);
        for (size_t k = 0; k < count; k++)
            data[4096 * i + k] = (float)(rand_unit(31 + i, k) * 2 - 1) * (list[i].cols ? 0.4f : 1);
        tensors[kept++] = (struct tensor){ list[i].name,         W_F32,
                                           list[i].cols ? 2 : 1, { list[i].rows, list[i].cols },
                                           data + 4096 * i,      count * sizeof(*data) };
    }
    CHECK(safetensors_write(path, tensors, kept, meta, NULL) == OK);
    free(data);
}

/* Open such a router for the tiny model. */
static inline struct router *deep_random(const struct engine *e)
{
    struct router *r;
    const char *path = in_scratch("deep");
    deep_write(path, (struct deep_class){ 1, 1, 1 }, deep_meta, NULL);
    CHECK(router_open(&r, path, &e->kernels, NULL) == OK);
    return r;
}

#endif
