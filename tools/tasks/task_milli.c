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
        return world_calibration_stream(t->seed);
    case TASK_TEST:
        break;
    }
    return world_test_stream(t->seed);
}

static int milli_read(struct task *t, size_t i, struct err *err)
{
    struct world_question *q = &t->question;
    (void)err;
    world_question(q, t->world, t->filter, milli_stream(t), i);
    t->item = (struct task_item){
        .id = "", .prompt = q->prompt, .gold = q->answer, .key = q->key, .subject = q->subject
    };
    return OK;
}

static bool milli_extract(char out[TASK_ANSWER], const char *text)
{
    return world_extract(out, text);
}

const struct task_kind task_milli = { .name = "milli",
                                      .read = milli_read,
                                      .extract = milli_extract };
