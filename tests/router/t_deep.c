/* Routers of several layers, made from a seed, with the formula in double beside them: in all of
 * R2R's classes; BF16 and Q8_0 have the same bits with all kernel sets; what is refused. That R2R's
 * own checkpoints give R2R's scores is for learn/t_import_router.sh. */
#include "kernels/sys/cpu.h"
#include "kernels/sys/pool.h"
#include "router/deep.h"
#include "tests/router/loop_help.h"
#include "tests/router/router_help.h"
#include "router/learn/form_save.h"
#include "weights/quant.h"

enum { HIDDEN = DEEP_HIDDEN, LOGITS = DEEP_LOGITS, ALL = 2 * HIDDEN + LOGITS };

static const char *path;
static struct kernels kernels;

/* ---- the formula, in double ---- */

static struct weights *w;

static const float *tensor(const char *name, size_t *n)
{
    const struct tensor *t = weights_find(w, name);
    CHECK(t && t->type == W_F32);
    if (n)
        *n = t->shape[0];
    return t->data;
}

static size_t linear(double *y, const double *x, size_t cols, const char *name)
{
    char full[80];
    size_t rows;
    snprintf(full, sizeof(full), "%s.weight", name);
    const float *weight = tensor(full, &rows);
    snprintf(full, sizeof(full), "%s.bias", name);
    const float *bias = tensor(full, NULL);
    for (size_t i = 0; i < rows; i++) {
        y[i] = (double)bias[i];
        for (size_t k = 0; k < cols; k++)
            y[i] += (double)weight[i * cols + k] * x[k];
    }
    return rows;
}

static void norm(double *y, const double *x, size_t n, const char *name)
{
    char full[80];
    double mean = 0, var = 0;
    snprintf(full, sizeof(full), "%s.weight", name);
    const float *weight = tensor(full, NULL);
    snprintf(full, sizeof(full), "%s.bias", name);
    const float *bias = tensor(full, NULL);
    for (size_t i = 0; i < n; i++)
        mean += x[i] / (double)n;
    for (size_t i = 0; i < n; i++)
        var += (x[i] - mean) * (x[i] - mean) / (double)n;
    for (size_t i = 0; i < n; i++)
        y[i] = (x[i] - mean) / sqrt(var + 1e-5) * (double)weight[i] + (double)bias[i];
}

static const struct deep_class everything = { 1, 1, 1 };

static double formula(const float *in, struct deep_class reads)
{
    double x[256], y[256], z[256], all[256], sum = 0;
    size_t n = 0;
    bool alone = !reads.logits && !reads.token, only = !reads.hidden;
    if (reads.hidden) {
        for (size_t i = 0; i < HIDDEN; i++)
            x[i] = (double)*in++;
        norm(all, x, HIDDEN, alone ? "layer_norm" : "layer_norm_hidden_states");
        n = HIDDEN;
    }
    if (reads.token) {
        for (size_t i = 0; i < HIDDEN; i++)
            y[i] = (double)in[(reads.logits ? LOGITS : 0) + i];
        norm(all + n, y, HIDDEN, "layer_norm_token");
        n += HIDDEN;
    }
    if (reads.logits) {
        for (size_t i = 0; i < LOGITS; i++)
            sum += x[i] = exp((double)in[i]);
        for (size_t i = 0; i < LOGITS; i++)
            all[n + i] = x[i] /= sum;
        n += only ? LOGITS : linear(all + n, x, LOGITS, "logits_projection");
    }
    n = linear(y, all, n,
               alone  ? "hidden_states_projection"
               : only ? "logits_projection"
                      : "combined_projection");
    n = linear(x, y, n, "backbone.input_projection");
    for (size_t b = 0; b < 2; b++) {
        char name[80];
        snprintf(name, sizeof(name), "backbone.blocks.%zu.layer_norm", b);
        norm(y, x, n, name);
        snprintf(name, sizeof(name), "backbone.blocks.%zu.mlp.0", b);
        size_t inner = linear(z, y, n, name);
        for (size_t i = 0; i < inner; i++)
            z[i] *= 0.5 * (1 + erf(z[i] / sqrt(2)));
        snprintf(name, sizeof(name), "backbone.blocks.%zu.mlp.3", b);
        size_t rows = linear(y, z, inner, name);
        snprintf(name, sizeof(name), "backbone.blocks.%zu.dim_change", b);
        if (rows != n)
            linear(z, x, n, name);
        for (size_t i = 0; i < rows; i++)
            x[i] = (rows != n ? z[i] : x[i]) + y[i];
        n = rows;
    }
    norm(y, x, n, "backbone.output_layer.0");
    linear(x, y, n, "backbone.output_layer.1");
    return 1 / (1 + exp(-x[0]));
}

