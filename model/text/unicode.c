#include <stdlib.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "kernels/sys/text.h"
#include "model/text/unicode.h"
#include "model/text/unicode_table.h"

/* Binary search in a table of n rows of `words` numbers each, in ascending order of the one that
 * stands at key[0] in the first row. Return the last row where it is at most c; 0 if there is none.
 */
static inline size_t unicode_row(const uint32_t *key, size_t words, size_t n, uint32_t c)
{
    size_t row = 0;
    for (size_t half; n > 1; n -= half) {
        half = n / 2;
        row += key[(row + half) * words] <= c ? half : 0;
    }
    return row;
}

/* Return what unicode_runs has of c. */
static uint32_t unicode_value(uint32_t c)
{
    if (c >= 0x4e00 && c <= 0x9fff) /* the common CJK block has letters only */
        return UNICODE_LETTER;
    const struct unicode_run *r =
        &unicode_runs[unicode_row(&unicode_runs->first, 3, unicode_runs_n, c)];
    return c - r->first < r->n ? r->value : 0;
}

enum unicode_class unicode_class(uint32_t c)
{
    if (c < 0x80) {
        if ((c | 0x20) >= 'a' && (c | 0x20) <= 'z')
            return UNICODE_LETTER;
        if (c >= '0' && c <= '9')
            return UNICODE_NUMBER;
        return c == ' ' || (c >= '\t' && c <= '\r') ? UNICODE_SPACE : UNICODE_OTHER;
    }
    return (enum unicode_class)(unicode_value(c) & UNICODE_CLASS);
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
        if (c >= 0x300 && unicode_value(c) & UNICODE_UNSURE)
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
    return c | unicode_value(c) >> UNICODE_CCC << CCC_SHIFT;
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
        const struct unicode_map *m =
            &unicode_maps[unicode_row(&unicode_maps->first, 4, unicode_maps_n, c)];
        if (c - m->first >= m->n || n == 3)
            break;
        const uint32_t *part = &unicode_parts[m->at + (c - m->first) * m->parts];
        if (m->parts == 2)
            tail[n++] = part[1];
        c = part[0];
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
        const uint32_t *part = &unicode_parts[unicode_compose[mid]];
        if (part[0] < a || (part[0] == a && part[1] < b))
            lo = mid + 1;
        else
            n = mid;
    }
    if (lo == unicode_compose_n)
        return 0;
    uint32_t at = unicode_compose[lo];
    const uint32_t *part = &unicode_parts[at];
    if (part[0] != a || part[1] != b)
        return 0;
    const struct unicode_map *m =
        &unicode_maps[unicode_row(&unicode_maps->at, 4, unicode_maps_n, at)];
    return m->first + (at - m->at) / 2;
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
