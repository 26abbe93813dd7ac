/* collecting.h - collects the samples of a task, from the shared options (setup.h): what `mizzle
 * router collect` does. */
#ifndef TOOLS_LAB_LEARN_COLLECTING_H
#define TOOLS_LAB_LEARN_COLLECTING_H

#include <stdbool.h>
#include <stddef.h>

#include "router/learn/collect.h"
#include "tools/lab/tasks/task.h"

struct err;

struct collecting_options {
    struct task_options task;
    /* What is collected, with max_tokens SIZE_MAX: 512, milli 96. What is not an option of the
     * command is set here. */
    struct collect_options collect;
    size_t questions; /* the first N items; SIZE_MAX: all, milli 3000 */
    const char *out;  /* the folder */
    bool quiet;
};

/* Set what `mizzle router collect` does without options. */
void collecting_defaults(struct collecting_options *o);

/* Collect into a folder, with a router if the shared options name one, with a progress line if
 * stderr is a terminal, and print on stdout what was collected. Besides the errors of the parts
 * (task.h, setup.h, collect.h, sample_files.h), ERR_FORMAT if the cloud model that is served here
 * has another vocabulary than the edge; ERR_REMOTE or ERR_ARG if there is no sample at the end,
 * because the cloud has refused texts or because of the options. */
int collecting_run(const struct collecting_options *o, struct err *err);

#endif
