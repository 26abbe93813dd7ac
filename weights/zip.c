#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "kernels/sys/base.h"
#include "weights/zip.h"

enum {
    END_BYTES = 22,
    END64_BYTES = 56,
    LOCATOR_BYTES = 20,
    ENTRY_BYTES = 46,
    LOCAL_BYTES = 30,
    COMMENT_MAX = 65535,
    STORED = 0,
    DEFLATED = 8
};

/* The limit on all inflated members together, because a small file may claim any size. */
static const size_t inflated_max = (size_t)1 << 30;

static int zip_bad(const struct zip *z, struct err *err, const char *what)
{
    return err_set(err, ERR_FORMAT, "%s: zip archive: %s", z->mem->path, what);
}

bool zip_is(const struct mapping *m)
{
    return m->n >= 4 && (memcmp(m->p, "PK\3\4", 4) == 0 || memcmp(m->p, "PK\5\6", 4) == 0);
}

/* Find the end record, the last thing in the file except for a comment. */
static const unsigned char *find_end(const struct mapping *m)
{
    for (size_t back = END_BYTES; back <= m->n && back <= END_BYTES + COMMENT_MAX; back++) {
        const unsigned char *p = m->p + m->n - back;
        if (memcmp(p, "PK\5\6", 4) == 0 && le_get(p + 20, 2) == back - END_BYTES)
            return p;
    }
    return NULL;
}

/* Find the central directory: its entries, bytes and offset, from the zip64 record if there is
 * one. */
static bool find_directory(const struct mapping *m, uint64_t *n, uint64_t *bytes, uint64_t *at)
{
    const unsigned char *end = find_end(m);
    if (!end)
        return false;
    *n = le_get(end + 10, 2);
    *bytes = le_get(end + 12, 4);
    *at = le_get(end + 16, 4);
    size_t place = (size_t)(end - m->p);
    if (place < LOCATOR_BYTES || memcmp(end - LOCATOR_BYTES, "PK\6\7", 4) != 0)
        return true;
    uint64_t end64 = le_get(end - LOCATOR_BYTES + 8, 8);
    if (end64 > m->n || m->n - end64 < END64_BYTES || memcmp(m->p + end64, "PK\6\6", 4) != 0)
        return false;
    *n = le_get(m->p + end64 + 32, 8);
    *bytes = le_get(m->p + end64 + 40, 8);
    *at = le_get(m->p + end64 + 48, 8);
    return true;
}

/* Read an entry's extra fields. Field 1 (zip64) replaces the values that are all ones, in this
 * order. */
static bool read_extra(struct zip_entry *e, const unsigned char *p, size_t n)
{
    uint64_t *const values[] = { &e->size, &e->packed, &e->at };
    while (n >= 4) {
        size_t id = (size_t)le_get(p, 2), length = (size_t)le_get(p + 2, 2);
        p += 4;
        n -= 4;
        if (length > n)
            return false;
        for (size_t i = 0, used = 0; id == 1 && i < 3; i++) {
            if (*values[i] != UINT32_MAX)
                continue;
            if (length - used < 8)
                return false;
            *values[i] = le_get(p + used, 8);
            used += 8;
        }
        p += length;
        n -= length;
    }
    return true;
}

static int by_name(const void *a, const void *b)
{
    const struct zip_entry *x = a, *y = b;
    size_t n = x->name.n < y->name.n ? x->name.n : y->name.n;
    int c = memcmp(x->name.p, y->name.p, n);
    return c ? c : x->name.n < y->name.n ? -1 : x->name.n > y->name.n;
}

/* Find where a member's bytes begin; false when the directory points outside the file. */
static bool zip_locate(const struct zip *z, const struct zip_entry *e, size_t *at)
{
    const struct mapping *m = &z->file;
    if (e->at > m->n || m->n - e->at < LOCAL_BYTES || memcmp(m->p + e->at, "PK\3\4", 4) != 0)
        return false;
    const unsigned char *p = m->p + e->at;
    *at = (size_t)e->at + LOCAL_BYTES + (size_t)le_get(p + 26, 2) + (size_t)le_get(p + 28, 2);
    return *at <= m->n && e->packed <= m->n - *at;
}

/* Copy a member's name, cut to cap - 1 bytes, for error messages. */
static void show_name(char *out, size_t cap, const struct zip_entry *e)
{
    size_t n = e->name.n < cap - 1 ? e->name.n : cap - 1;
    memcpy(out, e->name.p, n);
    out[n] = 0;
}

