/* openai.c - POST /v1/completions as vLLM serves it: prompt as ids, return_token_ids. vLLM takes
 * missing values of temperature, top_p, top_k, min_p and repetition_penalty from the model's
 * generation_config.json, so all are sent. top_k 1 is greedy in every version; 0 and -1 have both
 * been refused by some.
 *
 * Other servers (SGLang and llama.cpp at this path, generic ones) give text alone, which is used
 * only when the caller can cut it into ids again. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "kernels/sys/buf.h"
#include "net/dialect/dialect.h"
#include "net/http/json_input.h"

static bool openai_request(struct buf *out, const struct ask *a)
{
    char count[48];
    snprintf(count, sizeof(count), ",\"max_tokens\":%zu", a->want);
    if (a->model && !(buf_str(out, "{\"model\":") && buf_str(out, a->model)))
        return false;
    return buf_str(out, a->model ? ",\"prompt\":" : "{\"prompt\":") && buf_ids(out, a->ids, a->n) &&
           buf_str(out, count) &&
           buf_str(out, ",\"temperature\":0,\"top_p\":1,\"top_k\":1,\"min_p\":0,"
                        "\"repetition_penalty\":1,\"return_token_ids\":true") &&
           buf_str(out, a->encode ? ",\"skip_special_tokens\":false" : "") &&
           buf_str(out, a->stream ? ",\"stream\":true}" : "}");
}

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

static int openai_read(struct reply *io, const json_t *root, const struct ask *a, struct err *err)
{
    const json_t *choices = json_object_get(root, "choices"), *choice;
    if (json_is_array(choices) && !json_array_size(choices)) /* the usage event at the end */
        return OK;
    int rc = dialect_choice(&choice, root, err);
    if (rc || !choice)
        return rc;
    const json_t *reason = json_object_get(choice, "finish_reason");
    const json_t *ids = json_object_get(choice, "token_ids");
    const json_t *made = json_object_get(json_object_get(root, "usage"), "completion_tokens");
    const json_t *text = json_object_get(choice, "text");
    /* Other events of a stream may each count their own ids alone. */
    bool whole = !a->stream || (!io->n && json_is_string(reason));
    rc = dialect_reason(reason, err);
    if (rc == OK && ids && !json_is_null(ids))
        rc = dialect_ids(io, ids, whole ? json_input_count(made) : 0, "choices[0].token_ids", a,
                         err);
    else if (rc == OK && a->encode && json_is_string(text))
        rc = from_text(io, choice, a, err);
    else if (rc == OK && json_is_string(text) && (!a->stream || json_string_length(text)))
        rc = dialect_text_alone("choices[0].token_ids is missing although it was asked for", err);
    io->ended = io->ended || json_is_string(reason);
    return rc;
}

const struct dialect dialect_openai = {
    .api = CLOUD_OPENAI,
    .path = "/v1/completions",
    .request = openai_request,
    .read = openai_read,
};
