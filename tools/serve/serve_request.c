#include "tools/serve/serve_request.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/sys/buf.h"
#include "net/http/json_input.h"
#include "router/decode/stops.h"
#include "router/router.h"
#include "tools/serve/serve_choice.h"
#include "tools/serve/serve_field.h"
#include "tools/serve/serve_exchange.h"

enum {
    USUAL_MAX = 16, /* tokens of a raw completion, as OpenAI has it */
    TEMPERATURE_MAX = 100
};

/* Find out who is asked to write. Whoever names the large model alone does not want the small one
 * in its place, because the cloud is gone or held back, or the name is mistyped. */
static bool serve_request_model(struct serve_ask *a, const struct serve *s, const json_t *in,
                                struct serve_error *e)
{
    const json_t *v = serve_field_get(in, "model");
    const char *name = json_string_value(v);
    char own[SERVE_NAME + 8];
    a->wish.model = TEXT_ROUTED;
    if (v && !name)
        return serve_field_wrong(e, "model", "a name", v);
    for (int m = TEXT_ROUTED; name && m <= TEXT_CLOUD; m++) {
        serve_info_name(own, s, (enum text_model)m);
        if (strcmp(name, own) != 0)
            continue;
        a->wish.model = (enum text_model)m;
        a->wish.required = a->wish.alone = m == TEXT_CLOUD;
        if (m == TEXT_CLOUD && !routing_port(&s->routing))
            return serve_error_set(e, 400, "no_cloud", "model", "model %s: there is no cloud", own);
        return true;
    }
    const char *end = name ? strrchr(name, ':') : NULL;
    if (end && (strcmp(end, ":cloud") == 0 || strcmp(end, ":edge") == 0))
        return serve_error_set(e, 404, "model_not_found", "model", "model %s: not served here",
                               name);
    return true;
}

/* Read what the small model's tokens are drawn with. */
static bool serve_request_sampling(struct serve_ask *a, const json_t *in, struct serve_error *e)
{
    struct sample_params *p = &a->wish.sample;
    json_int_t top_k = 0, n = 1, seed = 1;
    *p = (struct sample_params){ .top_p = 1, .repeat_penalty = 1 };
    if (!serve_field_number(&p->temp, in, "temperature", 0, false, TEMPERATURE_MAX, e) ||
        !serve_field_number(&p->top_p, in, "top_p", 0, false, 1, e) ||
        !serve_field_number(&p->min_p, in, "min_p", 0, false, 1, e) ||
        !serve_field_number(&p->repeat_penalty, in, "repetition_penalty", 0, true, 100, e) ||
        !serve_field_count(&top_k, in, "top_k", -1, INT64_MAX, e) ||
        !serve_field_count(&n, in, "n", 1, SERVE_CHOICES, e) ||
        !serve_field_count(&seed, in, "seed", INT64_MIN, INT64_MAX, e))
        return false;
    p->top_k = top_k > 0 ? (size_t)top_k : 0;
    a->n = (size_t)n;
    p->seed = (uint64_t)seed;
    a->draws = !serve_field_get(in, "seed") && p->temp > 0;
    return true;
}

/* Read what is added to the small model's logits. The cloud cannot be told. */
static bool serve_request_bias(struct serve_ask *a, const struct serve *s, const json_t *in,
                               struct serve_error *e)
{
    const char *key;
    json_t *all, *v;
    size_t n = 0;
    if (!serve_field_object(&all, in, "logit_bias", e))
        return false;
    if (json_object_size(all) && a->wish.model == TEXT_CLOUD)
        return serve_error_set(e, 400, "unsupported_parameter", "logit_bias",
                               "logit_bias: not served with the large model alone");
    if (json_object_size(all) > SERVE_BIASES)
        return serve_error_set(e, 400, "invalid_value", "logit_bias",
                               "logit_bias: expected at most %d ids, found %zu", SERVE_BIASES,
                               json_object_size(all));
    json_object_foreach(all, key, v)
    {
        char *end = NULL;
        unsigned long long id = *key >= '0' && *key <= '9' ? strtoull(key, &end, 10) : 0;
        double add = json_number_value(v);
        if (!end || *end || id >= s->vocab)
            return serve_error_set(e, 400, "invalid_value", "logit_bias",
                                   "logit_bias: expected ids below %zu, found \"%.20s\"", s->vocab,
                                   key);
        if (!json_is_number(v) || !(add >= -100 && add <= 100))
            return serve_field_wrong(e, "logit_bias", "numbers from -100 to 100", v);
        a->bias[n++] = (struct sample_bias){ (uint32_t)id, (float)add };
    }
    a->wish.sample.bias = a->bias;
    a->wish.sample.nbias = n;
    return true;
}

