/* t_kernels.c - every kernel of every set against scalar.c, bit by bit.
 *
 *   t_kernels [--seed N] [--rounds N] [--only OP] [--isa SET]
 *
 * Shapes are random; buffers end (or begin) on guard pages and have odd alignments; a crash is
 * reported as a failure with the operation, the set and the seed of its round. KERNEL_OPS and
 * kernels_sets drive the test: a new operation without check_<op> does not compile, a new set needs
 * no line. KERNELS_ROUNDS in the environment is the same as --rounds, for slow emulators. */
#include <setjmp.h>
#include <signal.h>

#include "kernels/sys/cpu.h"
#include "tests/kernels/deadline.h"
#include "tests/kernels/kernels_why.h"

enum { ROUNDS = 150 };

static volatile uint64_t round_seed; /* survives siglongjmp, names the failing round */
static sigjmp_buf crash;
static const void *volatile crash_at; /* the address that was touched */
static volatile sig_atomic_t late;    /* it has not ended, and was not a crash */
static float tolerance;               /* where the set is not exact */
static const char *program;           /* its path */

/* One product to check: panels [p0, p1) of w, n tokens, y rows ldy apart. */
struct product {
    struct panels w;
    size_t n, ldy, p0, p1;
    float *want, *got;
};

static struct product rnd_product(enum ptype type, size_t cols)
{
    /* Sometimes use as many tokens as a session gives, or more rows than a tile takes. */
    size_t far = rnd(8), rows = rnd_size(vast ? 50 : far == 1 ? 700 : 200);
    size_t panels = panels_count(rows), n = vast ? 230 + rnd(30) : rnd_size(far ? 40 : 260);
    struct product c = { .w = rnd_panels(type, rows, cols), .n = n };
    c.p0 = rnd(panels);
    c.p1 = c.p0 + 1 + rnd(panels - c.p0);
    c.ldy = panels * PANEL + rnd(3);
    c.want = buf_out((c.n - 1) * c.ldy + panels * PANEL);
    c.got = buf_out((c.n - 1) * c.ldy + panels * PANEL);
    guard_name(c.got, "y");
    guard_name(c.w.data, "w->data");
    snprintf(shape, sizeof(shape), "rows %zu, cols %zu, n %zu, p0 %zu, p1 %zu, ldy %zu", rows, cols,
             c.n, c.p0, c.p1, c.ldy);
    return c;
}

static size_t product_size(const struct product *c)
{
    return (c->n - 1) * c->ldy + panels_count(c->w.rows) * PANEL;
}

/* Compare within `tolerance` of the sum of |products|, for sets that are not exact. */
static bool near(const struct product *c, const float *x, size_t ldx)
{
    float *row = guard_alloc(c->w.cols * sizeof(*row), at_end);
    for (size_t r = c->p0 * PANEL; r < c->p1 * PANEL && r < c->w.rows; r++) {
        panels_row(row, &c->w, r);
        for (size_t t = 0; t < c->n; t++) {
            float bound = 1e-30f;
            for (size_t k = 0; k < c->w.cols; k++)
                bound += tolerance * fabsf(row[k] * x[t * ldx + k]);
            size_t at = t * c->ldy + r;
            if (!(fabsf(c->want[at] - c->got[at]) <= bound)) {
                differ_floats(at, c->want[at], c->got[at]);
                return false;
            }
        }
    }
    return true;
}

#define CHECK_TYPE(op, check, type)                                                   \
    static const char *check_##op(const struct kernels *ref, const struct kernels *k) \
    {                                                                                 \
        return check(ref, k, type);                                                   \
    }

static const char *check_matmul_float(const struct kernels *ref, const struct kernels *k,
                                      enum ptype type)
{
    struct product c = rnd_product(type, vast ? 1200 + rnd(300) : rnd_size(rnd(8) ? 300 : 1200));
    size_t cols = c.w.cols, ldx = cols + rnd(3);
    float *x = buf_f32((c.n - 1) * ldx + cols);
    const struct kernels *set[] = { ref, k };
    guard_name(x, "x");
    snprintf(shape + strlen(shape), sizeof(shape) - strlen(shape), ", ldx %zu", ldx);
    for (int i = 0; i < 2; i++)
        (type == P_F32 ? set[i]->matmul_f32 : set[i]->matmul_bf16)(i ? c.got : c.want, c.ldy, &c.w,
                                                                   x, ldx, c.n, c.p0, c.p1);
    if (!exact)
        return near(&c, x, ldx) ? NULL : "beyond tolerance";
    return differs("bits", c.want, c.got, product_size(&c));
}

