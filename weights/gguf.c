/* gguf.c - GGUF v2 and v3, little-endian: header, keys, tensor table, aligned data. Source: the
 * GGUF specification in ggml's docs/gguf.md; the checks are those of ggml's reader.
 *
 * Files in parts are as llama-gguf-split writes them: STEM-00001-of-00003.gguf and so on, each a
 * GGUF file with the keys split.no (from 0), split.count and split.tensors.count (of all parts).
 * The model's own keys are in the first part. Source: llama.cpp's examples/gguf-split and its
 * loader. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "kernels/sys/base.h"
#include "weights/find.h"
#include "weights/table.h"

enum {
    NAME_MAX_BYTES = 63,
    DIMS_MAX = 4,
    ALIGN_DEFAULT = 32,
    KEY_MIN_BYTES = 13,
    INFO_MIN = 24,
    SHARDS_MAX = 1000
};

struct reader {
    struct weights *w;
    const char *name;              /* of this file, for messages */
    size_t first_kv, first_tensor; /* rows before these are those of other files */
    const unsigned char *p;        /* the whole file */
    size_t n, at;
    struct err *err;
};

/* Set ERR_FORMAT: "path: WHAT at byte N of M". */
static int gguf_bad(struct reader *r, const char *what)
{
    return err_set(r->err, ERR_FORMAT, "%s: %s at byte %zu of %zu", r->name, what, r->at, r->n);
}

static int gguf_no_memory(struct reader *r)
{
    return err_set(r->err, ERR_NOMEM, "%s: out of memory", r->name);
}

/* Return the next n bytes, or NULL beyond the end of the file. */
static const unsigned char *gguf_take(struct reader *r, size_t n)
{
    if (!size_within(r->at, n, r->n))
        return NULL;
    const unsigned char *p = r->p + r->at;
    r->at += n;
    return p;
}

/* Read a number of n bytes. */
static bool gguf_number(struct reader *r, size_t n, uint64_t *out)
{
    const unsigned char *p = gguf_take(r, n);
    *out = p ? le_get(p, n) : 0;
    return p != NULL;
}

static bool take_str(struct reader *r, struct str *out)
{
    const unsigned char *p = gguf_take(r, 8); /* there are some 300,000: one load each */
    if (!p || le_get(p, 8) > r->n - r->at)
        return false;
    out->n = (size_t)le_get(p, 8);
    out->p = (const char *)gguf_take(r, out->n);
    return true;
}

/* Names become C strings, so they must not contain a zero byte. */
static int take_name(struct reader *r, struct str *out, const char *what)
{
    if (!take_str(r, out))
        return gguf_bad(r, what);
    if (out->n && memchr(out->p, 0, out->n))
        return gguf_bad(r, "a name with a zero byte");
    out->p = table_copy(r->w, out->p, out->n);
    return out->p ? OK : gguf_no_memory(r);
}

/* Read kv->count strings. Each takes at least its eight bytes of length, which bounds the memory by
 * the size of the file. */
static int read_strings(struct reader *r, struct kv *kv)
{
    if (kv->count > (r->n - r->at) / 8)
        return gguf_bad(r, "an array of strings longer than the file");
    struct str *s = table_alloc(r->w, kv->count * sizeof(*s));
    if (!s)
        return gguf_no_memory(r);
    for (size_t i = 0; i < kv->count; i++)
        if (!take_str(r, &s[i]))
            return gguf_bad(r, "a string longer than the file");
    kv->strs = s;
    return OK;
}

/* A number or an array of numbers stays where it is in the file. */
static int read_numbers(struct reader *r, struct kv *kv)
{
    size_t bytes;
    if (!size_mul(&bytes, kv->count, kvtype_size(kv->elem)) || !(kv->data = gguf_take(r, bytes)))
        return gguf_bad(r, "a value longer than the file");
    return OK;
}

