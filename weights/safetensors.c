/* safetensors.c - read a safetensors file. The header is JSON of one fixed form, so a scanner for
 * that form reads it: memory grows only with the tensors, whatever the header contains. Source: the
 * format's README and the checks of the safetensors crate. */
#include <stdlib.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "kernels/sys/text.h"
#include "weights/table.h"

enum { HEADER_MAX = 100 * 1000 * 1000, PREFIX = 8, DIMS_MAX = 8 };

struct scan {
    struct weights *w;
    const char *name; /* the file's, for errors */
    const unsigned char *p;
    size_t n, at;
    struct err *err;
};

/* The byte range that the header gives for a tensor. */
struct range {
    size_t tensor, first, end; /* index in the table; range [first, end) */
};

/* Set ERR_FORMAT: "header: expected WHAT at byte N". */
static int safetensors_bad(struct scan *s, const char *what)
{
    return err_set(s->err, ERR_FORMAT, "%s: header: expected %s at byte %zu", s->name, what,
                   PREFIX + s->at);
}

static int safetensors_no_memory(struct scan *s)
{
    return err_set(s->err, ERR_NOMEM, "%s: out of memory", s->name);
}

/* Skip white space and return the next byte, or -1 at the end. */
static int safetensors_peek(struct scan *s)
{
    while (s->at < s->n && (s->p[s->at] == ' ' || s->p[s->at] == '\t' || s->p[s->at] == '\n' ||
                            s->p[s->at] == '\r'))
        s->at++;
    return s->at < s->n ? s->p[s->at] : -1;
}

/* Consume the next byte if it is c. */
static bool safetensors_eat(struct scan *s, char c)
{
    if (safetensors_peek(s) != c)
        return false;
    s->at++;
    return true;
}

/* Read a string into memory of w, terminated. An escape is never shorter than what it stands
 * for. */
static int safetensors_string(struct scan *s, struct str *out)
{
    if (!safetensors_eat(s, '"'))
        return safetensors_bad(s, "a string");
    size_t end = s->at;
    while (end < s->n && s->p[end] != '"')
        end += s->p[end] == '\\' ? 2 : 1;
    if (end >= s->n)
        return safetensors_bad(s, "the end of a string");
    char *copy = table_alloc(s->w, end - s->at + 1), *to = copy;
    if (!copy)
        return safetensors_no_memory(s);
    while (s->at < end) {
        int c = s->p[s->at++];
        size_t used = 0, put = c >= 0x20;
        if (c == '\\')
            put = text_unescape(to, (const char *)s->p + s->at, s->n - s->at, &used);
        else
            *to = (char)c;
        if (!put)
            return safetensors_bad(s, "a plain character or a known escape");
        to += put;
        s->at += used;
    }
    s->at = end + 1;
    *out = (struct str){ copy, (size_t)(to - copy) };
    return OK;
}

/* Read a whole number that is not negative and has no leading zeros. */
static int safetensors_number(struct scan *s, size_t *out)
{
    int c = safetensors_peek(s);
    size_t v = 0, start = s->at;
    for (; c >= '0' && c <= '9'; c = s->at < s->n ? s->p[s->at] : -1) {
        if (!size_mul(&v, v, 10) || !size_add(&v, v, (size_t)(c - '0')))
            return safetensors_bad(s, "a number that fits");
        s->at++;
    }
    if (s->at == start || (s->p[start] == '0' && s->at > start + 1) || c == '.' || c == 'e' ||
        c == 'E')
        return safetensors_bad(s, "a whole number");
    *out = v;
    return OK;
}

/* Read [a, b, ...], at most max numbers. */
static int numbers(struct scan *s, size_t *out, unsigned *count, unsigned max)
{
    *count = 0;
    if (!safetensors_eat(s, '['))
        return safetensors_bad(s, "[");
    if (safetensors_eat(s, ']'))
        return OK;
    do {
        if (*count == max)
            return safetensors_bad(s, "fewer numbers");
        int code = safetensors_number(s, &out[(*count)++]);
        if (code != OK)
            return code;
    } while (safetensors_eat(s, ','));
    return safetensors_eat(s, ']') ? OK : safetensors_bad(s, "]");
}