CHECK_TYPE(matmul_f32, check_matmul_float, P_F32)
CHECK_TYPE(matmul_bf16, check_matmul_float, P_BF16)

static void name_qact(const struct qact *x, const char *q, const char *scale)
{
    guard_name(x->q, q);
    guard_name(x->scale, scale);
}

static const char *check_matmul_blocks(const struct kernels *ref, const struct kernels *k,
                                       enum ptype type)
{
    size_t unit = panels_unit(type), most = unit == GROUP ? 9 : 3;
    size_t cols = (vast ? 150 * GROUP / unit + rnd(6) : rnd_size(rnd(8) ? most : 4 * most)) * unit;
    struct product c = rnd_product(type, cols);
    struct qact x = rnd_qact(c.n, c.w.cols);
    const struct kernels *set[] = { ref, k };
    name_qact(&x, "x->q", "x->scale");
    for (int i = 0; i < 2; i++)
        kernels_product(set[i], type)(i ? c.got : c.want, c.ldy, &c.w, &x, c.n, c.p0, c.p1);
    return differs("bits", c.want, c.got, product_size(&c));
}

CHECK_TYPE(matmul_q8, check_matmul_blocks, P_Q8)
CHECK_TYPE(matmul_q4, check_matmul_blocks, P_Q4)
CHECK_TYPE(matmul_q4_1, check_matmul_blocks, P_Q4_1)
CHECK_TYPE(matmul_q5_0, check_matmul_blocks, P_Q5_0)
CHECK_TYPE(matmul_q5_1, check_matmul_blocks, P_Q5_1)
CHECK_TYPE(matmul_q2_k, check_matmul_blocks, P_Q2_K)
CHECK_TYPE(matmul_q3_k, check_matmul_blocks, P_Q3_K)
CHECK_TYPE(matmul_q4_k, check_matmul_blocks, P_Q4_K)
CHECK_TYPE(matmul_q5_k, check_matmul_blocks, P_Q5_K)
CHECK_TYPE(matmul_q6_k, check_matmul_blocks, P_Q6_K)
CHECK_TYPE(matmul_iq4_nl, check_matmul_blocks, P_IQ4_NL)
CHECK_TYPE(matmul_iq4_xs, check_matmul_blocks, P_IQ4_XS)

static const char *check_quantize_q8(const struct kernels *ref, const struct kernels *k)
{
    size_t n = rnd_size(3), cols = rnd_size(9) * GROUP, t = rnd(n);
    float *x = buf_f32(cols);
    if (rnd(3) == 0) { /* a group around the smallest live amax, 2^-100, or on it */
        float most = ldexpf(1, -98 - (int)rnd(4));
        for (size_t i = 0; i < GROUP; i++)
            x[i] = i || rnd(2) ? (float)(rand_unit(seed_now, drawn++) * 2 - 1) * most : most;
    }
    if (rnd(3) == 0) /* exact halves: amax 127 makes the scale 1 */
        for (size_t i = 0; i < GROUP; i++)
            x[i] = i ? (float)rnd(254) - 126.5f : 127.0f;
    struct qact want = rnd_qact(n, cols), got = rnd_qact(n, cols);
    memcpy(got.q, want.q, n * cols);
    memcpy(got.scale, want.scale, n * cols / GROUP * sizeof(float));
    memcpy(got.bias, want.bias, n * cols / GROUP * sizeof(int32_t));
    memcpy(got.half, want.half, n * cols / 16 * sizeof(int32_t));
    memcpy(got.sum, want.sum, n * cols / GROUP * sizeof(float));
    name_qact(&got, "y->q", "y->scale");
    guard_name(x, "x");
    snprintf(shape, sizeof(shape), "cols %zu, t %zu", cols, t);
    ref->quantize_q8(&want, t, x);
    k->quantize_q8(&got, t, x);
    if (!differ_same_i8(want.q, got.q, n * cols))
        return "values";
    if (!differ_same_i32(want.bias, got.bias, n * cols / GROUP))
        return "bias";
    if (!differ_same_i32(want.half, got.half, n * cols / 16))
        return "half";
    const char *why = differs("sum", want.sum, got.sum, n * cols / GROUP);
    return why ? why : differs("scales", want.scale, got.scale, n * cols / GROUP);
}

