#include "net/server/server_head.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static void server_head_refuse(struct server_head *h, enum server_refusal what, const char *why)
{
    if (h->why)
        return;
    h->what = what;
    h->why = why;
}

static void server_head_bad(struct server_head *h, const char *why)
{
    server_head_refuse(h, SERVER_BAD_HEAD, why);
}

void server_head_begin(struct server_head *h, const char *method, const char *version)
{
    *h = (struct server_head){ .method = method };
    h->old = strcmp(version, "HTTP/1.0") == 0;
    if (!h->old && strcmp(version, "HTTP/1.1") != 0)
        server_head_bad(h, "version: expected HTTP/1.1 or HTTP/1.0");
}

/* True for the characters of a name (RFC 9110, token). */
static bool server_head_is_token(const char *name)
{
    static const char others[] = "!#$%&'*+-.^_`|~";
    const char *p = name;
    for (; *p; p++)
        if (!((*p >= '0' && *p <= '9') || (*p >= 'A' && *p <= 'Z') || (*p >= 'a' && *p <= 'z') ||
              strchr(others, *p)))
            return false;
    return p != name;
}

/* True if no control character but the tab is in the value. */
static bool server_head_is_value(const char *value)
{
    for (const char *p = value; *p; p++)
        if (((unsigned char)*p < 0x20 && *p != '\t') || *p == 0x7f)
            return false;
    return true;
}

/* True for a decimal number that fits; *out becomes its value. */
static bool server_head_number(uint64_t *out, const char *text)
{
    uint64_t n = 0;
    const char *p = text;
    for (; *p >= '0' && *p <= '9'; p++) {
        if (n > (UINT64_MAX - 9) / 10)
            return false;
        n = n * 10 + (uint64_t)(*p - '0');
    }
    *out = n;
    return p != text && !*p;
}

void server_head_field(struct server_head *h, const char *name, const char *value)
{
    static const char *const names[SINGLES] = {
        [SINGLE_HOST] = "Host",
        [SINGLE_LENGTH] = "Content-Length",
        [SINGLE_TRANSFER] = "Transfer-Encoding",
        [SINGLE_AUTHORIZATION] = "Authorization",
        [SINGLE_ORIGIN] = "Origin",
        [SINGLE_TYPE] = "Content-Type",
        [SINGLE_ENCODING] = "Content-Encoding",
        [SINGLE_EXPECT] = "Expect",
    };
    if (!server_head_is_token(name))
        server_head_bad(h, "the name of a header holds a character that does not belong there");
    if (!server_head_is_value(value))
        server_head_bad(h, "the value of a header holds a control character");
    for (size_t i = 0; i < SINGLES; i++) {
        if (strcasecmp(name, names[i]) != 0)
            continue;
        if (h->single[i])
            server_head_bad(h, "a header that may be there once is there twice");
        h->single[i] = value;
    }
}

/* Decode %XX in place. False for a malformed escape or %00. */
static bool server_head_decode(char *text)
{
    char *to = text;
    for (const char *p = text; *p; p++) {
        *to = *p;
        if (*p == '%') {
            const char hex[3] = { p[1], p[1] ? p[2] : '\0' };
            if (strspn(hex, "0123456789abcdefABCDEF") != 2)
                return false;
            *to = (char)strtoul(hex, NULL, 16);
            p += 2;
        }
        if (!*to++)
            return false;
    }
    *to = 0;
    return true;
}

/* If the target is a whole URL, check its host against the header and return its path. */
static char *server_head_absolute(struct server_head *h, char *target)
{
    size_t skip = strncasecmp(target, "http://", 7) == 0    ? 7
                  : strncasecmp(target, "https://", 8) == 0 ? 8
                                                            : 0;
    if (!skip)
        return target;
    const char *host = h->single[SINGLE_HOST] ? h->single[SINGLE_HOST] : "";
    size_t n = strcspn(target + skip, "/?");
    if (n != strlen(host) || strncasecmp(target + skip, host, n) != 0)
        server_head_bad(h, "target: expected the host of the Host header");
    return target + skip + n;
}

void server_head_target(struct server_head *h, char *target)
{
    for (const char *p = target; *p; p++)
        if ((unsigned char)*p <= 0x20 || (unsigned char)*p >= 0x7f)
            server_head_bad(h, "target: expected no other characters than those of ASCII");
    target = server_head_absolute(h, target);
    char *query = strchr(target, '?'); /* nobody asks for it */
    if (query)
        *query = 0;
    h->path = target;
    if (*target != '/')
        server_head_bad(h, "target: expected a path");
    if (!server_head_decode(target))
        server_head_bad(h, "target: expected %XX with two hexadecimal digits, not %00");
}

