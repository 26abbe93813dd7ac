/* dialect.c - session 10: a dialect in the few lines of mini.c's page 11. It takes the place of
 * `dialect_llamacpp` in a copy of the program, so --cloud-api llamacpp chooses it. What it takes
 * for granted, servers do not keep. */
#include <stdio.h>

#include "kernels/sys/base.h"
#include "kernels/sys/buf.h"
#include "net/dialect/dialect.h"

static bool plain_request(struct buf *out, const struct ask *a)
{
    char count[64];
    snprintf(count, sizeof(count), ",\"max_tokens\":%zu,\"temperature\":0,\"top_k\":1", a->want);
    return buf_str(out, "{\"prompt\":") && buf_ids(out, a->ids, a->n) && buf_str(out, count) &&
           buf_str(out, ",\"return_token_ids\":true}");
}

/* The first id of the list is the answer. */
static int plain_read(struct reply *out, const json_t *root, const struct ask *a, struct err *err)
{
    const json_t *choice = json_array_get(json_object_get(root, "choices"), 0);
    const json_t *id = json_array_get(json_object_get(choice, "token_ids"), 0);
    (void)a;
    if (!json_is_integer(id))
        return err_set(err, ERR_NET, "token_ids: there is none");
    *out = (struct reply){ .ids = { (uint32_t)json_integer_value(id) }, .n = 1, .ended = true };
    return OK;
}

const struct dialect dialect_llamacpp = {
    .api = CLOUD_LLAMACPP,
    .path = "/v1/completions",
    .request = plain_request,
    .read = plain_read,
};
