#include "tools/cli/escaped.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/sys/text.h"

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
    json_t *v = json_stringn(s, n);
    if (v)
        return v;
    char *text = text_valid(s, n) ? NULL : escaped_text(s, n);
    v = json_string(text);
    free(text);
    return v;
}
