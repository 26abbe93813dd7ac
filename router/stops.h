/* stops.h - stop strings, found across the borders of tokens. */
#ifndef ROUTER_STOPS_H
#define ROUTER_STOPS_H

#include <stdbool.h>
#include <stddef.h>

struct err;

enum { STOPS_MAX = 255 }; /* bytes of one stop string */

struct stops {
    const char *const *list; /* NULL-ended, or NULL: none; borrowed */
    size_t n;
    char tail[2 * STOPS_MAX]; /* the last bytes of the text */
};

/* ERR_ARG where a stop string is empty or too long. */
int stops_begin(struct stops *s, const char *const *list, struct err *err);
/* Append text[n]. True once a stop string is complete: it ends at text[*at - 1] and has *length
 * bytes; what came before it may lie in earlier calls. The longest of those that end there. */
bool stops_feed(struct stops *s, const char *text, size_t n, size_t *at, size_t *length);
/* Bytes at the end of the text so far that may be the beginning of a stop string. */
size_t stops_held(const struct stops *s);

#endif