/* The checksum covers every byte except its own four and the eight of "mizzle.bytes", the key
 * before it. A tool that rewrites the file copies both keys and changes the size, so only a file of
 * the size that was written is held to the checksum. When the checksum is right and the size is
 * wrong, the size key itself is damaged. */
static int gguf_verify(struct reader *r, const struct kv *kv)
{
    static const unsigned char zeros[8];
    const struct kv *size = r->w->nkvs == r->first_kv + 1 ? &r->w->kvs[r->first_kv] : NULL;
    if (!size || strcmp(size->key.p, "mizzle.bytes") != 0)
        return OK; /* another tool has reordered the keys */
    if (kv->type != KV_U32 || size->type != KV_U64)
        return gguf_bad(r, "mizzle.bytes is no U64 or mizzle.crc32 no U32");
    size_t bytes_at = (size_t)((const unsigned char *)size->data - r->p), at = r->at;
    uint64_t bytes = le_get(r->p + bytes_at, 8);
    uint32_t stored = (uint32_t)le_get(r->p + at - 4, 4),
             crc = (uint32_t)crc32_z(0, r->p, bytes_at);
    crc = (uint32_t)crc32_z(crc, zeros, 8);
    crc = (uint32_t)crc32_z(crc, r->p + bytes_at + 8, at - 4 - (bytes_at + 8));
    crc = (uint32_t)crc32_z(crc, zeros, 4);
    crc = (uint32_t)crc32_z(crc, r->p + at, r->n - at);
    if ((crc == stored) == (bytes == r->n))
        return OK;
    return err_set(r->err, ERR_FORMAT,
                   "%s: mizzle.crc32: expected %08x and %llu bytes, found %08x and %zu: the file "
                   "is damaged",
                   r->name, (unsigned)stored, (unsigned long long)bytes, (unsigned)crc, r->n);
}

/* Read one key with its value and append it; "mizzle.crc32" is verified at once. */
static int gguf_read_key(struct reader *r)
{
    struct kv kv = { .count = 1 };
    uint64_t type;
    int code = take_name(r, &kv.key, "a key longer than the file");
    if (code != OK)
        return code;
    if (!kv.key.n)
        return gguf_bad(r, "a key without a name");
    if (!gguf_number(r, 4, &type))
        return gguf_bad(r, "the end of the file inside a key");
    if (type > KV_F64)
        return err_set(r->err, ERR_FORMAT, "%s: key %s: expected a type from 0 to 12, found %u",
                       r->name, kv.key.p, (unsigned)type);
    kv.type = kv.elem = (enum kvtype)type;
    if (kv.type == KV_ARR) {
        uint64_t count;
        if (!gguf_number(r, 4, &type) || !gguf_number(r, 8, &count))
            return gguf_bad(r, "the end of the file inside a key");
        if (type > KV_F64 || type == KV_ARR)
            return err_set(r->err, ERR_FORMAT, "%s: key %s: found an array of type %u", r->name,
                           kv.key.p, (unsigned)type);
        if (count > r->n - r->at)
            return err_set(r->err, ERR_FORMAT, "%s: key %s: %llu values do not fit in the file",
                           r->name, kv.key.p, (unsigned long long)count);
        kv.elem = (enum kvtype)type;
        kv.count = (size_t)count;
    }
    code = kv.elem == KV_STR ? read_strings(r, &kv) : read_numbers(r, &kv);
    if (code == OK && strcmp(kv.key.p, "mizzle.crc32") == 0)
        code = gguf_verify(r, &kv);
    if (code != OK)
        return code;
    struct kv *row = table_kv(r->w);
    if (!row)
        return gguf_no_memory(r);
    *row = kv;
    return OK;
}