static const char *check_rmsnorm_f32(const struct kernels *ref, const struct kernels *k)
{
    size_t n = rnd_size(1000);
    float *x = buf_f32(n), *w = buf_f32(n), *want = buf_out(n), *got = buf_out(n);
    guard_name(x, "x");
    guard_name(w, "w");
    guard_name(got, "y");
    snprintf(shape, sizeof(shape), "n %zu", n);
    ref->rmsnorm_f32(want, x, w, n, 1e-6f);
    k->rmsnorm_f32(got, x, w, n, 1e-6f);
    const char *why = differs("bits", want, got, n);
    if (why)
        return why;
    k->rmsnorm_f32(x, x, w, n, 1e-6f);
    return differs("y is x", want, x, n);
}

static const char *check_rope_f32(const struct kernels *ref, const struct kernels *k)
{
    size_t half = rnd_size(70), bytes = 2 * half * sizeof(float);
    float *want = buf_f32(2 * half), *got = buf_out(2 * half), *x = buf_out(2 * half);
    float *c = buf_f32(half), *s = buf_f32(half), *wrong = buf_out(2 * half);
    guard_name(got, "x");
    guard_name(c, "cos");
    guard_name(s, "sin");
    snprintf(shape, sizeof(shape), "half %zu", half);
    memcpy(got, want, bytes);
    memcpy(x, want, bytes);
    ref->rope_f32(want, c, s, half);
    k->rope_f32(got, c, s, half);
    const char *why = differs("bits", want, got, 2 * half);
    for (size_t m = 0; why && far_off && m < 3; m++) {
        memcpy(wrong, x, bytes);
        rope_wrong(wrong, c, s, half, m);
        hint = nearly(wrong, got, 2 * half) ? rope_mistakes[m] : hint;
    }
    return why;
}

static const char *check_add_f32(const struct kernels *ref, const struct kernels *k)
{
    size_t n = rnd_size(500);
    float *want = buf_f32(n), *got = buf_out(n), *x = buf_f32(n);
    memcpy(got, want, n * sizeof(*got));
    ref->add_f32(want, x, n);
    k->add_f32(got, x, n);
    return differ_same(want, got, n) ? NULL : "bits";
}

static const char *check_swiglu_f32(const struct kernels *ref, const struct kernels *k)
{
    size_t n = rnd_size(500);
    float *g = buf_f32(n), *u = buf_f32(n), *want = buf_out(n), *got = buf_out(n);
    guard_name(g, "g");
    guard_name(u, "u");
    guard_name(got, "y");
    snprintf(shape, sizeof(shape), "n %zu", n);
    ref->swiglu_f32(want, g, u, n);
    k->swiglu_f32(got, g, u, n);
    const char *why = differs("bits", want, got, n);
    if (why)
        return why;
    memcpy(got, g, n * sizeof(*g));
    k->swiglu_f32(got, got, u, n);
    why = differs("y is g", want, got, n);
    if (why)
        return why;
    k->swiglu_f32(u, g, u, n);
    return differs("y is u", want, u, n);
}

static struct attn_part part_out(size_t nq, size_t hd16)
{
    return (struct attn_part){ buf_out(nq), buf_out(nq), buf_out(nq * hd16) };
}

/* Unused lanes of the last group of keys hold random bytes, which must not matter. */
static const char *check_attn(const struct kernels *ref, const struct kernels *k, enum kvcache type)
{
    size_t nq = rnd_size(rnd(4) ? 12 : 112), per = rnd_size(8),
           hd16 = rnd(2) ? 64 + 64 * rnd(2) : 16 * rnd_size(9);
    size_t nk = 1 + rnd(ATTN_BLOCK), first = 1 + rnd(ATTN_BLOCK + 9);
    size_t group = kvcache_keys_bytes(type, hd16), row = kvcache_value_bytes(type, hd16);
    float scale = rnd(9) ? 0.125f : 0.0f, *q = buf_f32(nq * hd16), *x = buf_f32(hd16);
    struct attn_part part[] = { part_out(nq, hd16), part_out(nq, hd16) };
    unsigned char *keys = guard_alloc((nk + 15) / 16 * group, at_end);
    unsigned char *values = guard_alloc(nk * row, at_end);
    for (size_t i = 0; i < (nk + 15) / 16 * group; i++)
        keys[i] = (unsigned char)rnd(256);
    for (size_t j = 0; j < nk; j++) {
        fill_f32(x, hd16);
        kvcache_put_key(type, keys + j / 16 * group, j % 16, x, hd16);
        fill_f32(x, hd16);
        kvcache_put_value(type, values + j * row, x, hd16);
    }
    const struct attn_call c = { type, q, keys, values, nq, per, first, nk, hd16, scale };
    guard_name(part[1].max, "y->max");
    guard_name(part[1].sum, "y->sum");
    guard_name(part[1].out, "y->out");
    guard_name(q, "q");
    guard_name(keys, "k");
    guard_name(values, "v");
    snprintf(shape, sizeof(shape), "nq %zu, per %zu, first %zu, nk %zu, hd16 %zu", nq, per, first,
             nk, hd16);
    attn_run(&c, &part[0], ref);
    attn_run(&c, &part[1], k);
    const char *why = attn_differs(&part[0], &part[1], &c);
    if (why && far_off)
        attn_hint(&part[1], &c, &part[0], ref);
    return why;
}

