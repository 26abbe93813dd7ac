/* table.h - inside of weights/: the table that every reader fills, and the memory behind it.
 *
 * A reader maps its file with table_map, appends tensors and keys, and table_index then sorts them,
 * which also finds duplicates. Everything lives until weights_close. */
#ifndef WEIGHTS_TABLE_H
#define WEIGHTS_TABLE_H

#include "weights/weights.h"

struct mapping {
    const unsigned char *p; /* NULL where the file is empty */
    size_t n;
};

struct arena_block;

struct weights {
    char *path;
    const char *format;
    struct mapping *maps;
    size_t nmaps, cmaps;
    struct tensor *tensors;
    size_t ntensors, ctensors;
    struct kv *kvs;
    size_t nkvs, ckvs;
    const struct tensor **by_name; /* sorted */
    const struct kv **by_key;
    struct arena_block *blocks;
};

/* An empty table; weights_close frees it. NULL when there is no memory. */
struct weights *table_new(const char *path, const char *format);

/* Memory that lives as long as w, zeroed, aligned for any type; NULL when there is none. */
void *table_alloc(struct weights *w, size_t n);
/* A terminated copy. */
char *table_copy(struct weights *w, const void *p, size_t n);

void table_free(struct weights *w); /* all of that memory */

/* Map a regular file for reading. */
int table_map(struct weights *w, struct mapping *out, const char *path, struct err *err);
void table_unmap(struct weights *w); /* all of them */

/* Room for one more, zeroed; NULL when there is no memory. The pointer is good until the next. */
struct tensor *table_tensor(struct weights *w);
struct kv *table_kv(struct weights *w);

/* Keys that are made here and not read: false when there is no memory. key is copied. */
bool table_add_str(struct weights *w, const char *key, const char *value);
bool table_add_num(struct weights *w, const char *key, enum kvtype type, const void *value);

/* Sort by name; ERR_FORMAT where two are the same. */
int table_index(struct weights *w, struct err *err);

/* Bytes of one number of this type; 0 for KV_STR and KV_ARR. */
size_t kvtype_size(enum kvtype type);

/* The product of t's shape as bytes of t's type, into t->bytes. False where it does not fit or the
 * fastest dimension is no whole number of blocks. */
bool table_size(struct tensor *t);

/* "[2,3]" */
void tensor_shape(char *out, size_t cap, unsigned ndim, const size_t *shape);

/* zlib's crc32 of any length; crc is 0 or what the bytes before gave. */
uint32_t table_crc(uint32_t crc, const unsigned char *p, size_t n);

/* The readers; hf_read indexes too. name: what the error lines call the file. */
int gguf_read(struct weights *w, const struct mapping *m, bool header_only, struct err *err);
int safetensors_read(struct weights *w, const struct mapping *m, const char *name, struct err *err);
int hf_read(struct weights *w, const char *folder, struct err *err);

#endif
