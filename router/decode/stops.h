/* stops.h - finds stop strings across the borders of tokens. */
#ifndef ROUTER_DECODE_STOPS_H
#define ROUTER_DECODE_STOPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;
struct err;
struct tokenizer;

enum { STOPS_MAX = 255 }; /* most bytes of one stop string */

struct stops {
    const char *const *list; /* NULL-terminated, or NULL for none; borrowed */
    size_t n;
    bool found;               /* one is complete */
    char tail[2 * STOPS_MAX]; /* the last bytes of the text */
};

/* Start a search. ERR_ARG: a stop string is empty or too long. */
int stops_begin(struct stops *s, const char *const *list, struct err *err);
/* Append text[n]. True once a stop string is complete, the longest of those that end there: it ends
 * at text[*at - 1] and has *length bytes, the first of which may lie in earlier calls. */
bool stops_feed(struct stops *s, const char *text, size_t n, size_t *at, size_t *length);
/* Append the bytes of a token. True when the text now ends with a stop string. */
bool stops_token(struct stops *s, const struct tokenizer *tok, uint32_t id);
/* Append the text[n] of a token to `to`, which ends where a stop string begins: then nothing more
 * is appended. False without memory. */
bool stops_append(struct stops *s, struct buf *to, const char *text, size_t n);
/* Return how many bytes at the end of the text may be the beginning of a stop string; 0 once one is
 * complete. */
size_t stops_held(const struct stops *s);

#endif
