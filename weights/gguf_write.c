#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "kernels/sys/atomic_file.h"
#include "kernels/sys/base.h"
#include "kernels/sys/buf.h"
#include "weights/gguf_write.h"
#include "weights/table.h"

enum { ALIGN = 32, NAME_BYTES = 63, DIMS_MAX = 4 };

static const char bytes_key[] = "mizzle.bytes", crc_key[] = "mizzle.crc32";

struct ggufw {
    struct atomic_file part;
    struct buf keys, infos;
    size_t *sizes; /* bytes of each tensor's data */
    size_t ntensors, ctensors, nkeys;
    size_t current, done; /* the tensor whose data comes next, and its bytes so far */
    size_t offset;        /* end of the data announced so far */
    size_t written;       /* bytes of the file */
    bool begun, checksum;
    uint32_t crc;
    struct err err;
    int code; /* the first error, kept until close */
};

/* Keep the first error; later calls then do nothing. */
static void gguf_write_fail(struct ggufw *g, int code, const char *what)
{
    if (g->code == OK)
        g->code = err_set(&g->err, code, "%s: %s", g->part.path, what);
}

static void gguf_write_append(struct ggufw *g, struct buf *b, const void *p, size_t n)
{
    if (g->code == OK && !buf_add(b, p, n))
        gguf_write_fail(g, ERR_NOMEM, "out of memory");
}

/* Append a number of n bytes, little-endian as this machine is (table.h). */
static void append_int(struct ggufw *g, struct buf *b, uint64_t v, size_t n)
{
    gguf_write_append(g, b, &v, n);
}

static void append_str(struct ggufw *g, struct buf *b, const char *p, size_t n)
{
    append_int(g, b, n, 8);
    gguf_write_append(g, b, p, n);
}

int ggufw_open(struct ggufw **out, const char *path, struct err *err)
{
    *out = NULL;
    struct ggufw *g = calloc(1, sizeof(*g));
    if (!g)
        return err_set(err, ERR_NOMEM, "%s: out of memory", path);
    int code = atomic_file_open(&g->part, path, err);
    if (code != OK) {
        free(g);
        return code;
    }
    *out = g;
    return OK;
}

/* Append a key's name and type; the caller appends its value. */
static void begin_key(struct ggufw *g, const char *key, enum kvtype type)
{
    append_str(g, &g->keys, key, strlen(key));
    append_int(g, &g->keys, (unsigned)type, 4);
    g->nkeys++;
}

static void begin_array(struct ggufw *g, const char *key, enum kvtype elem, size_t n)
{
    begin_key(g, key, KV_ARR);
    append_int(g, &g->keys, (unsigned)elem, 4);
    append_int(g, &g->keys, n, 8);
}

void ggufw_u32(struct ggufw *g, const char *key, uint32_t v)
{
    begin_key(g, key, KV_U32);
    append_int(g, &g->keys, v, 4);
}

void ggufw_f32(struct ggufw *g, const char *key, float v)
{
    uint32_t bits;
    memcpy(&bits, &v, sizeof(bits));
    begin_key(g, key, KV_F32);
    append_int(g, &g->keys, bits, 4);
}

void ggufw_bool(struct ggufw *g, const char *key, bool v)
{
    begin_key(g, key, KV_BOOL);
    gguf_write_append(g, &g->keys, &(unsigned char){ v }, 1);
}

void ggufw_str(struct ggufw *g, const char *key, const char *v)
{
    begin_key(g, key, KV_STR);
    append_str(g, &g->keys, v, strlen(v));
}

void ggufw_strs(struct ggufw *g, const char *key, const struct str *v, size_t n)
{
    begin_array(g, key, KV_STR, n);
    for (size_t i = 0; i < n; i++)
        append_str(g, &g->keys, v[i].p, v[i].n);
}

void ggufw_i32s(struct ggufw *g, const char *key, const int32_t *v, size_t n)
{
    begin_array(g, key, KV_I32, n);
    for (size_t i = 0; i < n; i++)
        append_int(g, &g->keys, (uint32_t)v[i], 4);
}

void ggufw_kv(struct ggufw *g, const struct kv *kv)
{
    if (kv->type == KV_ARR)
        begin_array(g, kv->key.p, kv->elem, kv->count);
    else
        begin_key(g, kv->key.p, kv->type);
    if (kv->strs)
        for (size_t i = 0; i < kv->count; i++)
            append_str(g, &g->keys, kv->strs[i].p, kv->strs[i].n);
    else
        gguf_write_append(g, &g->keys, kv->data, kv->count * kvtype_size(kv->elem));
}

void ggufw_checksum(struct ggufw *g)
{
    g->checksum = true;
}

