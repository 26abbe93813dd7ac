/* convert_plan.h - which type each tensor of a converted model gets: llama.cpp's choice for dense
 * models, so that files of the same name have the same contents.
 *
 * Source: the choice of types in llama.cpp's llama-quant.cpp. Other programs with a llama-quantize
 * differ. ik_llama.cpp counts layers as the file orders them (0, 1, 10, 11, ... in what a folder
 * becomes), while llama.cpp sorts them by number; it gives value projections that four or more
 * heads share one type more, and those of 80 layers Q5_K without exception. Files that llama.cpp
 * wrote before it sorted differ in the same layers. */
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
    bool big;      /* what llama.cpp calls a 70B model: 80 layers, but no Qwen3 */
    size_t layers;
};

/* Set what depends on the model: tied, big and layers. */
void convert_plan_model(struct convert_plan *p, const struct weights *w);

/* Return the type for a tensor. Norms, biases and other vectors are F32, a matrix of one row among
 * them, and so is what is not named "weight". *fell_back becomes true if the rows do not divide
 * into blocks of the type chosen, so that another one is taken. */
int convert_plan_type(const struct convert_plan *p, const char *name, unsigned ndim,
                      const size_t *shape, bool *fell_back);

#endif
