/* router_help.h - what tests of router files and of training share. */
#ifndef TESTS_ROUTER_ROUTER_HELP_H
#define TESTS_ROUTER_ROUTER_HELP_H

#include <stdlib.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "router/learn/samples.h"
#include "router/router.h"
#include "tests/support/test.h"
#include "tests/support/torture.h"

/* Open the file with each allocation failing in turn: it is either opened, or nothing is left. */
static inline void open_without_memory(const char *path, const struct kernels *k)
{
    int reached;
    long n = 0;
    do {
        struct router *r;
        struct err err;
        torture_begin(++n);
        int rc = router_open(&r, path, k, &err);
        CHECK(rc == OK || (rc == ERR_NOMEM && !r));
        router_close(r);
        reached = torture_end();
        CHECK(torture_live() == 0 && (reached || rc == OK));
    } while (reached);
    CHECK(n > 3);
}

/* Compute score[s->n]. */
static inline void score_all(float *score, const struct samples *s, const struct router *r)
{
    float *scratch = malloc(router_scratch(r) * sizeof(*scratch));
    CHECK(scratch);
    for (size_t i = 0; i < s->n; i++)
        score[i] = samples_score_one(s, i, r, scratch);
    free(scratch);
}

static inline void same_bits(const struct router_form *a, const struct router_form *b)
{
    CHECK(a->dim == b->dim && a->width == b->width && a->ncontexts == b->ncontexts);
    CHECK(a->members == b->members && a->gain == b->gain && !memcmp(a->b2, b->b2, sizeof(a->b2)));
    CHECK(!a->dim || !memcmp(a->w1, b->w1, a->dim * a->width * sizeof(*a->w1)));
    CHECK(!a->dim || !memcmp(a->b1, b->b1, a->width * sizeof(*a->b1)));
    CHECK(!a->dim || !memcmp(a->w2, b->w2, (a->gain ? 2 : 1) * a->width * sizeof(*a->w2)));
    CHECK(!a->ncontexts || !memcmp(a->contexts, b->contexts, a->ncontexts * sizeof(*a->contexts)));
}

#endif
