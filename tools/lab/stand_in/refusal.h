/* refusal.h - the error replies of each real server. Sources: recorded exchanges with llama.cpp,
 * and the source code of vLLM and SGLang. */
#ifndef TOOLS_LAB_STAND_IN_REFUSAL_H
#define TOOLS_LAB_STAND_IN_REFUSAL_H

#include <jansson.h>
#include <stddef.h>

#include "net/cloud.h"

struct err;

/* Why a request is refused. */
enum stand_in_wrong {
    WRONG_NOTHING,
    WRONG_JSON,    /* the body is not JSON */
    WRONG_TYPE,    /* a field has the wrong type */
    WRONG_VALUE,   /* a value is not supported */
    WRONG_KEYWORD, /* SGLang: an unknown sampling parameter */
    WRONG_LENGTH,  /* the text exceeds the context */
    WRONG_MODEL,
    WRONG_KEY,
    WRONG_PATH,
    WRONG_METHOD,
    WRONG_SIZE,     /* the body is too large */
    WRONG_ENCODING, /* the Content-Encoding is unknown */
    WRONG_BUSY,     /* the queue is full */
    WRONG_STOPPING,
    WRONG_MEMORY
};

struct stand_in_refusal {
    enum cloud_api server; /* in whose words; never CLOUD_AUTO */
    enum stand_in_wrong what;
    size_t n, context; /* for WRONG_LENGTH */
    char why[512];     /* one line */
};

/* Set no->what and format no->why. Returns what, so that callers can return it at once. */
enum stand_in_wrong stand_in_refusal_set(struct stand_in_refusal *no, enum stand_in_wrong what,
                                         const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Set why a question has no answer when it ended with this code and error. */
void stand_in_refusal_of(struct stand_in_refusal *no, int code, const struct err *err);

struct stand_in_answer {
    unsigned status;
    json_t *json;      /* released by the caller */
    const char *plain; /* text/plain instead of JSON; static */
};

/* Return the reply. If there is no memory, both .json and .plain are NULL. */
struct stand_in_answer stand_in_refusal_answer(const char *path, const struct stand_in_refusal *no);
/* Return the reply with any status, as sent by something in front of the model. */
struct stand_in_answer stand_in_refusal_status(enum cloud_api server, unsigned status,
                                               const char *why);

#endif
