#include "model/taps.h"

#include <stdlib.h>
#include <string.h>

/* Parse the n bytes of one tap. */
static bool taps_parse_one(int *out, const char *text, size_t n)
{
    bool number = n >= 1 && n <= 5 && *text != '0' && strspn(text, "0123456789") == n;
    *out = number ? (int)strtol(text, NULL, 10) : n == 5 ? TAP_FINAL : TAP_POST_ATTN;
    return number || (n == 5 && !memcmp(text, "final", n)) ||
           (n == 9 && !memcmp(text, "post_attn", n));
}

bool taps_parse(struct taps *out, const char *text)
{
    struct taps t = { .more = 0 };
    size_t count = 0, n;
    for (const char *p = text;; p += n + 1) {
        n = strcspn(p, ",");
        if (count == TAPS || !taps_parse_one(&t.at[count], p, n))
            return false;
        for (size_t i = 0; i < count; i++)
            if (t.at[i] == t.at[count])
                return false;
        t.more = count++;
        if (!p[n])
            break;
    }
    memcpy(t.text, text, strlen(text) + 1); /* TAPS different ones fit */
    *out = t;
    return true;
}
