/* task_shots.c - solved examples in front of a question, in lm-evaluation-harness's form: the first
 * items of a file that are not the question itself, which its sampler of the first N takes. The
 * harness draws others for each question by default; the same for all are read only once. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "tools/lab/tasks/task_internal.h"

enum { SHOTS = 64 };

int task_shots_open(struct task *t, const char *shots, struct err *err)
{
    char *end = NULL;
    unsigned long n = isdigit((unsigned char)*shots) ? strtoul(shots, &end, 10) : 0;
    if (n < 1 || n > SHOTS || *end != ':' || !end[1])
        return err_set(err, ERR_ARG, "--shots: expected N:FILE with N from 1 to %d, found %s",
                       SHOTS, shots);
    if (!t->kind->file || t->form != TASK_LM_EVAL)
        return err_set(err, ERR_ARG,
                       "--shots: expected --task csqa, arc or gsm8k with --prompt lm-eval");
    const struct task_options o = { .name = t->kind->name, .data = end + 1, .form = t->form };
    t->shots = n;
    return task_open(&t->train, &o, err);
}

/* Append an example and its answer: the solution, the letter or, for arc, the choice. */
static int shots_put(struct task_text *out, const struct task *train, const struct task_item *item,
                     struct err *err)
{
    const char *answer = item->key;
    if (!item->nchoices && !item->gold)
        return task_bad(train, "solution", "a string", "nothing", err);
    for (size_t i = 0; train->kind == &task_arc && i < item->nchoices; i++)
        if (strcmp(item->labels[i], item->key) == 0)
            answer = item->choices[i];
    task_put(out, item->prompt);
    task_put(out, item->nchoices ? " " : item->gold);
    task_put(out, item->nchoices ? answer : "");
    task_put(out, "\n\n");
    return OK;
}

int task_shots_put(struct task *t, struct err *err)
{
    int rc = OK;
    size_t n = 0;
    for (size_t i = 0; rc == OK && n < t->shots; i++) {
        struct task_item item;
        if (i == t->train->size)
            return err_set(err, ERR_ARG,
                           "--shots: %s: expected %zu items that are not asked, found %zu",
                           t->train->path, t->shots, n);
        rc = task_item(&item, t->train, i, err);
        if (rc != OK || strcmp(item.prompt, t->item.prompt) == 0)
            continue;
        rc = shots_put(&t->whole, t->train, &item, err);
        n++;
    }
    task_put(&t->whole, t->item.prompt);
    t->item.prompt = t->whole.b.p;
    return rc;
}
