/* text.h - UTF-8, and which characters may be shown to a person.
 *
 * Source: the Unicode Standard, section 3.9, table 3-7. */
#ifndef KERNELS_SYS_TEXT_H
#define KERNELS_SYS_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Decode the first code point of s[n], n > 0, and return its length in bytes. Invalid bytes give
 * U+FFFD, *ok false (ok may be NULL) and the length of the maximal subpart, as Python and Rust
 * count it. */
size_t text_decode(uint32_t *c, const char *s, size_t n, bool *ok);
/* Write c as 1 to 4 bytes and return how many. */
size_t text_encode(char out[4], uint32_t c);
/* Decode a JSON escape, of which s[n] is what follows the backslash: write it as UTF-8, set *used
 * to its length and return the bytes written, which may take its place. 0: JSON has no such escape,
 * or it is half a pair or U+0000. */
size_t text_unescape(char out[4], const char *s, size_t n, size_t *used);
/* Return how many bytes c takes. */
size_t text_encoded_length(uint32_t c);

/* Return how many bytes of s[n], a text that goes on, are complete: all but a character at the end
 * that further bytes may complete. What is invalid whatever follows is complete. */
size_t text_complete(const char *s, size_t n);

/* Return the bytes of the byte order mark that s[n] begins with, 3 or 0. */
size_t text_mark(const char *s, size_t n);
/* Return how many bytes of s[n] come before the first that is not ASCII. */
size_t text_ascii(const char *s, size_t n);
/* True when s[n] is well-formed: no overlong forms, surrogates or values above U+10FFFF. */
bool text_valid(const char *s, size_t n);

/* False for characters that affect more than their own place in the line: control characters
 * (newline and tab too), line separators, characters that change the writing direction, the byte
 * order mark. Joiners, which emoji and Persian need, are harmless. */
bool text_harmless(uint32_t c);
/* Return the length of the first character of s[n], n > 0, if it is well-formed and harmless; else
 * 0. */
size_t text_shown(const char *s, size_t n);
/* Make s one harmless line: each byte of a character that is not harmless becomes '?'. */
void text_line(char *s);

/* True if the word is in the list, whose words are separated by ", ". */
bool text_among(const char *word, const char *list);

#endif
