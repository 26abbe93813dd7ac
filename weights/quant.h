/* quant.h - the types of weights in files: all are read as floats, and the simplest are written. */
#ifndef WEIGHTS_QUANT_H
#define WEIGHTS_QUANT_H

#include <stdbool.h>
#include <stddef.h>

#include "kernels/panels.h"

struct err;
struct tensor;

/* Encode n floats (n is a multiple of the type's block) as F32, F16, BF16, Q8_0 or Q4_0 into out:
 * the bytes that ggml's quantize_row_*_ref writes. */
void quant_encode(void *out, int type, const float *x, size_t n);

/* Decode n values (a multiple of the type's block) of a type that quant_known knows, to the bits
 * that ggml's dequantize_row_* gives. */
void quant_decode(float *out, int type, const void *in, size_t n);

/* Find the type of the panels that hold a file's type: the same, except that F16 becomes F32.
 * False: it is not computed with. */
bool quant_panels(enum ptype *out, int type);

/* True for the types that quant_decode knows: those of quant_panels, and F64. */
bool quant_known(int type);

/* Set the error for a tensor whose type is not computed with, and return ERR_FORMAT. It names the
 * file, the tensor and the type, and says where to get a model of another type. */
int quant_refuse(const char *path, const struct tensor *t, struct err *err);

#endif
