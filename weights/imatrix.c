#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "weights/gguf_write.h"
#include "weights/imatrix.h"
#include "weights/table.h"

enum { NAME_ROOM = 128 };

static const char sums_end[] = ".in_sum2", counts_end[] = ".counts";

struct imatrix {
    struct weights *w; /* the file, and the memory of everything else */
    struct imatrix_entry *entries;
    size_t count;
    uint32_t chunks, chunk_size;
    const struct str *texts;
    size_t ntexts;
    bool gguf;
};

static int imatrix_no_memory(const struct imatrix *m, struct err *err)
{
    return err_set(err, ERR_NOMEM, "%s: out of memory", weights_path(m->w));
}

/* Divide x[n] by its average and raise small values. All become 1 if all are zero. */
static void normalise(float *x, size_t n)
{
    double total = 0;
    for (size_t i = 0; i < n; i++)
        total += (double)x[i];
    for (size_t i = 0; i < n; i++) {
        double v = total > 0 ? (double)x[i] / (total / (double)n) : 1;
        x[i] = (float)(v > 0.001 ? v : 0.001);
    }
}

/* Add an entry for n sums at any alignment. The parts of a matrix are its experts, whose sums are
 * over different numbers of tokens; as only proportions within a part matter, the counts do not. */
static int imatrix_add(struct imatrix *m, const char *name, const void *sums, size_t n,
                       size_t parts, struct err *err)
{
    float *x = table_alloc(m->w, n * sizeof(*x));
    bool any = false;
    if (!x)
        return imatrix_no_memory(m, err);
    memcpy(x, sums, n * sizeof(*x));
    for (size_t i = 0; i < n; i++) {
        if (!(x[i] >= 0 && x[i] < INFINITY))
            return err_set(err, ERR_FORMAT, "%s: %s: expected sums of squares, found %g",
                           weights_path(m->w), name, (double)x[i]);
        any = any || x[i] > 0;
    }
    if (!any)
        return OK;
    for (size_t i = 0; i < parts; i++)
        normalise(x + n / parts * i, n / parts);
    m->entries[m->count++] = (struct imatrix_entry){ name, x, n };
    return OK;
}

/* Add the matrix of a tensor NAME.in_sum2; other tensors are skipped. */
static int imatrix_add_tensor(struct imatrix *m, const struct tensor *t, struct err *err)
{
    size_t len = strlen(t->name), end = sizeof(sums_end) - 1;
    char counts_name[NAME_ROOM];
    if (len <= end || len >= NAME_ROOM || strcmp(t->name + len - end, sums_end) != 0)
        return OK;
    const char *name = table_copy(m->w, t->name, len - end);
    if (!name)
        return imatrix_no_memory(m, err);
    snprintf(counts_name, sizeof(counts_name), "%s%s", name, counts_end);
    const struct tensor *c = weights_find(m->w, counts_name);
    size_t n = t->bytes / sizeof(float), parts = c ? c->bytes / sizeof(float) : 0;
    if (t->type != W_F32 || !c || c->type != W_F32 || !n || !parts || n % parts)
        return err_set(err, ERR_FORMAT,
                       "%s: tensor %s: expected F32 sums, and a count for each part in %s",
                       weights_path(m->w), t->name, counts_name);
    return imatrix_add(m, name, t->data, n, parts, err);
}

