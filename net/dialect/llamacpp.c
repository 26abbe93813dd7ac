/* llamacpp.c - POST /completion of llama.cpp's server: prompt as ids, return_tokens.
 *
 * The server's command line (--repeat-penalty, --mirostat, ...) sets the defaults of every request,
 * so whatever would disturb greedy decoding is switched off: "samplers" names the only one that
 * runs, and what older servers apply outside of that list is sent with its neutral value. */
#include <stdio.h>

#include "kernels/sys/base.h"
#include "kernels/sys/buf.h"
#include "net/dialect/dialect.h"
#include "net/http/json_input.h"

static bool llamacpp_request(struct buf *out, const struct ask *a)
{
    char count[40];
    snprintf(count, sizeof(count), ",\"n_predict\":%zu", a->want);
    return buf_str(out, "{\"prompt\":") && buf_ids(out, a->ids, a->n) && buf_str(out, count) &&
           buf_str(out, ",\"temperature\":0,\"top_k\":1,\"top_p\":1,\"min_p\":0,"
                        "\"repeat_penalty\":1,\"mirostat\":0,\"samplers\":[\"top_k\"],"
                        "\"ignore_eos\":false,\"cache_prompt\":true,\"return_tokens\":true") &&
           buf_str(out, a->stream ? ",\"stream\":true}" : "}");
}

/* ERR_TEXT when the prompt was truncated: older servers drop its middle and answer anyway. */
static int check_whole(const json_t *root, const struct ask *a, struct err *err)
{
    const json_t *read = json_object_get(root, "tokens_evaluated");
    if (json_is_true(json_object_get(root, "truncated")) && json_is_integer(read) &&
        (uint64_t)json_integer_value(read) != a->n)
        return err_set(err, ERR_TEXT, "the server has read %lld of %zu tokens: its context is full",
                       (long long)json_integer_value(read), a->n);
    return OK;
}

static int llamacpp_read(struct reply *io, const json_t *root, const struct ask *a, struct err *err)
{
    const json_t *ids = json_object_get(root, "tokens");
    if (!ids && json_string_length(json_object_get(root, "content")))
        return dialect_text_alone("it does not know return_tokens", err);
    int rc = check_whole(root, a, err);
    size_t made = json_input_count(json_object_get(root, "tokens_predicted"));
    if (rc == OK && ids)
        rc = dialect_ids(io, ids, made, "tokens", a, err);
    io->ended = io->ended || json_is_true(json_object_get(root, "stop"));
    return rc;
}

const struct dialect dialect_llamacpp = {
    .api = CLOUD_LLAMACPP,
    .path = "/completion",
    .request = llamacpp_request,
    .read = llamacpp_read,
};
