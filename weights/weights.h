/* weights.h - named, typed, shaped views into the files of a model.
 *
 * All sources look the same: a GGUF v2/v3 file, whole or sharded (any of its parts names all), a
 * safetensors file, or a Hugging Face folder
 * (config.json + *.safetensors, with or without model.safetensors.index.json). A folder's Qwen2
 * or Qwen3 tensors are renamed to GGUF's names ("model.layers.0.self_attn.q_proj.weight" becomes
 * "blk.0.attn_q.weight") and its config.json is presented as GGUF's keys ("qwen2.block_count",
 * ...), so that model/ knows one form only.
 *
 * Files are mapped; every count, offset and size is checked at open, and nothing outside is read
 * later. A struct weights is immutable once open: threads may share it. */
#ifndef WEIGHTS_WEIGHTS_H
#define WEIGHTS_WEIGHTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct weights;

/* The numbers are ggml's, so that a GGUF type needs no table; the names are llama.cpp's. Types that
 * only safetensors has begin at 1000. wtype.c knows every type of ggml, for `info`; quant.h decodes
 * the floating-point and quantised ones named here, except F8. */
enum wtype {
    W_F32 = 0,
    W_F16 = 1,
    W_Q4_0 = 2,
    W_Q4_1 = 3,
    W_Q5_0 = 6,
    W_Q5_1 = 7,
    W_Q8_0 = 8,
    W_Q2_K = 10,
    W_Q3_K = 11,
    W_Q4_K = 12,
    W_Q5_K = 13,
    W_Q6_K = 14,
    W_IQ4_NL = 20,
    W_IQ4_XS = 23,
    W_BF16 = 30,
    W_I8 = 24,
    W_I16 = 25,
    W_I32 = 26,
    W_I64 = 27,
    W_F64 = 28,
    W_U8 = 1000,
    W_U16,
    W_U32,
    W_U64,
    W_BOOL,
    W_F8_E4M3,
    W_F8_E5M2,
};

/* Return "F32", "Q8_0", ..., or NULL when the number is not a known type. */
const char *wtype_name(int type);
/* Find the type of this name, in any case; false when there is none. */
bool wtype_parse(int *type, const char *name);
/* Return the values in one block and the bytes of one block; false for an unknown type. */
bool wtype_block(int type, size_t *values, size_t *bytes);

struct tensor {
    const char *name;
    int type;         /* enum wtype */
    unsigned ndim;    /* 0 to 8; GGUF has at most 4 */
    size_t shape[8];  /* slowest first: a matrix is [rows][cols], as in safetensors */
    const void *data; /* borrowed from the mapping, any alignment; NULL if bytes is 0 */
    size_t bytes;
};

/* Open a file or a folder. On error *out is NULL: ERR_IO (cannot be read), ERR_FORMAT (names file,
 * field, expected, found) or ERR_NOMEM. A GGUF file whose size equals its key "mizzle.bytes" is
 * verified against "mizzle.crc32". */
int weights_open(struct weights **out, const char *path, struct err *err);
/* Like weights_open, but a GGUF file may end where its data should begin, for instance because only
 * its header was downloaded; every tensor's data is NULL then. It is for `info`. */
int weights_open_header(struct weights **out, const char *path, struct err *err);
void weights_close(struct weights *w); /* NULL is fine */
/* Return the path of the open file whose bytes lie at this address, or NULL. It is for a SIGBUS
 * handler: that signal comes when another process has cut the file short. While more than 1024
 * files are mapped, an unknown address counts as one in "a file of a model". */
const char *weights_mapped(const void *address);

/* True if path is a file of the model: one that w is read from, or, if w is a folder, any other
 * file in it that is no GGUF file, such as tokenizer.json. A command that writes there would
 * replace it.
 */
bool weights_reads(const struct weights *w, const char *path);

const char *weights_path(const struct weights *w);   /* as given to weights_open */
const char *weights_format(const struct weights *w); /* "gguf", "safetensors", "folder" */
size_t weights_shards(const struct weights *w);      /* files that the tensors lie in */

size_t weights_ntensors(const struct weights *w);
const struct tensor *weights_tensor(const struct weights *w, size_t i);       /* file order */
const struct tensor *weights_find(const struct weights *w, const char *name); /* or NULL */

/* Like weights_find, but the tensor must exist and have this shape; otherwise returns NULL, and err
 * says "path: tensor NAME: expected [a,b], found [c,d]". cols 0 means one dimension, [rows]. */
const struct tensor *weights_want(const struct weights *w, const char *name, size_t rows,
                                  size_t cols, struct err *err);

/* Types of metadata, numbered as in GGUF. */
enum kvtype {
    KV_U8,
    KV_I8,
    KV_U16,
    KV_I16,
    KV_U32,
    KV_I32,
    KV_F32,
    KV_BOOL,
    KV_STR,
    KV_ARR,
    KV_U64,
    KV_I64,
    KV_F64
};

struct str {
    const char *p; /* not terminated, may hold any byte */
    size_t n;
};

struct kv {
    struct str key; /* p is also terminated */
    enum kvtype type;
    enum kvtype elem;       /* an array's element type, else type */
    size_t count;           /* elements of an array, else 1 */
    const void *data;       /* numbers: raw little-endian, any alignment; NULL for strings */
    const struct str *strs; /* [count] when type or elem is KV_STR, else NULL */
};

size_t weights_nkv(const struct weights *w);
const struct kv *weights_kv(const struct weights *w, size_t i);
const struct kv *weights_key(const struct weights *w, const char *key); /* or NULL */

/* Typed getters. They return true and set *out when the key exists and is an integer that fits, a
 * number, a bool, or a string, respectively. */
bool weights_u64(const struct weights *w, const char *key, uint64_t *out);
bool weights_f64(const struct weights *w, const char *key, double *out);
bool weights_bool(const struct weights *w, const char *key, bool *out);
bool weights_str(const struct weights *w, const char *key, struct str *out);

/* Decode `count` values of t from value `first` on, for the types of quant_known (first and count
 * are multiples of the type's block). ERR_FORMAT, as for other types, names the tensor, and its
 * file as `path` says. */
int weights_floats(float *out, const struct tensor *t, size_t first, size_t count, const char *path,
                   struct err *err);

#endif