/* Read a dtype that has one value per block, as all types of the format do. */
static int safetensors_dtype(struct scan *s, const char *tensor, int *type)
{
    struct str name;
    int code = safetensors_string(s, &name);
    if (code != OK)
        return code;
    size_t values, bytes;
    if (!wtype_parse(type, name.p) || strlen(name.p) != name.n ||
        !wtype_block(*type, &values, &bytes) || values != 1)
        return err_set(s->err, ERR_FORMAT, "%s: tensor %s: dtype %.40s is not known", s->name,
                       tensor, name.p);
    return OK;
}

/* Read {"dtype": .., "shape": [..], "data_offsets": [a, b]}, in any order. */
static int safetensors_tensor(struct scan *s, struct tensor *t, struct range *range)
{
    enum { DTYPE = 1, SHAPE = 2, OFFSETS = 4, ALL = 7 };
    unsigned seen = 0, count;
    size_t offsets[2];
    if (!safetensors_eat(s, '{'))
        return safetensors_bad(s, "{");
    do {
        struct str key;
        int code = safetensors_string(s, &key);
        if (code != OK)
            return code;
        unsigned bit = strcmp(key.p, "dtype") == 0          ? DTYPE
                       : strcmp(key.p, "shape") == 0        ? SHAPE
                       : strcmp(key.p, "data_offsets") == 0 ? OFFSETS
                                                            : 0;
        if (!bit || (seen & bit) || !safetensors_eat(s, ':'))
            return err_set(
                s->err, ERR_FORMAT,
                "%s: tensor %s: expected dtype, shape and data_offsets once, found %.40s", s->name,
                t->name, key.p);
        seen |= bit;
        if (bit == DTYPE)
            code = safetensors_dtype(s, t->name, &t->type);
        else if (bit == SHAPE)
            code = numbers(s, t->shape, &t->ndim, DIMS_MAX);
        else if ((code = numbers(s, offsets, &count, 2)) == OK && count != 2)
            code = safetensors_bad(s, "two offsets");
        if (code != OK)
            return code;
    } while (safetensors_eat(s, ','));
    if (!safetensors_eat(s, '}'))
        return safetensors_bad(s, "}");
    if (seen != ALL)
        return err_set(s->err, ERR_FORMAT,
                       "%s: tensor %s: expected dtype, shape and data_offsets, found fewer",
                       s->name, t->name);
    range->first = offsets[0];
    range->end = offsets[1];
    return OK;
}

/* Read {"key": "value", ..} and keep it as keys. */
static int metadata(struct scan *s)
{
    if (!safetensors_eat(s, '{'))
        return safetensors_bad(s, "{");
    if (safetensors_eat(s, '}'))
        return OK;
    do {
        struct str key, *value = table_alloc(s->w, sizeof(*value));
        if (!value)
            return safetensors_no_memory(s);
        int code = safetensors_string(s, &key);
        if (code == OK && !safetensors_eat(s, ':'))
            code = safetensors_bad(s, ":");
        if (code == OK)
            code = safetensors_string(s, value);
        if (code != OK)
            return code;
        struct kv *kv = table_kv(s->w);
        if (!kv)
            return safetensors_no_memory(s);
        *kv = (struct kv){ .key = key, .type = KV_STR, .elem = KV_STR, .count = 1, .strs = value };
    } while (safetensors_eat(s, ','));
    return safetensors_eat(s, '}') ? OK : safetensors_bad(s, "}");
}