/* general.alignment must be a power of two; without it the default applies. */
static int read_alignment(struct reader *r, size_t *align)
{
    *align = ALIGN_DEFAULT;
    for (size_t i = r->first_kv; i < r->w->nkvs; i++) {
        const struct kv *kv = &r->w->kvs[i];
        if (strcmp(kv->key.p, "general.alignment") != 0)
            continue;
        uint32_t v = 0;
        if (kv->type == KV_U32)
            memcpy(&v, kv->data, sizeof(v));
        if (!v || (v & (v - 1)))
            return err_set(r->err, ERR_FORMAT,
                           "%s: general.alignment: expected a U32 that is a power of two, found "
                           "type %d, %u",
                           r->name, (int)kv->type, (unsigned)v);
        *align = v;
    }
    return OK;
}

/* Read one row of the tensor table; *offset becomes the position that it gives for its data. */
static int read_info(struct reader *r, struct tensor *t, uint64_t *offset)
{
    struct str name;
    uint64_t type;
    int code = take_name(r, &name, "a tensor name longer than the file");
    if (code != OK)
        return code;
    t->name = name.p;
    if (name.n > NAME_MAX_BYTES)
        return err_set(r->err, ERR_FORMAT,
                       "%s: tensor %.80s: expected a name of at most 63 bytes, found %zu", r->name,
                       name.p, name.n);
    if (!gguf_number(r, 4, &type))
        return gguf_bad(r, "the end of the file inside a tensor's description");
    if (type > DIMS_MAX)
        return err_set(r->err, ERR_FORMAT, "%s: tensor %s: expected at most 4 dimensions, found %u",
                       r->name, name.p, (unsigned)type);
    t->ndim = (unsigned)type;
    for (unsigned i = 0; i < t->ndim; i++) {
        uint64_t v;
        if (!gguf_number(r, 8, &v))
            return gguf_bad(r, "the end of the file inside a tensor's shape");
        if (v > INT64_MAX || v > SIZE_MAX)
            return err_set(r->err, ERR_FORMAT, "%s: tensor %s: found a dimension of %llu", r->name,
                           name.p, (unsigned long long)v);
        t->shape[t->ndim - 1 - i] = (size_t)v; /* the file stores the fastest dimension first */
    }
    if (!gguf_number(r, 4, &type) || !gguf_number(r, 8, offset))
        return gguf_bad(r, "the end of the file inside a tensor's description");
    if (type >= W_U8 || !wtype_name((int)type))
        return err_set(r->err, ERR_FORMAT, "%s: tensor %s: type %u is not known", r->name, name.p,
                       (unsigned)type);
    t->type = (int)type;
    return OK;
}

/* Check one tensor's size and offset. As in ggml, sizes must fit a signed 64-bit number, rows are
 * whole blocks, and offsets follow each other without holes. *end becomes where the next tensor
 * begins and *last where the data of this one ends: a file may end there, without padding. */
static int gguf_place(struct reader *r, struct tensor *t, uint64_t offset, size_t align,
                      size_t *end, size_t *last)
{
    char shape[128];
    tensor_shape(shape, sizeof(shape), t->ndim, t->shape);
    if (!table_size(t) || t->bytes > INT64_MAX)
        return err_set(r->err, ERR_FORMAT,
                       "%s: tensor %s: the shape %s is too large or no whole number of %s blocks",
                       r->name, t->name, shape, wtype_name(t->type));
    if (offset != *end)
        return err_set(r->err, ERR_FORMAT, "%s: tensor %s: expected its data at %zu, found %llu",
                       r->name, t->name, *end, (unsigned long long)offset);
    size_t padded;
    if (!size_align(&padded, t->bytes, align) || !size_add(last, *end, t->bytes) ||
        !size_add(end, *end, padded))
        return err_set(r->err, ERR_FORMAT, "%s: tensor %s: the data's size %s overflows", r->name,
                       t->name, shape);
    return OK;
}

