/* serve_field.h - reads fields of a request, and says why one is refused, as clients of OpenAI's
 * API are told. A field that is missing or null leaves *out alone; one of another type or out of
 * range sets *e, with the field as its param, and gives false. */
#ifndef TOOLS_SERVE_SERVE_FIELD_H
#define TOOLS_SERVE_SERVE_FIELD_H

#include <jansson.h>
#include <stdbool.h>

enum { SERVE_PARAM = 80 }; /* bytes of a field's path, such as "messages[3].content[0].type" */

struct serve_error {
    unsigned status;         /* of the reply; 0: there is no error */
    const char *code;        /* for programs; static */
    char param[SERVE_PARAM]; /* the field that is wrong, or "" */
    char why[400];           /* one line for people */
};

/* Set *e and return false, so that callers can return it at once. param may be NULL. */
bool serve_error_set(struct serve_error *e, unsigned status, const char *code, const char *param,
                     const char *fmt, ...) __attribute__((format(printf, 5, 6)));
/* Set *e to what texts_ask or a text has ended with, and return false. */
bool serve_error_of(struct serve_error *e, int rc, const char *why);
/* Return {"error":{message,type,param,code}}, or NULL without memory. */
json_t *serve_error_json(const struct serve_error *e);

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

/* Put the object that a wrong field is in before its name. Returns false. */
bool serve_field_inside(struct serve_error *e, const char *object);

/* Refuse fields that would change the answer and are not served, unless their value is neutral. */
bool serve_field_refuse(const json_t *in, bool chat, struct serve_error *e);

#endif
