#include "tools/eval/closed_loop.h"

#include <stdint.h>
#include <stdlib.h>

#include "kernels/sys/base.h"

int closed_loop_items(size_t **items, size_t n, size_t size, struct err *err)
{
    *items = NULL;
    if (n > size)
        return err_set(err, ERR_ARG,
                       "--questions: expected at most %zu, as the data has, found %zu", size, n);
    size_t *at = calloc(n, sizeof(*at));
    if (!at)
        return err_set(err, ERR_NOMEM, "out of memory");
    /* Rounded down, i * size / n is increasing; written so that the product cannot overflow. */
    for (size_t i = 0; i < n; i++)
        at[i] = size == SIZE_MAX ? i : i * (size / n) + i * (size % n) / n;
    *items = at;
    return OK;
}

static int closed_loop_ask(struct asked *asked, struct closed_loop *loop, size_t i,
                           const struct asking_how *how, struct err *err)
{
    if (loop->progress.what)
        progress_counted(&loop->progress, i + 1, loop->n);
    return asking_ask(asked, loop->asking, loop->task, loop->items[i], how, err);
}

/* Callback of the calibration. */
static int closed_loop_answer(void *arg, size_t i, float threshold, struct calibrate_answer *out,
                              struct err *err)
{
    struct closed_loop *loop = arg;
    struct asking_how how = loop->how;
    struct asked asked;
    how.threshold = threshold;
    int rc = closed_loop_ask(&asked, loop, i, &how, err);
    if (rc == OK)
        *out = (struct calibrate_answer){ .tokens = asked.tokens,
                                          .cloud = asked.cloud,
                                          .scores = asked.scores,
                                          .right = asked.right,
                                          .left_out = asked.left_out };
    return rc;
}

int closed_loop_calibrate(struct calibration **out, struct closed_loop *loop, struct err *err)
{
    const struct calibrate_source source = { .answer = closed_loop_answer,
                                             .arg = loop,
                                             .n = loop->n };
    return calibrate_open(out, &source, err);
}

int closed_loop_cloud(unsigned char *right, size_t *answers, struct closed_loop *loop,
                      struct err *err)
{
    const struct asking_how always = { .policy = POLICY_ALWAYS };
    *answers = 0;
    for (size_t i = 0; i < loop->n; i++) {
        struct asked asked;
        int rc = closed_loop_ask(&asked, loop, i, &always, err);
        if (rc != OK)
            return rc;
        right[i] = asked.right;
        *answers += !asked.left_out;
    }
    return OK;
}
