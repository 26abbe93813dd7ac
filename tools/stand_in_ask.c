#include <stdlib.h>
#include <string.h>

#include "kernels/base.h"
#include "model/tokenizer.h"
#include "net/jsonin.h"
#include "tools/stand_in_ask.h"
#include "tools/stand_in_engine.h"

/* Numbers that must be left out or have this value: anything else is not greedy, or not served. */
static const struct {
    const char *name;
    double only;
} fixed[] = {
    { "temperature", 0 },       { "repetition_penalty", 1 },
    { "repeat_penalty", 1 },    { "presence_penalty", 0 },
    { "frequency_penalty", 0 }, { "n", 1 },
    { "best_of", 1 },           { "n_probs", 0 },
    { "min_tokens", 0 },        { "dry_multiplier", 0 },
    { "xtc_probability", 0 },   { "mirostat", 0 },
    { "dynatemp_range", 0 },
};

/* Fields that must be left out, null, false or empty. */
static const char *const unserved[] = {
    "stream",          "echo",
    "logprobs",        "prompt_logprobs",
    "logit_bias",      "stop",
    "stop_token_ids",  "suffix",
    "grammar",         "json_schema",
    "bad_words",       "allowed_token_ids",
    "response_fields", "structured_outputs",
};

/* Cut down a distribution; with temperature 0 they change nothing, but must be numbers. */
static const char *const numbers[] = { "top_p", "top_k", "min_p", "typical_p", "seed" };

static bool empty(const json_t *v)
{
    return !v || json_is_null(v) || json_is_false(v) ||
           (json_is_string(v) && !json_string_length(v)) ||
           (json_is_array(v) && !json_array_size(v)) || (json_is_object(v) && !json_object_size(v));
}

static int check_sampling(const json_t *in, struct err *err)
{
    for (size_t i = 0; i < sizeof(fixed) / sizeof(fixed[0]); i++) {
        const json_t *v = json_object_get(in, fixed[i].name);
        if (!v || json_is_null(v))
            continue;
        if (!json_is_number(v))
            return err_set(err, ERR_ARG, "%s: expected a number, found %s", fixed[i].name,
                           jsonin_type(v));
        if (json_number_value(v) != fixed[i].only)
            return err_set(err, ERR_ARG, "%s: this server is greedy: expected %g, found %g",
                           fixed[i].name, fixed[i].only, json_number_value(v));
    }
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        const json_t *v = json_object_get(in, numbers[i]);
        if (v && !json_is_null(v) && !json_is_number(v))
            return err_set(err, ERR_ARG, "%s: expected a number, found %s", numbers[i],
                           jsonin_type(v));
    }
    for (size_t i = 0; i < sizeof(unserved) / sizeof(unserved[0]); i++)
        if (!empty(json_object_get(in, unserved[i])))
            return err_set(err, ERR_ARG, "%s: not served here", unserved[i]);
    return OK;
}

int stand_in_ask_ids(uint32_t **ids, size_t *n, const json_t *list, size_t vocab, struct err *err)
{
    *ids = NULL;
    *n = json_array_size(list);
    if (!*n)
        return err_set(err, ERR_ARG, "prompt must not be empty");
    *ids = calloc(*n, sizeof(**ids));
    if (!*ids)
        return err_set(err, ERR_NOMEM, "out of memory");
    for (size_t i = 0; i < *n; i++) {
        const json_t *v = json_array_get(list, i);
        if (jsonin_id(&(*ids)[i], v, vocab))
            continue;
        free(*ids);
        *ids = NULL;
        if (json_is_integer(v))
            return err_set(err, ERR_ARG, "Token id %lld is out of vocabulary (0 to %zu)",
                           (long long)json_integer_value(v), vocab - 1);
        return err_set(err, ERR_ARG, "prompt[%zu]: expected a token id, found %s", i,
                       jsonin_type(v));
    }
    return OK;
}

static int read_prompt(struct stand_in_ask *out, const struct stand_in_engine *e,
                       const json_t *prompt, struct err *err)
{
    if (!prompt)
        return err_set(err, ERR_ARG, "key 'prompt' not found");
    const json_t *first = json_array_get(prompt, 0);
    if (json_is_array(first) || json_is_string(first)) { /* a batch of one */
        if (json_array_size(prompt) != 1)
            return err_set(err, ERR_ARG, "prompt: one prompt a request, found %zu",
                           json_array_size(prompt));
        prompt = first;
    }
    if (json_is_array(prompt))
        return stand_in_ask_ids(&out->ids, &out->n, prompt, stand_in_engine_vocab(e), err);
    if (!json_is_string(prompt))
        return err_set(err, ERR_ARG, "prompt: expected a string or a list of tokens, found %s",
                       jsonin_type(prompt));
    int rc = tokenizer_encode(stand_in_engine_tokenizer(e), &out->ids, &out->n,
                              json_string_value(prompt), json_string_length(prompt), true, err);
    if (rc)
        out->ids = NULL;
    return rc || out->n ? rc : err_set(err, ERR_ARG, "prompt must not be empty");
}

static int read_flag(bool *out, const json_t *in, const char *name, struct err *err)
{
    const json_t *v = json_object_get(in, name);
    *out = json_is_true(v);
    if (!v || json_is_boolean(v) || json_is_null(v))
        return OK;
    return err_set(err, ERR_ARG, "%s: expected true or false, found %s", name, jsonin_type(v));
}

int stand_in_ask_read(struct stand_in_ask *out, const struct stand_in_engine *e, const json_t *in,
                      const char *limit, json_int_t fallback, const char *ids_field,
                      struct err *err)
{
    *out = (struct stand_in_ask){ .max = fallback };
    if (!json_is_object(in))
        return err_set(err, ERR_ARG, "body: expected an object, found %s", jsonin_type(in));
    const json_t *max = json_object_get(in, limit);
    if (max && !json_is_null(max)) {
        if (!json_is_integer(max))
            return err_set(err, ERR_ARG, "%s: expected a whole number, found %s", limit,
                           jsonin_type(max));
        out->max = json_integer_value(max);
    }
    int rc = check_sampling(in, err);
    if (rc == OK)
        rc = read_flag(&out->return_ids, in, ids_field, err);
    if (rc == OK)
        rc = read_flag(&out->go_on, in, "ignore_eos", err);
    if (rc == OK)
        rc = read_prompt(out, e, json_object_get(in, "prompt"), err);
    if (rc) {
        free(out->ids);
        out->ids = NULL;
    }
    return rc;
}
