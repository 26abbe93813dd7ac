/* task_internal.h - what the files of the tasks share. */
#ifndef TOOLS_LAB_TASKS_TASK_INTERNAL_H
#define TOOLS_LAB_TASKS_TASK_INTERNAL_H

#include <jansson.h>

#include "kernels/sys/buf.h"
#include "kernels/sys/sha256.h"
#include "tools/lab/demo/world.h"
#include "tools/lab/tasks/task.h"

/* A text that is put together; zero at first. */
struct task_text {
    struct buf b; /* terminated behind its bytes, once something was put */
    bool full;    /* an allocation failed */
};

/* One task. */
struct task_kind {
    const char *name;
    bool file; /* it reads one */
    /* Of a file: read t->json into t->item, but for prompt and gold, into t->asks and, if it is
     * under another name, t->cot. Errors as task_open. */
    int (*read)(struct task *t, struct err *err);
    /* Of a file: put t->prompt together, in form lm-eval or else in CITER's. */
    void (*put)(struct task *t);
    const char *const *stops; /* of form lm-eval, NULL-terminated */
    /* Of milli, and of form lm-eval: find the final answer, and say whether it is right; NULL: it
     * must be the key. */
    bool (*extract)(char out[TASK_ANSWER], const char *text);
    bool (*right)(const struct task_item *item, const char *text);
};

extern const struct task_kind task_csqa, task_arc, task_gsm8k;

struct task {
    const struct task_kind *kind;
    enum task_form form;
    enum task_stream stream;
    uint64_t seed;
    struct world *world;        /* milli */
    struct world_filter filter; /* milli */
    char *path, *data;          /* of the file: its name, and its bytes */
    size_t *lines, size;        /* [size + 1] where each line begins, and where the last ends */
    char digest[SHA256_HEX];
    char *own; /* text of a form of one's own, or NULL */
    char own_digest[SHA256_HEX];
    char form_name[TASK_FORM];

    /* The item in hand. */
    size_t line;  /* its line, from 1 */
    json_t *json; /* its object; the strings of `item` are parts of it */
    struct task_text prompt, gold;
    struct task_text whole; /* the prompt in a form of one's own */
    /* Of a file: the question alone, the prompt that it brings along, and its solution, or NULL. */
    const char *asks, *sent, *cot;
    struct world_question question;
    char key[TASK_ANSWER];
    const char *labels[TASK_CHOICES], *choices[TASK_CHOICES];
    struct task_item item;
};

/* Read the file and find its lines. Errors as task_open. */
int task_file_open(struct task *t, const char *path, struct err *err);
/* Read the form of one's own and check it. ERR_FORMAT names file and field. */
int task_own_open(struct task *t, const char *path, struct err *err);
/* Put t->item into t->whole, and make that its prompt. */
void task_own_put(struct task *t);
/* Parse line i into t->json. */
int task_file_line(struct task *t, size_t i, struct err *err);

/* Return ERR_FORMAT with "FILE: line N: FIELD: expected ..., found ...". */
int task_bad(const struct task *t, const char *field, const char *expected, const char *found,
             struct err *err);
/* Set *out to the string v; ERR_FORMAT unless it is one with more than blanks in it and without
 * NUL. field is its name for the message. */
int task_string(const char **out, const struct task *t, const char *field, const json_t *v,
                struct err *err);
/* Do so with a field of t->json. An optional one may be missing: *out is then NULL. */
int task_field(const char **out, const struct task *t, const char *field, struct err *err);
int task_field_optional(const char **out, const struct task *t, const char *field, struct err *err);

/* Note the form's name, once t has the parts that are in it. */
void task_form_set_name(struct task *t);

/* Append s[n], s, or s without the blanks around it. */
void task_append(struct task_text *out, const char *s, size_t n);
void task_put(struct task_text *out, const char *s);
void task_put_trimmed(struct task_text *out, const char *s);
/* Append a line for each choice of the item in hand, without a newline at the end. */
void task_put_choices(struct task_text *out, const struct task *t);
/* Make t->gold a blank and s and return it; NULL if s is NULL or there is no memory. */
const char *task_put_gold(struct task *t, const char *s);
/* Copy text[n] into out, cut between characters if it is too long. */
void task_copy(char out[TASK_ANSWER], const char *text, size_t n);

#endif
