/* json_input.h - JSON from outside: jansson with a depth limit, and the fields we ask for. jansson
 * refuses bad UTF-8, NaN, integers beyond 64 bits, trailing bytes, and a name that an object has
 * twice: two readers could take different values for it. Its parser recurses, so the depth is
 * checked before it starts. */
#ifndef NET_HTTP_JSON_INPUT_H
#define NET_HTTP_JSON_INPUT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;

enum { JSON_INPUT_DEPTH = 64 };

/* Parse n bytes as one whole document with any type of value at the top. ERR_FORMAT, with the place
 * in err and *out NULL; ERR_NOMEM. The caller keeps n bounded and calls json_decref. "\u0000"
 * inside strings is allowed. */
int json_input_parse(json_t **out, const char *p, size_t n, struct err *err);
/* From now on a text whose memory fails is ERR_NOMEM; else jansson may lose bytes of it, and crash:
 * puts functions before those that give jansson memory, for the whole process, once. So it is for a
 * program; the library leaves its host's jansson alone. */
void json_input_watch(void);

/* Read a token id: an integer (not 3.0) in [0, vocab). False when v is anything else. */
bool json_input_id(uint32_t *out, const json_t *v, size_t vocab);
/* Return a positive integer, or 0 for anything else. */
size_t json_input_count(const json_t *v);
/* Return what v is, for messages: "null", "a number", ...; "nothing" for NULL. */
const char *json_input_type(const json_t *v);

/* Copy text[n], which may be NULL if n is 0, into out[cap] as one short harmless line: control and
 * direction characters become blanks, and text that is too long is cut between characters and ends
 * in "...". */
void json_input_line(char *out, size_t cap, const char *text, size_t n);

#endif
