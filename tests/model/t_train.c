/* t_train.c - the training engine: gradients against central differences, the same bits on every
 * set and thread count, documents that do not see each other, and refusals. */
#include "kernels/sys/cpu.h"
#include "kernels/kernels.h"
#include "kernels/sys/pool.h"
#include "model/train/train.h"
#include "tests/support/test.h"

static const struct model_config tiny = { .layers = 2,
                                          .hidden = 32,
                                          .heads = 2,
                                          .kv_heads = 1,
                                          .head_dim = 16,
                                          .ffn = 48,
                                          .vocab = 48,
                                          .context = 64,
                                          .eps = 1e-6f,
                                          .rope_theta = 10000,
                                          .tied = true };

enum { TOKENS = 320, DOC = 48, DOCS = 11 };

struct data {
    uint32_t ids[TOKENS], target[TOKENS];
    size_t ends[DOCS];
    struct train_batch b;
};

/* Make documents of 1 to DOC tokens; some tokens have no target. */
static void fill(struct data *d, uint64_t seed)
{
    size_t at = 0, docs = 0;
    while (docs < DOCS) {
        size_t n = docs == 3 ? 1 : docs == 4 ? DOC : 2 + rand_below(seed, 1000 + docs, 38);
        if (at + n > TOKENS)
            break;
        for (size_t end = at + n; at < end; at++) {
            d->ids[at] = (uint32_t)rand_below(seed, at, tiny.vocab);
            d->target[at] = rand_below(seed, 5000 + at, 4)
                                ? (uint32_t)rand_below(seed, 9000 + at, tiny.vocab)
                                : TRAIN_NO_TARGET;
        }
        d->ends[docs++] = at;
    }
    d->b = (struct train_batch){ d->ids, d->target, d->ends, docs };
}

/* Along a random direction of each tensor, (loss(+e) - loss(-e)) / 2e must equal grad .
 * direction. */
static void check_gradient(const struct kernels *k)
{
    struct train *t;
    struct data d;
    double loss;
    fill(&d, 1);
    CHECK(train_open(&t, &tiny, k, NULL, TOKENS, DOC, 7, NULL) == OK);
    CHECK(train_look(t).params == 48 * 32 + 2 * (32 * 64 + 64 + 32 * 32 + 3 * 48 * 32 + 64) + 32);
    /* Move norms and biases away from their initial values, so that every term matters. */
    for (size_t i = 0; i < train_look(t).ntensors; i++) {
        const struct train_tensor *x = &train_look(t).tensors[i];
        for (size_t j = 0; x->rows == 1 && j < x->cols; j++)
            x->value[j] += 0.3f * (float)rand_unit(i, j) - 0.1f;
    }
    CHECK(train_gradient(&loss, t, &d.b, NULL) == OK);
    CHECK(loss > 3 && loss < 16);
    for (size_t i = 0; i < train_look(t).ntensors; i++) {
        const struct train_tensor *x = &train_look(t).tensors[i];
        size_t n = x->rows * x->cols;
        double want = 0, norm = 0, at[2];
        float keep[48 * 32], dir[48 * 32];
        for (size_t j = 0; j < n; j++) {
            keep[j] = x->value[j];
            /* The direction is half along the gradient: the slope is well above rounding. */
            norm += (double)x->grad[j] * (double)x->grad[j];
        }
        norm = sqrt(norm / (double)n) + 1e-12;
        for (size_t j = 0; j < n; j++) {
            dir[j] = (float)(2 * rand_unit(i + 100, j) - 1 + (double)x->grad[j] / norm);
            want += (double)dir[j] * (double)x->grad[j];
        }
        const float e = 4e-4f;
        for (int side = 0; side < 2; side++) {
            for (size_t j = 0; j < n; j++)
                x->value[j] = keep[j] + (side ? -e : e) * dir[j];
            CHECK(train_gradient(&at[side], t, &d.b, NULL) == OK);
        }
        memcpy(x->value, keep, n * sizeof(float));
        CHECK(train_gradient(&loss, t, &d.b, NULL) == OK); /* as the others are compared */
        double have = (at[0] - at[1]) / (2 * (double)e);
        CHECK_MSG(fabs(have - want) <= 0.01 * fabs(want) + 2e-4, "%s: numeric %g, backward %g",
                  x->name, have, want);
    }
    train_close(t);
}

/* FNV-1a. */
static uint64_t hash_bytes(uint64_t h, const void *p, size_t n)
{
    for (const unsigned char *c = p, *end = c + n; c < end; c++)
        h = (h ^ *c) * 0x100000001b3u;
    return h;
}

