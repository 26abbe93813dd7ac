#include "tools/serve/serve_field.h"

#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "kernels/sys/text.h"
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
        return serve_error_set(e, 503, "out_of_memory", NULL, "%s",
                               why && *why ? why : "out of memory");
    }
}

/* Return the type that goes with a status; clients choose their error class by the status. */
static const char *serve_error_type(unsigned status)
{
    return status == 401   ? "authentication_error"
           : status == 403 ? "permission_error"
           : status == 404 ? "not_found_error"
           : status == 408 ? "timeout_error"
           : status == 503 ? "service_unavailable_error"
           : status >= 500 ? "server_error"
                           : "invalid_request_error";
}

json_t *serve_error_json(const struct serve_error *e)
{
    return json_pack("{s:{s:s,s:s,s:s?,s:s}}", "error", "message", e->why, "type",
                     serve_error_type(e->status), "param", e->param[0] ? e->param : NULL, "code",
                     e->code);
}

json_t *serve_field_get(const json_t *in, const char *name)
{
    json_t *v = json_object_get(in, name);
    return json_is_null(v) ? NULL : v;
}

bool serve_field_wrong(struct serve_error *e, const char *param, const char *expected,
                       const json_t *found)
{
    char shown[60] = "";
    if (json_is_integer(found))
        snprintf(shown, sizeof(shown), "%lld", (long long)json_integer_value(found));
    else if (json_is_real(found))
        snprintf(shown, sizeof(shown), "%g", json_real_value(found));
    else if (json_is_string(found))
        json_input_line(shown, sizeof(shown), json_string_value(found), json_string_length(found));
    const char *quote = json_is_string(found) ? "\"" : "";
    return serve_error_set(e, 400, "invalid_value", param, "%s: expected %s, found %s%s%s", param,
                           expected, quote, shown[0] || *quote ? shown : json_input_type(found),
                           quote);
}

bool serve_field_flag(bool *out, const json_t *in, const char *name, struct serve_error *e)
{
    const json_t *v = serve_field_get(in, name);
    if (v && !json_is_boolean(v))
        return serve_field_wrong(e, name, "true or false", v);
    *out = v ? json_is_true(v) : *out;
    return true;
}

bool serve_field_count(json_int_t *out, const json_t *in, const char *name, json_int_t least,
                       json_int_t most, struct serve_error *e)
{
    const json_t *v = serve_field_get(in, name);
    double x = json_number_value(v); /* some clients write 16.0 */
    bool real = json_is_real(v) && fabs(x) < 0x1p53;
    json_int_t n = real ? (json_int_t)x : json_integer_value(v);
    char range[80];
    if (!v)
        return true;
    if (json_is_number(v) && (double)n == x && n >= least && n <= most) {
        *out = n;
        return true;
    }
    if (least == INT64_MIN)
        snprintf(range, sizeof(range), "a whole number of 64 bits with a sign");
    else if (most == INT64_MAX)
        snprintf(range, sizeof(range), "a whole number from %lld", (long long)least);
    else
        snprintf(range, sizeof(range), "a whole number from %lld to %lld", (long long)least,
                 (long long)most);
    return serve_field_wrong(e, name, range, v);
}

bool serve_field_number(float *out, const json_t *in, const char *name, double least, bool above,
                        double most, struct serve_error *e)
{
    const json_t *v = serve_field_get(in, name);
    double x = json_number_value(v);
    char range[80];
    if (!v)
        return true;
    if (json_is_number(v) && x >= least && x <= most && !(above && (double)(float)x <= least)) {
        *out = (float)x;
        return true;
    }
    snprintf(range, sizeof(range), "a number %s %g to %g", above ? "above" : "from", least, most);
    return serve_field_wrong(e, name, range, v);
}

bool serve_field_object(json_t **out, const json_t *in, const char *name, struct serve_error *e)
{
    json_t *v = serve_field_get(in, name);
    if (v && !json_is_object(v))
        return serve_field_wrong(e, name, "an object", v);
    *out = v;
    return true;
}

