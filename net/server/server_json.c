/* server_json.c - the JSON of a request. What clients send that jansson would refuse, or read at a
 * great cost, is found first, in one walk over the text that changes no length. */
#include <stdlib.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "net/http/json_input.h"
#include "net/server/server_internal.h"

enum { TREE_MAX = 64 << 20 };

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
    size_t n = p ? r->body.n : 0, mark = n >= 3 && memcmp(p, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
    size_t memory = p ? server_json_mend(p, n) : 0;
    *out = NULL;
    if (memory > TREE_MAX)
        return err_set(err, ERR_FORMAT, "its values would take %zu MiB, expected at most %d",
                       memory >> 20, TREE_MAX >> 20);
    if (!server_body_claim(r, memory))
        return err_set(err, ERR_NOMEM, SERVER_TOO_MANY);
    return json_input_parse(out, p ? p + mark : "", n - mark, err);
}
