#include "tools/lab/eval/eval_calibrate.h"

#include "kernels/sys/base.h"
#include "kernels/sys/os.h"
#include "tools/cli/progress.h"

/* Callback of calibration: send answer i at this threshold. */
static bool calibrate_begin(void *arg, size_t i, float threshold, int *rc, struct err *err)
{
    struct eval_calibration *c = arg;
    c->how.threshold = threshold;
    if (!asking_has_room(c->asking))
        return false;
    *rc = asking_send(c->asking, c->items->task, c->items->at[i], &c->how, err);
    return *rc == OK;
}

/* Callback of calibration: take the oldest answer, which is i. */
static int calibrate_take(void *arg, size_t i, float threshold, struct calibrate_answer *out,
                          struct err *err)
{
    struct eval_calibration *c = arg;
    struct asked one;
    struct err line;
    char left[48];
    (void)threshold;
    if (!c->passes || i < c->answered) { /* a pass goes through the items in order */
        c->passes++;
        c->since = os_now_ns();
    }
    c->answered = i;
    int rc = asking_take(&one, c->asking, err);
    if (rc != OK)
        return rc;
    *out = (struct calibrate_answer){ .tokens = one.stats.tokens,
                                      .cloud = one.stats.cloud,
                                      .scores = one.scores,
                                      .right = one.right,
                                      .left_out = one.left_out };
    progress_left(left, c->since, ++c->answered, c->items->n);
    err_set(&line, OK, "%zu of %zu, %s: calibrating, pass %zu: %zu of %zu%s", c->number, c->all,
            c->how.entry->label, c->passes, c->answered, c->items->n, left);
    progress_say(c->progress, line.msg);
    return OK;
}

struct calibrate_source eval_calibration_source(struct eval_calibration *c,
                                                const struct eval_entry *e)
{
    c->passes = 0;
    c->how = (struct asking_how){ .entry = e };
    return (struct calibrate_source){
        .answer = calibrate_take, .arg = c, .n = c->items->n, .begin = calibrate_begin
    };
}
