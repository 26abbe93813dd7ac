/* router_help.h - what tests of router files and of training share. */
#ifndef TESTS_ROUTER_ROUTER_HELP_H
#define TESTS_ROUTER_ROUTER_HELP_H

#include "router/learn/fit.h"
#include "tests/support/test.h"

static const struct kernels *open_with_kernels; /* of open_router_once */

static inline int open_router_once(const void *path)
{
    struct router *r;
    int rc = router_open(&r, path, open_with_kernels, NULL);
    CHECK((rc == OK) == (r != NULL));
    router_close(r);
    return rc;
}

/* Open the file with each allocation failing in turn: it is either opened, or nothing is left. */
static inline void open_without_memory(const char *path, const struct kernels *k)
{
    open_with_kernels = k;
    CHECK(torture_some(open_router_once, path) > 3);
}

/* The file is no router, and the refusal names it and has these words. */
static inline void router_refused(const char *path, const struct kernels *k, const char *said)
{
    struct err err = { "" };
    struct router *r;
    CHECK(router_open(&r, path, k, &err) == ERR_FORMAT && !r);
    CHECK_MSG(strstr(err.msg, said) && strstr(err.msg, path), "said: %s", err.msg);
}

/* A training, for torture_some. */
struct fit_call {
    const struct samples *s;
    const struct fit_options *o;
    const struct kernels *k;
};

static inline int fit_once(const void *arg)
{
    const struct fit_call *c = arg;
    struct router_form f;
    struct fit_report r;
    int rc = fit_router(&f, &r, c->s, c->o, c->k, NULL, NULL);
    CHECK(rc == OK || (!f.w1 && !f.contexts));
    router_form_close(&f);
    return rc;
}

/* Compute score[s->n]. */
static inline void score_all(float *score, const struct samples *s, const struct router *r)
{
    float *scratch = malloc(router_scratch(r) * sizeof(*scratch));
    CHECK(scratch);
    for (size_t i = 0; i < s->n; i++)
        score[i] = router_is_table(r) ? router_score_ids(r, s->rows[i].before, 2)
                                      : router_score(r, s->x + i * s->dim, scratch);
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