/* Return a hash over losses, norms and all values after a few steps. */
static uint64_t run_hash(const struct kernels *k, size_t threads)
{
    struct train *t;
    struct pool *pool;
    struct data d;
    uint64_t h = 0xcbf29ce484222325u;
    const struct train_rate rate = { 3e-3f, 0.9f, 0.99f, 1e-8f, 0.01f, 1 };
    CHECK(pool_open(&pool, threads, NULL) == OK);
    CHECK(train_open(&t, &tiny, k, pool, TOKENS, DOC, 3, NULL) == OK);
    double first = 0, loss = 0;
    for (uint64_t step = 0; step < 6; step++) {
        fill(&d, step % 2);
        CHECK(train_gradient(&loss, t, &d.b, NULL) == OK);
        double norm = train_update(t, &rate);
        h = hash_bytes(hash_bytes(h, &loss, sizeof(loss)), &norm, sizeof(norm));
        if (step == 1)
            first = loss;
    }
    CHECK(loss < first && train_look(t).steps == 6);
    for (size_t i = 0; i < train_look(t).ntensors; i++) {
        const struct train_tensor *x = &train_look(t).tensors[i];
        h = hash_bytes(h, x->value, x->rows * x->cols * sizeof(float));
    }
    train_close(t);
    pool_close(pool);
    return h;
}

/* The documents of a batch do not see each other: each has the loss that it has alone. */
static void check_documents(const struct kernels *k)
{
    struct train *t;
    struct data d;
    double loss, alone;
    fill(&d, 5);
    CHECK(train_open(&t, &tiny, k, NULL, TOKENS, DOC, 11, NULL) == OK);
    for (size_t i = 0, at = 0; i < d.b.docs; at = d.ends[i++]) {
        size_t n = d.ends[i] - at;
        for (size_t j = 0; j < TOKENS; j++)
            d.target[j] = j >= at && j < d.ends[i] ? (uint32_t)(j % tiny.vocab) : TRAIN_NO_TARGET;
        const struct train_batch one = { d.ids + at, d.target + at, &n, 1 };
        CHECK(train_gradient(&loss, t, &d.b, NULL) == OK);
        CHECK(train_gradient(&alone, t, &one, NULL) == OK && alone == loss);
    }
    train_close(t);
}

static void check_refusals(const struct kernels *k)
{
    struct train *t;
    struct err err;
    struct data d;
    double loss;
    struct model_config c = tiny;
    c.ffn = 40;
    CHECK(train_open(&t, &c, k, NULL, TOKENS, DOC, 1, &err) == ERR_ARG && !t);
    CHECK(strstr(err.msg, "ffn") && strstr(err.msg, "40"));
    c = tiny;
    c.tied = false;
    CHECK(train_open(&t, &c, k, NULL, TOKENS, DOC, 1, &err) == ERR_ARG && !t);
    c = tiny;
    c.qk_norm = true;
    CHECK(train_open(&t, &c, k, NULL, TOKENS, DOC, 1, &err) == ERR_ARG && !t);
    c = tiny;
    c.rope.kind = ROPE_YARN;
    CHECK(train_open(&t, &c, k, NULL, TOKENS, DOC, 1, &err) == ERR_ARG && !t);
    CHECK(train_open(&t, &tiny, k, NULL, DOC - 1, DOC, 1, &err) == ERR_ARG && !t);
    CHECK(train_open(&t, &tiny, k, NULL, TOKENS, DOC, 1, &err) == OK);
    fill(&d, 1);
    d.ids[9] = 48;
    CHECK(train_gradient(&loss, t, &d.b, &err) == ERR_ARG && strstr(err.msg, "token 9"));
    fill(&d, 1);
    d.ends[2] = d.ends[1];
    CHECK(train_gradient(&loss, t, &d.b, &err) == ERR_ARG && strstr(err.msg, "document 2"));
    fill(&d, 1);
    for (size_t i = 0; i < TOKENS; i++)
        d.target[i] = TRAIN_NO_TARGET;
    CHECK(train_gradient(&loss, t, &d.b, &err) == ERR_ARG);
    train_close(t);
    for (long n = 1;; n++) {
        torture_begin(n);
        int rc = train_open(&t, &tiny, k, NULL, TOKENS, DOC, 1, &err);
        int reached = torture_end();
        CHECK(rc == (reached ? ERR_NOMEM : OK));
        train_close(t);
        if (!reached)
            break;
    }
}

int main(void)
{
    struct kernels k;
    CHECK(kernels_pick(&k, NULL, cpu_detect(), NULL) == OK);
    check_gradient(&k);
    check_documents(&k);
    check_refusals(&k);
    uint64_t golden = run_hash(&k, 1);
    for (size_t i = 0; i < kernels_nsets; i++) {
        if (!kernels_runs(kernels_sets[i], cpu_detect()) || (kernels_sets[i]->needs & CPU_INEXACT))
            continue;
        struct kernels set;
        CHECK(kernels_pick(&set, kernels_sets[i]->isa, cpu_detect(), NULL) == OK);
        CHECK(run_hash(&set, i % 3 + 1) == golden);
    }
    printf("hash %016llx\n", (unsigned long long)golden);
    return 0;
}