/* Read the texts and ids that end an answer. */
static bool serve_request_stops(struct serve_ask *a, const struct serve *s, const json_t *in,
                                struct serve_error *e)
{
    json_t *v = serve_field_get(in, "stop"), *ids = serve_field_get(in, "stop_token_ids");
    size_t n = json_is_array(v) ? json_array_size(v) : 0, kept = 0;
    if (v && !json_is_string(v) && !json_is_array(v))
        return serve_field_wrong(e, "stop", "a text or a list of texts", v);
    if (n > SERVE_STOPS)
        return serve_error_set(e, 400, "invalid_value", "stop",
                               "stop: expected at most %d texts, found %zu", SERVE_STOPS, n);
    for (size_t i = 0; i < (json_is_array(v) ? n : v != NULL); i++) {
        const json_t *one = json_is_array(v) ? json_array_get(v, i) : v;
        size_t len = json_string_length(one);
        if (!json_is_string(one))
            return serve_field_wrong(e, "stop", "texts", one);
        if (len > STOPS_MAX || strlen(json_string_value(one)) != len)
            return serve_error_set(
                e, 400, "invalid_value", "stop",
                "stop: expected texts of at most %d bytes without NUL, found %zu", STOPS_MAX, len);
        if (len) /* clients send "" for none */
            a->stops[kept++] = json_string_value(one);
    }
    a->stop = json_incref(v);
    a->wish.stops = kept ? a->stops : NULL;
    if (ids && !json_is_array(ids))
        return serve_field_wrong(e, "stop_token_ids", "a list of ids", ids);
    n = json_array_size(ids);
    if (n > SERVE_STOP_IDS)
        return serve_error_set(e, 400, "invalid_value", "stop_token_ids",
                               "stop_token_ids: expected at most %d ids, found %zu", SERVE_STOP_IDS,
                               n);
    for (size_t i = 0; i < n; i++)
        if (!json_input_id(&a->stop_ids[i], json_array_get(ids, i), s->vocab))
            return serve_field_wrong(e, "stop_token_ids", "ids of this model",
                                     json_array_get(ids, i));
    a->wish.stop_ids = a->stop_ids;
    a->wish.nstop_ids = n;
    return serve_field_flag(&a->wish.ignore_eos, in, "ignore_eos", e);
}

/* Read how long the answer may be; max_completion_tokens is the newer name. */
static bool serve_request_max(struct serve_ask *a, const json_t *in, struct serve_error *e)
{
    bool newer = serve_field_get(in, "max_completion_tokens") != NULL;
    const char *name = newer ? "max_completion_tokens" : "max_tokens";
    bool scores = a->echo && a->logprobs;
    const json_int_t none = -2;
    json_int_t max = none; /* -1: as many as fit */
    if (!serve_field_count(&max, in, name, -1, INT64_MAX, e))
        return false;
    if (!max && !a->echo)
        return serve_field_wrong(e, name, "-1 or a number above 0", serve_field_get(in, name));
    if (scores && max != none && max != 0 && max != 1)
        return serve_error_set(e, 400, "invalid_value", name,
                               "%s: expected 0 or 1 with echo and logprobs, found %lld", name,
                               (long long)max);
    a->max = max >= 0                 ? (size_t)max
             : a->chat || max != none ? SIZE_MAX
             : scores                 ? 0
                                      : (size_t)USUAL_MAX;
    a->wish.score = scores || !a->max;
    return true;
}

/* Read which logprobs are wanted: a number, or in a chat a flag and a number. */
static bool serve_request_logprobs(struct serve_ask *a, const json_t *in, struct serve_error *e)
{
    json_int_t top = -1;
    const json_t *v = serve_field_get(in, "logprobs");
    if (a->chat) {
        if (!serve_field_flag(&a->logprobs, in, "logprobs", e) ||
            !serve_field_count(&top, in, "top_logprobs", 0, TEXTS_TOP, e))
            return false;
        if (top > 0 && !a->logprobs)
            return serve_error_set(e, 400, "invalid_value", "top_logprobs",
                                   "top_logprobs: expected logprobs to be true with it");
    } else if (!json_is_false(v)) {
        if (!serve_field_count(&top, in, "logprobs", 0, TEXTS_TOP, e))
            return false;
        a->logprobs = top >= 0;
    }
    a->top = top > 0 ? (size_t)top : 0;
    return true;
}