static int imatrix_from_gguf(struct imatrix *m, struct err *err)
{
    struct str type = { "nothing", 7 };
    const struct kv *texts = weights_key(m->w, "imatrix.datasets");
    uint64_t chunks = 0, size = 0;
    int code = OK;
    m->gguf = true;
    weights_str(m->w, "general.type", &type);
    if (type.n != 7 || memcmp(type.p, "imatrix", 7) != 0)
        return err_set(err, ERR_FORMAT, "%s: general.type: expected imatrix, found %.*s",
                       weights_path(m->w), (int)(type.n < 40 ? type.n : 40), type.p);
    if (weights_u64(m->w, "imatrix.chunk_count", &chunks) && chunks <= UINT32_MAX)
        m->chunks = (uint32_t)chunks;
    if (weights_u64(m->w, "imatrix.chunk_size", &size) && size <= UINT32_MAX)
        m->chunk_size = (uint32_t)size;
    if (texts && texts->strs) {
        m->texts = texts->strs;
        m->ntexts = texts->count;
    }
    m->entries = table_alloc(m->w, weights_ntensors(m->w) * sizeof(*m->entries) + 1);
    if (!m->entries)
        return imatrix_no_memory(m, err);
    for (size_t i = 0; code == OK && i < weights_ntensors(m->w); i++)
        code = imatrix_add_tensor(m, weights_tensor(m->w, i), err);
    return code;
}

/* A legacy file, read from front to back. */
struct old {
    const unsigned char *p;
    size_t n, at;
};

/* Read the next 32-bit number, which must be from `least` to `most`. */
static bool old_number(struct old *o, size_t *out, size_t least, size_t most)
{
    uint32_t v = 0;
    if (!size_within(o->at, 4, o->n))
        return false;
    for (unsigned i = 0; i < 4; i++)
        v |= (uint32_t)o->p[o->at + i] << (8 * i);
    o->at += 4;
    *out = v;
    return v >= least && v <= most;
}

static int old_bad(const struct imatrix *m, const struct old *o, struct err *err)
{
    return err_set(err, ERR_FORMAT,
                   "%s: expected an importance matrix as GGUF or in llama.cpp's older form, found "
                   "a wrong length at byte %zu of %zu",
                   weights_path(m->w), o->at, o->n);
}

/* The older form: the number of matrices; for each the length of its name, its name, the number of
 * chunks, the number n of values, and n times f32 the sum of the chunks' mean squares; then,
 * optionally, the number of chunks of the text, the length of its name, its name. */
static int imatrix_from_old(struct imatrix *m, struct old *o, struct err *err)
{
    size_t count, len, calls, n, chunks;
    if (!old_number(o, &count, 1, o->n / 17))
        return old_bad(m, o, err);
    m->entries = table_alloc(m->w, count * sizeof(*m->entries));
    if (!m->entries)
        return imatrix_no_memory(m, err);
    for (size_t i = 0; i < count; i++) {
        if (!old_number(o, &len, 1, o->n - o->at) || !size_within(o->at, len, o->n))
            return old_bad(m, o, err);
        const char *name = table_copy(m->w, o->p + o->at, len);
        if (!name)
            return imatrix_no_memory(m, err);
        o->at += len;
        if (strlen(name) != len || !old_number(o, &calls, 0, INT32_MAX) ||
            !old_number(o, &n, 1, (o->n - o->at) / sizeof(float)) ||
            !size_within(o->at, n * sizeof(float), o->n))
            return old_bad(m, o, err);
        int code = imatrix_add(m, name, o->p + o->at, n, 1, err);
        if (code != OK)
            return code;
        o->at += n * sizeof(float);
    }
    if (o->at == o->n)
        return OK;
    if (!old_number(o, &chunks, 0, INT32_MAX) || !old_number(o, &len, 0, o->n - o->at) ||
        len != o->n - o->at)
        return old_bad(m, o, err);
    m->chunks = (uint32_t)chunks;
    struct str *text = table_alloc(m->w, sizeof(*text));
    if (!text)
        return imatrix_no_memory(m, err);
    *text = (struct str){ (const char *)o->p + o->at, len };
    m->texts = text;
    m->ntexts = len > 0;
    return OK;
}

static int compare_entries(const void *a, const void *b)
{
    const struct imatrix_entry *x = a, *y = b;
    return strcmp(x->name, y->name);
}

