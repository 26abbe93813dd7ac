/* Tests the router: a case checked by hand, PyTorch's own outputs, llama-route's files, hostile
 * files, failing allocations. */
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernels/sys/base.h"
#include "kernels/sys/cpu.h"
#include "kernels/kernels.h"
#include "kernels/math.h"
#include "kernels/sys/pool.h"
#include "router/learn/router_import.h"
#include "router/router.h"
#include "tests/router/router_help.h"
#include "tests/support/files.h"
#include "weights/pth.h"
#include "weights/safetensors.h"

static struct kernels kernels;
static const char *path; /* a file that this test may write */

static float w1[] = { 1, 0, 0, 0, -1, 0 }, b1[] = { 0, 0.5f }, w2[] = { 2, 4 }, b2[] = { -1 };
static const struct router_form by_hand = {
    .dim = 3, .width = 2, .members = 1, .w1 = w1, .b1 = b1, .w2 = w2, .b2 = { -1 }
};

/* A router large enough to be shared gives the same score with one thread and with three. */
static void threads_share(void)
{
    enum { DIM = 300, WIDTH = 700 };
    static float m1[WIDTH * DIM], c1[WIDTH], m2[WIDTH], x[DIM];
    struct router_form f = {
        .dim = DIM, .width = WIDTH, .members = 1, .w1 = m1, .b1 = c1, .w2 = m2, .b2 = { 0.1f }
    };
    struct err err;
    struct router *r;
    struct pool *pool;
    for (size_t i = 0; i < WIDTH * DIM; i++)
        m1[i] = (float)rand_unit(1, i) * 0.1f - 0.05f;
    for (size_t i = 0; i < WIDTH; i++)
        m2[i] = (float)rand_unit(2, i) * 0.1f - 0.05f;
    for (size_t i = 0; i < DIM; i++)
        x[i] = (float)rand_unit(3, i) * 2 - 1;
    CHECK(router_make(&r, &f, "form", &kernels, &err) == OK);
    float *scratch = malloc(router_scratch(r) * sizeof(*scratch));
    CHECK(scratch && pool_open(&pool, 3, &err) == OK);
    float alone = router_score(r, x, scratch);
    CHECK(alone > 0 && alone < 1 && alone != 0.5f);
    router_threads(r, pool);
    for (int i = 0; i < 50; i++)
        CHECK(router_score(r, x, scratch) == alone);
    router_close(r);
    pool_close(pool);
    free(scratch);
}

/* By hand: h = relu([3, -2 + 0.5]) = [3, 0]; z = 2 * 3 - 1 = 5. */
static void check_by_hand(void)
{
    CHECK(router_size(3, 4) == (16 * 3 + 16 * 4 + 4) * sizeof(float)); /* panels of 16 rows */
    struct router_form f = by_hand;
    CHECK(taps_parse(&f.taps, "post_attn"));
    f.has_threshold = true;
    f.threshold = 0.3f;
    struct err err;
    struct router *r, *again;
    float scratch[64], threshold = 0;
    CHECK(router_make(&r, &f, "form", &kernels, &err) == OK);
    CHECK(router_dim(r) == 3 && router_scratch(r) <= 64);
    CHECK(router_threshold(r, &threshold) && threshold == 0.3f);
    float x[] = { 3, 2, 9 }, y = router_score(r, x, scratch);
    CHECK(fabsf(y - 0.99330715f) < 1e-6f && y == sigmoid_f32(5));
    float parts[2]; /* 2 * 3, 4 * 0 */
    CHECK(router_width(r) == 2 && router_parts(r, scratch, parts) == -1);
    CHECK(parts[0] == 6 && parts[1] == 0);
    CHECK(router_form_save(path, &f, &err) == OK);
    CHECK(router_open(&again, path, &kernels, &err) == OK);
    CHECK(router_score(again, x, scratch) == y);
    CHECK(router_taps(again)->at[0] == TAP_POST_ATTN && !router_taps(again)->more);
    CHECK(router_threshold(again, &threshold) && threshold == 0.3f);
    x[0] = NAN;
    CHECK(router_score(r, x, scratch) == 0);
    x[0] = INFINITY;
    x[1] = -INFINITY;
    float wild = router_score(r, x, scratch);
    CHECK(wild >= 0 && wild <= 1);
    router_close(again);
    router_close(r);
}

