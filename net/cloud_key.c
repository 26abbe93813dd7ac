#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/base.h"
#include "net/cloud.h"

enum { MAX_KEY = 8192 };

/* A key goes into a header line: printable ASCII only, so that none can smuggle in another line. */
static int keep(char **key, const char *from, char *text, size_t n, struct err *err)
{
    while (n && strchr(" \t\r\n", text[n - 1]))
        n--;
    while (n && strchr(" \t\r\n", *text)) {
        text++;
        n--;
    }
    if (!n)
        return err_set(err, ERR_ARG, "%s: the API key is empty", from);
    for (size_t i = 0; i < n; i++)
        if (text[i] <= 0x20 || text[i] > 0x7e)
            return err_set(err, ERR_ARG, "%s: the API key must be one word of printable ASCII",
                           from);
    *key = malloc(n + 1);
    if (!*key)
        return err_set(err, ERR_NOMEM, "%s: out of memory", from);
    memcpy(*key, text, n);
    (*key)[n] = 0;
    return OK;
}

static int from_file(char **key, const char *path, struct err *err)
{
    char text[MAX_KEY + 1];
    FILE *f = fopen(path, "rb");
    if (!f)
        return err_set(err, ERR_IO, "%s: %s", path, strerror(errno));
    size_t n = fread(text, 1, sizeof(text), f);
    bool bad = ferror(f);
    fclose(f);
    int rc = bad ? err_set(err, ERR_IO, "%s: cannot be read", path)
             : n > MAX_KEY
                 ? err_set(err, ERR_ARG, "%s: longer than %d bytes: no API key", path, MAX_KEY)
                 : keep(key, path, text, n, err);
    memset(text, 0, sizeof(text));
    return rc;
}

int cloud_key(char **key, const char *file, struct err *err)
{
    static const char *const names[] = { "MIZZLE_API_KEY", "OPENAI_API_KEY" };
    *key = NULL;
    if (file)
        return from_file(key, file, err);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const char *value = getenv(names[i]);
        if (!value || !*value)
            continue;
        char text[MAX_KEY + 1];
        size_t n = strlen(value);
        if (n > MAX_KEY)
            return err_set(err, ERR_ARG, "%s: longer than %d bytes: no API key", names[i], MAX_KEY);
        memcpy(text, value, n);
        return keep(key, names[i], text, n, err);
    }
    return OK;
}
