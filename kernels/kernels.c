#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "kernels/sys/cpu.h"
#include "kernels/kernels.h"
#include "kernels/openblas.h"

/* The tables of the instruction sets, and a learner's own one (tests/exercises), which only the
 * programs of `make exercise` have. They stand here, so that a new set compiles nothing else. */
extern const struct kernels kernels_avx2, kernels_avxvnni, kernels_avx512, kernels_avx512vnni,
    kernels_avx512bf16, kernels_neon, kernels_i8mm, kernels_blas, kernels_exercise;

const struct kernels *const kernels_sets[] = {
    &kernels_scalar, /* the definition */
#if defined(__x86_64__)
    &kernels_avx2,       /* 256 bits, FMA */
    &kernels_avxvnni,    /* dot products of bytes in 256 bits */
    &kernels_avx512,     /* 512 bits */
    &kernels_avx512vnni, /* dot products of bytes in 512 bits */
    &kernels_avx512bf16, /* dot products of BF16, which round: opt-in */
#elif defined(__aarch64__)
    &kernels_neon,    /* 128 bits, FMA */
    &kernels_dotprod, /* dot products of bytes */
    &kernels_i8mm,    /* products of small matrices of bytes */
#endif
#if defined(EXERCISE)
    &kernels_exercise,
#endif
#if defined(HAVE_BLAS)
    &kernels_blas,
#endif
};
const size_t kernels_nsets = sizeof(kernels_sets) / sizeof(kernels_sets[0]);

/* A member of struct kernels that KERNEL_OPS does not list would never be dispatched. */
#define X(op) +1
_Static_assert(sizeof(struct kernels) == offsetof(struct kernels, matmul_f32) +
                                             (0 KERNEL_OPS(X)) * sizeof(void (*)(void)),
               "KERNEL_OPS lists every member of struct kernels");
#undef X

bool kernels_runs(const struct kernels *set, unsigned cpu)
{
    return (set->needs & cpu) == set->needs;
}

bool kernels_ready(const struct kernels *set, unsigned cpu)
{
    return kernels_runs(set, cpu) && (!(set->needs & CPU_BLAS) || openblas_load(NULL));
}

matmul_blocks *kernels_product(const struct kernels *k, enum ptype type)
{
    matmul_blocks *const products[P_TYPES] = {
        [P_Q8] = k->matmul_q8,     [P_Q4] = k->matmul_q4,         [P_Q4_1] = k->matmul_q4_1,
        [P_Q5_0] = k->matmul_q5_0, [P_Q5_1] = k->matmul_q5_1,     [P_Q2_K] = k->matmul_q2_k,
        [P_Q3_K] = k->matmul_q3_k, [P_Q4_K] = k->matmul_q4_k,     [P_Q5_K] = k->matmul_q5_k,
        [P_Q6_K] = k->matmul_q6_k, [P_IQ4_NL] = k->matmul_iq4_nl, [P_IQ4_XS] = k->matmul_iq4_xs,
    };
    return products[type];
}

/* Override the members of out with those that set has. */
static void kernels_lay(struct kernels *out, const struct kernels *set)
{
    out->needs |= set->needs;
#define X(op)    \
    if (set->op) \
        out->op = set->op;
    KERNEL_OPS(X)
#undef X
    if (set->rest)
        kernels_lay(out, set->rest);
}

void kernels_own(struct kernels *out, const struct kernels *set)
{
    *out = (struct kernels){ .isa = set->isa };
    kernels_lay(out, set);
}

/* True when the set gives the bits of scalar.c, so that it may be chosen by default: that of a
 * learner need not. */
static bool kernels_exact(const struct kernels *set)
{
#if defined(EXERCISE)
    if (set == &kernels_exercise)
        return false;
#endif
    return !(set->needs & CPU_INEXACT);
}

/* Set an error that lists the sets that run here, or says that an item lacks its comma. */
static int kernels_refuse(const char *isa, unsigned cpu, struct err *err)
{
    char names[128] = "";
    size_t at = 0;
    if (isa[strcspn(isa, "=,")] == '=')
        return err_set(err, ERR_ARG, "isa: expected a set or a comma first, as ',%s', found '%s'",
                       isa, isa);
    for (size_t i = 0; i < kernels_nsets; i++)
        if (kernels_ready(kernels_sets[i], cpu) && at < sizeof(names))
            at += (size_t)snprintf(names + at, sizeof(names) - at, "%s%s", at ? ", " : "",
                                   kernels_sets[i]->isa);
    return err_set(err, ERR_ARG, "isa: expected one of %s, found %s", names, isa);
}

/* Fix the properties that the items in text name, each after a comma, for all types. */
static int kernels_fix(struct kernels *out, const char *text, struct err *err)
{
    static const struct {
        const char *name;
        size_t at, least, most;
    } known[] = { { ",panels=", offsetof(struct tune, panels), 1, 2 },
                  { ",run=", offsetof(struct tune, run), 1, 1 << 30 },
                  { ",ahead=", offsetof(struct tune, ahead), 0, 1 << 20 } };
    out->tune_fixed = *text != 0;
    while (*text) {
        char *end = NULL;
        for (size_t i = 0; !end && i < sizeof(known) / sizeof(known[0]); i++) {
            size_t n = strlen(known[i].name);
            if (strncmp(text, known[i].name, n) != 0 || text[n] < '0' || text[n] > '9')
                continue;
            unsigned long value = strtoul(text + n, &end, 10);
            if (value < known[i].least || value > known[i].most || (*end && *end != ','))
                return err_set(err, ERR_ARG, "isa: expected %s%zu to %zu, found '%s'",
                               known[i].name + 1, known[i].least, known[i].most, text + 1);
            for (size_t j = 0; j < P_TYPES; j++)
                memcpy((char *)&out->tune[j] + known[i].at, &(size_t){ value }, sizeof(size_t));
        }
        if (!end)
            return err_set(err, ERR_ARG, "isa: expected panels=N, run=N or ahead=N, found '%s'",
                           text + 1);
        text = end;
    }
    return OK;
}

/* Find the last set that fits, then lay all runnable exact sets up to it over scalar, in order. */
int kernels_pick(struct kernels *out, const char *isa, unsigned cpu, struct err *err)
{
    const struct kernels *last = NULL;
    const char *items = isa ? isa + strcspn(isa, ",") : "";
    size_t n = isa ? (size_t)(items - isa) : 0;
    for (size_t i = 0; i < kernels_nsets; i++) {
        const struct kernels *set = kernels_sets[i];
        bool named = strlen(set->isa) == n && !strncmp(set->isa, isa ? isa : "", n);
        if (kernels_runs(set, cpu) && (n ? named : kernels_exact(set)))
            last = set;
    }
    if (!last)
        return kernels_refuse(isa, cpu, err);
    const char *why;
    if ((last->needs & CPU_BLAS) && !openblas_load(&why))
        return err_set(err, ERR_ARG, "isa '%s': %s", isa, why);
    *out = kernels_scalar;
    for (size_t i = 0; i < P_TYPES; i++)
        out->tune[i] = !(cpu & CPU_AMD) ? (struct tune)TUNE_DEFAULT
                                        : (struct tune)TUNE_AMD(i <= P_Q4 ? 0 : 8192);
    for (size_t i = 1; i < kernels_nsets && kernels_sets[i - 1] != last; i++)
        if (kernels_runs(kernels_sets[i], cpu) &&
            (kernels_exact(kernels_sets[i]) || kernels_sets[i] == last))
            kernels_lay(out, kernels_sets[i]);
    out->isa = last->isa;
    return kernels_fix(out, items, err);
}