/* Read the tensor table, then point each tensor to its data, if the data is in the file. */
static int read_tensors(struct reader *r, size_t n, size_t align, bool header_only)
{
    size_t end = 0, last = 0, start;
    for (size_t i = 0; i < n; i++) {
        struct tensor *t = table_tensor(r->w);
        if (!t)
            return gguf_no_memory(r);
        uint64_t offset = 0;
        int code = read_info(r, t, &offset);
        if (code == OK)
            code = gguf_place(r, t, offset, align, &end, &last);
        if (code != OK)
            return code;
    }
    bool there = size_align(&start, r->at, align) &&
                 (!end || size_within(start, end, r->n) ||
                  (start <= r->n && r->n - start == last)); /* only the last padding is missing */
    if (!there && !(header_only && (start == r->n || r->at == r->n)))
        return err_set(r->err, ERR_FORMAT,
                       "%s: expected %zu bytes of tensor data at byte %zu, found %zu", r->name, end,
                       start, r->n > start ? r->n - start : 0);
    for (size_t i = 0, at = start; there && i < n; i++) {
        struct tensor *t = &r->w->tensors[r->first_tensor + i];
        size_t padded = t->bytes;
        if (t->bytes)
            t->data = r->p + at;
        size_align(&padded, padded, align);
        at += padded;
    }
    return OK;
}

/* Read a file, or a part of one; name is what error messages call it. */
static int gguf_read(struct weights *w, const struct mapping *m, const char *name, bool header_only,
                     struct err *err)
{
    struct reader r = { w, name, w->nkvs, w->ntensors, m->p, m->n, 0, err };
    uint64_t version, ntensors, nkvs;
    size_t align;
    const unsigned char *magic = gguf_take(&r, 4);
    if (!magic || memcmp(magic, "GGUF", 4) != 0)
        return err_set(err, ERR_FORMAT, "%s: expected the magic \"GGUF\", found other bytes", name);
    if (!gguf_number(&r, 4, &version) || !gguf_number(&r, 8, &ntensors) ||
        !gguf_number(&r, 8, &nkvs))
        return gguf_bad(&r, "the end of the file inside the header");
    if (version != 2 && version != 3)
        return err_set(err, ERR_FORMAT, "%s: expected GGUF version 2 or 3, found %u%s", name,
                       (unsigned)version,
                       version && !(version & 0xffff) ? " (a big-endian file?)" : "");
    /* Each row takes a minimum of bytes, which bounds the loops and the memory. */
    if (nkvs > (r.n - r.at) / KEY_MIN_BYTES || ntensors > (r.n - r.at) / INFO_MIN)
        return err_set(err, ERR_FORMAT, "%s: %llu keys and %llu tensors do not fit in %zu bytes",
                       name, (unsigned long long)nkvs, (unsigned long long)ntensors, r.n);
    int code = OK;
    for (uint64_t i = 0; i < nkvs && code == OK; i++)
        code = gguf_read_key(&r);
    if (code == OK)
        code = read_alignment(&r, &align);
    return code == OK ? read_tensors(&r, (size_t)ntensors, align, header_only) : code;
}

/* Write the path of a part; all parts have names of the same length. */
static void gguf_shard_path(char *out, const char *any, size_t stem, unsigned number,
                            unsigned count)
{
    snprintf(out, strlen(any) + 1, "%.*s-%05u-of-%05u.gguf", (int)stem, any, number, count);
}

/* Name all parts that are not there, with the command that would fetch the first. */
static int gguf_shards_there(const char *any, size_t stem, unsigned count, char *path,
                             struct err *err)
{
    char missing[300] = "", hint[300] = "";
    size_t at = 0;
    for (unsigned i = 1; i <= count; i++) {
        gguf_shard_path(path, any, stem, i, count);
        if (access(path, F_OK) == 0)
            continue;
        const char *base = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
        if (!at)
            find_hint(hint, sizeof(hint), path);
        bool fits = at + strlen(base) + 8 < sizeof(missing);
        at += (size_t)snprintf(missing + at, sizeof(missing) - at, "%s%s", at ? " " : "",
                               fits ? base : "...");
        if (!fits)
            break;
    }
    return at ? err_set(err, ERR_IO, "%.*s.gguf: expected %u parts, missing %s%s", (int)stem, any,
                        count, missing, hint)
              : OK;
}

