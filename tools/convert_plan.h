/* convert_plan.h - which type each tensor of a converted model gets. */
#ifndef TOOLS_CONVERT_PLAN_H
#define TOOLS_CONVERT_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What --type asks for. */
#define CONVERT_TYPES "f32, f16, bf16, q8_0 or q4_0"
struct convert_target {
    const char *name;   /* "q8_0" */
    int type;           /* of the matrices */
    uint32_t file_type; /* general.file_type, as in llama.cpp's llama_ftype */
};

/* Return the target of this name, in any case, or NULL. */
const struct convert_target *convert_target(const char *name);

/* Return the type for a tensor when matrices become `type`. Norms, biases and other vectors are
 * F32, a matrix of one row among them, and so is what is not named "weight". The output head, whose
 * tensor has the name `head`, becomes Q8_0 instead of Q4_0. A matrix whose rows do not divide into
 * blocks becomes F16, and then *fell_back true. */
int convert_plan_type(int type, const char *head, const char *name, unsigned ndim,
                      const size_t *shape, bool *fell_back);

#endif
