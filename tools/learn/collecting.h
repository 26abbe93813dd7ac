/* collecting.h - collects the samples of a task, from the shared options (setup.h): what `mizzle
 * router collect` does. */
#ifndef TOOLS_LEARN_COLLECTING_H
#define TOOLS_LEARN_COLLECTING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "router/learn/collect.h"
#include "tools/tasks/task.h"

struct err;
struct sample_meta;
struct samples;

struct collecting_options {
    struct task_options task;
    enum collect_labels labels;
    enum tap tap;
    size_t questions;   /* the first N items; SIZE_MAX: all, milli 3000 */
    size_t max_tokens;  /* of what is written; SIZE_MAX: 512, milli 96 */
    size_t calls;       /* most in flight; 0: 16, or more for a cloud model in this process */
    uint64_t rollouts;  /* or SAMPLE_FILES_NO_LIMIT */
    unsigned round;     /* 1, or 2 with router */
    const char *router; /* file or NULL */
    const char *out;    /* the folder; of no effect in memory */
    bool quiet;
};

/* Collect into a folder, with a progress line if stderr is a terminal, and print on stdout what was
 * collected. *unwritten: the error is that the folder could not be written. Besides the errors of
 * the parts (task.h, setup.h, collect.h, sample_files.h), ERR_FORMAT if the cloud model that is
 * served here has another vocabulary than the edge; ERR_REMOTE or ERR_ARG if there is no sample at
 * the end, because the cloud has refused texts or because of the options. */
int collecting_run(const struct collecting_options *o, bool *unwritten, struct err *err);

/* Collect into memory: the samples into *out, which is empty at first, and what they are into
 * *meta. Prints nothing on stdout. The same errors, but for those of the folder. */
int collecting_samples(struct samples *out, struct sample_meta *meta,
                       const struct collecting_options *o, struct err *err);

#endif
