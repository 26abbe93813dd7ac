/* serve_field.h - reads fields of a request. A field that is missing or null leaves *out alone; one
 * of another type or out of range sets *e, with the field as its param, and gives false. */
#ifndef TOOLS_SERVE_SERVE_FIELD_H
#define TOOLS_SERVE_SERVE_FIELD_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "tools/serve/serve_error.h"

/* Return in[name]; NULL if it is missing or null. */
json_t *serve_field_get(const json_t *in, const char *name);
/* Refuse the value found at the path `param`. Returns false. */
bool serve_field_wrong(struct serve_error *e, const char *param, const char *expected,
                       const json_t *found);
bool serve_field_flag(bool *out, const json_t *in, const char *name, struct serve_error *e);
/* Whole numbers from least to most. */
bool serve_field_count(json_int_t *out, const json_t *in, const char *name, json_int_t least,
                       json_int_t most, struct serve_error *e);
/* Numbers from least to most; `above`: greater than least. */
bool serve_field_number(float *out, const json_t *in, const char *name, double least, bool above,
                        double most, struct serve_error *e);
/* An object. */
bool serve_field_object(json_t **out, const json_t *in, const char *name, struct serve_error *e);

/* Refuse the object at this path if it has another field than these, whose names are separated by
 * ", ". */
bool serve_field_only(json_t *in, const char *path, const char *names, struct serve_error *e);

/* Refuse fields that would change the answer and are not served, unless their value is neutral. */
bool serve_field_refuse(const json_t *in, bool chat, struct serve_error *e);

#endif
