/* eval.h - the tasks of `mizzle eval`. */
#ifndef TOOLS_EVAL_EVAL_H
#define TOOLS_EVAL_EVAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/session.h"
#include "router/policy.h"

struct err;
struct kernels;

struct eval_options {
    const char *policies; /* names separated by commas; NULL: mlp if there is a router */
    size_t questions;     /* 0: the task's default */
    size_t max_tokens;    /* limit of one answer */
    size_t context;       /* ppl: window; 0: the task's default */
    const char *data;     /* agree: path of lines of ids */
    const char *file;     /* ppl: path of a text; NULL: the demo world's test stream */
    uint64_t seed;        /* for the test stream and the random policy */
    uint64_t world;       /* seed of the world */
    float share;          /* to route without a threshold; NaN: as the first policy routed */
    float target;         /* agree: share for every policy; NaN: several */
    bool json, quiet;
};

enum { EVAL_POLICIES = 8 };

struct eval_result {
    enum policy policy;
    float threshold;
    size_t questions, right;
    size_t tokens, cloud, fallback; /* generated; of these, from the cloud and after a fault */
    double ms;                      /* over all answers, without startup */
    uint64_t bytes_up, bytes_down;
};

/* Parse a list of policy names separated by commas into out, *n of them. ERR_ARG names the one that
 * is unknown. */
int eval_policies(enum policy out[EVAL_POLICIES], size_t *n, const char *list, struct err *err);

/* Run the task and print its results to stdout: a table, or one line of JSON for each result.
 * Return OK or an error code. */
int eval_milli(const struct eval_options *o, struct err *err);
int eval_ppl(const struct eval_options *o, struct err *err);
/* How often and how well a small model agrees with a large one on texts of ids. */
int eval_agree(const struct eval_options *o, struct err *err);

/* Return -ln p of one token, in double, and set *best to the most likely one of size. */
double eval_surprise(size_t *best, const float *logits, size_t size, uint32_t id,
                     const struct kernels *k);

#endif
