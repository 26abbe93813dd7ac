/* quant.h - GGUF's block types: conversion to and from float. Their layouts are in
 * weights/README.md. */
#ifndef WEIGHTS_QUANT_H
#define WEIGHTS_QUANT_H

#include <stdbool.h>
#include <stddef.h>

struct err;
struct tensor;

/* Encode n floats (n is a multiple of the type's block) into out, for the types of quant_written.
 * w: positive weights of the square errors, one for each value, or NULL.
 *
 * Without weights the bytes of F32 to Q8_0 equal what ggml's quantize_row_*_ref writes. K-quants
 * are searched for the least square error, and so are Q4_0 to Q5_1 if there are weights. The same
 * values always give the same bytes. */
void quant_encode(void *out, int type, const float *x, const float *w, size_t n);
/* True for the types that quant_encode writes. */
bool quant_written(int type);

/* Decode n values (a multiple of the type's block) of a type that quant_known knows, to the bits
 * that ggml's dequantize_row_* gives. */
void quant_decode(float *out, int type, const void *in, size_t n);

/* True for the types that quant_decode knows. */
bool quant_known(int type);

/* Set the error for a tensor whose type is not computed with, and return ERR_FORMAT. It names the
 * file, the tensor and the type, and says where to get a model of another type. */
int quant_refuse(const char *path, const struct tensor *t, struct err *err);

#endif
