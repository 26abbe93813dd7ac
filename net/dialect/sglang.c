/* sglang.c - POST /generate of SGLang: input_ids up, output_ids down.
 *
 * Only known sampling parameters may be sent: an unknown one is a Python TypeError and status 500.
 * meta_info.completion_tokens says how many ids at the end of output_ids are new. The rest may be
 * the end of the prompt (sgl-project/sglang issue 17240) or, in a stream, earlier tokens: ids are
 * cumulative there unless the server was started with --stream-output or
 * --incremental-streaming-output. End-of-text is an id like any other, and when one token is
 * requested, its finish_reason is "length". */
#include <stdio.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "kernels/sys/buf.h"
#include "net/dialect/dialect.h"
#include "net/http/json_input.h"

static bool sglang_request(struct buf *out, const struct ask *a)
{
    char count[64];
    snprintf(count, sizeof(count), ",\"sampling_params\":{\"max_new_tokens\":%zu", a->want);
    return buf_str(out, "{\"input_ids\":") && buf_ids(out, a->ids, a->n) && buf_str(out, count) &&
           buf_str(out, ",\"temperature\":0,\"top_p\":1,\"top_k\":1,\"min_p\":0,"
                        "\"repetition_penalty\":1}") &&
           buf_str(out, a->stream ? ",\"stream\":true}" : "}");
}

/* Set *ended when the reply has a finish_reason. ERR_NET when the server gave up. */
static int check_reason(const json_t *meta, bool *ended, struct err *err)
{
    const json_t *reason = json_object_get(meta, "finish_reason");
    const char *type = json_string_value(json_object_get(reason, "type"));
    char line[120];
    *ended = type != NULL;
    if (!type || strcmp(type, "abort") != 0)
        return dialect_reason(json_object_get(reason, "type"), err);
    const json_t *words = json_object_get(reason, "message");
    json_input_line(line, sizeof(line), json_string_value(words), json_string_length(words));
    return err_set(err, ERR_NET, "the server ended the request: abort%s%s", *line ? ": " : "",
                   line);
}

static int sglang_read(struct reply *io, const json_t *root, const struct ask *a, struct err *err)
{
    const json_t *meta = json_object_get(root, "meta_info");
    const json_t *ids = json_object_get(root, "output_ids");
    size_t made = json_input_count(json_object_get(meta, "completion_tokens"));
    bool ended;
    int rc = check_reason(meta, &ended, err);
    if (rc == OK && !ids && json_is_string(json_object_get(root, "text")))
        rc = dialect_text_alone("output_ids is missing", err);
    if (rc == OK && io->n && !made)
        ended = true; /* cumulative or not? It does not say, so the first ids are all we take */
    else if (rc == OK)
        rc = dialect_ids(io, ids, made, "output_ids", a, err);
    io->ended = io->ended || ended;
    return rc;
}

const struct dialect dialect_sglang = {
    .api = CLOUD_SGLANG,
    .path = "/generate",
    .request = sglang_request,
    .read = sglang_read,
};