/* Read the central directory, and check that each member lies inside the file. */
static int read_entries(struct zip *z, const unsigned char *p, size_t left, struct err *err)
{
    for (size_t i = 0; i < z->n; i++) {
        struct zip_entry *e = &z->entries[i];
        if (left < ENTRY_BYTES || memcmp(p, "PK\1\2", 4) != 0)
            return zip_bad(z, err, "the central directory is damaged");
        size_t name = (size_t)le_get(p + 28, 2), extra = (size_t)le_get(p + 30, 2);
        size_t total = ENTRY_BYTES + name + extra + (size_t)le_get(p + 32, 2);
        if (total > left)
            return zip_bad(z, err, "the central directory is damaged");
        e->method = (unsigned)le_get(p + 10, 2);
        e->crc = (uint32_t)le_get(p + 16, 4);
        e->packed = le_get(p + 20, 4);
        e->size = le_get(p + 24, 4);
        e->at = le_get(p + 42, 4);
        e->name = (struct str){ (const char *)p + ENTRY_BYTES, name };
        if (le_get(p + 8, 2) & 1)
            return zip_bad(z, err, "a member is encrypted");
        if (!read_extra(e, p + ENTRY_BYTES + name, extra))
            return zip_bad(z, err, "the central directory is damaged");
        size_t at;
        char shown[80];
        show_name(shown, sizeof(shown), e);
        if (!zip_locate(z, e, &at))
            return err_set(err, ERR_FORMAT, "%s: %s: expected a member at byte %llu of %zu",
                           z->mem->path, shown, (unsigned long long)e->at, z->file.n);
        p += total;
        left -= total;
    }
    return OK;
}

int zip_open(struct zip *z, struct weights *mem, const struct mapping *m, struct err *err)
{
    uint64_t n, bytes, at;
    *z = (struct zip){ .mem = mem, .file = *m };
    if (!find_directory(m, &n, &bytes, &at))
        return zip_bad(z, err,
                       "expected an end record, found none: the file is cut off or damaged");
    if (at > m->n || bytes > m->n - at || n > bytes / ENTRY_BYTES)
        return zip_bad(z, err, "the central directory lies outside the file");
    z->n = (size_t)n;
    z->entries = table_alloc(mem, z->n * sizeof(*z->entries));
    if (!z->entries)
        return err_set(err, ERR_NOMEM, "%s: out of memory", mem->path);
    int code = read_entries(z, m->p + at, (size_t)bytes, err);
    if (code != OK)
        return code;
    qsort(z->entries, z->n, sizeof(*z->entries), by_name);
    for (size_t i = 1; i < z->n; i++)
        if (by_name(&z->entries[i - 1], &z->entries[i]) == 0)
            return zip_bad(z, err, "two members have one name");
    return OK;
}

struct zip_entry *zip_find(const struct zip *z, const char *name, size_t n)
{
    struct zip_entry want = { .name = { name, n } };
    return bsearch(&want, z->entries, z->n, sizeof(want), by_name);
}

/* Inflate raw deflate data of exactly n bytes; false when it is damaged or longer or shorter. */
static bool zip_inflate_all(unsigned char *out, size_t n, const unsigned char *in, size_t packed)
{
    z_stream s = { .next_in = (unsigned char *)(uintptr_t)in, .avail_in = (uInt)packed };
    if (inflateInit2(&s, -MAX_WBITS) != Z_OK)
        return false;
    s.next_out = out;
    s.avail_out = (uInt)n;
    bool fine = inflate(&s, Z_FINISH) == Z_STREAM_END && s.total_out == n;
    inflateEnd(&s);
    return fine;
}

int zip_read(struct zip *z, struct zip_entry *e, const unsigned char **out, size_t *n, size_t limit,
             struct err *err)
{
    char name[80];
    size_t at = 0;
    show_name(name, sizeof(name), e);
    if (!zip_locate(z, e, &at) || e->size > limit)
        return err_set(err, ERR_FORMAT, "%s: %s: %llu bytes are more than expected", z->mem->path,
                       name, (unsigned long long)e->size);
    *out = e->bytes ? e->bytes : z->file.p + at;
    *n = (size_t)e->size;
    if (e->bytes)
        return OK;
    if (e->method == DEFLATED && e->packed < UINT32_MAX && *n < inflated_max - z->inflated) {
        unsigned char *to = table_alloc(z->mem, *n ? *n : 1);
        if (!to)
            return err_set(err, ERR_NOMEM, "%s: out of memory", z->mem->path);
        z->inflated += *n;
        if (!zip_inflate_all(to, *n, *out, (size_t)e->packed))
            return err_set(err, ERR_FORMAT, "%s: %s: the deflated data is damaged", z->mem->path,
                           name);
        *out = to;
    } else if (e->method != STORED || e->packed != e->size) {
        return err_set(err, ERR_FORMAT, "%s: %s: expected a stored or deflated member of sane size",
                       z->mem->path, name);
    }
    uint32_t crc = (uint32_t)crc32_z(0, *out, *n);
    if (crc != e->crc)
        return err_set(err, ERR_FORMAT, "%s: %s: expected crc32 %08x, found %08x", z->mem->path,
                       name, (unsigned)e->crc, (unsigned)crc);
    e->bytes = *out;
    return OK;
}