/* True if text[n] is an IP address; IPv6 stands in brackets. */
static bool server_head_is_address(const char *text, size_t n)
{
    struct in6_addr six;
    struct in_addr four;
    char copy[64];
    if (n >= sizeof(copy))
        return false;
    bool brackets = n > 2 && text[0] == '[' && text[n - 1] == ']';
    memcpy(copy, brackets ? text + 1 : text, brackets ? n - 2 : n);
    copy[brackets ? n - 2 : n] = 0;
    return brackets ? inet_pton(AF_INET6, copy, &six) == 1 : inet_pton(AF_INET, copy, &four) == 1;
}

/* Return the length of the name in NAME or NAME:PORT; 0 if that is malformed. */
static size_t server_head_name(const char *host)
{
    size_t n = *host == '[' ? strcspn(host, "]") + 1 : strcspn(host, ":");
    uint64_t port = 0;
    if (*host == '[' && !host[n - 1])
        return 0;
    if (!host[n])
        return n;
    return host[n] == ':' && server_head_number(&port, host + n + 1) && port <= 65535 ? n : 0;
}

/* True for host names that are served here. */
static bool server_head_is_served(const char *host, const struct server_options *o)
{
    size_t n = server_head_name(host);
    if (!n || strpbrk(host, "@/?#, \t\\"))
        return false;
    if (o->any_host || server_head_is_address(host, n) ||
        (n == 9 && strncasecmp(host, "localhost", 9) == 0))
        return true;
    for (const char *const *p = o->hosts; p && *p; p++)
        if (strlen(*p) == n && strncasecmp(host, *p, n) == 0)
            return true;
    return false;
}

/* A browser sends the Origin of the page that calls; other programs send none. */
static void server_head_check_origin(struct server_head *h, const struct server_options *o)
{
    const char *origin = h->single[SINGLE_ORIGIN], *scheme = o->tls ? "https://" : "http://";
    size_t n = strlen(scheme);
    if (!origin)
        return;
    if (strncasecmp(origin, scheme, n) == 0 && strcasecmp(origin + n, h->single[SINGLE_HOST]) == 0)
        return;
    n = o->origin ? strlen(o->origin) : 0;
    n -= n && o->origin[n - 1] == '/';
    h->foreign = n && strncasecmp(origin, o->origin, n) == 0 && !origin[n];
    if (!h->foreign)
        server_head_refuse(h, SERVER_BAD_ORIGIN, "Origin: pages of this site may not call");
}

/* Where a body begins and ends must be clear to any proxy in front of the server, too. */
static void server_head_check_length(struct server_head *h, const struct server_options *o)
{
    static const char *const without[] = { "GET", "HEAD", "DELETE", "OPTIONS", "TRACE", "CONNECT" };
    const char *length = h->single[SINGLE_LENGTH], *transfer = h->single[SINGLE_TRANSFER];
    if (transfer && (length || h->old || strcasecmp(transfer, "chunked") != 0))
        server_head_bad(h, "Transfer-Encoding: expected chunked, without Content-Length");
    if (length && !server_head_number(&h->length, length))
        server_head_bad(h, "Content-Length: expected a number");
    for (size_t i = 0; i < sizeof(without) / sizeof(without[0]); i++)
        if (strcmp(h->method, without[i]) == 0 && server_head_has_body(h))
            server_head_bad(h, "expected no body with this method");
    if (h->single[SINGLE_ENCODING] && strcasecmp(h->single[SINGLE_ENCODING], "identity") != 0)
        server_head_refuse(h, SERVER_BAD_ENCODING, "Content-Encoding: expected none");
    if (h->length > o->body_max)
        server_head_refuse(h, SERVER_TOO_LARGE, "the request is too large");
}

void server_head_end(struct server_head *h, const struct server_options *o)
{
    if (!h->single[SINGLE_HOST])
        server_head_bad(h, "Host: expected one");
    else if (!server_head_is_served(h->single[SINGLE_HOST], o))
        server_head_refuse(h, SERVER_BAD_HOST, "Host: this name is not served here");
    else
        server_head_check_origin(h, o);
    server_head_check_length(h, o);
}

bool server_head_has_body(const struct server_head *h)
{
    return h->single[SINGLE_TRANSFER] || h->length > 0;
}

bool server_head_has_key(const struct server_head *h, const char *key)
{
    const char *sent = h->single[SINGLE_AUTHORIZATION];
    if (!sent || strncasecmp(sent, "Bearer ", 7) != 0)
        return false;
    sent += 7;
    size_t n = strlen(sent), k = strlen(key), differ = n ^ k;
    for (size_t i = 0; i < n; i++) /* to the end whatever differs */
        differ |= (unsigned char)sent[i] ^ (unsigned char)key[k ? i % k : 0];
    return differ == 0;
}
