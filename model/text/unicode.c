#include <stdlib.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "kernels/sys/text.h"
#include "model/text/unicode.h"
#include "model/text/unicode_table.h"

/* Binary search in a table of n rows of `words` numbers each, sorted by one of them, which stands
 * at key[0] in the first row. Returns the first row where it is at least c; n if there is none. */
static inline size_t unicode_row(const uint32_t *key, size_t words, size_t n, uint32_t c)
{
    size_t lo = 0, end = n;
    while (lo < end) {
        size_t mid = lo + (end - lo) / 2;
        if (c > key[mid * words])
            lo = mid + 1;
        else
            end = mid;
    }
    return lo;
}

/* True if a range contains c: it must be the first that does not end below c. */
static bool in_ranges(const struct unicode_range *r, size_t n, uint32_t c)
{
    size_t i = unicode_row(&r->hi, 2, n, c);
    return i < n && r[i].lo <= c;
}

/* The 25 code points of White_Space. */
static bool is_space(uint32_t c)
{
    return (c >= 0x09 && c <= 0x0d) || c == 0x20 || c == 0x85 || c == 0xa0 || c == 0x1680 ||
           (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f ||
           c == 0x205f || c == 0x3000;
}

enum unicode_class unicode_class(uint32_t c)
{
    if (c < 0x80) {
        if ((c | 0x20) >= 'a' && (c | 0x20) <= 'z')
            return UNICODE_LETTER;
        if (c >= '0' && c <= '9')
            return UNICODE_NUMBER;
        return is_space(c) ? UNICODE_SPACE : UNICODE_OTHER;
    }
    if (c >= 0x4e00 && c <= 0x9fff) /* the common CJK block has letters only */
        return UNICODE_LETTER;
    if (in_ranges(unicode_letters, unicode_letters_n, c))
        return UNICODE_LETTER;
    if (in_ranges(unicode_numbers, unicode_numbers_n, c))
        return UNICODE_NUMBER;
    return is_space(c) ? UNICODE_SPACE : UNICODE_OTHER;
}

int unicode_repair(char **out, size_t *len, const char *s, size_t n, struct err *err)
{
    size_t cap;
    *out = NULL;
    if (!size_mul(&cap, n, 3) || !size_add(&cap, cap, 1)) /* one bad byte becomes three */
        return err_set(err, ERR_NOMEM, "text of %zu bytes: out of memory", n);
    char *to = malloc(cap);
    if (!to)
        return err_set(err, ERR_NOMEM, "text of %zu bytes: out of memory", n);
    size_t m = 0;
    for (size_t i = 0; i < n;) {
        uint32_t c;
        i += text_decode(&c, s + i, n - i, NULL);
        m += text_encode(to + m, c);
    }
    *out = to;
    *len = m;
    return OK;
}

bool unicode_sure_nfc(const char *s, size_t n)
{
    for (size_t i = text_ascii(s, n); i < n; i += text_ascii(s + i, n - i)) {
        uint32_t c;
        i += text_decode(&c, s + i, n - i, NULL);
        if (c >= 0x300 && in_ranges(unicode_unsure, unicode_unsure_n, c))
            return false;
    }
    return true;
}

/* During NFC, an element is a code point with its combining class in the top bits. */
enum { CCC_SHIFT = 24, CODE_MASK = 0xffffff };

enum { /* section 3.12 */
       S_BASE = 0xac00,
       L_BASE = 0x1100,
       V_BASE = 0x1161,
       T_BASE = 0x11a7,
       L_COUNT = 19,
       V_COUNT = 21,
       T_COUNT = 28,
       S_COUNT = L_COUNT * V_COUNT * T_COUNT
};

/* Return c with its combining class in the top bits. */
static uint32_t with_ccc(uint32_t c)
{
    size_t i = unicode_row(&unicode_marks->hi, 3, unicode_marks_n, c);
    bool is = i < unicode_marks_n && unicode_marks[i].lo <= c;
    return is ? c | unicode_marks[i].ccc << CCC_SHIFT : c;
}

/* Return the decomposition of c into two code points, or NULL. */
static const struct unicode_pair *find_pair(uint32_t c)
{
    size_t i = unicode_row(&unicode_pairs->c, 3, unicode_pairs_n, c);
    return i < unicode_pairs_n && unicode_pairs[i].c == c ? &unicode_pairs[i] : NULL;
}

/* Return the one code point to which c is canonically equal, or c itself. */
static uint32_t find_single(uint32_t c)
{
    size_t i = unicode_row(&unicode_singles->c, 2, unicode_singles_n, c);
    return i < unicode_singles_n && unicode_singles[i].c == c ? unicode_singles[i].to : c;
}

/* Decompose c completely (canonical), into at most 4 elements; returns how many. */
static size_t decompose(uint32_t out[4], uint32_t c)
{
    if (c < 0xc0) {
        out[0] = c;
        return 1;
    }
    if (c >= S_BASE && c < S_BASE + S_COUNT) {
        uint32_t s = c - S_BASE, t = s % T_COUNT;
        out[0] = L_BASE + s / (V_COUNT * T_COUNT);
        out[1] = V_BASE + s % (V_COUNT * T_COUNT) / T_COUNT;
        out[2] = T_BASE + t;
        return t ? 3 : 2;
    }
    /* Only the first part decomposes further, so the second parts come out in reverse order. */
    uint32_t tail[4];
    size_t n = 0;
    for (;;) {
        c = find_single(c);
        const struct unicode_pair *p = find_pair(c);
        if (!p || n == 3)
            break;
        tail[n++] = p->b;
        c = p->a;
    }
    out[0] = with_ccc(c);
    for (size_t i = 0; i < n; i++)
        out[1 + i] = with_ccc(tail[n - 1 - i]);
    return n + 1;
}

/* Sort marks e[n] by ascending class, keeping the order of equal ones; tmp has room for n. Long
 * runs use a counting sort, so that they do not take quadratic time. */
static void sort_marks(uint32_t *e, uint32_t *tmp, size_t n)
{
    if (n <= 16) {
        for (size_t i = 1; i < n; i++) {
            uint32_t x = e[i];
            size_t j = i;
            for (; j > 0 && e[j - 1] >> CCC_SHIFT > x >> CCC_SHIFT; j--)
                e[j] = e[j - 1];
            e[j] = x;
        }
        return;
    }
    size_t at[257] = { 0 };
    for (size_t i = 0; i < n; i++)
        at[(e[i] >> CCC_SHIFT) + 1]++;
    for (size_t i = 1; i < 257; i++)
        at[i] += at[i - 1];
    memcpy(tmp, e, n * sizeof(*e));
    for (size_t i = 0; i < n; i++)
        e[at[tmp[i] >> CCC_SHIFT]++] = tmp[i];
}

/* Return the composite of a and b, or 0. */
static uint32_t composite(uint32_t a, uint32_t b)
{
    if (a >= L_BASE && a < L_BASE + L_COUNT && b >= V_BASE && b < V_BASE + V_COUNT)
        return S_BASE + ((a - L_BASE) * V_COUNT + (b - V_BASE)) * T_COUNT;
    if (a >= S_BASE && a < S_BASE + S_COUNT && (a - S_BASE) % T_COUNT == 0 && b > T_BASE &&
        b < T_BASE + T_COUNT)
        return a + (b - T_BASE);
    size_t lo = 0, n = unicode_compose_n;
    while (lo < n) {
        size_t mid = lo + (n - lo) / 2;
        const struct unicode_pair *p = &unicode_pairs[unicode_compose[mid]];
        if (p->a < a || (p->a == a && p->b < b))
            lo = mid + 1;
        else
            n = mid;
    }
    if (lo == unicode_compose_n)
        return 0;
    const struct unicode_pair *p = &unicode_pairs[unicode_compose[lo]];
    return p->a == a && p->b == b ? p->c : 0;
}

/* Compose canonically, in place; returns the new count. */
static size_t compose(uint32_t *e, size_t n)
{
    size_t m = 0, starter = SIZE_MAX;
    for (size_t i = 0; i < n; i++) {
        uint32_t ccc = e[i] >> CCC_SHIFT, c = e[i] & CODE_MASK;
        if (starter != SIZE_MAX) {
            /* It is blocked when something between has class 0 or a class as high as this. */
            bool next = m == starter + 1;
            uint32_t last = e[m - 1] >> CCC_SHIFT;
            uint32_t both = next || (last && last < ccc) ? composite(e[starter], c) : 0;
            if (both) {
                e[starter] = both;
                continue;
            }
        }
        if (!ccc)
            starter = m;
        e[m++] = e[i];
    }
    return m;
}

int unicode_nfc(char **out, size_t *len, const char *s, size_t n, struct err *err)
{
    *out = NULL;
    /* The worst growth is three elements from two bytes (U+01D5); sorting needs as many again. */
    size_t cap, bytes;
    if (!size_add(&cap, n, n / 2 + 4) || !size_mul(&bytes, cap, 2 * sizeof(uint32_t)))
        return err_set(err, ERR_NOMEM, "text of %zu bytes: out of memory", n);
    uint32_t *e = malloc(bytes);
    if (!e)
        return err_set(err, ERR_NOMEM, "text of %zu bytes: out of memory", n);
    size_t m = 0, total = 1;
    for (size_t i = 0; i < n;) {
        uint32_t c;
        i += text_decode(&c, s + i, n - i, NULL);
        m += decompose(e + m, c);
    }
    for (size_t i = 0; i < m;) {
        size_t from = i;
        while (i < m && e[i] >> CCC_SHIFT)
            i++;
        sort_marks(e + from, e + cap, i - from);
        i += i < m;
    }
    m = compose(e, m);
    for (size_t i = 0; i < m; i++)
        total += text_encoded_length(e[i] & CODE_MASK);
    char *to = malloc(total);
    if (!to) {
        free(e);
        return err_set(err, ERR_NOMEM, "text of %zu bytes: out of memory", n);
    }
    *len = 0;
    for (size_t i = 0; i < m; i++)
        *len += text_encode(to + *len, e[i] & CODE_MASK);
    free(e);
    *out = to;
    return OK;
}
