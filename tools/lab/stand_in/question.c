#include "tools/lab/stand_in/question.h"

#include <stdlib.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "kernels/sys/text.h"
#include "model/text/tokenizer.h"
#include "net/http/json_input.h"
#include "tools/lab/stand_in/source.h"

/* Numbers that must be missing or have this value; any other is not greedy or not supported. */
static const struct {
    const char *name;
    double only;
} fixed[] = {
    { "temperature", 0 },
    { "repetition_penalty", 1 },
    { "repeat_penalty", 1 },
    { "presence_penalty", 0 },
    { "n", 1 },
    { "frequency_penalty", 0 },
    { "best_of", 1 },
    { "n_probs", 0 },
    { "min_tokens", 0 },
    { "min_new_tokens", 0 },
    { "xtc_probability", 0 },
    { "dry_multiplier", 0 },
    { "dynatemp_range", 0 },
    { "mirostat", 0 },
    { "top_logprobs_num", 0 },
};

/* Fields that must be missing, null, false or empty. */
static const char *const unserved[] = {
    "echo",
    "logprobs",
    "prompt_logprobs",
    "return_logprob",
    "logit_bias",
    "stop",
    "stop_token_ids",
    "stop_regex",
    "suffix",
    "grammar",
    "json_schema",
    "regex",
    "ebnf",
    "bad_words",
    "allowed_token_ids",
    "response_fields",
    "session_params",
    "structured_outputs",
    "structural_tag",
};

/* Fields that narrow a distribution. With temperature 0 they change nothing, but must be
 * numbers. */
static const char *const numbers[] = { "top_p", "top_k", "min_p", "typical_p", "seed" };

/* Fields of SGLang's SamplingParams; any other name is a TypeError there. */
static const char keywords[] =
    "max_new_tokens, stop, stop_token_ids, stop_regex, temperature, top_p, top_k, min_p, "
    "frequency_penalty, presence_penalty, repetition_penalty, min_new_tokens, n, "
    "json_schema, regex, ebnf, structural_tag, ignore_eos, skip_special_tokens, "
    "spaces_between_special_tokens, no_stop_trim, custom_params, stream_interval, "
    "logit_bias, sampling_seed";

/* True for a value that means the same as a missing field. */
static bool stand_in_question_empty(const json_t *v)
{
    return !v || json_is_null(v) || json_is_false(v) ||
           (json_is_string(v) && !json_string_length(v)) ||
           (json_is_array(v) && !json_array_size(v)) || (json_is_object(v) && !json_object_size(v));
}

enum stand_in_wrong stand_in_question_mistyped(struct stand_in_refusal *no, const char *field,
                                               const char *want, const json_t *found)
{
    if (no->server == CLOUD_OPENAI)
        return stand_in_refusal_set(no, WRONG_TYPE,
                                    "[{'type': '%s_type', 'loc': ('body', '%s'), 'msg': 'Input "
                                    "should be a valid %s'}]",
                                    want, field, want);
    if (no->server == CLOUD_SGLANG)
        return stand_in_refusal_set(
            no, WRONG_TYPE,
            "1 validation error for Request body -> %s: value is not a valid "
            "%s (type=type_error.%s)",
            field, want, want);
    const char *type = json_input_type(found), *word = strchr(type, ' '); /* "a string" */
    return stand_in_refusal_set(
        no, WRONG_TYPE, "Field '%s': [json.exception.type_error.302] type must be %s, but is %s",
        field, want, word ? word + 1 : type);
}

