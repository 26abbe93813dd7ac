#include <string.h>

#include "kernels/sys/base.h"
#include "tools/tasks/task_internal.h"

/* Training streams have even numbers. The stream for calibration is that of the tests with the
 * highest bit set. */
static uint64_t milli_stream(const struct task *t)
{
    switch (t->stream) {
    case TASK_TRAIN:
        return 2 * t->seed + 1000;
    case TASK_CALIBRATE:
        return world_test_stream(t->seed) ^ UINT64_C(1) << 63;
    case TASK_TEST:
        break;
    }
    return world_test_stream(t->seed);
}

static int milli_read(struct task *t, size_t i, struct err *err)
{
    struct world_question *q = &t->question;
    (void)err;
    world_question(q, t->world, milli_stream(t), i);
    t->key[0] = q->letter;
    t->key[1] = 0;
    t->item = (struct task_item){ .id = "",
                                  .prompt = q->prompt,
                                  .gold = q->answer,
                                  .key = t->key,
                                  .subject = world_name(t->world, q->thing) };
    return OK;
}

static bool milli_extract(char out[TASK_ANSWER], const struct task *t, const char *text)
{
    (void)t;
    out[0] = world_extract(text);
    out[1] = 0;
    return out[0] != 0;
}

const struct task_kind task_milli = { .name = "milli",
                                      .read = milli_read,
                                      .extract = milli_extract };
