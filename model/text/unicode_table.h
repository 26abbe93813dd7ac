/* unicode_table.h - the tables behind unicode.c, all but the last sorted by code point. */
#ifndef MODEL_TEXT_UNICODE_TABLE_H
#define MODEL_TEXT_UNICODE_TABLE_H

#include <stddef.h>
#include <stdint.h>

/* Code points [first, first + n) with the same value; those in no run have 0. */
struct unicode_run {
    uint32_t first, n;
    uint32_t value; /* enum unicode_class + UNICODE_UNSURE + combining class << UNICODE_CCC */
};

/* UNSURE: the combining class is not 0 or NFC_Quick_Check is No or Maybe. Text without any such
 * code point is NFC already. */
enum { UNICODE_CLASS = 3, UNICODE_UNSURE = 4, UNICODE_CCC = 3 };

/* Code points [first, first + n), each of which is canonically equal to one or two others: its
 * `parts` of unicode_parts, those of `first` at `at`. Only the first part may decompose further. */
struct unicode_map {
    uint32_t first, n, at, parts;
};

extern const struct unicode_run unicode_runs[];
extern const size_t unicode_runs_n;
extern const struct unicode_map unicode_maps[];
extern const size_t unicode_maps_n;
extern const uint32_t unicode_parts[];
/* Where pairs begin in unicode_parts, sorted by the pair, without composition exclusions. */
extern const uint16_t unicode_compose[];
extern const size_t unicode_compose_n;

#endif