/* Refuse sampling settings that are not greedy or not supported. */
static enum stand_in_wrong check_sampling(const json_t *in, struct stand_in_refusal *no)
{
    for (size_t i = 0; i < sizeof(fixed) / sizeof(fixed[0]); i++) {
        const json_t *v = json_object_get(in, fixed[i].name);
        if (!v || json_is_null(v))
            continue;
        if (!json_is_number(v))
            return stand_in_question_mistyped(no, fixed[i].name, "number", v);
        if (json_number_value(v) != fixed[i].only)
            return stand_in_refusal_set(no, WRONG_VALUE,
                                        "%s: this server is greedy: expected %g, found %g",
                                        fixed[i].name, fixed[i].only, json_number_value(v));
    }
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        const json_t *v = json_object_get(in, numbers[i]);
        if (v && !json_is_null(v) && !json_is_number(v))
            return stand_in_question_mistyped(no, numbers[i], "number", v);
    }
    for (size_t i = 0; i < sizeof(unserved) / sizeof(unserved[0]); i++)
        if (!stand_in_question_empty(json_object_get(in, unserved[i])))
            return stand_in_refusal_set(no, WRONG_VALUE, "%s: not served here", unserved[i]);
    return WRONG_NOTHING;
}

/* Refuse an id beyond the vocabulary, in the words of the server. */
static enum stand_in_wrong unknown_id(struct stand_in_refusal *no, json_int_t id, size_t vocab)
{
    if (no->server == CLOUD_LLAMACPP)
        return stand_in_refusal_set(no, WRONG_VALUE, "Prompt contains invalid tokens");
    if (no->server == CLOUD_OPENAI)
        return stand_in_refusal_set(no, WRONG_VALUE, "Token id %lld is out of vocabulary",
                                    (long long)id);
    return stand_in_refusal_set(
        no, WRONG_VALUE, "The input_ids [%lld] contains values greater than the vocab size (%zu).",
        (long long)id, vocab);
}

/* Refuse an empty prompt, in the words of the server. */
static enum stand_in_wrong no_prompt(struct stand_in_refusal *no, enum stand_in_form form)
{
    return stand_in_refusal_set(no, WRONG_VALUE, "%s",
                                form == FORM_GENERATE ? "input_ids cannot be empty."
                                : no->server == CLOUD_LLAMACPP
                                    ? "\"prompt\" must not be empty"
                                    : "The decoder prompt cannot be empty");
}

/* Refuse a request of n prompt tokens and max new ones that exceeds the context. */
static enum stand_in_wrong too_long(struct stand_in_refusal *no, size_t n, size_t context,
                                    json_int_t max)
{
    no->n = n;
    no->context = context;
    if (no->server == CLOUD_LLAMACPP)
        return stand_in_refusal_set(no, WRONG_LENGTH,
                                    "request (%zu tokens) exceeds the available context size (%zu "
                                    "tokens), try increasing it",
                                    n, context);
    if (no->server == CLOUD_OPENAI)
        return stand_in_refusal_set(no, WRONG_LENGTH,
                                    "This model's maximum context length is %zu tokens. However, "
                                    "%zu tokens of prompt and %lld of completion were requested.",
                                    context, n, (long long)max);
    if (n >= context)
        return stand_in_refusal_set(no, WRONG_LENGTH,
                                    "The input (%zu tokens) is longer than the model's context "
                                    "length (%zu tokens).",
                                    n, context);
    return stand_in_refusal_set(no, WRONG_LENGTH,
                                "Requested token count exceeds the model's maximum context length "
                                "of %zu tokens: %zu tokens from the input and %lld for the "
                                "completion.",
                                context, n, (long long)max);
}

enum stand_in_wrong stand_in_question_ids(uint32_t **ids, size_t *n, const char *field,
                                          const json_t *list, size_t vocab, size_t most,
                                          struct stand_in_refusal *no)
{
    *ids = NULL;
    *n = json_array_size(list);
    if (!*n || *n > most)
        return WRONG_NOTHING; /* the caller reports the wrong length */
    *ids = calloc(*n, sizeof(**ids));
    if (!*ids)
        return no->what = WRONG_MEMORY;
    for (size_t i = 0; i < *n; i++) {
        const json_t *v = json_array_get(list, i);
        if (json_input_id(&(*ids)[i], v, vocab))
            continue;
        free(*ids);
        *ids = NULL;
        return json_is_integer(v) ? unknown_id(no, json_integer_value(v), vocab)
                                  : stand_in_question_mistyped(no, field, "integer", v);
    }
    return WRONG_NOTHING;
}