/* Find an integer among the keys from `first` on. Return how many of that name there are: each
 * should have one, and only here is that checked, for these keys are dropped. */
static unsigned gguf_shard_key(const struct weights *w, size_t first, const char *key,
                               uint64_t *out)
{
    unsigned found = 0;
    for (size_t i = first; i < w->nkvs; i++) {
        bool negative;
        found += strcmp(w->kvs[i].key.p, key) == 0 && kv_integer(&w->kvs[i], out, &negative);
    }
    return found;
}

/* Require that a key of this part has a value; `first` is the part's first key. */
static int gguf_shard_want(const struct weights *w, size_t first, const char *path, const char *key,
                           uint64_t want, struct err *err)
{
    uint64_t v = 0;
    unsigned count = gguf_shard_key(w, first, key, &v);
    if (count == 1 && v == want)
        return OK;
    char found[32] = "none";
    if (count)
        snprintf(found, sizeof(found), "%lld", (long long)v);
    if (count > 1)
        snprintf(found, sizeof(found), "%u keys of this name", count);
    return err_set(err, ERR_FORMAT, "%s: %s: expected %llu, found %s", path, key,
                   (unsigned long long)want, found);
}

/* Map and read part i of n, check what it says about itself, and drop the keys that the first part
 * does not have. */
static int gguf_shard_read(struct weights *w, const char *path, unsigned i, unsigned n,
                           bool header_only, struct err *err)
{
    struct mapping m;
    size_t first = w->nkvs;
    int code = table_map(w, &m, path, err);
    if (code == OK)
        code = gguf_read(w, &m, path, header_only, err);
    if (code == OK)
        code = gguf_shard_want(w, first, path, "split.count", n, err);
    if (code == OK)
        code = gguf_shard_want(w, first, path, "split.no", i, err);
    if (code == OK && i)
        w->nkvs = first;
    return code;
}

/* Drop the keys "split.*": they describe files, not the model. */
static void gguf_shards_drop_keys(struct weights *w)
{
    size_t kept = 0;
    for (size_t i = 0; i < w->nkvs; i++)
        if (strncmp(w->kvs[i].key.p, "split.", 6) != 0)
            w->kvs[kept++] = w->kvs[i];
    w->nkvs = kept;
}

int gguf_read_shards(struct weights *w, bool header_only, struct err *err)
{
    size_t stem = 0;
    unsigned number, n = 0;
    char *path = table_copy(w, w->path, strlen(w->path));
    if (!path)
        return err_set(err, ERR_NOMEM, "%s: out of memory", w->path);
    find_shard(w->path, &stem, &number, &n);
    if (n > SHARDS_MAX)
        return err_set(err, ERR_FORMAT, "%s: expected at most %d parts, found %u", w->path,
                       SHARDS_MAX, n);
    int code = gguf_shards_there(w->path, stem, n, path, err);
    for (unsigned i = 0; code == OK && i < n; i++) {
        gguf_shard_path(path, w->path, stem, i + 1, n);
        code = gguf_shard_read(w, path, i, n, header_only, err);
    }
    gguf_shard_path(path, w->path, stem, 1, n);
    if (code == OK)
        code = gguf_shard_want(w, 0, path, "split.tensors.count", w->ntensors, err);
    if (code != OK)
        return code;
    w->shards = n;
    gguf_shards_drop_keys(w);
    return OK;
}

int gguf_read_alone(struct weights *w, const struct mapping *m, bool header_only, struct err *err)
{
    uint64_t n;
    int code = gguf_read(w, m, w->path, header_only, err);
    if (code != OK)
        return code;
    if (gguf_shard_key(w, 0, "split.count", &n) > 0 && n > 1)
        return err_set(err, ERR_FORMAT,
                       "%s: split.count: expected a name like STEM-00001-of-%05llu.gguf for one of "
                       "%llu parts",
                       w->path, (unsigned long long)n, (unsigned long long)n);
    gguf_shards_drop_keys(w);
    return OK;
}
