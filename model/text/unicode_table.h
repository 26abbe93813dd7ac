/* unicode_table.h - the tables behind unicode.c, all sorted by their first code point. */
#ifndef MODEL_TEXT_UNICODE_TABLE_H
#define MODEL_TEXT_UNICODE_TABLE_H

#include <stddef.h>
#include <stdint.h>

struct unicode_range {
    uint32_t lo, hi; /* both included */
};

struct unicode_mark {
    uint32_t lo, hi, ccc; /* canonical combining class, 1 to 254 */
};

struct unicode_single {
    uint32_t c, to; /* c is canonically equal to one other code point */
};

struct unicode_pair {
    uint32_t c, a, b; /* c is canonically equal to a b; only a may decompose further */
};

extern const struct unicode_range unicode_letters[], unicode_numbers[];
extern const size_t unicode_letters_n, unicode_numbers_n;
extern const struct unicode_mark unicode_marks[];
extern const size_t unicode_marks_n;
/* Code points whose combining class is not 0 or whose NFC_Quick_Check is No or Maybe. Text without
 * any of these is NFC already. */
extern const struct unicode_range unicode_unsure[];
extern const size_t unicode_unsure_n;
extern const struct unicode_single unicode_singles[];
extern const size_t unicode_singles_n;
extern const struct unicode_pair unicode_pairs[];
extern const size_t unicode_pairs_n;
/* Indices into unicode_pairs, sorted by (a, b), without composition exclusions. */
extern const uint16_t unicode_compose[];
extern const size_t unicode_compose_n;

#endif
