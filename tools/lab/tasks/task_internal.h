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
    bool file, concepts; /* it reads one, whose questions have a concept */
    size_t least, most; /* choices of a question; 0: the answer is a number, or a word of milli's */
};

/* Texts of a line, parts of its object; NULL: there is none. */
struct task_texts {
    const char *asks;           /* the question alone */
    const char *prompt;         /* that it brings along */
    const char *solution, *cot; /* cot is the reference answer */
    const char *id, *group, *key;
};

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
    struct task_text whole;  /* the prompt in a form of one's own */
    struct task_texts texts; /* of a file */
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
/* Read line i into t->item. */
int task_read(struct task *t, size_t i, struct err *err);

/* Return ERR_FORMAT with "FILE: line N: FIELD: expected ..., found ...". */
int task_bad(const struct task *t, const char *field, const char *expected, const char *found,
             struct err *err);
/* Set *out to the string v; ERR_FORMAT if it is none, has NUL in it or, unless it may be empty,
 * nothing but blanks. field is its name for the message. */
int task_string(const char **out, const struct task *t, const char *field, const json_t *v,
                bool empty, struct err *err);
/* Set *out to the label v, one letter or digit; else ERR_FORMAT. */
int task_label(const char **out, const struct task *t, const char *field, const json_t *v,
               struct err *err);
/* Note the form's name, once t has the parts that are in it. */
void task_form_set_name(struct task *t);

/* Append s[n], or s. */
void task_append(struct task_text *out, const char *s, size_t n);
void task_put(struct task_text *out, const char *s);
/* Append a line for each choice of the item in hand, without a newline at the end. */
void task_put_choices(struct task_text *out, const struct task *t);

#endif
