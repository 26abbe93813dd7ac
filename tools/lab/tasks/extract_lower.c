#include "tools/lab/tasks/extract.h"

/* Every step-th code point from `first` to `last` has the lower case that is `delta` behind it.
 * Source: the Unicode Standard, simple case mappings of what texts in Latin, Greek, Cyrillic and
 * Armenian letters have; other alphabets with two cases are compared as they are. */
static const struct {
    uint32_t first, last, step;
    int32_t delta;
} lower[] = {
    { 0xc0, 0xd6, 1, 32 },        { 0xd8, 0xde, 1, 32 },     { 0x100, 0x12e, 2, 1 },
    { 0x132, 0x136, 2, 1 },       { 0x139, 0x147, 2, 1 },    { 0x14a, 0x176, 2, 1 },
    { 0x178, 0x178, 1, -121 },    { 0x179, 0x17d, 2, 1 },    { 0x370, 0x372, 2, 1 },
    { 0x376, 0x376, 1, 1 },       { 0x37f, 0x37f, 1, 116 },  { 0x386, 0x386, 1, 38 },
    { 0x388, 0x38a, 1, 37 },      { 0x38c, 0x38c, 1, 64 },   { 0x38e, 0x38f, 1, 63 },
    { 0x391, 0x3a1, 1, 32 },      { 0x3a3, 0x3ab, 1, 32 },   { 0x3cf, 0x3cf, 1, 8 },
    { 0x3d8, 0x3ee, 2, 1 },       { 0x3f4, 0x3f4, 1, -60 },  { 0x3f7, 0x3f7, 1, 1 },
    { 0x3f9, 0x3f9, 1, -7 },      { 0x3fa, 0x3fa, 1, 1 },    { 0x3fd, 0x3ff, 1, -130 },
    { 0x400, 0x40f, 1, 80 },      { 0x410, 0x42f, 1, 32 },   { 0x460, 0x480, 2, 1 },
    { 0x48a, 0x4be, 2, 1 },       { 0x4c0, 0x4c0, 1, 15 },   { 0x4c1, 0x4cd, 2, 1 },
    { 0x4d0, 0x52e, 2, 1 },       { 0x531, 0x556, 1, 48 },   { 0x1e00, 0x1e94, 2, 1 },
    { 0x1e9e, 0x1e9e, 1, -7615 }, { 0x1ea0, 0x1efe, 2, 1 },  { 0x2160, 0x216f, 1, 16 },
    { 0x24b6, 0x24cf, 1, 26 },    { 0xff21, 0xff3a, 1, 32 },
};

uint32_t extract_lower(uint32_t c)
{
    size_t lo = 0, end = sizeof(lower) / sizeof(lower[0]);
    if (c < 0x80)
        return c >= 'A' && c <= 'Z' ? c + 32 : c;
    while (lo < end) { /* the first range that does not end below c */
        size_t mid = lo + (end - lo) / 2;
        if (c > lower[mid].last)
            lo = mid + 1;
        else
            end = mid;
    }
    bool has = lo < sizeof(lower) / sizeof(lower[0]) && c >= lower[lo].first &&
               (c - lower[lo].first) % lower[lo].step == 0;
    return has ? c + (uint32_t)lower[lo].delta : c;
}
