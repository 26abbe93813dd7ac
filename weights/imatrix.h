/* imatrix.h - importance matrices: how much each input of a matrix matters, measured on a text.
 *
 * They hold, for each matrix, the sum of the squares of each of its inputs over the tokens of a
 * text. Both of llama.cpp's forms are read: the legacy binary one (.dat) and GGUF, where
 * general.type is "imatrix" and a matrix NAME has the tensors NAME.in_sum2 [parts][inputs] and
 * NAME.counts [parts][1]. GGUF is written. */
#ifndef WEIGHTS_IMATRIX_H
#define WEIGHTS_IMATRIX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "weights/weights.h"

struct err;
struct imatrix;

/* What is known about one matrix. */
struct imatrix_entry {
    const char *name; /* of the matrix, "blk.0.ffn_up.weight" */
    /* [n] mean square of each input divided by the average of all, but at least 1/1000, so that an
     * input that was never seen keeps some weight. */
    const float *weights;
    size_t n; /* inputs; times the number of experts, if the matrix has several */
};

/* Read a file. Matrices without any nonzero value are left out. ERR_IO, ERR_NOMEM, or ERR_FORMAT,
 * which names what is wrong; on error *out is NULL. Immutable once open. */
int imatrix_open(struct imatrix **out, const char *path, struct err *err);
void imatrix_close(struct imatrix *m); /* NULL is fine */

const struct imatrix_entry *imatrix_find(const struct imatrix *m, const char *name); /* or NULL */
size_t imatrix_count(const struct imatrix *m);
const struct imatrix_entry *imatrix_at(const struct imatrix *m, size_t i); /* sorted by name */

/* What the file says about itself. */
bool imatrix_is_gguf(const struct imatrix *m);              /* or else the older form */
uint32_t imatrix_chunks(const struct imatrix *m);           /* pieces of text; 0: unknown */
uint32_t imatrix_chunk_size(const struct imatrix *m);       /* tokens of a piece; 0: unknown */
size_t imatrix_texts(const struct imatrix *m);              /* texts it was computed from */
struct str imatrix_text(const struct imatrix *m, size_t i); /* their names; any bytes */

/* Sums to be written. */
struct imatrix_sums {
    const char *name;
    const float *squares; /* [n] */
    size_t n;
    float count; /* tokens */
};

/* Write a GGUF file. text names what was read, in chunks of chunk_size tokens. ERR_IO, ERR_NOMEM or
 * ERR_ARG (a name is too long for GGUF). */
int imatrix_write(const char *path, const struct imatrix_sums *sums, size_t count, const char *text,
                  uint32_t chunks, uint32_t chunk_size, struct err *err);

#endif
