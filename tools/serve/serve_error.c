#include "tools/serve/serve_error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "net/http/json_input.h"

bool serve_error_set(struct serve_error *e, unsigned status, const char *code, const char *param,
                     const char *fmt, ...)
{
    char line[1024];
    va_list args;
    va_start(args, fmt);
    vsnprintf(line, sizeof(line), fmt, args);
    va_end(args);
    e->status = status;
    e->code = code;
    snprintf(e->param, sizeof(e->param), "%s", param ? param : "");
    json_input_line(e->why, sizeof(e->why), line, strlen(line));
    return false;
}

bool serve_error_of(struct serve_error *e, int rc, const char *why)
{
    switch (rc) {
    case ERR_ARG:
    case ERR_FORMAT:
        return serve_error_set(e, 400, "invalid_value", NULL, "%s", why);
    case ERR_STOP:
        return serve_error_set(e, 503, "stopping", NULL, "the server is stopping");
    case ERR_NET:
    case ERR_REMOTE:
    case ERR_TEXT:
        return serve_error_set(e, 502, "cloud_failed", NULL,
                               "the cloud is required and does not help: %s", why);
    default:
        return serve_error_set(e, 500, "out_of_memory", NULL, "%s",
                               why && *why ? why : "out of memory");
    }
}

/* Return the type that goes with a status; clients choose their error class by the status. */
static const char *serve_error_type(unsigned status)
{
    switch (status) {
    case 401:
        return "authentication_error";
    case 403:
        return "permission_error";
    case 404:
        return "not_found_error";
    case 408:
        return "timeout_error";
    case 503:
        return "service_unavailable_error";
    default:
        return status >= 500 ? "server_error" : "invalid_request_error";
    }
}

json_t *serve_error_json(const struct serve_error *e)
{
    return json_pack("{s:{s:s,s:s,s:s?,s:s}}", "error", "message", e->why, "type",
                     serve_error_type(e->status), "param", e->param[0] ? e->param : NULL, "code",
                     e->code);
}