/* Sort the entries by name; two of the same name are an error, and so is none. */
static int imatrix_index(struct imatrix *m, struct err *err)
{
    if (!m->count)
        return err_set(err, ERR_FORMAT, "%s: expected an importance matrix, found no values in it",
                       weights_path(m->w));
    qsort(m->entries, m->count, sizeof(*m->entries), compare_entries);
    for (size_t i = 1; i < m->count; i++)
        if (strcmp(m->entries[i - 1].name, m->entries[i].name) == 0)
            return err_set(err, ERR_FORMAT, "%s: %s: expected one entry, found two",
                           weights_path(m->w), m->entries[i].name);
    return OK;
}

/* Map the file and read it as what it begins with. */
static int imatrix_read(struct imatrix *m, struct err *err)
{
    struct mapping map;
    int code = table_map(m->w, &map, weights_path(m->w), err);
    if (code != OK)
        return code;
    if (map.n >= 4 && memcmp(map.p, "GGUF", 4) == 0) {
        code = gguf_read_alone(m->w, &map, false, err);
        if (code == OK)
            code = table_index(m->w, err);
        return code == OK ? imatrix_from_gguf(m, err) : code;
    }
    struct old o = { map.p, map.n, 0 };
    return imatrix_from_old(m, &o, err);
}

int imatrix_open(struct imatrix **out, const char *path, struct err *err)
{
    struct imatrix *m = calloc(1, sizeof(*m));
    *out = NULL;
    if (!m || !(m->w = table_new(path, "imatrix"))) {
        free(m);
        return err_set(err, ERR_NOMEM, "%s: out of memory", path);
    }
    int code = imatrix_read(m, err);
    if (code == OK)
        code = imatrix_index(m, err);
    if (code != OK) {
        imatrix_close(m);
        return code;
    }
    *out = m;
    return OK;
}

void imatrix_close(struct imatrix *m)
{
    if (!m)
        return;
    weights_close(m->w);
    free(m);
}

const struct imatrix_entry *imatrix_find(const struct imatrix *m, const char *name)
{
    struct imatrix_entry key = { .name = name };
    return bsearch(&key, m->entries, m->count, sizeof(key), compare_entries);
}

size_t imatrix_count(const struct imatrix *m)
{
    return m->count;
}

const struct imatrix_entry *imatrix_at(const struct imatrix *m, size_t i)
{
    return &m->entries[i];
}

bool imatrix_is_gguf(const struct imatrix *m)
{
    return m->gguf;
}

uint32_t imatrix_chunks(const struct imatrix *m)
{
    return m->chunks;
}

uint32_t imatrix_chunk_size(const struct imatrix *m)
{
    return m->chunk_size;
}

size_t imatrix_texts(const struct imatrix *m)
{
    return m->ntexts;
}

struct str imatrix_text(const struct imatrix *m, size_t i)
{
    return m->texts[i];
}

int imatrix_write(const char *path, const struct imatrix_sums *sums, size_t count, const char *text,
                  uint32_t chunks, uint32_t chunk_size, struct err *err)
{
    struct ggufw *g;
    char name[NAME_ROOM];
    struct str set = { text, strlen(text) };
    int code = ggufw_open(&g, path, err);
    if (code != OK)
        return code;
    ggufw_str(g, "general.type", "imatrix");
    ggufw_strs(g, "imatrix.datasets", &set, 1);
    ggufw_u32(g, "imatrix.chunk_count", chunks);
    ggufw_u32(g, "imatrix.chunk_size", chunk_size);
    for (size_t i = 0; i < count; i++) {
        snprintf(name, sizeof(name), "%.100s%s", sums[i].name, sums_end);
        ggufw_tensor(g, name, W_F32, 1, &sums[i].n);
        snprintf(name, sizeof(name), "%.100s%s", sums[i].name, counts_end);
        ggufw_tensor(g, name, W_F32, 1, (const size_t[]){ 1 });
    }
    for (size_t i = 0; i < count; i++) {
        ggufw_data(g, sums[i].squares, sums[i].n * sizeof(float));
        ggufw_data(g, &sums[i].count, sizeof(float));
    }
    return ggufw_close(g, true, err);
}
