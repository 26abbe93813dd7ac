/* private.h - text that must not leave the machine.
 *
 * A prefix is private, and is never sent up, where the text of its tokens, put together as bytes,
 *   - contains what matches a pattern, or ends with the first half or more of one: the rest may be
 *     the next token;
 *   - contains the from marker, from there on. The to marker ends the span, but what holds a closed
 *     span still holds it: only a span of nothing but blanks, once closed, is none.
 * Borders of tokens do not matter, special tokens count with their text, and case matters.
 *
 * A pattern is one line of UTF-8, up to 255 bytes, 4,096 bytes all together: itself, but for the
 * backslash: "\d" is one digit, "\w" a letter of ASCII, a digit, _ or one byte beyond ASCII, "\s" a
 * blank or tab, two are one.
 *
 * Blank lines and lines that begin with # are left out. The tokenizer composes characters (NFC):
 * each pattern and marker is looked for as written and composed.
 *
 * Shift-And (Baeza-Yates and Gonnet, 1992): all patterns in one pass, a bit a byte. */
#ifndef ROUTER_PRIVATE_H
#define ROUTER_PRIVATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct private_filter;
struct tokenizer;

struct private_options {
    const char *from, *to; /* markers or NULL; to needs from */
    const char *file;      /* of patterns, or NULL */
};

/* *out is NULL where the options name nothing. tok is borrowed. ERR_ARG (a marker empty or too
 * long), ERR_IO, ERR_FORMAT (names the line), ERR_NOMEM. */
int private_open(struct private_filter **out, const struct private_options *o,
                 const struct tokenizer *tok, struct err *err);
void private_close(struct private_filter *p);

/* True where ids[n] must not be sent: a function of the ids alone. p NULL: false. It remembers the
 * ids of the call before, so that a text that grows is read once. Where memory runs out: true. One
 * thread at a time. */
bool private_holds(struct private_filter *p, const uint32_t *ids, size_t n);

#endif
