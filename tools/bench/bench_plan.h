/* bench_plan.h - which tests `bench model` runs. */
#ifndef TOOLS_BENCH_BENCH_PLAN_H
#define TOOLS_BENCH_BENCH_PLAN_H

#include "tools/bench/bench_model.h"

enum { BENCH_TESTS = BENCH_LIST + BENCH_LIST * BENCH_LIST }; /* most at one depth */

/* All lists of the command line, and the context that the largest test needs. */
struct bench_plan {
    struct bench_list prompt, gen, depth, threads, texts;
    enum kvcache kv;
    size_t context;
};

/* Parse the lists of the command line and compute the context. ERR_ARG. */
int bench_plan_make(struct bench_plan *p, const struct bench_model_options *m, struct err *err);

/* Return test j at a depth, which is an index: the prompts come first, then those of each number of
 * tokens to generate, one for each number of texts. */
struct bench_test bench_plan_test(const struct bench_plan *p, size_t depth, size_t j,
                                  size_t threads);

size_t bench_list_most(const struct bench_list *l);

#endif
