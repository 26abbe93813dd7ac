#include "tools/lab/eval/price.h"

#include <stddef.h>
#include <string.h>

enum { PRICE_PLACES = 6 };

/* Read a decimal number times 10^places: with 6 places "1.50" is 1500000. At most `places` digits
 * may follow the point. False: it is anything else or too large. */
static bool price_decimal(uint64_t *out, const char *text, size_t n, unsigned places)
{
    uint64_t v = 0;
    bool point = false;
    size_t digits = 0;
    for (size_t i = 0; i < n; i++) {
        if (text[i] == '.' && !point) {
            point = true;
            continue;
        }
        if (text[i] < '0' || text[i] > '9' || (point && !places))
            return false;
        places -= point;
        digits++;
        if (__builtin_mul_overflow(v, 10u, &v) ||
            __builtin_add_overflow(v, (uint64_t)(text[i] - '0'), &v))
            return false;
    }
    while (places--)
        if (__builtin_mul_overflow(v, 10u, &v))
            return false;
    *out = v;
    return digits > 0;
}

bool price_parse(struct price *out, const char *text)
{
    uint64_t *to[] = { &out->up, &out->cached, &out->down };
    for (size_t i = 0; i < 3; i++) {
        size_t n = strcspn(text, ",");
        if (!price_decimal(to[i], text, n, PRICE_PLACES) || (text[n] == ',') != (i < 2))
            return false;
        text += n + 1;
    }
    return true;
}
