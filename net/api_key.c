#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "kernels/sys/base.h"
#include "kernels/sys/wipe.h"
#include "net/cloud_internal.h"

enum { MAX_KEY = 8192 };

/* Copy the key without blanks around it. It becomes part of a header line, so only printable ASCII
 * is allowed: nothing can smuggle in a second line. */
static int api_key_keep(char **key, const char *from, const char *text, size_t n, struct err *err)
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
        if (text[i] <= 0x20 || text[i] > 0x7e || text[i] == '"' || text[i] == '\\')
            return err_set(err, ERR_ARG,
                           "%s: the API key must be one word of printable ASCII without \" and \\",
                           from);
    *key = malloc(n + 1);
    if (!*key)
        return err_set(err, ERR_NOMEM, "%s: out of memory", from);
    memcpy(*key, text, n);
    (*key)[n] = 0;
    return OK;
}

/* Read the key from a file; not through stdio, whose buffer would not be wiped. */
static int api_key_from_file(char **key, const char *path, struct err *err)
{
    char text[MAX_KEY + 1];
    size_t n = 0;
    ssize_t got = 1;
    int rc, fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return err_set(err, ERR_IO, "%s: %s", path, strerror(errno));
    while (n < sizeof(text) && got) {
        got = read(fd, text + n, sizeof(text) - n);
        if (got < 0 && errno != EINTR)
            break;
        n += got > 0 ? (size_t)got : 0;
    }
    if (got < 0)
        rc = err_set(err, ERR_IO, "%s: cannot be read: %s", path, strerror(errno));
    else if (n > MAX_KEY)
        rc = err_set(err, ERR_ARG, "%s: longer than %d bytes: no API key", path, MAX_KEY);
    else
        rc = api_key_keep(key, path, text, n, err);
    close(fd);
    wipe(text, sizeof(text));
    return rc;
}

/* Read the key from an environment variable; *key stays NULL when it is unset or empty. */
static int from_environment(char **key, const char *name, struct err *err)
{
    const char *value = getenv(name);
    size_t n = value ? strlen(value) : 0;
    if (!n)
        return OK;
    if (n > MAX_KEY)
        return err_set(err, ERR_ARG, "%s: longer than %d bytes: no API key", name, MAX_KEY);
    return api_key_keep(key, name, value, n, err);
}

int api_key_of_server(char **key, const char *file, const char *variable, struct err *err)
{
    *key = NULL;
    return file ? api_key_from_file(key, file, err) : from_environment(key, variable, err);
}

/* Return the first of these variables that says something, as libcurl looks for them, or NULL. */
static const char *api_key_variable(const char *const *names)
{
    const char *value = NULL;
    for (; *names && !(value && *value); names++)
        value = getenv(*names);
    return value && *value ? value : NULL;
}

/* True when libcurl takes a plain http URL of this machine to a proxy. Where no_proxy names a host
 * in another way than the URL, this is true too often, which only warns. */
static bool api_key_proxied(const char *url, const char *proxy)
{
    static const char *const names[] = { "http_proxy", "all_proxy", "ALL_PROXY", NULL };
    static const char *const nones[] = { "no_proxy", "NO_PROXY", NULL };
    const char *none = api_key_variable(nones), *host = url + strlen("http://");
    host += *host == '[';
    size_t its = strcspn(host, host[-1] == '[' ? "]" : ":/");
    proxy = proxy ? proxy : api_key_variable(names);
    if (!proxy || !*proxy || (none && !strcmp(none, "*")))
        return false;
    for (size_t n; none && *(none += strspn(none, ", ")); none += n)
        if ((n = strcspn(none, ", ")) == its && !strncasecmp(none, host, n))
            return false;
    return true;
}

int api_key_read(char **key, const char *text, const char *file, const char *url, const char *proxy,
                 struct err *note, struct err *err)
{
    bool tls = !url || strncmp(url, "https://", 8) == 0;
    bool seen = !tls && (!cloud_url_private(url) || api_key_proxied(url, proxy)); /* by others */
    int rc;
    *key = NULL;
    note->msg[0] = 0;
    if (text)
        rc = api_key_keep(key, "cloud_key", text, strlen(text), err);
    else
        rc = api_key_of_server(key, file, "MIZZLE_API_KEY", err);
    if (*key && seen)
        err_set(note, OK, "the API key goes over plain http, where others can read it: use https");
    if (rc || text || file || *key)
        return rc;
    /* This variable was set with another server in mind. */
    if (tls)
        return from_environment(key, "OPENAI_API_KEY", err);
    const char *other = getenv("OPENAI_API_KEY");
    if (seen && other && *other)
        err_set(
            note, OK,
            "OPENAI_API_KEY is not sent over plain http: only MIZZLE_API_KEY and a key file are");
    return OK;
}
