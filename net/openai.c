/* openai.c - POST /v1/completions as vLLM serves it: prompt as ids, return_token_ids.
 *
 * vLLM fills every sampling field that is left out from the model's generation_config.json, so all
 * of them are sent. top_k 1 is greedy in every version; 0 and -1 have both been refused by some. */
#include <string.h>

#include "kernels/base.h"
#include "net/buf.h"
#include "net/dialect.h"
#include "net/jsonin.h"

static bool openai_request(struct buf *out, const struct ask *a)
{
    if (!buf_str(out, "{"))
        return false;
    if (a->model && !(buf_str(out, "\"model\":") && buf_str(out, a->model) && buf_str(out, ",")))
        return false;
    return buf_str(out, "\"prompt\":") && buf_ids(out, a->ids, a->n) &&
           buf_str(out, ",\"max_tokens\":1,\"temperature\":0,\"top_p\":1,\"top_k\":1,\"min_p\":0,"
                        "\"repetition_penalty\":1,\"presence_penalty\":0,\"frequency_penalty\":0,"
                        "\"n\":1,\"stream\":false,\"return_token_ids\":true}");
}

static int openai_reply(uint32_t *out, const json_t *root, const struct ask *a, struct err *err)
{
    const json_t *choices = json_object_get(root, "choices");
    const json_t *choice = json_array_get(choices, 0);
    if (json_array_size(choices) != 1 || !json_is_object(choice))
        return err_set(err, ERR_NET, "choices: expected a list of one, found %s of %zu",
                       jsonin_type(choices), json_array_size(choices));
    const char *finish = json_string_value(json_object_get(choice, "finish_reason"));
    if (finish && strcmp(finish, "stop") != 0 && strcmp(finish, "length") != 0) {
        char line[40];
        jsonin_line(line, sizeof(line), finish, strlen(finish));
        return err_set(err, ERR_NET, "the server ended the request: finish_reason \"%s\"", line);
    }
    const json_t *ids = json_object_get(choice, "token_ids");
    if ((!ids || json_is_null(ids)) && json_is_string(json_object_get(choice, "text")))
        return err_set(err, ERR_REMOTE,
                       "the server answers in text without token ids (choices[0].token_ids is "
                       "missing although return_token_ids was asked for); it cannot be used");
    json_int_t made =
        json_integer_value(json_object_get(json_object_get(root, "usage"), "completion_tokens"));
    return dialect_one_id(out, ids, made > 0 ? (size_t)made : 0, "choices[0].token_ids", a, err);
}

const struct dialect dialect_openai = {
    .api = CLOUD_OPENAI,
    .path = "/v1/completions",
    .request = openai_request,
    .reply = openai_reply,
};