/* Read the prompt, which is a text, a list of ids, or a batch of one of either. */
static enum stand_in_wrong stand_in_question_read_prompt(struct stand_in_question *out,
                                                         const struct stand_in_source *s,
                                                         const char *field, const json_t *prompt,
                                                         struct stand_in_refusal *no)
{
    struct err err;
    size_t context = s->context;
    const json_t *first = json_array_get(prompt, 0);
    if (json_is_array(first) || json_is_string(first)) { /* a batch of one */
        if (json_array_size(prompt) != 1)
            return stand_in_refusal_set(no, WRONG_VALUE,
                                        "%s: expected one prompt per request, found %zu", field,
                                        json_array_size(prompt));
        prompt = first;
    }
    if (json_is_array(prompt)) {
        if (stand_in_question_ids(&out->ids, &out->n, field, prompt, s->vocab, context, no))
            return no->what;
    } else if (!json_is_string(prompt)) {
        if (no->server == CLOUD_LLAMACPP)
            return stand_in_refusal_set(
                no, WRONG_VALUE, "\"%s\" elements must be a string or a list of tokens", field);
        return stand_in_question_mistyped(no, field, "list", prompt);
    } else if (tokenizer_encode(s->tokenizer, &out->ids, &out->n, json_string_value(prompt),
                                json_string_length(prompt), true, &err)) {
        out->ids = NULL;
        return no->what = WRONG_MEMORY;
    }
    if (!out->n)
        return no_prompt(no, out->form);
    return out->n >= context ? too_long(no, out->n, context, 0) : WRONG_NOTHING;
}

/* Read a boolean; missing or null is false. */
static enum stand_in_wrong read_flag(bool *out, const json_t *in, const char *name,
                                     struct stand_in_refusal *no)
{
    const json_t *v = json_object_get(in, name);
    *out = json_is_true(v);
    if (!v || json_is_boolean(v) || json_is_null(v))
        return WRONG_NOTHING;
    return stand_in_question_mistyped(no, name, "boolean", v);
}

/* Read the number of tokens to generate from this field; `most` is the default. */
static enum stand_in_wrong read_max(struct stand_in_question *out, const json_t *in,
                                    const char *field, json_int_t most, size_t context,
                                    struct stand_in_refusal *no)
{
    const json_t *v = json_object_get(in, field);
    size_t room = context - out->n;
    if (v && !json_is_null(v)) {
        if (!json_is_integer(v))
            return stand_in_question_mistyped(no, field, "integer", v);
        most = json_integer_value(v);
    }
    if (no->server == CLOUD_LLAMACPP) { /* 0 still gives one token, as the original does */
        out->max = most < 0 || (uint64_t)most > room ? room : (size_t)most;
        out->max = out->max ? out->max : 1;
        return WRONG_NOTHING;
    }
    if (most < 1)
        return stand_in_refusal_set(no, WRONG_VALUE, "%s must be at least 1, got %lld.", field,
                                    (long long)most);
    if ((uint64_t)most > room)
        return too_long(no, out->n, context, most);
    out->max = (size_t)most;
    return WRONG_NOTHING;
}

