#include <arpa/inet.h>
#include <curl/curl.h>
#include <jansson.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "kernels/sys/base.h"
#include "net/cloud_internal.h"

enum { MAX_NAME = 512 };

/* True when a parsed URL has this part. */
static bool has_part(CURLU *u, CURLUPart part)
{
    char *text = NULL;
    bool there = curl_url_get(u, part, &text, 0) == CURLUE_OK;
    curl_free(text);
    return there;
}

/* Return what was expected of the URL instead, or NULL if nothing is wrong with it. */
static const char *url_fault(CURLU *u, const char *url)
{
    for (const char *c = url; *c; c++)
        if (*c <= 0x20 || *c > 0x7e)
            return "a URL of ASCII characters without blanks";
    if (strlen(url) > 2000)
        return "at most 2000 characters";
    if (strncmp(url, "http://", 7) != 0 && strncmp(url, "https://", 8) != 0)
        return "http:// or https://";
    if (strstr(url, "://")[3] == '/') /* curl would take the first part of the path for the host */
        return "the name of a host";
    if (curl_url_set(u, CURLUPART_URL, url, 0))
        return "a URL";
    if (has_part(u, CURLUPART_USER) || has_part(u, CURLUPART_PASSWORD))
        return "no name or password (an API key is read from a file or the environment)";
    if (has_part(u, CURLUPART_QUERY) || has_part(u, CURLUPART_FRAGMENT))
        return "no ? or #";
    return NULL;
}

bool cloud_url_private(const char *url)
{
    char *host = NULL;
    struct in_addr ip;
    if (strncmp(url, "https://", 8) == 0)
        return true;
    CURLU *u = curl_url(); /* which gives addresses in their shortest form */
    bool fine = u && !curl_url_set(u, CURLUPART_URL, url, 0) &&
                !curl_url_get(u, CURLUPART_HOST, &host, 0) &&
                (!strcasecmp(host, "localhost") || !strcmp(host, "[::1]") ||
                 (inet_pton(AF_INET, host, &ip) == 1 && ntohl(ip.s_addr) >> 24 == 127));
    curl_free(host);
    curl_url_cleanup(u);
    return fine;
}

int cloud_url_check(char **base, const char *url, struct err *err)
{
    if (!url || !*url)
        return err_set(err, ERR_ARG, "cloud_url: no URL");
    CURLU *u = curl_url();
    if (!u)
        return cloud_no_memory(err);
    const char *fault = url_fault(u, url);
    curl_url_cleanup(u);
    if (fault) /* what stands before an @ may be a secret, so it is not repeated */
        return err_set(err, ERR_ARG, "cloud_url: expected %s, found %s", fault,
                       strchr(url, '@') ? "a URL with an @" : url);
    size_t n = strlen(url), host = (size_t)(strchr(url, ':') - url) + 1;
    host += strspn(url + host, "/"); /* slashes after this belong to the path */
    while (n > host && url[n - 1] == '/')
        n--;
    if (n >= host + 3 && memcmp(url + n - 3, "/v1", 3) == 0)
        n -= 3;
    while (n > host && url[n - 1] == '/')
        n--;
    *base = strdup(url);
    if (!*base)
        return cloud_no_memory(err);
    (*base)[n] = 0;
    return OK;
}

int cloud_set_model(struct cloud *c, const char *name, size_t n, struct err *err)
{
    char line[2 * MAX_NAME], quoted[6 * MAX_NAME + 3]; /* a byte may become \u0001 */
    json_t *s = n && n <= MAX_NAME ? json_stringn(name, n) : NULL;
    if (!s)
        return err_set(err, ERR_ARG, "cloud_model: expected a name of 1 to %d bytes of UTF-8",
                       MAX_NAME);
    wire_line(c->wire, line, sizeof(line), name, n);
    free(c->model);
    free(c->model_json);
    quoted[json_dumpb(s, quoted, sizeof(quoted) - 1, JSON_ENCODE_ANY)] = 0;
    json_decref(s);
    c->model = strdup(line);
    c->model_json = strdup(quoted);
    return c->model && c->model_json ? OK : cloud_no_memory(err);
}
