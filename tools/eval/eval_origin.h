/* eval_origin.h - what a figure was measured with, for each row of JSON and CSV. */
#ifndef TOOLS_EVAL_EVAL_ORIGIN_H
#define TOOLS_EVAL_EVAL_ORIGIN_H

#include <jansson.h>
#include <stdio.h>

#include "kernels/kv.h"
#include "model/fingerprint.h"
#include "tools/tasks/task.h"

struct engine;

/* The columns in order: the small model's name, fingerprint (model_fingerprint), type of weights
 * and of keys and values; the cloud's name, address, and what it says of its weights; the form of
 * the prompts (task_form_name); Mizzle's version; when the run began, in UTC; the processor. */
#define EVAL_ORIGIN(X)  \
    X(edge_model)       \
    X(edge_fingerprint) \
    X(weights)          \
    X(kv)               \
    X(cloud_model)      \
    X(cloud_url)        \
    X(cloud_says)       \
    X(form)             \
    X(version)          \
    X(date)             \
    X(processor)

struct eval_origin { /* "": there is none, or it is not known */
    char edge_model[MODEL_NAME], edge_fingerprint[17], weights[16], kv[8];
    char cloud_model[128], cloud_url[256], cloud_says[256];
    char form[TASK_FORM], version[16], date[24], processor[64];
};

/* Set all of *o but cloud and form, which are "". */
void eval_origin_begin(struct eval_origin *o, const struct engine *e, enum kvcache kv);
/* Return them as an object; NULL: out of memory. */
json_t *eval_origin_json(const struct eval_origin *o);
/* Set *o to what such an object holds. */
void eval_origin_read(struct eval_origin *o, const json_t *from);
/* Print text as a string of JSON. */
void eval_origin_string(FILE *to, const char *text);
/* End a line of JSON on stdout with ,"edge_model":"NAME",...}; cloud, the model that runs here as
 * the large one, and form may be NULL. */
void eval_origin_end(const struct engine *e, enum kvcache kv, const struct engine *cloud,
                     const char *form);

#endif
