/* gguf_write.h - write a GGUF v3 file that llama.cpp reads.
 *
 * Call, in this order: open, any keys, all tensor headers, the data of each tensor in the same
 * order, close. The file appears under its name only when close succeeds (it is written beside it,
 * then renamed). */
#ifndef WEIGHTS_GGUF_WRITE_H
#define WEIGHTS_GGUF_WRITE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "weights/weights.h"

struct ggufw;

/* Start a file. On error *out is NULL: ERR_IO or ERR_NOMEM. */
int ggufw_open(struct ggufw **out, const char *path, struct err *err);
/* Add a key; its memory is copied. Errors are kept and returned by ggufw_close. */
void ggufw_u32(struct ggufw *g, const char *key, uint32_t v);
void ggufw_f32(struct ggufw *g, const char *key, float v);
void ggufw_bool(struct ggufw *g, const char *key, bool v);
void ggufw_str(struct ggufw *g, const char *key, const char *v);
void ggufw_strs(struct ggufw *g, const char *key, const struct str *v, size_t n);
void ggufw_i32s(struct ggufw *g, const char *key, const int32_t *v, size_t n);
void ggufw_kv(struct ggufw *g, const struct kv *kv); /* copies a key of another file */
/* Add the keys "mizzle.bytes", the file's size, and "mizzle.crc32", zlib's crc32 of the whole file
 * with both values zero. weights_open verifies them. They are for small files whose every bit
 * counts. */
void ggufw_checksum(struct ggufw *g);
/* Announce a tensor. shape: slowest dimension first. */
void ggufw_tensor(struct ggufw *g, const char *name, int type, unsigned ndim, const size_t *shape);
/* Write the next bytes of the current tensor; a full tensor is followed by the next one. */
void ggufw_data(struct ggufw *g, const void *data, size_t bytes);
/* Finish and free; commit false discards the unfinished file. Returns the first error; NULL is
 * fine. */
int ggufw_close(struct ggufw *g, bool commit, struct err *err);

#endif
