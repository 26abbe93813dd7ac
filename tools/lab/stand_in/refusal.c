#include "tools/lab/stand_in/refusal.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "kernels/sys/base.h"

/* The name that each server gives a status. */
static const struct {
    unsigned status;
    const char *openai, *llamacpp;
} names[] = {
    { 400, "BadRequestError", "invalid_request_error" },
    { 401, "AuthenticationError", "authentication_error" },
    { 403, "PermissionDeniedError", "permission_error" },
    { 404, "NotFoundError", "not_found_error" },
    { 429, "RateLimitError", "rate_limit_error" },
    { 503, "ServiceUnavailableError", "unavailable_error" },
};

/* Return the name for a status; unlisted ones get that of their class. */
static const char *name_of(enum cloud_api server, unsigned status)
{
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (names[i].status == status)
            return server == CLOUD_OPENAI ? names[i].openai : names[i].llamacpp;
    if (server == CLOUD_OPENAI)
        return status < 500 ? "BadRequestError" : "InternalServerError";
    return status < 500 ? "invalid_request_error" : "server_error";
}

enum stand_in_wrong stand_in_refusal_set(struct stand_in_refusal *no, enum stand_in_wrong what,
                                         const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    vsnprintf(no->why, sizeof(no->why), fmt, args);
    va_end(args);
    no->what = what;
    return what;
}

void stand_in_refusal_of(struct stand_in_refusal *no, int code, const struct err *err)
{
    no->what = WRONG_MEMORY;
    if (code == ERR_NET)
        stand_in_refusal_set(no, WRONG_BUSY, "%s", err->msg);
    if (code == ERR_STOP)
        stand_in_refusal_set(no, WRONG_STOPPING, "the server is stopping");
}

static struct stand_in_answer stand_in_refusal_reply(unsigned status, json_t *json)
{
    return (struct stand_in_answer){ .status = status, .json = json };
}

/* Return vLLM's ErrorResponse. */
static struct stand_in_answer stand_in_refusal_openai(unsigned status, const char *type,
                                                      const char *param, const char *why)
{
    return stand_in_refusal_reply(status,
                                  json_pack("{s:{s:s,s:s,s:s?,s:i}}", "error", "message", why,
                                            "type", type, "param", param, "code", (int)status));
}

/* Return the ORJSONResponse of SGLang's create_error_response. */
static struct stand_in_answer stand_in_refusal_sglang(unsigned status, const char *type,
                                                      const char *why)
{
    return stand_in_refusal_reply(status,
                                  json_pack("{s:s,s:s,s:s,s:n,s:i}", "object", "error", "message",
                                            why, "type", type, "param", "code", (int)status));
}

/* Return llama.cpp's error object. */
static struct stand_in_answer llamacpp(unsigned status, const char *type, const char *why)
{
    return stand_in_refusal_reply(status, json_pack("{s:{s:i,s:s,s:s}}", "error", "code",
                                                    (int)status, "message", why, "type", type));
}

struct stand_in_answer stand_in_refusal_status(enum cloud_api server, unsigned status,
                                               const char *why)
{
    char number[12];
    snprintf(number, sizeof(number), "%u", status);
    if (server != CLOUD_LLAMACPP && status == 401)
        return stand_in_refusal_reply(401, json_pack("{s:s}", "error", "Unauthorized"));
    if (server == CLOUD_SGLANG)
        return stand_in_refusal_sglang(status, number, why);
    if (server == CLOUD_OPENAI)
        return stand_in_refusal_openai(status, name_of(server, status), NULL, why);
    return llamacpp(status, name_of(server, status), why);
}

/* Return what the web framework replies before the server's own code runs. */
static struct stand_in_answer no_route(enum cloud_api server, unsigned status, const char *detail)
{
    if (server == CLOUD_LLAMACPP) /* it never sends 405 */
        return stand_in_refusal_status(server, 404, "File Not Found");
    return stand_in_refusal_reply(status, json_pack("{s:s}", "detail", detail));
}

/* Return the reply to a body that cannot be read. */
static struct stand_in_answer bad_body(const struct stand_in_refusal *no)
{
    if (no->server == CLOUD_SGLANG)
        return stand_in_refusal_sglang(400, "Bad Request", no->why);
    if (no->server == CLOUD_OPENAI)
        return stand_in_refusal_openai(400, "Bad Request", NULL, no->why);
    return llamacpp(no->what == WRONG_JSON ? 500 : 400,
                    no->what == WRONG_JSON ? "server_error" : "invalid_request_error", no->why);
}

/* Return the reply to a valid request that is refused. */
static struct stand_in_answer refused(const char *path, const struct stand_in_refusal *no)
{
    enum cloud_api server = no->server;
    if (server == CLOUD_SGLANG && strncmp(path, "/v1/", 4) == 0)
        return stand_in_refusal_sglang(400, "BadRequestError", no->why);
    if (server == CLOUD_SGLANG)
        return stand_in_refusal_reply(400, json_pack("{s:{s:s}}", "error", "message", no->why));
    if (server == CLOUD_LLAMACPP && no->what == WRONG_LENGTH)
        return stand_in_refusal_reply(
            400, json_pack("{s:{s:i,s:s,s:s,s:I,s:I}}", "error", "code", 400, "message", no->why,
                           "type", "exceed_context_size_error", "n_prompt_tokens",
                           (json_int_t)no->n, "n_ctx", (json_int_t)no->context));
    return stand_in_refusal_status(server, 400, no->why);
}

struct stand_in_answer stand_in_refusal_answer(const char *path, const struct stand_in_refusal *no)
{
    enum cloud_api server = no->server;
    switch (no->what) {
    case WRONG_JSON:
    case WRONG_TYPE:
        return bad_body(no);
    case WRONG_VALUE:
    case WRONG_LENGTH:
        return refused(path, no);
    case WRONG_KEYWORD:
        return (struct stand_in_answer){ .status = 500, .plain = "Internal Server Error" };
    case WRONG_MODEL:
        return stand_in_refusal_openai(404, "NotFoundError", "model", no->why);
    case WRONG_KEY:
        return stand_in_refusal_status(server, 401, "Invalid API Key");
    case WRONG_PATH:
        return no_route(server, 404, "Not Found");
    case WRONG_METHOD:
        return no_route(server, 405, "Method Not Allowed");
    case WRONG_SIZE:
        return stand_in_refusal_status(server, 413, no->why);
    case WRONG_ENCODING:
        return stand_in_refusal_status(server, 415, no->why);
    case WRONG_BUSY:
    case WRONG_STOPPING:
        return stand_in_refusal_status(server, 503, no->why);
    case WRONG_NOTHING:
    case WRONG_MEMORY:
        break;
    }
    return stand_in_refusal_status(server, 500, "out of memory");
}
