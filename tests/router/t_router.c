/* Tests the router: a case checked by hand, networks whose values are high where a token is
 * critical, hostile files, failing allocations. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "kernels/sys/cpu.h"
#include "kernels/kernels.h"
#include "kernels/math.h"
#include "kernels/sys/pool.h"
#include "router/learn/form_save.h"
#include "router/router.h"
#include "tests/router/router_help.h"
#include "tests/support/files.h"
#include "router/learn/safetensors_write.h"

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
    CHECK(router_net(r).width == 2 && router_parts(r, scratch, parts) == -1);
    CHECK(parts[0] == 6 && parts[1] == 0);
    CHECK(form_save(path, &f, &err) == OK);
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
        CHECK(form_save(path, &f, &err) == OK && router_open(&r, path, &kernels, &err) == OK);
        CHECK(router_form_read(&again, path, &err) == OK);
        CHECK(again.dim == f.dim && !memcmp(again.w1, first, f.dim * sizeof(*first)));
        CHECK(again.ncontexts == 2 && !memcmp(again.contexts, rows, sizeof(rows)));
        router_form_close(&again);
        CHECK(router_extra(r) == FEATURES && (router_kind(r) == ROUTER_NETWORK) == !alone &&
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
    CHECK(form_save(path, &f, &err) == OK);
    open_without_memory(path, &kernels);
}

/* A network whose values are high where a token is critical, as llama-route's are, has 1 - value as
 * its score: here of random numbers, and the value in double. */
static void check_high(void)
{
    enum { DIM = 37, UNITS = 21 };
    static float m1[UNITS * DIM], c1[UNITS], m2[UNITS], c2[1], x[DIM], scratch[128];
    struct tensor t[4] = {
        { "router.w1", W_F32, 2, { UNITS, DIM }, m1, sizeof(m1) },
        { "router.b1", W_F32, 1, { UNITS }, c1, sizeof(c1) },
        { "router.w2", W_F32, 2, { 1, UNITS }, m2, sizeof(m2) },
        { "router.b2", W_F32, 1, { 1 }, c2, sizeof(c2) },
    };
    const char *meta[] = { "tap", "final", "high", "critical", NULL };
    struct router *high, *low;
    for (size_t i = 0; i < 4; i++)
        for (size_t k = 0; k < t[i].bytes / sizeof(float); k++)
            ((float *)(uintptr_t)t[i].data)[k] = (float)rand_unit(41 + i, k) * 0.6f - 0.3f;
    CHECK(safetensors_write(path, t, 4, meta, NULL) == OK);
    CHECK(router_open(&high, path, &kernels, NULL) == OK && router_net(high).high);
    meta[2] = NULL;
    CHECK(safetensors_write(path, t, 4, meta, NULL) == OK);
    CHECK(router_open(&low, path, &kernels, NULL) == OK && !router_net(low).high);
    CHECK(router_scratch(high) <= 128 && router_dim(high) == DIM);
    for (uint64_t round = 0; round < 50; round++) {
        double z = (double)c2[0];
        for (size_t j = 0; j < DIM; j++)
            x[j] = (float)rand_unit(50 + round, j) * 4 - 2;
        for (size_t i = 0; i < UNITS; i++) {
            double sum = (double)c1[i];
            for (size_t j = 0; j < DIM; j++)
                sum += (double)m1[i * DIM + j] * (double)x[j];
            z += (double)m2[i] * (sum > 0 ? sum : 0);
        }
        double value = 1 / (1 + exp(-z));
        CHECK(fabs((double)router_score(low, x, scratch) - value) < 1e-6);
        CHECK(fabs(1 - (double)router_score(high, x, scratch) - value) < 1e-6);
    }
    router_close(high);
    router_close(low);
    memcpy(t, good, sizeof(t));
    refuse(t, 4, (const char *[]){ "high", "good", NULL }, "high: expected critical, found good");
    spill(path, "PK\003\004 is how a zip archive begins", 32);
    CHECK(router_open(&low, path, &kernels, NULL) == ERR_FORMAT && !low);
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
    check_high();
    return 0;
}