/* A network with features reads them behind the hidden state, or alone, and keeps its table. */
static void check_features(void)
{
    float first[FEATURES + 2] = { [0] = 2, [2] = 3, [FEATURES + 1] = 5 }, zero = 0, one = 1,
                           scratch[80];
    float hidden[2] = { 7, 11 }, features[FEATURES] = { 0.5f, [FEATURE_CONTEXT] = 0.25f };
    struct router_context rows[] = { { -1, -1, 0.5f }, { -1, 3, 0.25f } };
    struct router_form f = {
        .dim = FEATURES + 2, .width = 1, .members = 1, .w1 = first, .b1 = &zero, .w2 = &one
    };
    struct router_form again;
    struct router *r;
    struct err err;
    f.contexts = rows;
    f.ncontexts = 2;
    for (int alone = 0; alone < 2; alone++) {
        first[FEATURES - 1] = alone ? 5 : 0; /* the context's, if there is no hidden state */
        f.dim = FEATURES + (alone ? 0 : 2);
        CHECK(router_form_save(path, &f, &err) == OK &&
              router_open(&r, path, &kernels, &err) == OK);
        CHECK(router_form_read(&again, path, &err) == OK);
        CHECK(again.dim == f.dim && !memcmp(again.w1, first, f.dim * sizeof(*first)));
        CHECK(again.ncontexts == 2 && !memcmp(again.contexts, rows, sizeof(rows)));
        router_form_close(&again);
        CHECK(router_extra(r) == FEATURES && !strcmp(router_kind(r), "network") == !alone &&
              !router_is_table(r) && !strcmp(router_name(r), alone ? "combined" : "mix"));
        CHECK(router_score_ids(r, (const uint32_t[]){ 9, 3 }, 2) == 0.25f);
        const float *x = router_inputs(r, hidden, features, scratch);
        float sum = alone ? 2 * 0.5f + 5 * 0.25f : 2 * 7 + 3 * 0.5f + 5 * 0.25f;
        CHECK(x != hidden && router_score(r, x, scratch) == sigmoid_f32(sum));
        router_close(r);
    }
    f.dim = FEATURES - 1;
    CHECK(router_make(&r, &f, "form", &kernels, &err) == ERR_FORMAT && strstr(err.msg, "inputs"));
}

/* A file with these tensors is refused with these words. */
static void refuse(struct tensor *tensors, size_t n, const char *const *meta, const char *said)
{
    struct err err = { "" };
    struct router *r;
    CHECK(safetensors_write(path, tensors, n, meta, &err) == OK);
    CHECK(router_open(&r, path, &kernels, &err) == ERR_FORMAT && !r);
    CHECK_MSG(strstr(err.msg, said) && strstr(err.msg, path), "said: %s", err.msg);
}

/* The tensors of a router that is fine. */
static struct tensor good[4] = {
    { "router.w1", W_F32, 2, { 2, 3 }, w1, sizeof(w1) },
    { "router.b1", W_F32, 1, { 2 }, b1, sizeof(b1) },
    { "router.w2", W_F32, 2, { 1, 2 }, w2, sizeof(w2) },
    { "router.b2", W_F32, 1, { 1 }, b2, sizeof(b2) },
};

/* Tensors that are missing, misshapen, not finite or of a wrong type are refused by name. */
static void check_refused_tensors(void)
{
    static const char *const names[] = { "router.w1", "router.b1", "router.w2", "router.b2" };
    struct tensor t[4];
    for (size_t i = 0; i < 4; i++) {
        memcpy(t, good, sizeof(t));
        t[i].name = "other";
        refuse(t, 4, NULL, names[i]); /* missing */
        memcpy(t, good, sizeof(t));
        t[i] = (struct tensor){ names[i], W_F32, 2, { 1, 1 }, b2, sizeof(b2) };
        if (i)
            refuse(t, 4, NULL, names[i]); /* misshapen */
        memcpy(t, good, sizeof(t));
        float bad[6] = { 0 };
        bad[0] = i % 2 ? INFINITY : NAN;
        t[i].data = bad;
        refuse(t, 4, NULL, names[i]);
        char said[64];
        memcpy(t, good, sizeof(t));
        t[i].type = W_I32;
        snprintf(said, sizeof(said), "tensor %s: expected F64, F32", names[i]);
        refuse(t, 4, NULL, said);
    }
    memcpy(t, good, sizeof(t));
    t[2] = (struct tensor){ "router.w2", W_F32, 2, { 2, 2 }, w1, 4 * sizeof(*w1) };
    refuse(t, 4, NULL, "router.b2: expected [2]"); /* two outputs */
    t[2] = (struct tensor){ "router.w2", W_F32, 2, { 3, 2 }, w1, sizeof(w1) };
    refuse(t, 4, NULL, "router.w2");
    memcpy(t, good, sizeof(t));
    t[0] = (struct tensor){ "router.w1", W_F32, 2, { 0, 3 }, w1, 0 };
    refuse(t, 4, NULL, "router.w1");
    t[0] = (struct tensor){ "router.w1", W_F32, 1, { 6 }, w1, sizeof(w1) };
    refuse(t, 4, NULL, "router.w1");
}

