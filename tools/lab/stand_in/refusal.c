/* refusal.c - the error replies of each real server. Sources: recorded exchanges with llama.cpp,
 * and the source code of vLLM and SGLang. */
#include <stdio.h>
#include <string.h>

#include "tools/lab/stand_in/stand_in_internal.h"

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
static const char *refusal_name(enum cloud_api server, unsigned status)
{
    bool openai = server == CLOUD_OPENAI;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (names[i].status == status)
            return openai ? names[i].openai : names[i].llamacpp;
    if (status < 500)
        return openai ? "BadRequestError" : "invalid_request_error";
    return openai ? "InternalServerError" : "server_error";
}

/* Return SGLang's create_error_response. */
static json_t *refusal_sglang(unsigned status, const char *type, const char *why)
{
    return json_pack("{s:s,s:s,s:s,s:n,s:i}", "object", "error", "message", why, "type", type,
                     "param", "code", (int)status);
}

/* Return vLLM's ErrorResponse. */
static json_t *refusal_openai(unsigned status, const char *type, const char *param, const char *why)
{
    return json_pack("{s:{s:s,s:s,s:s?,s:i}}", "error", "message", why, "type", type, "param",
                     param, "code", (int)status);
}

/* Return the reply with any status, as sent by something in front of the model. */
static json_t *refusal_status(enum cloud_api server, unsigned status, const char *param,
                              const char *why)
{
    char number[12];
    snprintf(number, sizeof(number), "%u", status);
    if (server != CLOUD_LLAMACPP && status == 401)
        return json_pack("{s:s}", "error", "Unauthorized");
    if (server == CLOUD_SGLANG)
        return refusal_sglang(status, number, why);
    if (server == CLOUD_OPENAI)
        return refusal_openai(status, refusal_name(server, status), param, why);
    return json_pack("{s:{s:i,s:s,s:s}}", "error", "code", (int)status, "message",
                     status == 401 ? "Invalid API Key" : why, "type", refusal_name(server, status));
}

bool stand_in_refusal_print(struct buf *out, enum cloud_api server, unsigned status,
                            const char *why)
{
    return serve_routes_print(out, refusal_status(server, status, NULL, why));
}

/* True if the error has this code. */
static bool refusal_is(const struct serve_error *e, const char *code)
{
    return strcmp(e->code, code) == 0;
}

/* Return llama.cpp's reply. It never sends 405. */
static json_t *refusal_llamacpp(struct serve_exchange *x, const struct serve_error *e,
                                unsigned *status)
{
    char why[sizeof(e->why) + 40];
    bool route = !x->route && (e->status == 404 || e->status == 405);
    bool json = refusal_is(e, "invalid_body") ||
                (refusal_is(e, "invalid_json") && strncmp(e->why, "the body", 8) == 0);
    snprintf(why, sizeof(why), "%s%s", json ? "[json.exception.parse_error.101] " : "",
             route ? "File Not Found" : e->why);
    *status = json ? 500 : route ? 404 : e->status;
    if (refusal_is(e, "context_length_exceeded"))
        return json_pack("{s:{s:i,s:s,s:s,s:I,s:I}}", "error", "code", 400, "message", e->why,
                         "type", "exceed_context_size_error", "n_prompt_tokens",
                         (json_int_t)(x->ask.nprompts ? x->ask.prompts[0].n : 0), "n_ctx",
                         (json_int_t)x->s->context);
    return refusal_status(CLOUD_LLAMACPP, *status, NULL, why);
}

/* Return the reply of SGLang or vLLM. */
static json_t *refusal_python(const struct serve_exchange *x, const struct serve_error *e,
                              enum cloud_api server, unsigned *status)
{
    bool body = e->status == 415 || refusal_is(e, "invalid_json") || refusal_is(e, "invalid_body");
    bool v1 = strncmp(server_path(x->r), "/v1/", 4) == 0, sglang = server == CLOUD_SGLANG;
    if (!x->route && (e->status == 404 || e->status == 405)) /* by the web framework */
        return json_pack("{s:s}", "detail", e->status == 404 ? "Not Found" : "Method Not Allowed");
    *status = body ? 400 : e->status;
    if (body || (sglang && refusal_is(e, "invalid_type")))
        return sglang ? refusal_sglang(400, "Bad Request", e->why)
                      : refusal_openai(400, "Bad Request", NULL, e->why);
    if (sglang && e->status == 400)
        return v1 ? refusal_sglang(400, "BadRequestError", e->why)
                  : json_pack("{s:{s:s}}", "error", "message", e->why);
    return refusal_status(server, *status, e->param[0] ? e->param : NULL, e->why);
}

void stand_in_refuse(struct serve_exchange *x, const struct serve_error *e)
{
    enum cloud_api server = stand_in_dialect(x);
    unsigned status = e->status;
    struct buf text = { 0 };
    const char *const allow[][2] = { { "Allow", e->param }, { NULL, NULL } };
    if (refusal_is(e, "unknown_parameter") && status == 500) { /* SGLang's TypeError */
        if (buf_str(&text, e->why))
            serve_routes_send(x, 500, "text/plain; charset=utf-8", &text, NULL);
        buf_free(&text);
        return;
    }
    json_t *json = server == CLOUD_LLAMACPP ? refusal_llamacpp(x, e, &status)
                                            : refusal_python(x, e, server, &status);
    /* SGLang sends status 200 before it checks the question, so its error is an event. */
    bool event = server == CLOUD_SGLANG && x->ask.stream && status == 400 &&
                 !refusal_is(e, "invalid_type") && x->in;
    bool begun = !event || buf_str(&text, "data: ");
    if (serve_routes_print(&text, json) && begun &&
        (!event || buf_str(&text, "\n\ndata: [DONE]\n\n")))
        serve_routes_send(x, event ? 200 : status, event ? "text/event-stream" : "application/json",
                          &text, status == 405 ? allow : NULL);
    buf_free(&text);
}
