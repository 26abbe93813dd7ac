#include "tools/cli/json_report.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

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

/* Return the text, malloc'ed; NULL: out of memory, where json_dumps may return a text that lacks
 * something. */
static char *json_report_line(const json_t *root, size_t flags)
{
    size_t n = root ? json_dumpb(root, NULL, 0, flags) : 0;
    char *text = n ? malloc(n + 1) : NULL;
    if (text && json_dumpb(root, text, n, flags) == n) {
        text[n] = '\0';
        return text;
    }
    free(text);
    return NULL;
}

int json_report_print(const char *what, json_t *root, size_t flags, const char *before,
                      const char *after, struct err *err)
{
    char *text = json_report_line(root, flags);
    json_decref(root);
    if (!text)
        return err_set(err, ERR_NOMEM, "%s: out of memory", what);
    printf("%s%s%s\n", before, text, after);
    free(text);
    return OK;
}
