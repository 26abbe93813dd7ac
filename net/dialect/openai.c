/* openai.c - POST /v1/completions as vLLM serves it: prompt as ids, return_token_ids. vLLM takes
 * missing values of temperature, top_p, top_k, min_p and repetition_penalty from the model's
 * generation_config.json, so all are sent. top_k 1 is greedy in every version; 0 and -1 have both
 * been refused by some.
 *
 * llama.cpp at this path and servers made from it (ik_llama.cpp) have the id of a token beside its
 * logprob. Others (SGLang at this path, generic ones) give text alone, which is used only when the
 * caller can cut it into ids again. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "kernels/sys/buf.h"
#include "net/dialect/dialect.h"
#include "net/http/json_input.h"

static bool openai_request(struct buf *out, const struct ask *a, const struct buf *list)
{
    char count[48];
    snprintf(count, sizeof(count), ",\"max_tokens\":%zu", a->want);
    if (a->model && !(buf_str(out, "{\"model\":") && buf_str(out, a->model)))
        return false;
    return buf_str(out, a->model ? ",\"prompt\":" : "{\"prompt\":") &&
           buf_add(out, list->p, list->n) && buf_str(out, count) &&
           buf_str(out, ",\"temperature\":0,\"top_p\":1,\"top_k\":1,\"min_p\":0,"
                        "\"repetition_penalty\":1,\"return_token_ids\":true") &&
           buf_str(out, a->encode ? ",\"skip_special_tokens\":false" : "") &&
           /* what llamacpp.c sends, as the server's command line sets the defaults here, too */
           buf_str(out, a->logprobs ? ",\"logprobs\":1,\"repeat_penalty\":1,\"mirostat\":0,"
                                      "\"samplers\":[\"top_k\"],\"ignore_eos\":false,"
                                      "\"cache_prompt\":true"
                                    : "") &&
           buf_str(out, a->stream ? ",\"stream\":true}" : "}");
}

static const char no_ids[] =
    "choices[0].token_ids is missing although return_token_ids was asked for";

/* Read a reply without ids: cut its text and take the first token. Text that is empty or ends
 * inside a character gives no token, unless the server names the token at which it stopped. */
static int from_text(struct reply *out, const json_t *choice, const struct ask *a, struct err *err)
{
    const json_t *text = json_object_get(choice, "text");
    const char *p = json_string_value(text);
    size_t len = json_string_length(text), n = 0;
    uint32_t *ids = NULL, id;
    if (!len && json_input_id(&id, json_object_get(choice, "matched_stop"), a->vocab)) {
        *out = (struct reply){ .ids = { id }, .n = 1, .ended = true };
        return OK;
    }
    if (!len)
        return err_set(err, ERR_NET, "choices[0].text: expected one token, found none");
    if (len >= 3 && memcmp(p + len - 3, "\xef\xbf\xbd", 3) == 0)
        return err_set(err, ERR_NET, "choices[0].text: the token is a part of a character");
    int rc = a->encode(a->encode_arg, &ids, &n, p, len, err);
    if (rc == OK && (!n || ids[0] >= a->vocab))
        rc = err_set(err, ERR_NET, "choices[0].text: cannot be cut into tokens");
    else if (rc == OK)
        *out = (struct reply){ .ids = { ids[0] }, .n = 1, .ended = true };
    free(ids);
    return rc;
}

/* Read the id beside a token's logprob. A token that ends inside a character may have none there.
 */
static int from_logprobs(struct reply *out, const json_t *root, const json_t *choice,
                         const struct ask *a, struct err *err)
{
    const json_t *content = json_object_get(json_object_get(choice, "logprobs"), "content");
    const json_t *id = json_object_get(json_array_get(content, 0), "id");
    size_t n = json_array_size(content);
    size_t got = json_input_count(json_object_get(json_object_get(root, "usage"), "prompt_tokens"));
    if (got && got < a->n) /* older servers drop its middle and answer anyway */
        return err_set(err, ERR_TEXT, "the server has read %zu of %zu tokens: its context is full",
                       got, a->n);
    *out = (struct reply){ .n = 1, .ended = true };
    if (n == 1 && json_input_id(&out->ids[0], id, a->vocab))
        return OK;
    return err_set(
        err, ERR_NET,
        "choices[0].logprobs.content: expected one token with an id below %zu, found %zu", a->vocab,
        n);
}

static int openai_reply(struct reply *out, const json_t *root, const struct ask *a, struct err *err)
{
    const json_t *choice;
    int rc = dialect_choice(&choice, root, err);
    if (rc == OK)
        rc = dialect_reason(json_object_get(choice, "finish_reason"), err);
    if (rc)
        return rc;
    if (a->logprobs)
        return from_logprobs(out, root, choice, a, err);
    const json_t *ids = json_object_get(choice, "token_ids");
    if ((!ids || json_is_null(ids)) && json_is_string(json_object_get(choice, "text")))
        return a->encode ? from_text(out, choice, a, err) : dialect_text_alone(no_ids, err);
    const json_t *made = json_object_get(json_object_get(root, "usage"), "completion_tokens");
    return dialect_ids(out, ids, json_input_count(made), "choices[0].token_ids", a, err);
}

static int openai_event(struct reply *io, const json_t *root, const struct ask *a, struct err *err)
{
    const json_t *choices = json_object_get(root, "choices"), *choice;
    if (json_is_array(choices) && !json_array_size(choices)) /* the usage event at the end */
        return OK;
    int rc = dialect_choice(&choice, root, err);
    if (rc || !choice)
        return rc;
    const json_t *reason = json_object_get(choice, "finish_reason");
    const json_t *ids = json_object_get(choice, "token_ids");
    rc = dialect_reason(reason, err);
    if (rc == OK && ids && !json_is_null(ids))
        rc = dialect_append(io, ids, "choices[0].token_ids", a, err);
    else if (rc == OK && json_string_length(json_object_get(choice, "text")))
        rc = dialect_text_alone(no_ids, err);
    io->ended = io->ended || json_is_string(reason);
    return rc;
}

const struct dialect dialect_openai = {
    .api = CLOUD_OPENAI,
    .path = "/v1/completions",
    .request = openai_request,
    .reply = openai_reply,
    .event = openai_event,
};