bool serve_field_only(json_t *in, const char *path, const char *names, struct serve_error *e)
{
    const char *name;
    json_t *v;
    json_object_foreach(in, name, v)
    {
        char shown[40], param[SERVE_PARAM];
        if (text_among(name, names))
            continue;
        json_input_line(shown, sizeof(shown), name, strlen(name));
        snprintf(param, sizeof(param), "%s.%s", path, shown);
        return serve_error_set(e, 400, "unknown_parameter", param, "%s: expected %s, found %s",
                               path, names, shown);
    }
    return true;
}

bool serve_field_inside(struct serve_error *e, const char *object)
{
    char param[SERVE_PARAM];
    snprintf(param, sizeof(param), "%s.%.60s", object, e->param);
    memcpy(e->param, param, sizeof(param));
    return false;
}

enum { BOTH, CHAT, RAW };

/* What is not served. NaN: no number is neutral. */
static const struct {
    const char *names;
    float number;     /* a neutral value besides null, false, "", [] and {} */
    const char *word; /* another, or NULL */
    int where;
} unserved[] = {
    { "tools, functions, suffix, audio, prediction, web_search_options, prompt_logprobs, "
      "prompt_embeds, truncate_prompt_tokens, use_beam_search, bad_words, allowed_token_ids, "
      "logits_processors, include_stop_str_in_output, guided_json, guided_regex, guided_choice, "
      "guided_grammar, structured_outputs, structural_tag, grammar, json_schema, regex, ebnf, "
      "stop_regex, return_logprob",
      NAN, NULL, BOTH },
    { "presence_penalty, frequency_penalty, min_tokens, min_new_tokens, mirostat, dry_multiplier, "
      "xtc_probability, dynatemp_range, n_probs",
      0, NULL, BOTH },
    { "best_of, repeat_penalty, length_penalty, typical_p, tfs_z", 1, NULL, BOTH },
    { "tool_choice, function_call", NAN, "none", BOTH },
    { "response_format, modalities", NAN, "text", BOTH },
    { "echo, prompt, continue_final_message, chat_template, documents", NAN, NULL, CHAT },
    { "messages", NAN, NULL, RAW },
};

/* True for a value that changes nothing. */
static bool serve_field_neutral(const json_t *v, float number, const char *word)
{
    const json_t *kind = json_object_get(v, "type");
    if (json_is_string(kind))
        v = kind; /* {"type":"text"} */
    else if (json_array_size(v) == 1 && word)
        v = json_array_get(v, 0);
    if (json_is_string(v))
        return !json_string_length(v) || (word && strcmp(json_string_value(v), word) == 0);
    if (json_is_number(v))
        return json_number_value(v) == (double)number;
    return json_is_false(v) || (json_is_array(v) && !json_array_size(v)) ||
           (json_is_object(v) && !json_object_size(v));
}

bool serve_field_refuse(const json_t *in, bool chat, struct serve_error *e)
{
    const char *name;
    json_t *v;
    bool tools = json_array_size(json_object_get(in, "tools")) > 0;
    json_object_foreach((json_t *)(size_t)in, name, v)
    {
        size_t i = 0, n = sizeof(unserved) / sizeof(unserved[0]);
        while (i < n &&
               (unserved[i].where == (chat ? RAW : CHAT) || !text_among(name, unserved[i].names)))
            i++;
        if (i == n || json_is_null(v) ||
            serve_field_neutral(v, unserved[i].number, unserved[i].word) ||
            (!tools && json_is_string(v) && strcmp(name, "tool_choice") == 0 &&
             strcmp(json_string_value(v), "auto") == 0))
            continue;
        return serve_error_set(e, 400, "unsupported_parameter", name, "%s: not served here", name);
    }
    if (chat && json_is_false(json_object_get(in, "add_generation_prompt")))
        return serve_error_set(e, 400, "unsupported_parameter", "add_generation_prompt",
                               "add_generation_prompt: false is not served here");
    return true;
}