/* Metadata that is wrong, sizes that are none, and a file that is not there are refused. */
static void check_refused(void)
{
    static const char *const wrong[][3] = {
        { "tap", "middle", NULL },
        { "tap", "", NULL },
        { "tap", "0", NULL },
        { "tap", "final,final", NULL },
        { "tap", "1,2,3,4,5", NULL },
        { "tap", "99999,99999,99999,99999,99999,99999", NULL },
        { "threshold", "", NULL },
        { "threshold", "x", NULL },
        { "threshold", "0.5x", NULL },
        { "threshold", "nan", NULL },
        { "threshold", "-0.1", NULL },
        { "threshold", "1.5", NULL },
        { "threshold", "0.50000000000000000000000000000000000000000", NULL },
    };
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        refuse(good, 4, wrong[i], wrong[i][0]);

    struct router_form f;
    struct err err;
    CHECK(router_form_open(&f, 0, 2, &err) == ERR_ARG);
    CHECK(router_form_open(&f, 3, ROUTER_MAX + 1, &err) == ERR_ARG && !f.w1);
    struct router *r;
    CHECK(router_open(&r, "tests/no-such-file", &kernels, &err) == ERR_IO && !r);
}

/* Every allocation fails once. */
static void check_torture(void)
{
    struct router_form f = by_hand;
    struct err err;
    CHECK(router_form_save(path, &f, &err) == OK);
    open_without_memory(path, &kernels);
}

enum { EMBD = 37, UNITS = 21, RMLP_FLOATS = UNITS * (EMBD + 2) + 1 };

/* llama-route's file. */
struct rmlp {
    char magic[4];
    int32_t version, embd, units;
    float w1[UNITS][EMBD], b1[UNITS], w2[UNITS], b2;
    char over;
};

static const size_t rmlp_size = offsetof(struct rmlp, over);

/* The value of such a file, which is high for a critical token. */
static double rmlp_value(const struct rmlp *file, const float *x)
{
    double z = (double)file->b2;
    for (size_t i = 0; i < UNITS; i++) {
        double sum = (double)file->b1[i];
        for (size_t j = 0; j < EMBD; j++)
            sum += (double)file->w1[i][j] * (double)x[j];
        z += (double)file->w2[i] * (sum > 0 ? sum : 0);
    }
    return 1 / (1 + exp(-z));
}

/* It is refused with these words, and so is its import. */
static void refuse_rmlp(const struct rmlp *file, size_t bytes, const char *said)
{
    struct err err = { "" };
    struct router *r;
    spill(path, file, bytes);
    CHECK(router_open(&r, path, &kernels, &err) == ERR_FORMAT && !r);
    CHECK_MSG(strstr(err.msg, said) && strstr(err.msg, path), "said: %s", err.msg);
    CHECK(router_import(path, in_scratch("never"), W_F32, &err) == ERR_FORMAT);
    CHECK(access(in_scratch("never"), F_OK));
}

/* Files of llama-route have 1 - their values as scores, imported as well, and are written back to
 * the same bytes; a router of ours becomes one. */
