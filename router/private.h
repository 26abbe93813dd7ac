/* private.h - text that must not leave the machine.
 *
 * A prefix is private, and never sent, if the concatenated bytes of its tokens contain a match of a
 * pattern. It is also private if it ends with at least the first half of a match, since the next
 * token may complete it. Token borders do not matter, special tokens count with their text, and
 * case matters.
 *
 * A pattern is one line of UTF-8 of up to 255 bytes; all together have up to 4,096 bytes. It
 * matches itself, except for the backslash: "\d" is one digit, "\w" an ASCII letter, a digit, _ or
 * one byte beyond ASCII, "\s" a blank or tab, and two backslashes are one.
 *
 * Blank lines, lines that begin with # and a byte order mark at the start of a file are ignored. A
 * byte order mark before another pattern is refused, and so is a carriage return inside a pattern.
 * Similar text does not match: other case, a no-break space or a line break for a blank, zero-width
 * characters in between. The tokenizer composes characters (NFC), so each pattern is searched for
 * as written and composed.
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

/* Build the filter from a file of patterns and from a text of the same form; either may be NULL. If
 * both are NULL, *out is NULL. tok is borrowed. ERR_IO, ERR_FORMAT (names the line), ERR_NOMEM. */
int private_open(struct private_filter **out, const char *file, const char *patterns,
                 const struct tokenizer *tok, struct err *err);
void private_close(struct private_filter *p);

/* The state of one text, so that each id is read once while the text grows. All zero at first; for
 * private.c alone. */
struct private_text {
    uint32_t *ids; /* [n], the ids read so far */
    size_t n, cap;
    uint64_t *now; /* [words]: the pattern elements that the text's end matches */
    bool found;    /* a pattern was found; stays set */
};

/* True when ids[n] must not be sent. Depends on the ids alone, not on earlier use of t with this
 * filter. False when p is NULL, true when memory runs out. */
bool private_holds(const struct private_filter *p, struct private_text *t, const uint32_t *ids,
                   size_t n);
/* Free the state; it is all zero again. */
void private_text_end(struct private_text *t);

#endif
