/* eval_origin.h - what a figure was measured with, for each row of JSON and CSV, and for journals.
 */
#ifndef TOOLS_LAB_EVAL_EVAL_ORIGIN_H
#define TOOLS_LAB_EVAL_EVAL_ORIGIN_H

#include <jansson.h>
#include <stdio.h>

#include "kernels/kv.h"
#include "model/fingerprint.h"
#include "tools/lab/tasks/task.h"

struct asking;
struct engine;
struct row;

/* X(name, bytes). What writes the answers: the small model's name, fingerprint (model_fingerprint),
 * type of weights and of keys and values; the cloud's name, address, and what it says of its
 * weights; the form of the prompts (task_form_name); Mizzle's version. */
#define EVAL_WRITERS(X)       \
    X(edge_model, MODEL_NAME) \
    X(edge_fingerprint, 17)   \
    X(weights, 16)            \
    X(kv, 8)                  \
    X(cloud_model, 128)       \
    X(cloud_url, 256)         \
    X(cloud_says, 256)        \
    X(form, TASK_FORM)        \
    X(version, 16)
/* More of it, which only a journal holds: the small model's bits (model_exact_fingerprint), the
 * cloud's vocabulary, the chat template and its think mode, and which kernels give these bits. */
#define EVAL_BITS(X)        \
    X(edge_bits, 17)        \
    X(cloud_vocabulary, 17) \
    X(template, 16)         \
    X(think, 8)             \
    X(kernels, 16)
/* Where: when the run began, in UTC, and the processor. Answers do not depend on it. */
#define EVAL_MACHINE(X) \
    X(date, 24)         \
    X(processor, 64)

struct eval_origin { /* "": there is none, or it is not known */
#define X(name, bytes) char name[bytes];
    EVAL_WRITERS(X)
    EVAL_BITS(X)
    EVAL_MACHINE(X)
#undef X
    char isa[16]; /* kernel set */
};

/* Set *o to what answers of `asking` to items of the task are made with. */
void eval_origin_begin(struct eval_origin *o, const struct asking *a, const struct task *t);
/* Add to the object `writers` what writes the answers, and to `machine` where. */
void eval_origin_json(json_t *writers, json_t *machine, const struct eval_origin *o);
/* Set *o to what is known of the small model and the machine. */
void eval_origin_edge(struct eval_origin *o, const struct engine *e, enum kvcache kv);
/* Add it to a row: what writes, and where. */
void eval_origin_put(struct row *to, const struct eval_origin *o);

#endif
