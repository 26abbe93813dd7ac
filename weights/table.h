/* table.h - internal to weights/: the table that every reader fills, and the memory behind it.
 *
 * A reader maps its file with table_map and appends tensors and keys; table_index then sorts them,
 * which also finds duplicates. Everything lives until weights_close. */
#ifndef WEIGHTS_TABLE_H
#define WEIGHTS_TABLE_H

#include <string.h>
#include <sys/types.h>

#include "weights/weights.h"

struct mapping {
    const unsigned char *p; /* NULL when the file is empty */
    size_t n;
    dev_t dev; /* with ino, which file it is */
    ino_t ino;
};

struct arena_block;

struct weights {
    char *path;
    const char *format;
    struct mapping *maps;
    size_t nmaps, cmaps;
    size_t shards; /* files that the tensors lie in */
    struct tensor *tensors;
    size_t ntensors, ctensors;
    struct kv *kvs;
    size_t nkvs, ckvs;
    const struct tensor **by_name; /* sorted by name, for binary search */
    const struct kv **by_key;
    struct arena_block *blocks;
};

/* Return an empty table, which weights_close frees, or NULL when out of memory. */
struct weights *table_new(const char *path, const char *format);

/* Return zeroed memory, aligned for any type, that lives as long as w; NULL when out of memory. */
void *table_alloc(struct weights *w, size_t n);
/* Return a terminated copy of p[n] in such memory, or NULL. */
char *table_copy(struct weights *w, const void *p, size_t n);

/* Free all of that memory. */
void table_free(struct weights *w);

/* Map a regular file for reading. ERR_IO, ERR_FORMAT (not a regular file, or a Git LFS pointer) or
 * ERR_NOMEM. */
int table_map(struct weights *w, struct mapping *out, const char *path, struct err *err);
/* Remove all mappings. */
void table_unmap(struct weights *w);

/* Append a zeroed row and return it; NULL when out of memory. The pointer is valid until the next
 * call. */
struct tensor *table_tensor(struct weights *w);
struct kv *table_kv(struct weights *w);

/* Add a key that is made here, not read from a file; false when out of memory. key and value are
 * copied. */
bool table_add_str(struct weights *w, const char *key, const char *value);
bool table_add_num(struct weights *w, const char *key, enum kvtype type, const void *value);

/* Sort tensors and keys by name; ERR_FORMAT when two have the same name. */
int table_index(struct weights *w, struct err *err);

/* Return the bytes of one number of this type; 0 for KV_STR and KV_ARR. */
size_t kvtype_size(enum kvtype type);
/* Read a stored integer as 64 bits and its sign; false for other types and for NULL. */
bool kv_integer(const struct kv *kv, uint64_t *bits, bool *negative);

/* Return the number in n little-endian bytes, n at most 8. */
static inline uint64_t le_get(const unsigned char *p, size_t n)
{
    uint64_t v = 0;
    memcpy(&v, p, n); /* as all numbers of a mapping are read: on a little-endian machine */
    return v;
}

/* Compute t->bytes from t's shape and type. False when it does not fit in size_t or the fastest
 * dimension is not a whole number of blocks. */
bool table_size(struct tensor *t);

/* Write a shape as "[2,3]". */
void tensor_shape(char *out, size_t cap, unsigned ndim, const size_t *shape);

/* The readers of each format. Map and read all parts of the sharded GGUF file of which w->path is
 * one, as one file: the keys are the first part's without "split.*". */
int gguf_read_shards(struct weights *w, bool header_only, struct err *err);
/* Read a file that is no part of one; the key split.count must not say otherwise. */
int gguf_read_alone(struct weights *w, const struct mapping *m, bool header_only, struct err *err);
/* name is what error messages call the file. */
int safetensors_read(struct weights *w, const struct mapping *m, const char *name, struct err *err);
int hf_read(struct weights *w, struct err *err); /* also calls table_index */

#endif