/* Scores are 1 - value of the formula, whatever threads and sets; a saved copy gives the same. */
static void check_scores(const char *file, struct deep_class reads)
{
    size_t hidden = reads.hidden ? HIDDEN : 0, logits = reads.logits ? LOGITS : 0;
    struct router *r, *again;
    struct router_form form;
    struct pool *pool;
    CHECK(weights_open(&w, file, NULL) == OK && router_open(&r, file, &kernels, NULL) == OK);
    CHECK(router_dim(r) == hidden + logits + (reads.token ? HIDDEN : 0));
    CHECK(router_logits(r) == logits && router_kind(r) == ROUTER_NETWORK);
    CHECK(router_net(r).deep && router_net(r).width == 12);
    CHECK(router_form_read(&form, file, NULL) == OK && form.softmax);
    form.has_threshold = true;
    form.threshold = 0.25f;
    CHECK(form_save(in_scratch("again"), &form, NULL) == OK);
    router_form_close(&form);
    CHECK(router_open(&again, in_scratch("again"), &kernels_scalar, NULL) == OK);
    float t, in[ALL], parts[12];
    CHECK(!router_threshold(r, &t) && router_threshold(again, &t) && t == 0.25f);
    CHECK(pool_open(&pool, 3, NULL) == OK);
    router_threads(again, pool);
    float *scratch = malloc(router_scratch(r) * sizeof(*scratch));
    for (size_t round = 0; round < 100; round++) {
        for (size_t i = 0; i < router_dim(r); i++)
            in[i] = (float)(rand_unit(round, i) * 8 - 4);
        for (size_t i = hidden + 1; i < hidden + logits; i++) /* logits descend */
            in[i] = in[i] < in[i - 1] ? in[i] : in[i - 1];
        float y = router_score(again, in, scratch);
        CHECK(y == router_score(r, in, scratch) && fabs(1 - (double)y - formula(in, reads)) < 1e-5);
        double sum = (double)router_parts(r, scratch, parts);
        for (size_t i = 0; i < 12; i++)
            sum += (double)parts[i];
        CHECK(fabs(1 / (1 + exp(-sum)) - (double)y) < 1e-5);
    }
    in[3] = (float)NAN; /* in a hidden state: the cloud is asked */
    CHECK(!hidden || router_score(r, in, scratch) == 0);
    free(scratch);
    pool_close(pool);
    router_close(r);
    router_close(again);
    weights_close(w);
}

/* The whole one, and the classes that read a part of what it reads. */
static void test_formula(void)
{
    static const struct deep_class classes[] = {
        { 1, 1, 1 }, { 1, 0, 0 }, { 0, 1, 0 }, { 1, 1, 0 }, { 1, 0, 1 }
    };
    for (size_t c = 0; c < sizeof(classes) / sizeof(*classes); c++) {
        deep_write(path, classes[c], deep_meta, NULL);
        check_scores(path, classes[c]);
    }
}

