#include "tools/cli/json_report.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "kernels/sys/base.h"

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

/* Return the text, malloc'ed; NULL: out of memory, where json_dumps may return a text that lacks
 * something. */
static char *json_report_text(const json_t *root, size_t flags)
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
    char *text = json_report_text(root, flags);
    json_decref(root);
    if (!text)
        return err_set(err, ERR_NOMEM, "%s: out of memory", what);
    printf("%s%s%s\n", before, text, after);
    free(text);
    return OK;
}
