/* Tests routers of several members and of two outputs: against a plain computation in double, on
 * all kernel sets and with threads; as files, good ones and hostile ones. */
#include "kernels/kernels.h"
#include "kernels/sys/cpu.h"
#include "kernels/sys/pool.h"
#include "tests/router/loop_help.h"
#include "tests/router/router_help.h"
#include "router/learn/form_save.h"

enum { SETS = 16, SCRATCH = 4096 };

static struct kernels sets[SETS];
static size_t nsets;
static struct pool *pool;
static const char *path;

/* Return the probability that an output of a member gives. */
static double plain_output(const struct router_form *f, size_t member, size_t out, const float *x)
{
    size_t outs = f->gain ? 2 : 1, units = f->width / f->members;
    double z = (double)f->b2[member * outs + out];
    for (size_t i = 0; i < units; i++) {
        double sum = (double)f->b1[member * units + i];
        for (size_t k = 0; k < f->dim; k++)
            sum += (double)f->w1[(member * units + i) * f->dim + k] * (double)x[k];
        z += sum > 0 ? sum * (double)f->w2[(member * outs + out) * units + i] : 0;
    }
    return 1 / (1 + exp(-z));
}

static double plain_score(const struct router_form *f, const float *x)
{
    double sum = 0;
    for (size_t m = 0; m < f->members; m++)
        sum += f->gain ? (1 - plain_output(f, m, 0, x) + plain_output(f, m, 1, x)) / 2
                       : plain_output(f, m, 0, x);
    return sum / (double)f->members;
}

/* A form has the score of the plain computation, the same bits on all sets, with threads, and read
 * from a file; the parts of its units and its bias are the mean of the sums. */
static void check_form(const struct router_form *f, uint64_t seed, const char *name)
{
    static float scratch[SCRATCH], parts[SCRATCH];
    struct router *r[SETS + 2];
    size_t n = nsets + 2;
    CHECK(form_save(path, f, NULL) == OK);
    for (size_t i = 0; i < nsets; i++)
        CHECK(router_make(&r[i], f, "form", &sets[i], NULL) == OK);
    CHECK(router_make(&r[nsets], f, "form", &sets[0], NULL) == OK);
    CHECK(router_open(&r[nsets + 1], path, &sets[nsets - 1], NULL) == OK);
    router_threads(r[nsets], pool);
    CHECK(!strcmp(router_name(r[n - 1]), name) && router_scratch(r[0]) <= SCRATCH);
    CHECK(router_net(r[n - 1]).members == f->members && router_net(r[n - 1]).gain == f->gain);
    CHECK(router_net(r[0]).width == f->width && router_dim(r[0]) == f->dim);
    for (uint64_t round = 0; round < 20; round++) {
        float x[96];
        for (size_t i = 0; i < f->dim; i++)
            x[i] = (float)(rand_unit(seed + round, i) * 4 - 2);
        float y = router_score(r[0], x, scratch);
        CHECK(fabs((double)y - plain_score(f, x)) < 1e-6 && y > 0 && y < 1);
        double sum = (double)router_parts(r[0], scratch, parts), want = 0;
        for (size_t i = 0; i < f->width; i++)
            sum += (double)parts[i];
        for (size_t m = 0; m < f->members; m++)
            for (size_t out = 0; out < (f->gain ? 2 : 1); out++) {
                double p = plain_output(f, m, out, x), z = log(p / (1 - p));
                want += (f->gain && !out ? -z : z) / (double)f->members;
            }
        CHECK(fabs(sum - want) < 1e-4);
        for (size_t i = 1; i < n; i++)
            CHECK(router_score(r[i], x, scratch) == y);
        x[round % f->dim] = NAN;
        CHECK(router_score(r[0], x, scratch) == 0);
    }
    for (size_t i = 0; i < n; i++)
        router_close(r[i]);
}

/* All kinds, with 1 to 16 members of odd and even widths. */
static void check_kinds(void)
{
    static const size_t members[] = { 1, 2, 3, 5, 16 };
    for (size_t i = 0; i < sizeof(members) / sizeof(*members); i++)
        for (unsigned kind = 0; kind < 8; kind++) {
            struct router_form f;
            bool gain = kind & 1, hidden = !(kind & 2), features = !hidden || kind & 4;
            size_t dim = (hidden ? (size_t)37 : 0) + (features ? (size_t)FEATURES : 0);
            form_random(&f, 100 * i + 10 * kind, members[i], gain, dim, 7 + 13 * (kind & 1),
                        features);
            check_form(&f, kind,
                       gain     ? hidden ? "gain" : "gain-none"
                       : hidden ? features ? "mix" : "mlp"
                                : "combined");
            router_form_close(&f);
        }
    struct router_form f;
    form_random(&f, 9, 5, true, 64, 640 / 5, false); /* large enough to be shared by threads */
    check_form(&f, 9, "gain");
    router_form_close(&f);
}

