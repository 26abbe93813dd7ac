/* exercise.h - what an exercise fills in (README.md): an operation of kernels.h in the set
 * kernels_exercise, or a member of `exercise`. */
#ifndef TESTS_EXERCISES_EXERCISE_H
#define TESTS_EXERCISES_EXERCISE_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#include "kernels/kernels.h"
#include "kernels/math.h"
#include "kernels/sys/cpu.h"
#include "model/sample.h"
#include "model/text/tokenizer_internal.h"
#include "net/cloud_port.h"
#include "router/router.h"

/* The CPU_* bits of what exercises are compiled for. */
#if defined(__x86_64__)
enum { EXERCISE_NEEDS = CPU_AVX2 };
#elif defined(__aarch64__)
enum { EXERCISE_NEEDS = CPU_NEON };
#else
enum { EXERCISE_NEEDS = 0 };
#endif

/* The set of an exercise, with the operation that it fills in. */
#define EXERCISE(...)                                           \
    {                                                           \
        .isa = "exercise", .needs = EXERCISE_NEEDS, __VA_ARGS__ \
    }

#define AHEAD_SHARE 0.3f /* part of the tokens of exercise 12 that are the cloud's */

/* A text that is to be written ahead of the cloud (exercise 12). */
struct ahead_text {
    uint32_t *ids;                 /* [total], of which [n] are the prompt */
    size_t n, total;               /* how many there are, and how many are wanted */
    struct session *edge;          /* empty, with room for all of them */
    struct sampler *sampler;       /* greedy, for the edge's own tokens */
    const struct cloud_port *port; /* the cloud */
    const struct tokenizer *tok;   /* of the edge's model; the exercise does not need it */
    /* True when the token after the first n ids is the cloud's, else it is the edge's own. */
    bool (*routed)(size_t n);
};

struct exercise {
    /* Merge ids[n], one id for each byte of a word, in place; return how many are left. */
    size_t (*merge)(const struct tokenizer *t, uint32_t *ids, size_t n);
    /* Draw the id of place `at` from logits[n] with top-p p. */
    uint32_t (*top_p)(const float *logits, size_t n, float p, uint64_t seed, uint64_t at);
    /* Return the router's score of x[f->dim]. */
    float (*score)(const struct router_form *f, const float *x);
    /* Fill in t->ids from t->n to t->total. */
    void (*ahead)(const struct ahead_text *t);
};

extern const struct exercise exercise;

/* End the check of an exercise that is as it was copied. */
_Noreturn static inline void exercise_unwritten(const char *file)
{
    fprintf(stderr, "%s: not written yet: put your code in place of UNWRITTEN()\n", file);
    exit(1);
}

#define UNWRITTEN() exercise_unwritten(__FILE__)

#endif
