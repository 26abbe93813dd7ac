#include "tools/cli/json_report.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "kernels/sys/text.h"
#include "model/text/unicode.h"
#include "kernels/sys/buf.h"

/* Make *whole NULL if a part was not added. */
static void json_report_keep(json_t **whole, bool added)
{
    if (!added) {
        json_decref(*whole);
        *whole = NULL;
    }
}

void json_report_set(json_t **object, const char *key, json_t *value)
{
    json_report_keep(object, !json_object_set_new(*object, key, value));
}

void json_report_add(json_t **list, json_t *value)
{
    json_report_keep(list, !json_array_append_new(*list, value));
}

json_t *json_report_real(double v)
{
    return isfinite(v) ? json_real(v) : json_null();
}

json_t *json_report_text(const char *p, size_t n)
{
    char *clean = NULL;
    size_t length = 0;
    json_t *text = NULL;
    p = n ? p : "";
    if (text_valid(p, n))
        return json_stringn(p, n);
    if (unicode_repair(&clean, &length, p, n, NULL) == OK)
        text = json_stringn(clean, length);
    free(clean);
    return text;
}

json_t *json_report_ids(const uint32_t *ids, size_t n)
{
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++)
        json_report_add(&list, json_integer(ids[i]));
    return list;
}

struct json_report_text {
    struct buf *out;
    bool broken; /* a part of it was lost, which jansson may not notice */
};

/* Callback of jansson: append p[n]. */
static int json_report_part(const char *p, size_t n, void *arg)
{
    struct json_report_text *t = arg;
    t->broken = t->broken || !buf_add(t->out, p, n);
    return t->broken ? -1 : 0;
}

bool json_report_append(struct buf *out, json_t *json, size_t flags)
{
    struct json_report_text t = { .out = out };
    size_t before = out->n;
    bool fine = json && json_dump_callback(json, json_report_part, &t, flags) == 0 && !t.broken;
    out->n = fine ? out->n : before;
    json_decref(json);
    return fine;
}

/* Callback of jansson: write p[n], which ends with a whole character. */
static int json_report_show(const char *p, size_t n, void *to)
{
    for (size_t i = 0, at = 0, len; at < n; at += len, i = at) {
        uint32_t c;
        while (i < n && (p[i] == '\n' || text_shown(p + i, n - i)))
            i += text_decode(&c, p + i, n - i, NULL);
        fwrite(p + at, 1, i - at, to);
        len = i - at;
        if (i < n) {
            len += text_decode(&c, p + i, n - i, NULL);
            fprintf(to, "\\u%04x", (unsigned)c);
        }
    }
    return ferror(to) ? -1 : 0;
}

int json_report_dump(const json_t *json, FILE *to, size_t flags)
{
    return json_dump_callback(json, json_report_show, to, flags);
}

int json_report_print(const char *what, json_t *root, size_t flags, const char *before,
                      const char *after, struct err *err)
{
    struct buf text = { 0 };
    bool fine = json_report_append(&text, root, flags);
    if (fine) {
        fputs(before, stdout);
        json_report_show(text.p, text.n, stdout);
        puts(after);
    }
    buf_free(&text);
    return fine ? OK : err_set(err, ERR_NOMEM, "%s: out of memory", what);
}

char *escaped_text(const char *s, size_t n)
{
    enum { MOST = 400 };
    bool cut = n > MOST;
    n = cut ? MOST : n;
    char *out = calloc(4 * n + 4, 1), *to = out;
    for (size_t i = 0; out && i < n;) {
        size_t len = text_shown(s + i, n - i);
        if (len) {
            memcpy(to, s + i, len);
            to += len;
            i += len;
        } else {
            to += snprintf(to, 5, "\\x%02x", (unsigned char)s[i++]);
        }
    }
    if (out && cut)
        memcpy(to, "...", 3);
    return out;
}

void escaped_put(const char *s, size_t n)
{
    char *text = escaped_text(s, n);
    fputs(text ? text : "?", stdout);
    free(text);
}

json_t *escaped_json(const char *s, size_t n)
{
    char *text = text_valid(s, n) ? NULL : escaped_text(s, n);
    json_t *v = text ? json_string(text) : json_stringn(s, n);
    free(text);
    return v;
}