CHECK_TYPE(attn_f32, check_attn, KVCACHE_F32)
CHECK_TYPE(attn_f16, check_attn, KVCACHE_F16)
CHECK_TYPE(attn_q8, check_attn, KVCACHE_Q8)

static const char *check_attn_merge(const struct kernels *ref, const struct kernels *k)
{
    size_t hd16 = 16 * rnd_size(16);
    float *want = buf_f32(hd16 + 2), *got = buf_out(hd16 + 2), *b = buf_f32(hd16 + 2);
    if (rnd(4) == 0) { /* the smallest x whose exp_f32 is not 0 */
        bool first = rnd(2);
        want[0] = first ? 0.0f : -87.0f;
        b[0] = first ? -87.0f : 0.0f;
    }
    memcpy(got, want, (hd16 + 2) * sizeof(*got));
    ref->attn_merge(want, want + 1, want + 2, b[0], b[1], b + 2, hd16);
    k->attn_merge(got, got + 1, got + 2, b[0], b[1], b + 2, hd16);
    return differ_same(want, got, hd16 + 2) ? NULL : "bits";
}

static const char *check_argmax_f32(const struct kernels *ref, const struct kernels *k)
{
    size_t n = rnd_size(500), kind = rnd(4);
    float *x = buf_f32(n);
    for (size_t i = 0; kind < 2 && i < n; i++) /* many equals, or zeros of both signs */
        x[i] = kind ? (rnd(2) ? 0.0f : -0.0f) : (float)rnd(3);
    for (size_t i = 0; kind == 2 && wild && i < n; i++)
        x[i] = rnd(2) ? NAN : -INFINITY;
    size_t want = ref->argmax_f32(x, n), got = k->argmax_f32(x, n);
    differ_ints(0, (int64_t)want, (int64_t)got);
    return want == got ? NULL : "index";
}

static const char *check_expsum_f32(const struct kernels *ref, const struct kernels *k)
{
    size_t n = rnd_size(500);
    float *x = buf_f32(n), max = rnd_f32(), want[2], got[2];
    guard_name(x, "x");
    snprintf(shape, sizeof(shape), "n %zu, max %.9g", n, (double)max);
    ref->expsum_f32(want, x, n, max);
    k->expsum_f32(got, x, n, max);
    const char *why = differs("out[0]", want, got, 1);
    return why ? why : differs("out[1]", want + 1, got + 1, 1);
}

static const struct op {
    const char *name;
    const char *(*check)(const struct kernels *ref, const struct kernels *k);
} ops[] = {
#define X(op) { #op, check_##op },
    KERNEL_OPS(X)
#undef X
};

static bool op_in_set(size_t op, const struct kernels *set)
{
    size_t i = 0;
#define X(o)       \
    if (i++ == op) \
        return set->o != NULL;
    KERNEL_OPS(X)
#undef X
    return false;
}

static void on_crash(int sig, siginfo_t *about, void *context)
{
    (void)context;
    crash_at = about->si_addr;
    late = sig == SIGVTALRM;
    siglongjmp(crash, sig); /* SIGSEGV: guard page. SIGILL: wrong needs or wrong flags. */
}

