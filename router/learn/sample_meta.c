/* sample_meta.c - meta.json: the fields of a collection as text, and back. */
#include "router/learn/sample_files_internal.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "kernels/sys/crc.h"
#include "net/http/json_input.h"
#include "router/router.h"

enum { VERSION = 3, FILE_MAX = 1 << 16, SHOWN = 160 };
#define FORMAT "mizzle samples"

/* NUMBER: an integer; null when it is SAMPLE_FILES_NO_LIMIT. HEX: a string of 16 hexadecimal
 * digits, because the integers of many readers of JSON have 53 bits. */
enum kind { TEXT, NUMBER, HEX, TAP };

static const struct field {
    const char *name;
    enum kind kind;
    size_t at, size;
    bool few; /* folders that are read together must agree in it */
} fields[] = {
#define FIELD(name, kind, few)                                                                    \
    {                                                                                             \
#name, kind, offsetof(struct sample_meta, name), sizeof(((struct sample_meta *)0)->name), \
            few                                                                                   \
    }
    FIELD(task, TEXT, false),
    FIELD(data, TEXT, false),
    FIELD(prompt, TEXT, false),
    FIELD(kind, TEXT, false),
    FIELD(wording, TEXT, false),
    FIELD(labels, TEXT, true),
    FIELD(tap, TAP, true),
    FIELD(kv, TEXT, true),
    FIELD(round, NUMBER, false),
    FIELD(router, TEXT, false),
    FIELD(threshold, TEXT, false),
    FIELD(rollouts, NUMBER, false),
    FIELD(max_tokens, NUMBER, false),
    FIELD(seed, HEX, false),
    FIELD(world, HEX, false),
    FIELD(texts, NUMBER, false),
    FIELD(edge, TEXT, false),
    FIELD(weights, TEXT, true),
    FIELD(model, HEX, true),
    FIELD(tokenizer, HEX, true),
    FIELD(exact, HEX, true),
    FIELD(cloud, TEXT, false),
    FIELD(cloud_url, TEXT, false),
    FIELD(cloud_says, TEXT, false),
    FIELD(template, TEXT, false),
    FIELD(think, TEXT, false),
    FIELD(kernels, TEXT, true),
    FIELD(mizzle, TEXT, false),
    FIELD(context, NUMBER, false),
    FIELD(dim, NUMBER, true),
    FIELD(vocab, NUMBER, true),
#undef FIELD
};
enum { FIELDS = sizeof(fields) / sizeof(*fields) };

static void *sample_meta_field_of(struct sample_meta *m, const struct field *f)
{
    return (char *)m + f->at;
}

/* Return the value of a number field. */
static uint64_t sample_meta_field_number(const struct sample_meta *m, const struct field *f)
{
    uint64_t v;
    memcpy(&v, (const char *)m + f->at, sizeof(v));
    return v;
}

/* Return the value as JSON; NULL when out of memory. */
static json_t *sample_meta_field_json(const struct sample_meta *m, const struct field *f)
{
    char hex[20];
    switch (f->kind) {
    case TEXT:
        return json_string((const char *)m + f->at);
    case TAP:
        return json_string(router_tap_name(m->tap));
    case HEX:
        snprintf(hex, sizeof(hex), "%016" PRIx64, sample_meta_field_number(m, f));
        return json_string(hex);
    case NUMBER:
        break;
    }
    uint64_t v = sample_meta_field_number(m, f);
    return v == SAMPLE_FILES_NO_LIMIT ? json_null() : json_integer((json_int_t)v);
}

static json_t *sample_meta_counts_json(const struct sample_counts *c)
{
    json_t *o = json_object();
    bool fine = o;
    for (const struct sample_count_name *i = sample_count_names; fine && i->name; i++) {
        uint64_t v;
        memcpy(&v, (const char *)c + i->at, sizeof(v));
        fine = json_object_set_new(o, i->name, json_integer((json_int_t)v)) == 0;
    }
    if (fine)
        return o;
    json_decref(o);
    return NULL;
}