/* Two units that read one input each, by hand: P(mends) = sigmoid(2), P(spoils) = sigmoid(-3). */
static void check_by_hand(void)
{
    float w1[] = { 1, 0, 0, 1 }, b1[] = { 0, 0 }, w2[] = { 2, 0, 0, -3 }, scratch[64], parts[2];
    struct router_form f = { .dim = 2, .width = 2, .members = 1, .gain = true };
    struct router *r;
    f.w1 = w1;
    f.b1 = b1;
    f.w2 = w2;
    CHECK(router_make(&r, &f, "form", &sets[0], NULL) == OK);
    float y = router_score(r, (const float[]){ 1, 1 }, scratch);
    double mends = 1 / (1 + exp(-2.0)), spoils = 1 / (1 + exp(3.0));
    CHECK(fabs((double)y - (1 - mends + spoils) / 2) < 1e-7);
    CHECK(router_parts(r, scratch, parts) == 0 && parts[0] == -2 && parts[1] == -3);
    CHECK(router_score(r, (const float[]){ -1, -1 }, scratch) == 0.5f);
    router_close(r);
    f.high = true;
    struct err err;
    CHECK(router_make(&r, &f, "form", &sets[0], &err) == ERR_FORMAT && strstr(err.msg, "high"));
}

/* A file with tensors of these shapes, all zero, is refused with these words. */
static void refuse(size_t units, size_t dim, size_t rows, size_t cols, size_t biases,
                   const char *said)
{
    static float zeros[1 << 20];
    const struct tensor t[] = {
        { "router.w1", W_F32, 2, { units, dim }, zeros, units * dim * sizeof(float) },
        { "router.b1", W_F32, 1, { units }, zeros, units * sizeof(float) },
        { "router.w2", W_F32, 2, { rows, cols }, zeros, rows * cols * sizeof(float) },
        { "router.b2", W_F32, 1, { biases }, zeros, biases * sizeof(float) },
    };
    CHECK(safetensors_write(path, t, 4, NULL, NULL) == OK);
    router_refused(path, &sets[0], said);
}

static void check_refused(void)
{
    struct router_form f;
    struct router *r;
    struct err err = { "" };
    static const char shape[] = "tensor router.w2: expected [K,N] or [2 K,N] with K N = ";
    refuse(4, 3, 1, 8, 1, shape); /* no member: w2 is wider than all units */
    refuse(34, 3, 17, 2, 17, "and K of 1 to 16 members, found [17,2]");
    refuse(34, 3, 34, 2, 34, "and K of 1 to 16 members, found [34,2]");
    refuse(5, 3, 2, 2, 2, shape); /* units over */
    refuse(4, 3, 3, 2, 3, shape); /* three outputs of two members */
    refuse(4, 3, 2, 2, 4, "tensor router.b2: expected [2]");
    refuse(4, 3, 4, 2, 2, "tensor router.b2: expected [4]");
    refuse(640, 1600, 5, 128, 5, "tensor router.w1: expected at most 4000000 bytes in a file of ");
    form_random(&f, 1, 1, true, 1600, 640, false); /* one member may be larger */
    CHECK(router_make(&r, &f, "large", &sets[0], &err) == OK);
    router_close(r);
    static const size_t members[] = { 0, 17, 3 };
    for (size_t i = 0; i < 3; i++) {
        f.members = members[i];
        CHECK(router_make(&r, &f, "form", &sets[0], &err) == ERR_FORMAT && !r);
        CHECK(strstr(err.msg, "form: tensor router.w2: expected 1 to 16 members of equal width"));
    }
    router_form_close(&f);
    form_random(&f, 1, 2, false, 5, 4, false);
    CHECK(form_save(path, &f, NULL) == OK);
    open_without_memory(path, &sets[0]);
    router_form_close(&f);
}

int main(void)
{
    path = in_scratch("router");
    for (size_t i = 0; i < kernels_nsets && nsets < SETS; i++)
        if (kernels_runs(kernels_sets[i], cpu_detect()) && !(kernels_sets[i]->needs & CPU_INEXACT))
            CHECK(kernels_pick(&sets[nsets++], kernels_sets[i]->isa, cpu_detect(), NULL) == OK);
    CHECK(nsets && pool_open(&pool, 3, NULL) == OK);
    check_by_hand();
    check_kinds();
    check_refused();
    pool_close(pool);
    return 0;
}