/* Read the whole header: tensors with their byte ranges, and __metadata__ at most once. */
static int safetensors_header(struct scan *s, struct range **ranges, size_t *n)
{
    size_t cap = 0;
    bool meta = false;
    if (!safetensors_eat(s, '{'))
        return safetensors_bad(s, "{");
    if (!safetensors_eat(s, '}')) {
        do {
            struct str key;
            int code = safetensors_string(s, &key);
            if (code == OK && !safetensors_eat(s, ':'))
                code = safetensors_bad(s, ":");
            if (code != OK)
                return code;
            if (strcmp(key.p, "__metadata__") == 0) {
                code = meta ? safetensors_bad(s, "__metadata__ once") : metadata(s);
                meta = true;
            } else {
                struct range *more = array_grow(*ranges, &cap, *n, sizeof(*more));
                struct tensor *t = more ? table_tensor(s->w) : NULL;
                *ranges = more ? more : *ranges;
                if (!t)
                    return safetensors_no_memory(s);
                t->name = key.p;
                (*ranges)[*n].tensor = s->w->ntensors - 1;
                code = safetensors_tensor(s, t, &(*ranges)[(*n)++]);
            }
            if (code != OK)
                return code;
        } while (safetensors_eat(s, ','));
        if (!safetensors_eat(s, '}'))
            return safetensors_bad(s, "}");
    }
    return safetensors_peek(s) < 0 ? OK : safetensors_bad(s, "the end");
}

static int by_place(const void *a, const void *b)
{
    const struct range *x = a, *y = b;
    if (x->first != y->first)
        return x->first < y->first ? -1 : 1;
    return x->end < y->end ? -1 : x->end > y->end;
}

/* Check that every byte after the header belongs to exactly one tensor, and set the data
 * pointers. */
static int safetensors_place(struct scan *s, struct range *ranges, size_t n,
                             const struct mapping *m)
{
    const unsigned char *data = s->p + s->n;
    size_t room = m->n - PREFIX - s->n, at = 0;
    if (n)
        qsort(ranges, n, sizeof(*ranges), by_place);
    for (size_t i = 0; i < n; i++) {
        struct tensor *t = &s->w->tensors[ranges[i].tensor];
        if (!table_size(t))
            return err_set(s->err, ERR_FORMAT, "%s: tensor %s: the shape overflows", s->name,
                           t->name);
        if (ranges[i].first != at || ranges[i].end < at || ranges[i].end - at != t->bytes)
            return err_set(s->err, ERR_FORMAT,
                           "%s: tensor %s: expected data_offsets [%zu,%zu], found [%zu,%zu]",
                           s->name, t->name, at, at + t->bytes, ranges[i].first, ranges[i].end);
        if (!size_within(at, t->bytes, room))
            return err_set(s->err, ERR_FORMAT, "%s: expected %zu bytes of data, found %zu", s->name,
                           ranges[i].end, room);
        t->data = t->bytes ? data + at : NULL;
        at += t->bytes;
    }
    if (at != room)
        return err_set(s->err, ERR_FORMAT, "%s: expected %zu bytes of data, found %zu", s->name, at,
                       room);
    return OK;
}

int safetensors_read(struct weights *w, const struct mapping *m, const char *name, struct err *err)
{
    uint64_t n;
    if (m->n < PREFIX)
        return err_set(err, ERR_FORMAT, "%s: expected a header length of 8 bytes, found %zu bytes",
                       name, m->n);
    n = le_get(m->p, PREFIX);
    if (n > HEADER_MAX || n > m->n - PREFIX)
        return err_set(err, ERR_FORMAT,
                       "%s: expected a header of at most %zu bytes, found a length of %llu", name,
                       m->n - PREFIX < HEADER_MAX ? m->n - PREFIX : (size_t)HEADER_MAX,
                       (unsigned long long)n);
    struct scan s = { w, name, m->p + PREFIX, (size_t)n, 0, err };
    if (!text_valid((const char *)s.p, s.n))
        return err_set(err, ERR_FORMAT, "%s: header: expected UTF-8, found other bytes", name);
    struct range *ranges = NULL;
    size_t count = 0;
    int code = safetensors_header(&s, &ranges, &count);
    if (code == OK)
        code = safetensors_place(&s, ranges, count, m);
    free(ranges);
    return code;
}
