/* Routers of several layers: R2R's checkpoints give R2R's scores; f32 and BF16 have the same bits
 * with the fastest kernel set and with scalar; inputs that are normalised; what is refused. */
#include <math.h>
#include <unistd.h>

#include "kernels/sys/cpu.h"
#include "kernels/sys/pool.h"
#include "router/deep.h"
#include "tests/router/loop_help.h"
#include "tests/router/router_help.h"
#include "tests/support/files.h"
#include "weights/weights.h"

enum { HIDDEN = 24, LOGITS = 7, ALL = 2 * HIDDEN + LOGITS };

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

static double formula(const float *in)
{
    double x[256], y[256], z[256], all[256], sum = 0;
    for (size_t i = 0; i < HIDDEN; i++)
        x[i] = (double)in[i], y[i] = (double)in[HIDDEN + LOGITS + i];
    norm(all, x, HIDDEN, "layer_norm_hidden_states");
    norm(all + HIDDEN, y, HIDDEN, "layer_norm_token");
    for (size_t i = 0; i < LOGITS; i++)
        sum += x[i] = exp((double)in[HIDDEN + i]);
    for (size_t i = 0; i < LOGITS; i++)
        x[i] /= sum;
    linear(all + 2 * HIDDEN, x, LOGITS, "logits_projection");
    size_t n = linear(y, all, 3 * HIDDEN, "combined_projection");
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
static void test_formula(void)
{
    struct router *r, *again;
    struct router_form form;
    struct pool *pool;
    deep_write(path, HIDDEN, LOGITS, "critical", NULL);
    CHECK(weights_open(&w, path, NULL) == OK);
    CHECK(router_open(&r, path, &kernels, NULL) == OK);
    CHECK(router_dim(r) == ALL && router_extra(r) == HIDDEN + LOGITS && router_width(r) == 12);
    CHECK(!strcmp(router_kind(r), "network") && router_is_deep(r) && router_logits(r) == LOGITS);
    CHECK(router_form_read(&form, path, NULL) == OK && form.softmax);
    form.has_threshold = true;
    form.threshold = 0.25f;
    CHECK(router_form_save(in_scratch("again"), &form, NULL) == OK);
    router_form_close(&form);
    CHECK(router_open(&again, in_scratch("again"), &kernels_scalar, NULL) == OK);
    float t, in[ALL], parts[12];
    CHECK(!router_threshold(r, &t) && router_threshold(again, &t) && t == 0.25f);
    CHECK(pool_open(&pool, 3, NULL) == OK);
    router_threads(again, pool);
    float *scratch = malloc(router_scratch(r) * sizeof(*scratch));
    for (size_t round = 0; round < 100; round++) {
        for (size_t i = 0; i < ALL; i++)
            in[i] = (float)(rand_unit(round, i) * 8 - 4);
        for (size_t i = HIDDEN + 1; i < HIDDEN + LOGITS; i++) /* logits descend */
            in[i] = in[i] < in[i - 1] ? in[i] : in[i - 1];
        float y = router_score(again, in, scratch);
        CHECK(y == router_score(r, in, scratch) && fabs(1 - (double)y - formula(in)) < 1e-5);
        double sum = (double)router_parts(r, scratch, parts);
        for (size_t i = 0; i < 12; i++)
            sum += (double)parts[i];
        CHECK(fabs(1 / (1 + exp(-sum)) - (double)y) < 1e-5);
    }
    in[3] = (float)NAN;
    CHECK(router_score(r, in, scratch) == 0); /* the cloud is asked */
    free(scratch);
    pool_close(pool);
    router_close(r);
    router_close(again);
    weights_close(w);
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

static void refused(const char *why)
{
    struct err err = { "" };
    struct router *r;
    CHECK(router_open(&r, path, &kernels, &err) == ERR_FORMAT && !r);
    CHECK_MSG(strstr(err.msg, why) && strstr(err.msg, path), "%s", err.msg);
}

static void test_refused(void)
{
    deep_write(path, HIDDEN, LOGITS, NULL, NULL);
    refused("metadata high: expected critical, found none");
    static const char *const needed[] = {
        "logits_projection.bias", "combined_projection.weight", "input_projection.bias",
        "blocks.0.mlp.0.weight",  "blocks.1.mlp.3.bias",        "blocks.0.dim_change.weight",
        "output_layer.0.bias",    "blocks.1.layer_norm.bias",   "output_layer.1.weight",
        "layer_norm_token.bias",
    };
    for (size_t i = 0; i < sizeof(needed) / sizeof(*needed); i++) {
        deep_write(path, HIDDEN, LOGITS, "critical", needed[i]);
        refused(i == 1 ? "combined_projection" : needed[i]);
    }
    deep_write(path, HIDDEN, LOGITS, "critical", NULL);
    open_without_memory(path, &kernels);
}

/* R2R's own checkpoints and scores. */
static void test_r2r(void)
{
    static const struct {
        const char *name;
        bool logits, token;
    } cases[] = { { "hidden", false, false },
                  { "logits", true, false },
                  { "token_logits", true, true } };
    static float hidden[64 * 64], logits[64 * 100], embedding[300 * 64], want[64];
    static uint32_t tokens[64];
    for (size_t c = 0; c < 3; c++) {
        const char *name = cases[c].name;
        struct router *r, *narrow, *slow;
        char file[512];
        snprintf(file, sizeof(file), "%s", test_data("r2r/%s.pt", name));
        CHECK(slurp(test_data("r2r/%s.hidden.f32", name), hidden, sizeof(hidden)) ==
              sizeof(hidden));
        CHECK(slurp(test_data("r2r/%s.score.f32", name), want, sizeof(want)) == sizeof(want));
        if (cases[c].logits)
            CHECK(slurp(test_data("r2r/%s.logits.f32", name), logits, sizeof(logits)) ==
                  sizeof(logits));
        if (cases[c].token) {
            slurp(test_data("r2r/%s.token.u32", name), tokens, sizeof(tokens));
            slurp(test_data("r2r/%s.embedding.f32", name), embedding, sizeof(embedding));
        }
        CHECK(router_open(&r, file, &kernels, NULL) == OK &&
              router_import(file, path, true, NULL) == OK);
        CHECK(router_open(&narrow, path, &kernels, NULL) == OK);
        CHECK(router_open(&slow, path, &kernels_scalar, NULL) == OK);
        float threshold, again;
        CHECK(router_threshold(r, &threshold) && router_threshold(narrow, &again));
        CHECK(threshold == again && threshold >= 0.63f && threshold < 0.6301f);
        float *scratch = malloc(router_scratch(r) * sizeof(*scratch)), extra[164];
        for (size_t i = 0; i < 64; i++) {
            router_largest(r, extra, logits + i * 100, 100);
            memcpy(extra + router_logits(r), embedding + tokens[i] * 64, 64 * sizeof(*extra));
            float y = router_score(r, router_inputs(r, hidden + i * 64, extra, scratch), scratch);
            CHECK(fabs(1 - (double)y - (double)want[i]) < 1e-5);
            CHECK((y < threshold) == (want[i] >= 0.37f));
            float z =
                router_score(narrow, router_inputs(r, hidden + i * 64, extra, scratch), scratch);
            CHECK(z != y && fabs((double)z - (double)y) < 0.05);
            CHECK(z ==
                  router_score(slow, router_inputs(r, hidden + i * 64, extra, scratch), scratch));
        }
        free(scratch);
        router_close(r);
        router_close(narrow);
        router_close(slow);
    }
}

int main(void)
{
    path = in_scratch("router");
    CHECK(kernels_pick(&kernels, NULL, cpu_detect(), NULL) == OK);
    test_formula();
    test_largest();
    test_refused();
    if (access(test_data("r2r/hidden.pt"), R_OK)) {
        puts("SKIP: no checkpoints of R2R in r2r (set MIZZLE_TESTDATA)");
        return 77;
    }
    test_r2r();
    return 0;
}
