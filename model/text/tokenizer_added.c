/* tokenizer_added.c - where the added tokens of a text are. Source: AddedVocabulary of Hugging
 * Face's tokenizers. */
#include <string.h>

#include "kernels/sys/text.h"
#include "model/text/tokenizer_internal.h"
#include "model/text/unicode.h"

/* Return the bytes of the white space at p[n], n > 0: of one character, or 0. */
static size_t added_space(const char *p, size_t n)
{
    uint32_t c;
    size_t len = text_decode(&c, p, n, NULL);
    return unicode_class(c) == UNICODE_SPACE ? len : 0;
}

/* Find the longest added token at p; returns its length, or 0. */
static size_t added_at(const struct tokenizer *t, const char *p, size_t n, bool normalized,
                       uint32_t *id)
{
    if (!t->added_first[(unsigned char)p[0]])
        return 0;
    for (size_t i = 0; i < t->nadded; i++) {
        const struct piece *a = &t->pieces[t->added[i]];
        if (!(a->flags & ADDED_NORMALIZED) == !normalized && a->bytes.n <= n &&
            !memcmp(a->bytes.p, p, a->bytes.n)) {
            *id = t->added[i];
            return a->bytes.n;
        }
    }
    return 0;
}

bool tokenizer_added(const struct tokenizer *t, struct added *a, const char *p, size_t n,
                     bool normalized)
{
    size_t at = a->next, before = a->end, len = 0;
    while (at < n && !(len = added_at(t, p + at, n - at, normalized, &a->id)))
        at++;
    a->begin = at;
    a->end = a->next = at + len;
    int flags = len ? t->pieces[a->id].flags : 0;
    if (flags & ADDED_LSTRIP && a->begin < before)
        a->begin = before;
    while (flags & ADDED_LSTRIP && a->begin > before) {
        size_t i = a->begin - 1;
        while (i && ((unsigned char)p[i] & 0xc0) == 0x80)
            i--;
        if (!added_space(p + i, n - i))
            break;
        a->begin = i;
    }
    if (flags & ADDED_RSTRIP &&
        a->end < before) /* the white space of the token before, which is known */
        a->end = before;
    while (flags & ADDED_RSTRIP && a->end < n && (len = added_space(p + a->end, n - a->end)))
        a->end += len;
    return a->next > at;
}

int tokenizer_encode_part(const struct tokenizer *t, uint32_t **ids, size_t *count,
                          const char *text, size_t n, bool special, struct err *err)
{
    int rc = tokenizer_encode(t, ids, count, text, n, special, err);
    if (rc == 0 && t->add_bos)
        memmove(*ids, *ids + 1, --*count * sizeof(**ids));
    return rc;
}
