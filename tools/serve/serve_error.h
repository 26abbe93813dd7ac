/* serve_error.h - why a request is refused, as clients of OpenAI's API are told. */
#ifndef TOOLS_SERVE_SERVE_ERROR_H
#define TOOLS_SERVE_SERVE_ERROR_H

#include <jansson.h>
#include <stdbool.h>

struct err;

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

#endif