/* True when every round agrees with scalar. */
static bool check(const struct op *op, const struct kernels *k, uint64_t seed, uint64_t rounds)
{
    const char *volatile why = NULL;
    volatile uint64_t near = rounds; /* the first round in which only roundings differ */
    differ_text[0] = shape[0] = 0;
    hint = NULL;
    deadline_set(strcmp(k->isa, "exercise") == 0);
    if (sigsetjmp(crash, 1)) {
        why = late ? DEADLINE_MISSED : "crashed";
        if (!late)
            guard_where(differ_text, sizeof(differ_text), crash_at);
    }
    for (uint64_t i = 0; !why && i < rounds; i++) {
        begin_round(round_seed = seed + i);
        differ_text[0] = extreme = 0;
        why = op->check(&kernels_scalar, k);
        guard_reset();
        if (why_nearly(why) || (extreme && near < rounds)) { /* another round may show a mistake */
            near = i < near ? i : near;
            why = NULL;
        }
    }
    if (!why && near < rounds) {
        begin_round(round_seed = seed + near);
        differ_text[0] = 0;
        why = op->check(&kernels_scalar, k);
        why = why ? why : "not twice the same";
    }
    deadline_set(false);
    if (!why)
        return true;
    guard_reset();
    printf("FAIL %s of %s: %s%s%s%s%s%s; again: %s --only %s --isa %s --rounds 1 --seed %llu\n",
           op->name, k->isa, why, differ_text, *shape ? "; " : "", shape, hint ? "; " : "",
           hint ? hint : "", program, op->name, k->isa, (unsigned long long)round_seed);
    return false;
}

struct options {
    uint64_t seed, rounds;
    const char *only, *isa;
};

static struct options parse(int argc, char **argv)
{
    struct options o = { .seed = 1, .rounds = ROUNDS };
    const char *env = getenv("KERNELS_ROUNDS");
    if (env)
        o.rounds = strtoull(env, NULL, 10);
    for (int i = 1; i + 1 < argc; i += 2) {
        if (!strcmp(argv[i], "--seed"))
            o.seed = strtoull(argv[i + 1], NULL, 10);
        else if (!strcmp(argv[i], "--rounds"))
            o.rounds = strtoull(argv[i + 1], NULL, 10);
        else if (!strcmp(argv[i], "--only"))
            o.only = argv[i + 1];
        else if (!strcmp(argv[i], "--isa"))
            o.isa = argv[i + 1];
    }
    if (!o.rounds)
        o.rounds = 1;
    return o;
}

/* Check everything in one set; return the number of failures. scalar runs against itself: it must
 * be deterministic and stay inside its buffers. */
static int check_set(const struct kernels *set, const struct options *o, int *ran)
{
    int failed = 0, checked = 0;
    exact = !(set->needs & CPU_INEXACT);
    tolerance = set->needs & CPU_BLAS ? 1e-5f : 4e-3f; /* bf16 rounds to 2^-9 */
    for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
        if (!op_in_set(i, set) || (o->only && strcmp(o->only, ops[i].name)))
            continue;
        checked++;
        failed += !check(&ops[i], set, o->seed, o->rounds);
    }
    printf("%-12s %2d operation%s, %d failed\n", set->isa, checked, checked == 1 ? "" : "s",
           failed);
    *ran += checked;
    return failed;
}

int main(int argc, char **argv)
{
    struct options o = parse(argc, argv);
    /* What compares sees a difference, and says it. */
    int failed = differ_same((const float[]){ 1, 2 }, (const float[]){ 1, 2.5f }, 2), ran = 0;
    failed += strcmp(differ_text, ", at 1: expected 2 (40000000), found 2.5 (40200000)") != 0;
    failed += differ_same_i8((const int8_t[]){ 3, -128 }, (const int8_t[]){ 3, 127 }, 2);
    failed += strcmp(differ_text, ", at 1: expected -128, found 127") != 0;
    program = argv[0];
    struct sigaction sa = { .sa_sigaction = on_crash, .sa_flags = SA_SIGINFO };
    sigaction(SIGSEGV, &sa, NULL);
    sigaction(SIGBUS, &sa, NULL);
    sigaction(SIGILL, &sa, NULL);
    sigaction(SIGVTALRM, &sa, NULL);

    unsigned cpu = cpu_detect();
    for (size_t s = 0; s < kernels_nsets; s++) {
        const struct kernels *set = kernels_sets[s];
        struct kernels own;
        kernels_own(&own, set);
        if (o.isa && strcmp(o.isa, set->isa))
            continue;
        if (kernels_ready(set, cpu))
            failed += check_set(&own, &o, &ran);
        else
            printf("%-12s SKIP: not on this machine\n", set->isa);
    }
    printf("kernels: %d checked, %d failed, seed %llu, %llu round%s each\n", ran, failed,
           (unsigned long long)o.seed, (unsigned long long)o.rounds, o.rounds == 1 ? "" : "s");
    return failed || !ran;
}
