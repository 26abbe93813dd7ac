/* malformed.h - files that are wrong in one way each: written from short texts, opened the way a
 * model is, and refused with one line. */
#ifndef TESTS_SUPPORT_MALFORMED_H
#define TESTS_SUPPORT_MALFORMED_H

#include <stddef.h>

/* Assemble bytes from words that are separated by blanks, and return how many they are:
 *   4:7      a number in 4 bytes (1, 2, 4, 8), little-endian; 0x.. and -1 are fine
 *   'text'   bytes; s'text' has their length in 8 bytes in front
 *   z:9      nine zero bytes; a:32 zero bytes up to a multiple of 32
 * The test ends if they do not fit. */
size_t malformed_assemble(unsigned char *out, size_t room, const char *words);

/* What is opened of a file or folder: the weights; the model, which has them; the tokenizer alone,
 * which a folder may hold without weights. */
enum malformed_part { MALFORMED_WEIGHTS, MALFORMED_MODEL, MALFORMED_TOKENIZER };

/* What is wrong in one way. Several parts or values, each tried alone, have ~ between them. */
struct malformed_kind {
    const char *what; /* the part, key or tensor that changes */
    const char *to;   /* what it becomes; "-": it is missing, which is NULL for those who write */
    const char *says; /* of the refusal; NULL: what */
};

/* Require that it opens. */
void malformed_opens(const char *name, const char *path, enum malformed_part part);
/* Require a refusal in one line that says this and begins with the path. Counts the kinds. */
void malformed_refused(const char *name, const char *path, enum malformed_part part,
                       const char *says);
/* The same for each value of each row, once it is written. */
#define MALFORMED_EACH(rows, write, path, part) \
    malformed_each(rows, sizeof(rows) / sizeof(*(rows)), write, path, part)
void malformed_each(const struct malformed_kind *rows, size_t n,
                    void (*write)(const struct malformed_kind *k), const char *path,
                    enum malformed_part part);
/* Print how many kinds were refused, and require at least so many. */
void malformed_count(size_t least);

#endif