static void check_rmlp(void)
{
    static struct rmlp file = {
        { 'R', 'M', 'L', 'P' }, 1, EMBD, UNITS, { { 0 } }, { 0 }, { 0 }, 0, 7
    };
    static struct rmlp again;
    const char *saved = in_scratch("imported"), *back = in_scratch("back.rmlp");
    float x[EMBD], scratch[128], *values = &file.w1[0][0];
    struct router *r, *imported, *ours;
    for (size_t i = 0; i < RMLP_FLOATS; i++)
        values[i] = (float)rand_unit(41, i) * 0.6f - 0.3f;
    file.w2[2] = -0.0f;
    spill(path, &file, rmlp_size);
    CHECK(router_open(&r, path, &kernels, NULL) == OK && router_is_high(r));
    CHECK(router_import(path, saved, W_F32, NULL) == OK);
    CHECK(router_open(&imported, saved, &kernels_scalar, NULL) == OK && router_is_high(imported));
    CHECK(router_import(saved, back, W_F32, NULL) == OK);
    CHECK(slurp(back, &again, sizeof(again)) == rmlp_size && !memcmp(&again, &file, rmlp_size));
    CHECK(router_scratch(r) <= 128 && router_dim(r) == EMBD);
    for (uint64_t round = 0; round < 50; round++) {
        for (size_t i = 0; i < EMBD; i++)
            x[i] = (float)rand_unit(42 + round, i) * 4 - 2;
        float y = router_score(r, x, scratch);
        CHECK(y == router_score(imported, x, scratch));
        CHECK(fabs(1 - (double)y - rmlp_value(&file, x)) < 1e-6);
    }
    struct router_form f = { .dim = EMBD,
                             .width = UNITS,
                             .members = 1,
                             .w1 = values,
                             .b1 = file.b1,
                             .w2 = file.w2,
                             .b2 = { file.b2 } };
    CHECK(router_form_save(saved, &f, NULL) == OK && router_import(saved, back, W_F32, NULL) == OK);
    CHECK(slurp(back, &again, sizeof(again)) == rmlp_size);
    CHECK(router_open(&ours, saved, &kernels, NULL) == OK && !router_is_high(ours));
    CHECK(fabs((double)router_score(ours, x, scratch) + rmlp_value(&again, x) - 1) < 1e-6);
    CHECK(taps_parse(&f.taps, "1")); /* which the file could not say */
    CHECK(router_form_save(saved, &f, NULL) == OK);
    CHECK(router_import(saved, back, W_F32, NULL) == ERR_ARG);
    router_close(r);
    router_close(imported);
    router_close(ours);
    spill(path, &file, rmlp_size);
    open_without_memory(path, &kernels);
}

static void check_rmlp_refused(void)
{
    static const struct rmlp good_file = {
        { 'R', 'M', 'L', 'P' }, 1, EMBD, UNITS, { { 0 } }, { 0 }, { 0 }, 0, 0
    };
    static const int32_t sizes[] = { 0, -1, ROUTER_MAX + 1, INT32_MAX, INT32_MIN };
    struct rmlp bad = good_file;
    refuse_rmlp(&bad, 4, "header: expected 16 bytes, found 4");
    refuse_rmlp(&bad, 15, "header: expected 16 bytes, found 15");
    refuse_rmlp(&bad, 16, "expected 3296 bytes in all, found 16");
    refuse_rmlp(&bad, rmlp_size - 1, "expected 3296 bytes in all, found 3295");
    refuse_rmlp(&bad, rmlp_size + 1, "expected 3296 bytes in all, found 3297");
    bad.version = 2;
    refuse_rmlp(&bad, rmlp_size, "version: expected 1, found 2");
    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
        bad = good_file;
        bad.embd = sizes[i];
        refuse_rmlp(&bad, rmlp_size, "n_embd: expected 1 to 65536, found");
        bad = good_file;
        bad.units = sizes[i];
        refuse_rmlp(&bad, rmlp_size, "n_hidden: expected 1 to 65536, found");
    }
    bad = good_file;
    bad.embd = bad.units = ROUTER_MAX;
    refuse_rmlp(&bad, rmlp_size, "expected 17180393492 bytes in all, found 3296");
    bad = good_file;
    bad.w1[1][0] = NAN;
    refuse_rmlp(&bad, rmlp_size, "router.w1: expected finite values, found nan at 37");
    bad = good_file;
    bad.b2 = -INFINITY;
    refuse_rmlp(&bad, rmlp_size, "router.b2: expected finite values, found -inf");
    struct tensor t[4];
    memcpy(t, good, sizeof(t));
    refuse(t, 4, (const char *[]){ "high", "good", NULL }, "high: expected critical, found good");
}

/* Return a tensor as double. */
static double *doubles(const struct weights *p, const char *name)
{
    const struct tensor *t = weights_find(p, name);
    CHECK(t);
    size_t n = 1;
    for (unsigned i = 0; i < t->ndim; i++)
        n *= t->shape[i];
    float *f = malloc(n * sizeof(*f));
    double *d = malloc(n * sizeof(*d));
    CHECK(f && d && weights_floats(f, t, 0, n, "f.gguf", NULL) == OK);
    for (size_t i = 0; i < n; i++)
        d[i] = (double)f[i];
    free(f);
    return d;
}

