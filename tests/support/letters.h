/* letters.h - GPT-2's letters for bytes, as vocabularies in JSON have them: a printable byte stands
 * for itself, and the others follow from U+0100. */
#ifndef TESTS_SUPPORT_LETTERS_H
#define TESTS_SUPPORT_LETTERS_H

#include "kernels/sys/text.h"

/* Return the code point of a byte. */
static inline uint32_t letter_code(unsigned byte)
{
    uint32_t next = 256;
    for (unsigned b = 0; b < 256; b++) {
        bool self = (b >= 0x21 && b <= 0x7e) || (b >= 0xa1 && b <= 0xac) || b >= 0xae;
        if (b == byte)
            return self ? b : next;
        next += !self;
    }
    return next;
}

/* Write the letter of a byte, terminated, and return its length. */
static inline size_t letter_of(char out[5], unsigned byte)
{
    size_t n = (size_t)text_encode(out, letter_code(byte));
    out[n] = '\0';
    return n;
}

#endif