/* Read mizzle.private: a pattern or a list of them. */
static bool serve_request_private(struct serve_ask *a, const json_t *m, struct serve_error *e)
{
    json_t *v = serve_field_get(m, "private");
    struct buf lines = { 0 };
    size_t n = json_is_array(v) ? json_array_size(v) : v != NULL;
    bool fine = true;
    for (size_t i = 0; i < n && fine; i++) {
        const json_t *one = json_is_array(v) ? json_array_get(v, i) : v;
        if (!json_is_string(one) || strlen(json_string_value(one)) != json_string_length(one))
            return serve_field_wrong(e, "mizzle.private", "a pattern or a list of patterns", one);
        const char *p = json_string_value(one);
        p += strspn(p, " \t\r\n");
        if (*p == '#' || !*p || strpbrk(p, "\r\n")) /* a file of patterns would ignore it */
            return serve_field_wrong(e, "mizzle.private",
                                     "patterns of one line that do not begin with #", one);
        fine = buf_str(&lines, json_string_value(one)) && buf_str(&lines, "\n");
        a->patterns = lines.p; /* freed with *a */
    }
    fine = fine && (!n || buf_add(&lines, "", 1));
    a->patterns = lines.p;
    a->wish.patterns = lines.p;
    return fine || serve_error_of(e, ERR_NOMEM, NULL);
}

/* Read mizzle.trace. */
static bool serve_request_trace(struct serve_ask *a, const json_t *m, struct serve_error *e)
{
    json_t *trace;
    json_int_t top = 0;
    if (!serve_field_object(&trace, m, "trace", e))
        return serve_field_inside(e, "mizzle");
    if (!serve_field_only(trace, "mizzle.trace", "top, events", e))
        return false;
    if (!serve_field_count(&top, trace, "top", 0, TEXTS_TOP, e) ||
        !serve_field_flag(&a->events, trace, "events", e))
        return serve_field_inside(e, "mizzle.trace");
    a->trace = trace != NULL;
    a->trace_top = (size_t)top;
    return true;
}

/* Read mizzle.policy. */
static bool serve_request_policy(struct serve_ask *a, const struct serve *s, const json_t *m,
                                 struct serve_error *e)
{
    const json_t *v = serve_field_get(m, "policy");
    const struct router *router = s->routing.router;
    enum policy p;
    if (!v)
        return true;
    struct err why;
    if (!json_is_string(v) || !policy_parse(&p, json_string_value(v)) || p == POLICY_POSITION)
        return serve_field_wrong(e, "mizzle.policy", "one of the policies in /mizzle/info", v);
    if (policy_check(p, router, &why) != OK)
        return serve_error_set(e, 400, "invalid_value", "mizzle.policy", "mizzle.policy: %s",
                               why.msg);
    /* A threshold is for the scores of one policy: another one has the router's, or 0.5, as run. */
    if (p != s->routing.how.policy && !serve_field_get(m, "threshold") &&
        (!policy_reads_network(p) || !router_threshold(router, &a->routing.threshold)))
        a->routing.threshold = 0.5f;
    a->routing.policy = p;
    return true;
}

enum policy serve_ask_policy(const struct serve_ask *a)
{
    if (a->wish.score || a->wish.model == TEXT_EDGE)
        return POLICY_NEVER;
    return a->wish.model == TEXT_CLOUD ? POLICY_ALWAYS : a->routing.policy;
}

/* Read mizzle.cloud: whether a failure of the cloud matters, or it is not to be asked. */
static bool serve_request_cloud(struct serve_ask *a, const json_t *m, struct serve_error *e)
{
    const json_t *v = serve_field_get(m, "cloud");
    const char *mode = json_string_value(v);
    if (!v || (mode && strcmp(mode, "auto") == 0))
        return true;
    if (mode && strcmp(mode, "required") == 0) {
        a->wish.required = true;
        return true;
    }
    if (!mode || strcmp(mode, "off") != 0)
        return serve_field_wrong(e, "mizzle.cloud", "auto, required or off", v);
    if (a->wish.model == TEXT_CLOUD)
        return serve_field_wrong(e, "mizzle.cloud", "auto or required with this model", v);
    a->wish.model = TEXT_EDGE;
    return true;
}

/* Read the object "mizzle". A name that is not known is refused: someone who writes "privat" must
 * not find out later that nothing was kept from the cloud. */
