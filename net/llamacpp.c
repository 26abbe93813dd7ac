/* llamacpp.c - POST /completion of llama.cpp's server: prompt as ids, return_tokens.
 *
 * What the server was started with (--repeat-penalty, --mirostat, ...) is the default of every
 * request, so each sampler that would bend greedy is switched off by name. */
#include "kernels/base.h"
#include "net/buf.h"
#include "net/dialect.h"
#include "net/jsonin.h"

static bool llamacpp_request(struct buf *out, const struct ask *a)
{
    return buf_str(out, "{\"prompt\":") && buf_ids(out, a->ids, a->n) &&
           buf_str(out, ",\"n_predict\":1,\"temperature\":0,\"top_k\":1,\"top_p\":1,\"min_p\":0,"
                        "\"typical_p\":1,\"repeat_penalty\":1,\"presence_penalty\":0,"
                        "\"frequency_penalty\":0,\"dry_multiplier\":0,\"xtc_probability\":0,"
                        "\"mirostat\":0,\"dynatemp_range\":0,\"ignore_eos\":false,\"stream\":false,"
                        "\"cache_prompt\":true,\"return_tokens\":true}");
}

static int llamacpp_reply(uint32_t *out, const json_t *root, const struct ask *a, struct err *err)
{
    const json_t *ids = json_object_get(root, "tokens");
    if (!ids && json_is_string(json_object_get(root, "content")))
        return err_set(err, ERR_REMOTE,
                       "the server answers in text without token ids (it does not know "
                       "return_tokens); it cannot be used");
    /* Older servers drop the middle of a prompt that is too long and answer all the same. */
    const json_t *read = json_object_get(root, "tokens_evaluated");
    if (json_is_true(json_object_get(root, "truncated")) && json_is_integer(read) &&
        (uint64_t)json_integer_value(read) != a->n)
        return err_set(err, ERR_REMOTE,
                       "the server has read %lld of %zu tokens: its context is full",
                       (long long)json_integer_value(read), a->n);
    json_int_t made = json_integer_value(json_object_get(root, "tokens_predicted"));
    return dialect_one_id(out, ids, made > 0 ? (size_t)made : 0, "tokens", a, err);
}

const struct dialect dialect_llamacpp = {
    .api = CLOUD_LLAMACPP,
    .path = "/completion",
    .request = llamacpp_request,
    .reply = llamacpp_reply,
};
