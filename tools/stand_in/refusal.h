/* refusal.h - how each real server says no. Forms: recorded exchanges of llama.cpp, and the
 * sources of vLLM and SGLang. */
#ifndef TOOLS_STAND_IN_REFUSAL_H
#define TOOLS_STAND_IN_REFUSAL_H

#include <jansson.h>
#include <stddef.h>

/* Which server is played. ALL: the path decides (stand_in_server). */
enum stand_in_server { STAND_IN_ALL, STAND_IN_OPENAI, STAND_IN_SGLANG, STAND_IN_LLAMACPP };

enum stand_in_wrong {
    WRONG_NOTHING,
    WRONG_JSON,    /* the body is no JSON */
    WRONG_TYPE,    /* a field of the wrong type */
    WRONG_VALUE,   /* refused */
    WRONG_KEYWORD, /* SGLang: an unknown sampling parameter */
    WRONG_LENGTH,  /* beyond the context */
    WRONG_MODEL,
    WRONG_KEY,
    WRONG_PATH,
    WRONG_METHOD,
    WRONG_SIZE,     /* the body is too large */
    WRONG_ENCODING, /* Content-Encoding is not known */
    WRONG_BUSY,     /* the queue is full */
    WRONG_STOPPING,
    WRONG_MEMORY
};

struct stand_in_refusal {
    enum stand_in_wrong what;
    size_t n, context; /* WRONG_LENGTH */
    char why[512];     /* one line */
};

/* printf into no->why; returns what, so that callers can return it. */
enum stand_in_wrong stand_in_refusal_set(struct stand_in_refusal *no, enum stand_in_wrong what,
                                         const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

struct stand_in_answer {
    unsigned status;
    json_t *json;      /* the caller drops it */
    const char *plain; /* where it is not JSON: text/plain; static */
};

/* What server says (never STAND_IN_ALL). Without memory .json is NULL and .plain too. */
struct stand_in_answer stand_in_refusal_answer(enum stand_in_server server, const char *path,
                                               const struct stand_in_refusal *no);
/* The same for any status, where something in front of the model refuses. */
struct stand_in_answer stand_in_refusal_status(enum stand_in_server server, unsigned status,
                                               const char *why);

#endif
