/* task_options.h - the options with which commands choose a task. */
#ifndef TOOLS_LAB_TASKS_TASK_OPTIONS_H
#define TOOLS_LAB_TASKS_TASK_OPTIONS_H

#include "tools/cli/options.h"
#include "tools/lab/tasks/task.h"

extern const struct option_group task_option_rows; /* --task --data --prompt --seed ... */
extern struct task_options shared_task;            /* what they set; form, own and stream are not */

#endif