/* Write the tensors of path, matrices as BF16, or as I8 with scales if 32 divides a row. */
static void narrow_write(const char *to, int type)
{
    enum { MOST = 64, BLOCK = 34, VALUES = 4096 };
    static unsigned char room[MOST][3 * VALUES];
    static char names[MOST][80];
    struct tensor list[MOST];
    size_t n = 0;
    CHECK(weights_open(&w, path, NULL) == OK);
    for (size_t i = 0; i < weights_ntensors(w); i++) {
        struct tensor t = *weights_tensor(w, i);
        size_t count = t.bytes / sizeof(float);
        CHECK(n + 2 <= MOST && count <= VALUES);
        bool whole = t.ndim == 2 && t.shape[0] > 1 && t.shape[1] % 32 == 0;
        unsigned char *q = room[n], *scale = q + count, blocks[VALUES / 32 * BLOCK];
        if (type == W_BF16 && t.ndim == 2) {
            quant_encode(q, W_BF16, t.data, count);
            t = (struct tensor){ t.name, W_BF16, 2, { t.shape[0], t.shape[1] }, q, 2 * count };
        } else if (type == W_Q8_0 && whole) {
            quant_encode(blocks, W_Q8_0, t.data, count);
            for (size_t g = 0; g < count / 32; g++) {
                memcpy(scale + 2 * g, blocks + g * BLOCK, 2);
                memcpy(q + 32 * g, blocks + g * BLOCK + 2, 32);
            }
            snprintf(names[n], sizeof(names[n]), "%s_scale", t.name);
            list[n] = (struct tensor){ names[n], W_F16,     2, { t.shape[0], t.shape[1] / 32 },
                                       scale,    count / 16 };
            n++;
            t = (struct tensor){ t.name, W_I8, 2, { t.shape[0], t.shape[1] }, q, count };
        }
        list[n++] = t;
    }
    CHECK(safetensors_write(to, list, n, deep_meta, NULL) == OK);
    weights_close(w);
}

/* Narrow weights give nearly the score, with the same bits on all sets; NaN is not lost. */
static void test_narrow(void)
{
    static const int types[] = { W_BF16, W_Q8_0 };
    struct router *r, *sets[16];
    deep_write(path, everything, deep_meta, NULL);
    CHECK(router_open(&r, path, &kernels, NULL) == OK);
    float in[ALL], *scratch = malloc(router_scratch(r) * sizeof(*scratch));
    for (size_t t = 0; t < 2; t++) {
        const char *file = in_scratch("narrow");
        struct kernels k[16];
        size_t n = 0;
        struct weights *saved;
        narrow_write(file, types[t]);
        CHECK(weights_open(&saved, file, NULL) == OK);
        const struct tensor *up = weights_find(saved, "combined_projection.weight");
        CHECK(up && up->type == (types[t] == W_BF16 ? W_BF16 : W_I8) && up->shape[1] == 3 * HIDDEN);
        weights_close(saved);
        for (size_t i = 0; i < kernels_nsets && n < 16; i++)
            if (kernels_runs(kernels_sets[i], cpu_detect()) &&
                !(kernels_sets[i]->needs & CPU_INEXACT)) {
                CHECK(kernels_pick(&k[n], kernels_sets[i]->isa, cpu_detect(), NULL) == OK);
                CHECK(router_open(&sets[n], file, &k[n], NULL) == OK);
                n++;
            }
        for (size_t round = 0; round < 50; round++) {
            for (size_t i = 0; i < ALL; i++)
                in[i] = (float)(rand_unit(round, i) * 8 - 4);
            float y = router_score(r, in, scratch), z = router_score(sets[0], in, scratch);
            CHECK_MSG(z != y && fabsf(z - y) < 0.02f, "%g and %g", (double)y, (double)z);
            for (size_t i = 1; i < n; i++)
                CHECK(router_score(sets[i], in, scratch) == z);
        }
        in[3] = (float)NAN;
        CHECK(router_score(sets[0], in, scratch) == 0);
        for (size_t i = 0; i < n; i++)
            router_close(sets[i]);
        open_without_memory(file, &kernels);
    }
    free(scratch);
    router_close(r);
}

static void refused(const char *why)
{
    router_refused(path, &kernels, why);
}