char *sample_meta_text(const struct sample_meta *m)
{
    json_t *o =
        json_pack("{s:s, s:i, s:b}", "format", FORMAT, "version", VERSION, "complete", m->complete);
    bool fine = o;
    for (size_t i = 0; fine && i < FIELDS; i++)
        fine = json_object_set_new(o, fields[i].name, sample_meta_field_json(m, &fields[i])) == 0;
    if (fine && m->complete)
        fine = json_object_set_new(o, "counts", sample_meta_counts_json(&m->counts)) == 0;
    /* jansson may use another allocator, so the text is copied into memory from malloc */
    size_t n = fine ? json_dumpb(o, NULL, 0, JSON_INDENT(2)) : 0;
    char *text = n ? malloc(n + 2) : NULL;
    if (text) {
        json_dumpb(o, text, n, JSON_INDENT(2));
        memcpy(text + n, "\n", 2);
    }
    json_decref(o);
    return text;
}

uint32_t sample_meta_checksum(const struct sample_meta *m, bool *ok)
{
    struct sample_meta begun = *m;
    begun.complete = false;
    char *text = sample_meta_text(&begun);
    uint32_t sum = text ? crc_add(0, text, strlen(text)) : 0;
    *ok = text;
    free(text);
    return sum;
}

/* Read a field. False: it is not there, or not what the field holds. */
static bool sample_meta_field_read(struct sample_meta *m, const struct field *f, const json_t *v)
{
    const char *s = json_string_value(v);
    uint64_t number = 0;
    char again[20];
    switch (f->kind) {
    case TEXT:
        if (!s || json_string_length(v) >= f->size || strlen(s) != json_string_length(v))
            return false;
        memcpy(sample_meta_field_of(m, f), s, strlen(s) + 1);
        return true;
    case TAP:
        m->tap = s && !strcmp(s, router_tap_name(TAP_POST_ATTN)) ? TAP_POST_ATTN : TAP_FINAL;
        return s && !strcmp(s, router_tap_name(m->tap));
    case HEX:
        number = s ? strtoull(s, NULL, 16) : 0;
        snprintf(again, sizeof(again), "%016" PRIx64, number);
        if (!s || strcmp(s, again) != 0)
            return false;
        break;
    case NUMBER:
        if (!json_is_null(v) && !(json_is_integer(v) && json_integer_value(v) >= 0))
            return false;
        number = json_is_null(v) ? SAMPLE_FILES_NO_LIMIT : (uint64_t)json_integer_value(v);
    }
    memcpy(sample_meta_field_of(m, f), &number, sizeof(number));
    return true;
}

/* Read the counts. Return the name of the first that is not a count, or NULL. */
static const char *sample_meta_counts_read(struct sample_counts *c, const json_t *o)
{
    size_t n = 0;
    for (const struct sample_count_name *i = sample_count_names; i->name; i++, n++) {
        const json_t *v = json_object_get(o, i->name);
        uint64_t number = (uint64_t)json_integer_value(v);
        if (!json_is_integer(v) || json_integer_value(v) < 0)
            return i->name;
        memcpy((char *)c + i->at, &number, sizeof(number));
    }
    return json_object_size(o) == n ? NULL : "counts";
}

/* Read all fields of an object. */
static int sample_meta_fields(struct sample_meta *m, const json_t *o, const char *path,
                              struct err *err)
{
    const char *format = json_string_value(json_object_get(o, "format"));
    const json_t *version = json_object_get(o, "version"), *done = json_object_get(o, "complete");
    if (!format || strcmp(format, FORMAT) != 0)
        return err_set(err, ERR_FORMAT, "%s: format: expected " FORMAT ", found %s", path,
                       format ? format : "nothing");
    if (!json_is_integer(version))
        return err_set(err, ERR_FORMAT, "%s: version: expected an integer, found %s", path,
                       json_input_type(version));
    if (json_integer_value(version) != VERSION)
        return err_set(err, ERR_FORMAT, "%s: version: expected %d, found %lld", path, VERSION,
                       (long long)json_integer_value(version));
    if (!json_is_boolean(done))
        return err_set(err, ERR_FORMAT, "%s: complete: expected a boolean, found %s", path,
                       json_input_type(done));
    m->complete = json_is_true(done);
    for (size_t i = 0; i < FIELDS; i++) {
        const struct field *f = &fields[i];
        const json_t *v = json_object_get(o, f->name);
        if (!sample_meta_field_read(m, f, v))
            return err_set(err, ERR_FORMAT, "%s: %s: expected %s, found %s%.40s", path, f->name,
                           f->kind == TEXT     ? "a string that fits"
                           : f->kind == NUMBER ? "an integer from 0 or null"
                           : f->kind == HEX    ? "16 hexadecimal digits"
                                               : "final or post_attn",
                           json_is_string(v) ? "" : json_input_type(v),
                           json_is_string(v) ? json_string_value(v) : "");
    }
    const char *bad =
        m->complete ? sample_meta_counts_read(&m->counts, json_object_get(o, "counts")) : NULL;
    if (bad)
        return err_set(err, ERR_FORMAT, "%s: counts: expected all counts, found a bad %s", path,
                       bad);
    size_t all = FIELDS + 3 + m->complete;
    if (json_object_size(o) != all)
        return err_set(err, ERR_FORMAT, "%s: expected %zu fields, found %zu", path, all,
                       json_object_size(o));
    return OK;
}

