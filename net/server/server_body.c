/* server_body.c - the body of a request, and its JSON. What clients send that jansson would refuse,
 * or read at a great cost, is found first, in one walk over the text that changes no length. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "kernels/sys/base.h"
#include "kernels/sys/text.h"
#include "net/http/json_input.h"
#include "net/server/server_internal.h"

enum { TREE_MAX = 64 << 20 };

static bool server_body_refuse(struct server_request *r, enum server_refusal what, const char *why)
{
    r->what = what;
    r->why = why;
    server_drop_body(r);
    return false;
}

bool server_body_claim(struct server_request *r, size_t n)
{
    struct server *s = r->server;
    size_t had = atomic_fetch_add(&s->bodies, n);
    bool fits = had <= s->o.bodies_max && n <= s->o.bodies_max - had;
    if (fits)
        r->claimed += n;
    else
        atomic_fetch_sub(&s->bodies, n);
    return fits;
}

void server_drop_body(struct server_request *r)
{
    buf_free(&r->body);
    atomic_fetch_sub(&r->server->bodies, r->claimed);
    r->claimed = 0;
}

bool server_is_json(const struct server_request *r)
{
    static const char json[] = "application/json";
    const char *type = r->head.single[SINGLE_TYPE];
    size_t n = sizeof(json) - 1;
    return type && strncasecmp(type, json, n) == 0 && (!type[n] || strchr("; \t", type[n]));
}

bool server_body_add(struct server_request *r, const char *data, size_t n)
{
    if (n > r->body.max - r->body.n)
        return server_body_refuse(r, SERVER_TOO_LARGE, "the request is too large");
    if (!server_body_claim(r, n))
        return server_body_refuse(r, SERVER_BUSY, SERVER_TOO_MANY);
    return buf_add(&r->body, data, n) || server_body_refuse(r, SERVER_NO_MEMORY, "out of memory");
}

/* Return the code unit of the escape \uXXXX at p[i], or 0. */
static unsigned server_json_unit(const char *p, size_t n, size_t i)
{
    char hex[5] = "";
    if (n < 6 || i > n - 6 || p[i] != '\\' || p[i + 1] != 'u')
        return 0;
    memcpy(hex, p + i + 2, 4);
    return strspn(hex, "0123456789abcdefABCDEF") == 4 ? (unsigned)strtoul(hex, NULL, 16) : 0;
}

/* Return the end of the escape at p[i]. Half of a pair, which clients leave where they cut a text,
 * becomes U+FFFD. */
static size_t server_json_escape(char *p, size_t n, size_t i)
{
    unsigned unit = server_json_unit(p, n, i);
    if (unit >> 11 != 0xd800 >> 11)
        return i + 2;
    if (unit < 0xdc00 && server_json_unit(p, n, i + 6) >> 10 == 0xdc00 >> 10)
        return i + 12;
    memcpy(p + i + 2, "fffd", 4);
    return i + 6;
}

/* Return the end of the number at p[i]. A whole one beyond 64 bits becomes a real one near it, so
 * that its field is refused by name, not the text. */
static size_t server_json_number(char *p, size_t n, size_t i)
{
    const char *most = p[i] == '-' ? "9223372036854775808" : "9223372036854775807";
    size_t begin = i + (p[i] == '-'), end = begin, whole = begin;
    while (end < n && p[end] && strchr("0123456789+-.eE", p[end]))
        end++;
    while (whole < end && p[whole] >= '0' && p[whole] <= '9')
        whole++;
    size_t len = end - begin;
    if (whole == end && (len > 19 || (len == 19 && memcmp(p + begin, most, 19) > 0)))
        memcpy(p + end - 2, "e2", 2);
    return end > i ? end : i + 1;
}

size_t server_json_mend(char *p, size_t n)
{
    enum { LIST = 256, NAME = 100, STRING = 96, VALUE = 56 }; /* bytes of jansson's */
    size_t memory = 3 * n, i = 0;
    bool string = false;
    while (i < n) {
        char c = p[i];
        if (string && c == '\\') {
            i = server_json_escape(p, n, i);
        } else if (!string && (c == '-' || (c >= '0' && c <= '9'))) {
            i = server_json_number(p, n, i);
        } else {
            i++;
            string ^= c == '"';
            memory += string                 ? (c == '"' ? STRING : 0)
                      : c == '[' || c == '{' ? LIST
                      : c == ':'             ? NAME
                      : c == ','             ? VALUE
                                             : 0;
        }
    }
    return memory;
}

int server_parse(struct server_request *r, json_t **out, struct err *err)
{
    char *p = r->body.p;
    size_t n = p ? r->body.n : 0, mark = p ? text_mark(p, n) : 0;
    size_t memory = p ? server_json_mend(p, n) : 0;
    *out = NULL;
    if (memory > TREE_MAX)
        return err_set(err, ERR_FORMAT, "its values would take %zu MiB, expected at most %d",
                       memory >> 20, TREE_MAX >> 20);
    if (!server_body_claim(r, memory))
        return err_set(err, ERR_NOMEM, SERVER_TOO_MANY);
    return json_input_parse(out, p ? p + mark : "", n - mark, err);
}
