#include "net/http/secret.h"

#include <stdlib.h>
#include <string.h>

#include "kernels/sys/buf.h"

/* This many characters in a row are hidden; fewer at the beginning of the key. */
enum { PART = 8, BEGINNING = 6 };

/* In which the key may come: as it is, backwards, and in base64 behind 0, 1 or 2 other bytes. */
enum { FORWARDS, BACKWARDS, BASE64, FORMS = BASE64 + 3 };

/* Return character `at` of the key in this form, and 0 behind the last one. Base64 has those alone
 * that depend on no neighbour of the key. */
static char secret_at(const char *key, size_t k, size_t form, size_t at)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    if (form < BASE64)
        return at >= k ? 0 : form == FORWARDS ? key[at] : key[k - 1 - at];
    size_t before = 8 * (form - BASE64), bit = 6 * ((before + 5) / 6 + at) - before;
    if (bit + 6 > 8 * k)
        return 0;
    unsigned two = (unsigned)(unsigned char)key[bit / 8] << 8;
    two |= bit % 8 > 2 ? (unsigned char)key[bit / 8 + 1] : 0;
    return digits[two >> (10 - bit % 8) & 63];
}

/* Return the value of n hexadecimal digits, or 0. */
static unsigned secret_hex(const char *text, size_t n)
{
    char own[5] = "", *end;
    memcpy(own, text, n);
    unsigned long v = strtoul(own, &end, 16);
    return *end ? 0 : (unsigned)v;
}

/* Return how many bytes of text[n] write the character c, or 0. */
static size_t secret_same(char c, const char *text, size_t n)
{
    if (!n || !c)
        return 0;
    if (*text == c || (c == '+' && *text == '-') || (c == '/' && *text == '_'))
        return 1; /* these two in base64 for URLs */
    if (*text == '%' && n > 2 && secret_hex(text + 1, 2) == (unsigned)c)
        return 3;
    if (*text != '\\' || n < 2)
        return 0;
    return text[1] == c                                                        ? 2
           : text[1] == 'u' && n > 5 && secret_hex(text + 2, 4) == (unsigned)c ? 6
                                                                               : 0;
}

/* Return how many bytes at the beginning of text[n] are a part of the key in this form. */
static size_t secret_found(const char *key, size_t k, size_t form, const char *text, size_t n)
{
    size_t most = 0, enough = form < BASE64 && k < PART ? k : PART;
    for (size_t at = 0; secret_at(key, k, form, at); at++) {
        size_t same = 0, bytes = 0, more;
        while ((more = secret_same(secret_at(key, k, form, at + same), text + bytes, n - bytes))) {
            same++;
            bytes += more;
        }
        bool found = same >= enough || (at == 0 && same >= BEGINNING);
        most = found && bytes > most ? bytes : most;
    }
    return most;
}

bool secret_hide(struct buf *out, const char *key, const char *text, size_t n)
{
    size_t k = key ? strlen(key) : 0, most;
    bool fine = true;
    for (size_t i = 0; i < n && fine; i += most ? most : 1) {
        most = 0;
        for (size_t form = 0; form < FORMS; form++) {
            size_t found = secret_found(key, k, form, text + i, n - i);
            most = found > most ? found : most;
        }
        fine = buf_add(out, most ? "***" : text + i, most ? 3 : 1);
    }
    return fine;
}
