/* task_help.h - what the tests of tasks share: a task from options, or from a text in place of a
 * file, its items, and refusals. */
#ifndef TESTS_TOOLS_EVAL_TASK_HELP_H
#define TESTS_TOOLS_EVAL_TASK_HELP_H

#include <stdio.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "tests/support/files.h"
#include "tools/lab/tasks/task.h"

static inline void write_file(const char *name, const char *text)
{
    spill(name, text, strlen(text));
}

static inline struct task *open_with(const struct task_options *o)
{
    struct task *t = NULL;
    struct err err = { "" };
    CHECK_MSG(task_open(&t, o, &err) == OK && !strcmp(task_name(t), o->name) &&
                  task_form(t) == o->form,
              "%s", err.msg);
    return t;
}

static inline struct task *open_text(const char *name, const char *text, enum task_form form)
{
    const struct task_options o = { .name = name, .data = in_scratch("text.jsonl"), .form = form };
    write_file(o.data, text);
    return open_with(&o);
}

static inline void get(struct task_item *out, struct task *t, size_t i)
{
    struct err err = { "" };
    CHECK(task_item(out, t, i, &err) == OK);
}

static inline void refused(const struct task_options *o, int code, const char *message)
{
    struct task *t;
    struct err err = { "" };
    CHECK(task_open(&t, o, &err) == code && !t);
    CHECK_MSG(strstr(err.msg, message), "expected \"%s\", found: %s", message, err.msg);
}

#endif
