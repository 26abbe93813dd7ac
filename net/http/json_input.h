/* json_input.h - JSON from outside: jansson behind a limit of depth, and the fields we ask for.
 *
 * jansson refuses bad UTF-8, NaN, integers beyond 64 bits and trailing bytes; its parser recurses,
 * so depth is checked before it starts. */
#ifndef NET_HTTP_JSON_INPUT_H
#define NET_HTTP_JSON_INPUT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;

enum { JSON_INPUT_DEPTH = 64 };

/* One whole document of n bytes; any value at the top. ERR_FORMAT (says where), with *out NULL.
 * The caller keeps n bounded and calls json_decref. "\u0000" inside strings is allowed. */
int json_input_parse(json_t **out, const char *p, size_t n, struct err *err);

/* A token id: an integer (not 3.0) in [0, vocab). */
bool json_input_id(uint32_t *out, const json_t *v, size_t vocab);
/* "null", "true", "number", ...: what v is, for messages; NULL gives "nothing". */
const char *json_input_type(const json_t *v);

/* Copy text of n bytes into out[cap] as one short harmless line: control and direction characters
 * become blanks, and what is too long is cut between characters and ends in "...". */
void json_input_line(char *out, size_t cap, const char *text, size_t n);

#endif
