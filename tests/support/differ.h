/* differ.h - find where two arrays first differ, for the message of a failing test. */
#ifndef TESTS_SUPPORT_DIFFER_H
#define TESTS_SUPPORT_DIFFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static char differ_text[128]; /* "", or ", at 3: expected ..., found ..." */

static inline void differ_floats(size_t at, float want, float got)
{
    uint32_t a, b;
    memcpy(&a, &want, sizeof(a));
    memcpy(&b, &got, sizeof(b));
    snprintf(differ_text, sizeof(differ_text), ", at %zu: expected %.9g (%08x), found %.9g (%08x)",
             at, (double)want, (unsigned)a, (double)got, (unsigned)b);
}

static inline void differ_ints(size_t at, int64_t want, int64_t got)
{
    snprintf(differ_text, sizeof(differ_text), ", at %zu: expected %lld, found %lld", at,
             (long long)want, (long long)got);
}

/* True for equal bits or two NaNs: payloads are not part of the kernels' contract. */
static inline bool differ_same(const float *a, const float *b, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (memcmp(a + i, b + i, sizeof(*a)) && !(a[i] != a[i] && b[i] != b[i])) {
            differ_floats(i, a[i], b[i]);
            return false;
        }
    return true;
}

#define DIFFER_INTS(name, type)                                     \
    static inline bool name(const type *a, const type *b, size_t n) \
    {                                                               \
        size_t i = 0;                                               \
        while (i < n && a[i] == b[i])                               \
            i++;                                                    \
        if (i < n)                                                  \
            differ_ints(i, a[i], b[i]);                             \
        return i == n;                                              \
    }
DIFFER_INTS(differ_same_i8, int8_t)
DIFFER_INTS(differ_same_i32, int32_t)

#endif
