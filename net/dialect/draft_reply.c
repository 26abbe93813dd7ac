/* draft_reply.c - what a server says of a draft, in the reply of /v1/completions. */
#include <stdlib.h>

#include "kernels/sys/base.h"
#include "net/dialect/dialect.h"
#include "net/http/json_input.h"

/* Find the likeliest id of one position of vLLM's prompt_logprobs: {"ID":{"rank":1,...},...}. */
static bool draft_first(uint32_t *id, json_t *ranks, size_t vocab)
{
    const char *key;
    json_t *one;
    json_object_foreach(ranks, key, one)
    {
        char *end;
        unsigned long long n = *key >= '0' && *key <= '9' ? strtoull(key, &end, 10) : vocab;
        *id = (uint32_t)n;
        if (json_integer_value(json_object_get(one, "rank")) == 1)
            return n < vocab && !*end;
    }
    return false;
}

/* Read what became of a draft from the ids that vLLM finds likeliest in its place: as many as it
 * has, and the first one that is another, or the token after all of them, which was written. */
static int draft_from_ranks(struct reply *out, const json_t *ranks, const json_t *choice,
                            const struct ask *a, struct err *err)
{
    size_t i = 0;
    *out = (struct reply){ .ended = true };
    if (json_array_size(ranks) != a->n + a->draft)
        return err_set(err, ERR_NET, "choices[0].prompt_logprobs: expected %zu, found %zu",
                       a->n + a->draft, json_array_size(ranks));
    for (; i < a->draft; i++) {
        if (!draft_first(&out->ids[out->n++], json_array_get(ranks, a->n + i), a->vocab))
            return err_set(err, ERR_NET,
                           "choices[0].prompt_logprobs[%zu]: expected an id below %zu of rank 1",
                           a->n + i, a->vocab);
        if (out->ids[i] != a->ids[a->n + i])
            return OK;
    }
    return dialect_append(out, json_object_get(choice, "token_ids"), "choices[0].token_ids", a,
                          err);
}

int dialect_draft(struct reply *out, const json_t *choice, const struct ask *a, struct err *err)
{
    const json_t *ranks = json_object_get(choice, "prompt_logprobs");
    if (json_is_array(ranks))
        return draft_from_ranks(out, ranks, choice, a, err);
    out->no_draft = !json_is_integer(json_object_get(choice, "accepted"));
    if (out->no_draft)
        return err_set(err, ERR_TEXT,
                       "the server cannot check a draft, which policy verify needs: its reply has "
                       "neither choices[0].prompt_logprobs (vLLM) nor accepted (mizzle)");
    int rc =
        dialect_ids(out, json_object_get(choice, "token_ids"), 0, "choices[0].token_ids", a, err);
    for (size_t i = 0; rc == OK && i + 1 < out->n; i++)
        if (i >= a->draft || out->ids[i] != a->ids[a->n + i])
            return err_set(err, ERR_NET,
                           "choices[0].token_ids[%zu]: expected that of the draft, "
                           "as others follow it, found %u",
                           i, (unsigned)out->ids[i]);
    return rc;
}
