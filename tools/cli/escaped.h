/* escaped.h - shows text from a file on a terminal or in JSON. */
#ifndef TOOLS_CLI_ESCAPED_H
#define TOOLS_CLI_ESCAPED_H

#include <jansson.h>
#include <stddef.h>

/* Return a malloc'ed copy of s[n], at most 400 bytes of it, with bytes that could harm a terminal
 * written as \xNN; NULL if there is no memory. */
char *escaped_text(const char *s, size_t n);
/* Print text from a file on stdout, escaped. */
void escaped_put(const char *s, size_t n);
/* Return a JSON string; text that is not UTF-8 is escaped first. NULL: out of memory. */
json_t *escaped_json(const char *s, size_t n);

#endif
