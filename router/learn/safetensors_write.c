#include "router/learn/safetensors_write.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/sys/atomic_file.h"
#include "kernels/sys/base.h"
#include "weights/table.h"
#include "weights/weights.h"

enum { PREFIX = 8 }; /* bytes of the header's length */

/* Return a tensor's entry: {"dtype": .., "shape": [..], "data_offsets": [at, at + bytes]}. */
static json_t *describe(const struct tensor *t, size_t at)
{
    json_t *shape = json_array();
    for (unsigned i = 0; i < t->ndim; i++)
        json_array_append_new(shape, json_integer((json_int_t)t->shape[i]));
    return json_pack("{s:s, s:o, s:[I,I]}", "dtype", wtype_name(t->type), "shape", shape,
                     "data_offsets", (json_int_t)at, (json_int_t)(at + t->bytes));
}

/* Return the JSON header as malloc'ed text, or NULL when out of memory. */
static char *make_header(const struct tensor *tensors, size_t n, const char *const *meta)
{
    json_t *root = json_object(), *m = json_object();
    bool fine = root && m;
    for (size_t i = 0; meta && meta[i]; i += 2)
        fine = json_object_set_new(m, meta[i], json_string(meta[i + 1])) == 0 && fine;
    if (meta && meta[0])
        fine = json_object_set(root, "__metadata__", m) == 0 && fine;
    for (size_t i = 0, at = 0; i < n; at += tensors[i++].bytes)
        fine = json_object_set_new(root, tensors[i].name, describe(&tensors[i], at)) == 0 && fine;
    /* jansson may use another allocator, so the text is copied into memory from malloc */
    size_t size = fine ? json_dumpb(root, NULL, 0, JSON_COMPACT) : 0;
    char *text = size ? malloc(size + 1) : NULL;
    if (text) {
        json_dumpb(root, text, size, JSON_COMPACT);
        text[size] = 0;
    }
    json_decref(m);
    json_decref(root);
    return text;
}

/* Blanks after the header align the data to 8 bytes. */
static bool safetensors_write_bytes(FILE *f, const char *header, const struct tensor *tensors,
                                    size_t n)
{
    size_t length = strlen(header), padded = (length + 7) / 8 * 8;
    uint64_t prefix = padded; /* little-endian, as le_get reads it */
    bool fine = fwrite(&prefix, 1, PREFIX, f) == PREFIX && fwrite(header, 1, length, f) == length &&
                fwrite("       ", 1, padded - length, f) == padded - length;
    for (size_t i = 0; fine && i < n; i++)
        fine = !tensors[i].bytes ||
               fwrite(tensors[i].data, 1, tensors[i].bytes, f) == tensors[i].bytes;
    return fine;
}

int safetensors_write(const char *path, const struct tensor *tensors, size_t n,
                      const char *const *meta, struct err *err)
{
    struct atomic_file part;
    char *header = make_header(tensors, n, meta);
    if (!header)
        return err_set(err, ERR_NOMEM, "%s: out of memory", path);
    int code = atomic_file_open(&part, path, err);
    if (code == OK) {
        bool fine = safetensors_write_bytes(part.f, header, tensors, n);
        code = fine ? OK : err_set(err, ERR_IO, "%s: %s", path, strerror(errno));
        struct err second;
        int closed = atomic_file_close(&part, fine, fine ? err : &second);
        code = code == OK ? closed : code;
    }
    free(header);
    return code;
}
