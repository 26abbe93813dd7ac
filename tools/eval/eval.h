/* eval.h - the tasks of `mizzle eval`. */
#ifndef TOOLS_EVAL_EVAL_H
#define TOOLS_EVAL_EVAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/session.h"
#include "router/policy.h"

struct err;

struct eval_options {
    const char *policies; /* names with commas between, or NULL: mlp where there is a router */
    size_t questions;     /* 0: the task's default */
    size_t max_tokens;    /* of one answer */
    size_t context;       /* ppl: window; 0: the task's default */
    const char *file;     /* ppl: text, or NULL: the demo world's test stream */
    uint64_t seed;        /* of the test stream and of the random policy */
    uint64_t world;       /* seed of the world */
    float share;          /* to route without a threshold; NaN: as the first policy routed */
    bool json, quiet;
};

enum { EVAL_POLICIES = 8 };

struct eval_result {
    enum policy policy;
    float threshold;
    size_t questions, right;
    size_t tokens, cloud, fallback; /* generated */
    double ms;                      /* of all answers, without the program's start */
    uint64_t bytes_up, bytes_down;
};

/* Policies out of a list; ERR_ARG names what is not one. */
int eval_policies(enum policy out[EVAL_POLICIES], size_t *n, const char *list, struct err *err);

/* 95 % confidence interval of a share (Wilson 1927). n >= 1. */
void eval_interval(double *low, double *high, size_t hits, size_t n);

/* Each task runs and prints: a table, or one line of JSON for each result, to stdout. They return
 * OK or an error code. */
int eval_milli(const struct eval_options *o, struct err *err);
int eval_ppl(const struct eval_options *o, struct err *err);

#endif