/* What a file of Q8_0 may be wrong in. */
static void test_narrow_refused(void)
{
    enum { MOST = 64 };
    static uint16_t infinite[MOST * HIDDEN];
    const char *file = in_scratch("narrow");
    struct weights *saved;
    memset(infinite, 0x7c, sizeof(infinite)); /* NaN in F16 */
    narrow_write(file, W_Q8_0);
    CHECK(weights_open(&saved, file, NULL) == OK);
    for (size_t turn = 0; turn < 3; turn++) {
        struct tensor list[MOST];
        size_t n = 0;
        for (size_t i = 0; i < weights_ntensors(saved); i++) {
            list[n] = *weights_tensor(saved, i);
            if (!strcmp(list[n].name, "combined_projection.weight_scale")) {
                if (turn == 0)
                    continue;
                list[n].type = turn == 1 ? W_BF16 : W_F16;
                list[n].data = infinite;
            }
            n++;
        }
        CHECK(safetensors_write(path, list, n, deep_meta + 2, NULL) == OK);
        refused(turn == 0   ? "combined_projection.weight_scale"
                : turn == 1 ? "expected F16 for each 32 columns, found BF16 for 96"
                            : "combined_projection.weight: expected finite values, found nan");
    }
    weights_close(saved);
}

static int descending(const void *a, const void *b)
{
    const float *x = a, *y = b;
    return (*x < *y) - (*x > *y);
}

static void test_largest(void)
{
    float x[500], sorted[500], y[40];
    for (uint64_t round = 0; round < 300; round++) {
        size_t size = 40 + rand_below(round, 1, 460), n = 1 + rand_below(round, 2, 40), kept = 0;
        for (size_t i = 0; i < size; i++) {
            x[i] = (float)rand_below(round, 10 + i, 60);
            x[i] = x[i] == 59 && round % 2 ? (float)NAN : x[i] == 58 ? -INFINITY : x[i];
            if (!isnan(x[i]))
                sorted[kept++] = x[i];
        }
        qsort(sorted, kept, sizeof(*sorted), descending);
        deep_largest(y, n, x, size);
        for (size_t i = 0; i < n; i++)
            CHECK(y[i] == (i < kept ? sorted[i] : -INFINITY));
    }
}

/* Layer norms prove that the logits pass through a softmax, if the file does not say so. */
static void test_softmax(void)
{
    for (size_t i = 0; i < 2; i++) {
        struct router_form form;
        deep_write(path, everything, deep_meta + 2, i ? "layer_norm" : NULL);
        CHECK(router_form_read(&form, path, NULL) == OK && form.softmax == !i);
        router_form_close(&form);
    }
}

static void test_refused(void)
{
    deep_write(path, everything, (const char *const[]){ "softmax", "1", NULL }, NULL);
    refused("metadata high: expected critical, found none");
    static const char *const needed[] = {
        "logits_projection.bias",  "combined_projection.weight",    "input_projection.bias",
        "blocks.0.mlp.0.weight",   "blocks.1.mlp.3.bias",           "blocks.0.dim_change.weight",
        "output_layer.0.bias",     "blocks.1.layer_norm.bias",      "output_layer.1.weight",
        "layer_norm_token.bias",   "blocks.0.layer_norm.weight",    "blocks.1.layer_norm.weight",
        "layer_norm_token.weight", "layer_norm_hidden_states.bias",
    };
    for (size_t i = 0; i < sizeof(needed) / sizeof(*needed); i++) {
        deep_write(path, everything, deep_meta, needed[i]);
        refused(i == 1 ? "combined_projection" : needed[i]);
    }
    deep_write(path, everything, deep_meta, NULL);
    open_without_memory(path, &kernels);
    test_narrow_refused();
    static const struct {
        const char *without, *key, *value, *says;
    } odd[] = {
        { NULL, "tap", "2", "metadata tap: expected final, found \"2\"" },
        { NULL, "softmax", "yes", "metadata softmax: expected 1 with layer norms, found another" },
        { "layer_norm", "softmax", "1",
          "metadata softmax: expected none without layer norms, found 1" },
        { "layer_norm_hidden_states", NULL, NULL,
          "tensor layer_norm_token.weight: expected only what layers read, found it" },
        { "backbone.blocks.0", NULL, NULL, "backbone." },
    };
    for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
        const char *const meta[] = { "high", "critical", odd[i].key, odd[i].value, NULL };
        deep_write(path, everything, meta, odd[i].without);
        refused(odd[i].says);
    }
}

int main(void)
{
    path = in_scratch("router");
    CHECK(kernels_pick(&kernels, NULL, cpu_detect(), NULL) == OK);
    test_formula();
    test_narrow();
    test_largest();
    test_softmax();
    test_refused();
    return 0;
}