void ggufw_tensor(struct ggufw *g, const char *name, int type, unsigned ndim, const size_t *shape)
{
    struct tensor t = { .name = name, .type = type, .ndim = ndim };
    size_t n = strlen(name), padded;
    if (g->begun || ndim > DIMS_MAX || n > NAME_BYTES || type >= W_U8) {
        gguf_write_fail(g, ERR_ARG, "a tensor that GGUF cannot hold, or that came after the data");
        return;
    }
    for (unsigned i = 0; i < ndim; i++)
        t.shape[i] = shape[i];
    if (!table_size(&t)) {
        gguf_write_fail(g, ERR_ARG, "a tensor whose shape does not suit its type");
        return;
    }
    size_t *sizes = array_grow(g->sizes, &g->ctensors, g->ntensors, sizeof(*sizes));
    if (!sizes) {
        gguf_write_fail(g, ERR_NOMEM, "out of memory");
        return;
    }
    g->sizes = sizes;
    append_str(g, &g->infos, name, n);
    append_int(g, &g->infos, ndim, 4);
    for (unsigned i = ndim; i-- > 0;) /* the file stores the fastest dimension first */
        append_int(g, &g->infos, shape[i], 8);
    append_int(g, &g->infos, (unsigned)type, 4);
    append_int(g, &g->infos, g->offset, 8);
    g->sizes[g->ntensors++] = t.bytes;
    if (!size_align(&padded, t.bytes, ALIGN) || !size_add(&g->offset, g->offset, padded))
        gguf_write_fail(g, ERR_ARG, "tensors that do not fit in a file");
}

/* Write n bytes to the file and into the checksum. */
static void write_out(struct ggufw *g, const void *p, size_t n)
{
    if (g->code != OK || !n)
        return;
    if (fwrite(p, 1, n, g->part.f) != n) /* EFAULT means that p lies in a mapping */
        gguf_write_fail(g, ERR_IO,
                        errno == EFAULT ? "another process cut its source short" : strerror(errno));
    g->written += n;
    if (g->checksum)
        g->crc = (uint32_t)crc32_z(g->crc, p, n);
}

/* Write zeros up to the next multiple of ALIGN after n bytes. */
static void write_padding(struct ggufw *g, size_t n)
{
    static const unsigned char zeros[ALIGN];
    write_out(g, zeros, (ALIGN - n % ALIGN) % ALIGN);
}

/* Where the values of the file's size and checksum are. They are the first keys, so that a reader
 * verifies all other bytes before it trusts any of them. */
enum {
    HEADER_BYTES = 24,
    BYTES_AT = HEADER_BYTES + 8 + (int)sizeof(bytes_key) - 1 + 4,
    CRC_AT = BYTES_AT + 8 + 8 + (int)sizeof(crc_key) - 1 + 4
};

/* Write the header, the keys and the tensor table before the first data, when all are known. */
static void begin_data(struct ggufw *g)
{
    if (g->begun)
        return;
    g->begun = true;
    struct buf head = { 0 };
    gguf_write_append(g, &head, "GGUF", 4);
    append_int(g, &head, 3, 4);
    append_int(g, &head, g->ntensors, 8);
    append_int(g, &head, g->nkeys + (g->checksum ? 2 : 0), 8);
    if (g->checksum) {
        append_str(g, &head, bytes_key, sizeof(bytes_key) - 1);
        append_int(g, &head, KV_U64, 4);
        append_int(g, &head, 0, 8);
        append_str(g, &head, crc_key, sizeof(crc_key) - 1);
        append_int(g, &head, KV_U32, 4);
        append_int(g, &head, 0, 4);
    }
    write_out(g, head.p, head.n);
    write_out(g, g->keys.p, g->keys.n);
    write_out(g, g->infos.p, g->infos.n);
    write_padding(g, head.n + g->keys.n + g->infos.n);
    buf_free(&head);
}

/* Pad and leave tensors that are full, empty ones included. */
static void move_on(struct ggufw *g)
{
    while (g->current < g->ntensors && g->done == g->sizes[g->current]) {
        write_padding(g, g->done);
        g->current++;
        g->done = 0;
    }
}

void ggufw_data(struct ggufw *g, const void *data, size_t bytes)
{
    begin_data(g);
    move_on(g);
    if (g->code == OK && bytes &&
        (g->current == g->ntensors || bytes > g->sizes[g->current] - g->done))
        gguf_write_fail(g, ERR_ARG, "more data than a tensor holds");
    write_out(g, data, bytes);
    g->done += bytes;
    if (g->code == OK)
        move_on(g);
}

/* Overwrite n bytes at this place of the file with the low n bytes of v. */
static bool gguf_write_patch(struct ggufw *g, long at, uint64_t v, size_t n)
{
    return fseek(g->part.f, at, SEEK_SET) == 0 && fwrite(&v, 1, n, g->part.f) == n;
}

/* Check that all data came, then fill in size and checksum. */
static void gguf_write_finish(struct ggufw *g)
{
    begin_data(g);
    if (g->code == OK)
        move_on(g);
    if (g->code == OK && g->current != g->ntensors)
        gguf_write_fail(g, ERR_ARG, "less data than the tensors hold");
    if (g->code == OK && g->checksum &&
        !(gguf_write_patch(g, BYTES_AT, g->written, 8) && gguf_write_patch(g, CRC_AT, g->crc, 4)))
        gguf_write_fail(g, ERR_IO, strerror(errno));
}

int ggufw_close(struct ggufw *g, bool commit, struct err *err)
{
    if (!g)
        return OK;
    if (commit)
        gguf_write_finish(g);
    if (g->code == OK)
        g->code = atomic_file_close(&g->part, commit, &g->err);
    else
        atomic_file_close(&g->part, false, &g->err);
    int code = g->code == OK ? OK : err_set(err, g->code, "%s", g->err.msg);
    buf_free(&g->keys);
    buf_free(&g->infos);
    free(g->sizes);
    free(g);
    return code;
}
