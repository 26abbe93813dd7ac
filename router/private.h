/* private.h - text that must not leave the machine.
 *
 * A prefix is private, and is never sent up, when the concatenated bytes of its tokens
 *   - contain a match of a pattern, or end with at least the first half of one, as the next token
 *     may bring the rest;
 *   - contain the from marker, from there on. The to marker ends the span, but a text with a closed
 *     span stays private, unless the span holds only blanks.
 * Borders of tokens do not matter, special tokens count with their text, and case matters.
 *
 * A pattern is one line of UTF-8 of up to 255 bytes; all together have up to 4,096 bytes. It
 * matches itself, except for the backslash: "\d" is one digit, "\w" an ASCII letter, a digit, _ or
 * one byte beyond ASCII, "\s" a blank or tab, and two backslashes are one.
 *
 * Blank lines and lines that begin with # are ignored. The tokenizer composes characters (NFC), so
 * each pattern and marker is searched for both as written and composed.
 *
 * The search is Shift-And (Baeza-Yates and Gonnet, 1992): all patterns in one pass, with one bit
 * for each byte of them. */
#ifndef ROUTER_PRIVATE_H
#define ROUTER_PRIVATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct private_filter;
struct tokenizer;

struct private_options {
    const char *from, *to; /* markers, or NULL; to needs from */
    const char *file;      /* file of patterns, or NULL */
};

/* Build the filter. *out is NULL when the options name nothing. tok is borrowed. ERR_ARG (a marker
 * is empty or too long), ERR_IO, ERR_FORMAT (names the line), ERR_NOMEM. */
int private_open(struct private_filter **out, const struct private_options *o,
                 const struct tokenizer *tok, struct err *err);
void private_close(struct private_filter *p);

/* True when ids[n] must not be sent; depends on the ids alone. False when p is NULL, true when
 * memory runs out. It remembers the ids of the previous call, so that a growing text is read once.
 * One thread at a time. */
bool private_holds(struct private_filter *p, const uint32_t *ids, size_t n);

#endif