/* Read a request to SGLang's /generate; *sampling becomes its sampling parameters. */
static enum stand_in_wrong read_generate(struct stand_in_question *out,
                                         const struct stand_in_source *s, const json_t *in,
                                         const json_t **sampling, struct stand_in_refusal *no)
{
    const json_t *text = json_object_get(in, "text"), *ids = json_object_get(in, "input_ids");
    const json_t *rid = json_object_get(in, "rid");
    const char *key;
    json_t *value;
    json_t *params = json_object_get(in, "sampling_params");
    *sampling = params;
    if (params && !json_is_null(params) && !json_is_object(params))
        return stand_in_question_mistyped(no, "sampling_params", "dict", params);
    if (json_is_string(rid))
        json_input_line(out->rid, sizeof(out->rid), json_string_value(rid),
                        json_string_length(rid));
    if (ids && !json_is_null(ids) && !json_is_array(ids))
        return stand_in_question_mistyped(no, "input_ids", "list", ids);
    bool by_ids = json_is_array(ids);
    if (!by_ids && !json_is_string(text))
        return stand_in_refusal_set(no, WRONG_VALUE,
                                    "Either text, input_ids or input_embeds should be provided.");
    json_object_foreach(params, key, value)
    {
        if (!text_among(key, keywords))
            return no->what = WRONG_KEYWORD;
    }
    return stand_in_question_read_prompt(out, s, by_ids ? "input_ids" : "text", by_ids ? ids : text,
                                         no);
}

/* Read a request to /v1/completions or llama.cpp's /completion. */
static enum stand_in_wrong read_completion(struct stand_in_question *out,
                                           const struct stand_in_source *s, const char *model,
                                           const json_t *in, struct stand_in_refusal *no)
{
    const json_t *prompt = json_object_get(in, "prompt"), *slot = json_object_get(in, "id_slot");
    const json_t *name = json_object_get(in, "model");
    if (model && json_is_string(name) && strcmp(json_string_value(name), model) != 0) {
        char shown[100];
        json_input_line(shown, sizeof(shown), json_string_value(name), json_string_length(name));
        return stand_in_refusal_set(no, WRONG_MODEL, "The model `%s` does not exist.", shown);
    }
    if (json_is_integer(slot) && out->form == FORM_COMPLETION)
        out->slot = (long)json_integer_value(slot);
    if (!prompt)
        return stand_in_refusal_set(
            no, WRONG_VALUE, "%s",
            no->server == CLOUD_LLAMACPP
                ? "[json.exception.out_of_range.403] key 'prompt' not found"
                : "Either prompt or prompt_embeds must be provided and non-empty.");
    return stand_in_question_read_prompt(out, s, "prompt", prompt, no);
}

enum stand_in_wrong stand_in_question_read(struct stand_in_question *out,
                                           const struct stand_in_source *s, enum stand_in_form form,
                                           const char *model, const json_t *in,
                                           struct stand_in_refusal *no)
{
    static const char *const limits[] = { "max_tokens", "max_tokens", "max_new_tokens",
                                          "n_predict" };
    static const json_int_t defaults[] = { 16, 16, 128, -1 };
    *out = (struct stand_in_question){ .form = form, .server = no->server, .slot = -1 };
    no->what = WRONG_NOTHING;
    if (!json_is_object(in))
        return stand_in_question_mistyped(no, "body", "object", in);
    const json_t *sampling = in;
    enum stand_in_wrong w = read_flag(&out->stream, in, "stream", no);
    if (!w && form == FORM_GENERATE)
        w = read_generate(out, s, in, &sampling, no);
    else if (!w)
        w = read_completion(out, s, model, in, no);
    if (!w)
        w = check_sampling(sampling, no);
    if (!w && form == FORM_GENERATE)
        w = check_sampling(in, no);
    if (!w)
        w = read_max(out, sampling, limits[form], defaults[form], s->context, no);
    if (!w)
        w = read_flag(&out->go_on, sampling, "ignore_eos", no);
    if (!w && form == FORM_VLLM)
        w = read_flag(&out->return_ids, in, "return_token_ids", no);
    if (!w && form == FORM_COMPLETION)
        w = read_flag(&out->return_ids, in, "return_tokens", no);
    if (!w && form != FORM_COMPLETION)
        w = read_flag(&out->usage, json_object_get(in, "stream_options"), "include_usage", no);
    if (w) {
        free(out->ids);
        out->ids = NULL;
    }
    return w;
}