/* Compute CITER's layers one after another in double, without folding; h = 64. */
static void evaluate(double y[64], const char *file, const float *x)
{
    static const char *const names[] = {
        "mlp.0.weight",      "mlp.0.bias",   "mlp.1.weight", "mlp.1.bias",    "mlp.1.running_mean",
        "mlp.1.running_var", "mlp.4.weight", "mlp.4.bias",   "linear.weight", "linear.bias",
    };
    struct weights *p;
    struct err err;
    CHECK(pth_open(&p, file, &err) == OK);
    double *t[10];
    for (size_t i = 0; i < 10; i++)
        t[i] = doubles(p, names[i]);
    for (size_t n = 0; n < 64; n++) {
        double h[128], z = t[9][0];
        for (size_t i = 0; i < 128; i++) {
            h[i] = t[1][i];
            for (size_t j = 0; j < 64; j++)
                h[i] += t[0][i * 64 + j] * (double)x[n * 64 + j];
            h[i] = (h[i] - t[4][i]) / sqrt(t[5][i] + 1e-5) * t[2][i] + t[3][i];
            h[i] = h[i] > 0 ? h[i] : 0;
        }
        for (size_t m = 0; m < 64; m++) {
            double v = t[7][m];
            for (size_t i = 0; i < 128; i++)
                v += t[6][m * 128 + i] * h[i];
            z += t[8][m] * v;
        }
        y[n] = 1 / (1 + exp(-z));
    }
    for (size_t i = 0; i < 10; i++)
        free(t[i]);
    weights_close(p);
}

/* Compare with PyTorch's outputs. */
static void check_pytorch(void)
{
    static const struct {
        const char *file;
        double golden;
    } cases[] = {
        { "router_zip.pth", 1e-5 },        { "router_legacy.pth", 1e-5 },
        { "router_checkpoint.pth", 1e-5 }, { "router_dataparallel.pth", 1e-5 },
        { "router_half.pth", 1e-3 },       { "router_bf16.pth", 5e-3 },
    };
    static float x[64 * 64], golden[64], scratch[4096];
    if (access(test_data("pth/golden_x_f32_64x64.bin"), R_OK)) {
        puts("SKIP: no PyTorch files in pth (set MIZZLE_TESTDATA)");
        unlink(path);
        exit(77);
    }
    CHECK(slurp(test_data("pth/golden_x_f32_64x64.bin"), x, sizeof(x)) == sizeof(x));
    CHECK(slurp(test_data("pth/golden_y_f32_64.bin"), golden, sizeof(golden)) == sizeof(golden));
    for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
        const char *file = test_data("pth/%s", cases[c].file);
        struct err err = { "" };
        struct router *direct, *imported;
        CHECK(router_open(&direct, file, &kernels, &err) == OK);
        CHECK(router_dim(direct) == 64 && router_scratch(direct) <= 4096);
        CHECK(router_import(file, path, W_F32, &err) == OK);
        CHECK(router_open(&imported, path, &kernels, &err) == OK);
        double own[64];
        struct pool *pool;
        CHECK(pool_open(&pool, 3, &err) == OK);
        router_threads(imported, pool);
        evaluate(own, file, x);
        for (size_t i = 0; i < 64; i++) {
            float y = router_score(direct, x + i * 64, scratch);
            CHECK(y == router_score(imported, x + i * 64, scratch));
            CHECK(fabs((double)y - (double)golden[i]) < cases[c].golden);
            CHECK(fabs((double)y - own[i]) < 1e-5);
        }
        router_close(imported);
        router_close(direct);
        pool_close(pool);
    }
    static const char *const bad[] = {
        "evil_print.pth",      "router_fullmodule.pth", "bad_central_offset.pth", "bad_empty.pth",
        "bad_pickle_byte.pth", "bad_truncated_10.pth",  "bad_truncated_half.pth",
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        const char *file = test_data("pth/%s", bad[i]);
        struct err err = { "" };
        struct router *r;
        CHECK(router_open(&r, file, &kernels, &err) == ERR_FORMAT && !r && err.msg[0]);
        CHECK(router_import(file, path, W_F32, &err) == ERR_FORMAT);
    }
}

int main(void)
{
    path = in_scratch("router");
    CHECK(kernels_pick(&kernels, NULL, cpu_detect(), NULL) == OK);
    check_by_hand();
    check_features();
    threads_share();
    check_refused_tensors();
    check_refused();
    check_torture();
    check_rmlp();
    check_rmlp_refused();
    check_pytorch();
    return 0;
}
