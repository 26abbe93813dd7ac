/* quant.h - GGUF's block types: conversion to and from float, with the rounding of ggml's
 * reference.
 *
 * Q8_0: { f16 d; i8 q[32] }, 34 bytes, value = q * d. Q4_0: { f16 d; u8 q[16] }, 18 bytes; low
 * nibbles are values 0..15 and high nibbles 16..31, value = (nibble - 8) * d. */
#ifndef WEIGHTS_QUANT_H
#define WEIGHTS_QUANT_H

#include <stdbool.h>
#include <stddef.h>

struct err;

/* Encode n floats (n is a multiple of the type's block) into out as F32, F16, BF16, Q8_0 or Q4_0.
 * The bytes equal what ggml's quantize_row_*_ref writes. */
void quant_encode(void *out, int type, const float *x, size_t n);
/* Decode n values of one of these types or F64. */
void quant_decode(float *out, int type, const void *in, size_t n);

/* True for the types that quant_decode knows. */
bool quant_known(int type);

#endif