static bool serve_request_mizzle(struct serve_ask *a, const struct serve *s, const json_t *in,
                                 struct serve_error *e)
{
    json_t *m;
    json_int_t ahead = (json_int_t)a->routing.ahead, most = -1;
    if (!serve_field_object(&m, in, "mizzle", e) ||
        !serve_field_only(m, "mizzle",
                          "policy, threshold, ahead, max_cloud_tokens, cloud, private, trace", e))
        return false;
    if (!serve_field_number(&a->routing.threshold, m, "threshold", 0, false, 1, e) ||
        !serve_field_count(&ahead, m, "ahead", 0, ahead, e) ||
        !serve_field_count(&most, m, "max_cloud_tokens", 0, INT64_MAX, e))
        return serve_field_inside(e, "mizzle");
    a->routing.ahead = ahead > 0;
    a->routing.max_cloud_tokens = most >= 0 ? (uint64_t)most : UINT64_MAX;
    if (!serve_request_trace(a, m, e) || !serve_request_policy(a, s, m, e))
        return false;
    const struct routing *own = &s->routing;
    bool other = a->routing.policy != own->how.policy ||
                 a->routing.threshold < own->how.threshold ||
                 a->routing.threshold > own->how.threshold;
    if (other && own->holds_router) /* the share is that of the server's threshold */
        a->routing.max_routed = 0;
    return serve_request_cloud(a, m, e) && serve_request_private(a, m, e);
}

/* Read how the answer is sent. */
static bool serve_request_form(struct serve_ask *a, const json_t *in, struct serve_error *e)
{
    bool skip = true;
    json_t *o;
    if (!serve_field_flag(&a->stream, in, "stream", e) ||
        !serve_field_object(&o, in, "stream_options", e) ||
        !serve_field_flag(&a->usage, o, "include_usage", e) ||
        !serve_field_flag(&a->return_ids, in, "return_token_ids", e) ||
        !serve_field_flag(&skip, in, "skip_special_tokens", e) ||
        (!a->chat && !serve_field_flag(&a->echo, in, "echo", e)))
        return false;
    a->specials = !skip;
    return true;
}

/* Refuse prompts that do not fit. */
static bool serve_request_fits(const struct serve_ask *a, const struct serve *s,
                               struct serve_error *e)
{
    for (size_t i = 0; i < a->nprompts; i++)
        if (a->prompts[i].n > s->context)
            return serve_error_set(e, 400, "context_length_exceeded",
                                   a->chat ? "messages" : "prompt",
                                   "This model's maximum context length is %zu tokens. However, "
                                   "your prompt has %zu tokens.",
                                   s->context, a->prompts[i].n);
    return true;
}

bool serve_request_read(struct serve_ask *a, const struct serve *s, const json_t *in, bool chat,
                        struct serve_error *e)
{
    a->chat = chat;
    a->n = 1;
    a->routing = texts_routing(s->texts);
    a->wish.slot = -1;
    if (!json_is_object(in))
        return serve_error_set(e, 400, "invalid_json", NULL,
                               "expected a JSON object as the body, found %s", json_input_type(in));
    if (!serve_request_model(a, s, in, e) || !serve_field_refuse(in, chat, e) ||
        !serve_request_form(a, in, e) || !serve_request_logprobs(a, in, e) ||
        !serve_request_max(a, in, e) || !serve_request_sampling(a, in, e) ||
        !serve_request_bias(a, s, in, e) || !serve_request_stops(a, s, in, e) ||
        !serve_request_mizzle(a, s, in, e))
        return false;
    bool fine = chat ? serve_prompt_chat(a, s, in, e)
                     : serve_prompt_read(a, s, json_object_get(in, "prompt"), e);
    if (!fine || !serve_request_fits(a, s, e))
        return false;
    a->plain = s->o.face->plain;
    a->wish.logprobs = (a->logprobs || a->trace_top) && !(a->wish.score && !a->max);
    a->wish.top = a->top > a->trace_top ? a->top : a->trace_top;
    a->wish.edges = a->trace && a->trace_top;
    a->wish.events = a->events;
    a->wish.routing = &a->routing;
    return true;
}

double serve_request_memory(const struct serve_ask *a, const struct serve *s)
{
    enum { TOKEN = 256, SCORE = 64, TOP = 48, TOP_OBJECT = 112 /* with JSON's own words */ };
    double sum = (double)(a->nprompts * sizeof(struct serve_choice)),
           top = (double)a->wish.top * (a->chat || a->trace ? TOP_OBJECT : TOP);
    if (a->nprompts * a->n == 1 && !a->wish.score)
        return 0;
    for (size_t i = 0; i < a->nprompts; i++) {
        size_t n = a->prompts[i].n, room = s->context - n + 1;
        sum += (double)(a->max < room ? a->max : room) * (TOKEN + top);
        sum += a->wish.score ? (double)n * (SCORE + top) : 0;
    }
    return sum * (double)a->n;
}

void serve_request_free(struct serve_ask *a)
{
    for (size_t i = 0; i < a->nprompts; i++)
        free(a->prompts[i].ids);
    free(a->prompts);
    free(a->patterns);
    json_decref(a->stop);
    *a = (struct serve_ask){ .nprompts = 0 };
}
