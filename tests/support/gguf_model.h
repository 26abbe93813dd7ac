/* gguf_model.h - a whole model of random weights as a GGUF file, small and of any shape. */
#ifndef TESTS_SUPPORT_GGUF_MODEL_H
#define TESTS_SUPPORT_GGUF_MODEL_H

#include <stdbool.h>
#include <stddef.h>

struct ggufw;

struct gguf_shape {
    size_t layers, hidden, heads, kv_heads, head_dim, ffn, vocab;
    bool three, tied,
        yarn; /* a Qwen3; without a head of its own; RoPE stretched from 128 ids by 4 */
    size_t context;
    float base; /* of RoPE */
};

/* Write a model in this type of weights, as wtype_parse gives it; -1: each matrix has another type,
 * as in a file of K-quants. Where the columns do not suit, Q8_0 is F16, and others BF16. The
 * numbers depend on the shape alone. more writes further keys; NULL: none. Ends the test if it
 * fails. */
void gguf_model_write(const char *path, const struct gguf_shape *sh, int type,
                      void (*more)(struct ggufw *g));

#endif
