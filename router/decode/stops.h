/* stops.h - finds stop strings across the borders of tokens. */
#ifndef ROUTER_DECODE_STOPS_H
#define ROUTER_DECODE_STOPS_H

#include <stdbool.h>
#include <stddef.h>

struct err;

enum { STOPS_MAX = 255 }; /* most bytes of one stop string */

struct stops {
    const char *const *list; /* NULL-terminated, or NULL for none; borrowed */
    size_t n;
    char tail[2 * STOPS_MAX]; /* the last bytes of the text */
};

/* Start a search. ERR_ARG: a stop string is empty or too long. */
int stops_begin(struct stops *s, const char *const *list, struct err *err);
/* Append text[n]. True once a stop string is complete, the longest of those that end there: it ends
 * at text[*at - 1] and has *length bytes, the first of which may lie in earlier calls. */
bool stops_feed(struct stops *s, const char *text, size_t n, size_t *at, size_t *length);
/* Return how many bytes at the end of the text may be the beginning of a stop string. */
size_t stops_held(const struct stops *s);

#endif
