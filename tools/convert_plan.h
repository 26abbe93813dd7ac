/* convert_plan.h - which type each tensor of a converted model gets: llama.cpp's choice for dense
 * models, so that files of the same name have the same contents.
 *
 * Source: the choice of types in llama.cpp's llama-quant.cpp. */
#ifndef TOOLS_CONVERT_PLAN_H
#define TOOLS_CONVERT_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "weights/weights.h"

/* What --type asks for. */
struct convert_target {
    const char *name;   /* "q4_K_M" */
    int type;           /* of most matrices */
    bool mix;           /* some layers' value and down projections get q6_K */
    uint32_t file_type; /* general.file_type, as in llama.cpp's llama_ftype */
};

/* Return the target of this name, in any case, or NULL. */
const struct convert_target *convert_target(const char *name);
/* Return the names of all targets: "f32, f16, ... or q5_K_M". */
const char *convert_target_names(void);

struct convert_plan {
    const struct convert_target *target;
    bool pure;     /* every matrix gets target->type */
    bool weighted; /* there is an importance matrix */
    bool tied;     /* the embedding is also the output head */
    size_t layers;
};

/* Set what depends on the model: tied and layers. */
void convert_plan_model(struct convert_plan *p, const struct weights *w);

/* Return the type for a tensor. Norms, biases and other vectors are F32. *fell_back becomes true if
 * the rows do not divide into blocks of the type chosen, so that another one is taken. */
int convert_plan_type(const struct convert_plan *p, const char *name, unsigned ndim,
                      const size_t *shape, bool *fell_back);

#endif
