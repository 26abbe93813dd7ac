/* unicode.h - the character classes that Qwen2's pre-tokenizer needs, and NFC.
 *
 * The versions are those of Hugging Face's tokenizers 0.23: classes of Unicode 16.0, NFC of Unicode
 * 9.0, in which a combining mark that was added later is no mark.
 * tests/model/unicode/unicode_check.js compares all code points.
 *
 * Source: the Unicode Standard, sections 3.11 (normalization) and 3.12 (Hangul by arithmetic).
 * Everything is linear in the length of the text. */
#ifndef MODEL_TEXT_UNICODE_H
#define MODEL_TEXT_UNICODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;

enum unicode_class { UNICODE_OTHER, UNICODE_SPACE, UNICODE_LETTER, UNICODE_NUMBER };

/* Return the class of a code point: White_Space, L* or N*; anything else is UNICODE_OTHER. */
enum unicode_class unicode_class(uint32_t c);

/* Copy s[n], with each maximal invalid subpart replaced by U+FFFD. *out is malloc'ed. ERR_NOMEM
 * only. */
int unicode_repair(char **out, size_t *len, const char *s, size_t n, struct err *err);

/* True when valid s[n] is certainly NFC; false when only unicode_nfc can tell. */
bool unicode_sure_nfc(const char *s, size_t n);
/* Bring valid s[n] to NFC. *out is malloc'ed. ERR_NOMEM only. */
int unicode_nfc(char **out, size_t *len, const char *s, size_t n, struct err *err);

#endif