/* Refuse sizes that nothing can have, so that sums of them do not overflow. */
static int sample_meta_sizes(const struct sample_meta *m, const char *path, struct err *err)
{
    if (m->dim < 1 || m->dim > ROUTER_MAX)
        return err_set(err, ERR_FORMAT, "%s: dim: expected 1 to %d, found %" PRIu64, path,
                       ROUTER_MAX, m->dim);
    if (m->vocab < 1 || m->vocab > INT32_MAX)
        return err_set(err, ERR_FORMAT, "%s: vocab: expected 1 to %d, found %" PRIu64, path,
                       INT32_MAX, m->vocab);
    if (m->texts > INT32_MAX)
        return err_set(err, ERR_FORMAT, "%s: texts: expected at most %d, found %" PRIu64, path,
                       INT32_MAX, m->texts);
    return OK;
}

int sample_meta_read(struct sample_meta *out, bool *missing, const char *path, struct err *err)
{
    static const char end = '\n';
    char *text = malloc(FILE_MAX + 1);
    FILE *f = text ? fopen(path, "rb") : NULL;
    *out = (struct sample_meta){ 0 };
    *missing = text && !f && errno == ENOENT;
    if (!f) {
        int rc = text ? err_set(err, ERR_IO, "%s: %s", path, strerror(errno))
                      : err_set(err, ERR_NOMEM, "%s: out of memory", path);
        free(text);
        return rc;
    }
    size_t n = fread(text, 1, FILE_MAX + 1, f);
    int rc = ferror(f) ? err_set(err, ERR_IO, "%s: cannot be read", path) : OK;
    fclose(f);
    json_t *o = NULL;
    struct err why;
    if (rc == OK && n > FILE_MAX)
        rc = err_set(err, ERR_FORMAT, "%s: expected at most %d bytes, found more", path, FILE_MAX);
    if (rc == OK && (rc = json_input_parse(&o, text, n, &why)) != OK)
        err_set(err, rc, "%s: %s", path, why.msg);
    if (rc == OK && !json_is_object(o))
        rc = err_set(err, ERR_FORMAT, "%s: expected an object, found %s", path, json_input_type(o));
    if (rc == OK && text[n - 1] != end)
        rc = err_set(err, ERR_FORMAT, "%s: expected a newline at the end, found none", path);
    if (rc == OK)
        rc = sample_meta_fields(out, o, path, err);
    if (rc == OK)
        rc = sample_meta_sizes(out, path, err);
    json_decref(o);
    free(text);
    return rc;
}

/* Write a field as text for a message. */
static void sample_meta_field_show(char out[SHOWN], const struct sample_meta *m,
                                   const struct field *f)
{
    uint64_t v = f->kind == NUMBER || f->kind == HEX ? sample_meta_field_number(m, f) : 0;
    const char *text = (const char *)m + f->at;
    if (f->kind == TEXT)
        snprintf(out, SHOWN, "%s", *text ? text : "nothing");
    else if (f->kind == TAP)
        snprintf(out, SHOWN, "%s", router_tap_name(m->tap));
    else if (f->kind == NUMBER && v == SAMPLE_FILES_NO_LIMIT)
        snprintf(out, SHOWN, "no limit");
    else
        snprintf(out, SHOWN, f->kind == HEX ? "%016" PRIx64 : "%" PRIu64, v);
}

const char *sample_meta_differ(char a[160], char b[160], const struct sample_meta *x,
                               const struct sample_meta *y, bool few)
{
    for (size_t i = 0; i < FIELDS; i++) {
        sample_meta_field_show(a, x, &fields[i]);
        sample_meta_field_show(b, y, &fields[i]);
        if ((fields[i].few || !few) && strcmp(a, b) != 0)
            return fields[i].name;
    }
    return NULL;
}
