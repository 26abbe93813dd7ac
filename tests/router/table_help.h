/* table_help.h - a router that is a table, for the tiny model: every last id has a score, and so
 * has every fourth pair of ids. */
#ifndef TESTS_ROUTER_TABLE_HELP_H
#define TESTS_ROUTER_TABLE_HELP_H

#include "kernels/math.h"
#include "kernels/sys/base.h"
#include "router/router.h"
#include "tests/support/test.h"
#include "tests/support/tiny.h"

static inline struct router *table_open(const struct kernels *k)
{
    struct router_form form;
    struct router *r;
    size_t n = 0;
    CHECK(router_form_open_contexts(&form, 1 + TINY_VOCAB * (1 + TINY_VOCAB / 4), NULL) == OK);
    form.contexts[n++] = (struct router_context){ -1, -1, 0.5f };
    for (int before = -1; before < TINY_VOCAB; before += before < 0 ? 1 : 4)
        for (int last = 0; last < TINY_VOCAB; last++) {
            float score = (float)rand_unit(5, (uint64_t)(before * TINY_VOCAB + last));
            form.contexts[n++] = (struct router_context){ (float)before, (float)last, score };
        }
    CHECK(n == form.ncontexts && router_make(&r, &form, "table", k, NULL) == OK);
    router_form_close(&form);
    return r;
}

#endif
