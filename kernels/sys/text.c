#include "kernels/sys/text.h"

#include <string.h>

size_t text_decode(uint32_t *c, const char *s, size_t n, bool *ok)
{
    const unsigned char *p = (const unsigned char *)s;
    if (ok)
        *ok = true;
    if (p[0] < 0x80) {
        *c = p[0];
        return 1;
    }
    /* The number of bytes that follow, and the bounds of the first one (table 3-7). */
    size_t more = p[0] < 0xc2 ? 0 : p[0] < 0xe0 ? 1 : p[0] < 0xf0 ? 2 : p[0] < 0xf5 ? 3 : 0;
    unsigned lo = p[0] == 0xe0 ? 0xa0 : p[0] == 0xf0 ? 0x90 : 0x80;
    unsigned hi = p[0] == 0xed ? 0x9f : p[0] == 0xf4 ? 0x8f : 0xbf;
    uint32_t value = p[0] & (0x3fu >> more);
    size_t i = 1;
    while (i <= more && i < n && p[i] >= lo && p[i] <= hi) {
        value = value << 6 | (p[i] & 0x3fu);
        lo = 0x80;
        hi = 0xbf;
        i++;
    }
    if (!more || i <= more) {
        *c = 0xfffd;
        if (ok)
            *ok = false;
        return i;
    }
    *c = value;
    return i;
}

size_t text_encoded_length(uint32_t c)
{
    return c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
}

size_t text_encode(char out[4], uint32_t c)
{
    size_t n = text_encoded_length(c);
    static const unsigned lead[5] = { 0, 0, 0xc0, 0xe0, 0xf0 };
    for (size_t i = n - 1; i > 0; i--) {
        out[i] = (char)(0x80 | (c & 0x3f));
        c >>= 6;
    }
    out[0] = (char)(lead[n] | c);
    return n;
}

/* Read four hexadecimal digits; false if they are none. */
static bool text_hex4(uint32_t *c, const char *p)
{
    *c = 0;
    for (size_t i = 0; i < 4; i++) {
        uint32_t d = (unsigned char)p[i], low = d | 32;
        if (!(d >= '0' && d <= '9') && !(low >= 'a' && low <= 'f'))
            return false;
        *c = *c * 16 + (d <= '9' ? d - '0' : low - 'a' + 10);
    }
    return true;
}

size_t text_unescape(char out[4], const char *s, size_t n, size_t *used)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    const char *at = n && *s ? strchr(from, *s) : NULL;
    uint32_t c, low;
    *used = 1;
    if (at) {
        *out = to[at - from];
        return 1;
    }
    if (n < 5 || *s != 'u' || !text_hex4(&c, s + 1))
        return 0;
    *used = 5;
    if (c >= 0xd800 && c < 0xdc00 && n >= 11 && s[5] == '\\' && s[6] == 'u' &&
        text_hex4(&low, s + 7) && low >= 0xdc00 && low < 0xe000) {
        c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
        *used = 11;
    }
    return c && (c < 0xd800 || c >= 0xe000) ? text_encode(out, c) : 0;
}

/* An incomplete character is an invalid one that reaches to the end and whose lead asks for more.
 */
size_t text_complete(const char *s, size_t n)
{
    for (size_t back = 1; back <= 3 && back <= n; back++) {
        unsigned char lead = (unsigned char)s[n - back];
        uint32_t c;
        bool ok;
        if ((lead & 0xc0) == 0x80)
            continue;
        size_t more = lead < 0xc2 || lead > 0xf4 ? 0 : lead < 0xe0 ? 1 : lead < 0xf0 ? 2 : 3;
        return more >= back && text_decode(&c, s + n - back, back, &ok) == back && !ok ? n - back
                                                                                       : n;
    }
    return n;
}

size_t text_mark(const char *s, size_t n)
{
    return n >= 3 && memcmp(s, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
}

/* Eight bytes at a time: none may have its top bit set. */
size_t text_ascii(const char *s, size_t n)
{
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        uint64_t word;
        memcpy(&word, s + i, 8);
        if (word & 0x8080808080808080u)
            break;
    }
    while (i < n && (unsigned char)s[i] < 0x80)
        i++;
    return i;
}

bool text_valid(const char *s, size_t n)
{
    for (size_t i = text_ascii(s, n); i < n; i += text_ascii(s + i, n - i)) {
        uint32_t c;
        bool ok;
        i += text_decode(&c, s + i, n - i, &ok);
        if (!ok)
            return false;
    }
    return true;
}

bool text_harmless(uint32_t c)
{
    bool control = c < 0x20 || (c >= 0x7f && c < 0xa0);
    bool steers = c == 0x061c || c == 0x200e || c == 0x200f || (c >= 0x2028 && c <= 0x202e) ||
                  (c >= 0x2066 && c <= 0x206f) || c == 0xfeff;
    return !control && !steers;
}

size_t text_shown(const char *s, size_t n)
{
    uint32_t c;
    bool ok;
    size_t len = text_decode(&c, s, n, &ok);
    return ok && text_harmless(c) ? len : 0;
}

void text_line(char *s)
{
    for (size_t n = strlen(s), i = 0; i < n;) {
        size_t len = text_shown(s + i, n - i);
        uint32_t c;
        if (!len) {
            len = text_decode(&c, s + i, n - i, NULL);
            memset(s + i, '?', len);
        }
        i += len;
    }
}

bool text_among(const char *word, const char *list)
{
    size_t n = strlen(word);
    for (const char *at = list; *at; at += strspn(at, ", ")) {
        size_t len = strcspn(at, ",");
        if (len == n && memcmp(at, word, n) == 0)
            return true;
        at += len;
    }
    return false;
}
