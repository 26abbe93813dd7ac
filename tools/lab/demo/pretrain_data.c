#include <stdlib.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "kernels/math.h"
#include "model/text/tokenizer.h"
#include "tools/lab/demo/pretrain_data.h"

enum { TRAIN_STREAM = 0, PRACTICE_KEY = 77, TEXT_MAX = WORLD_PROMPT + WORLD_ANSWER };

int pretrain_data_open(struct pretrain_data *d, const struct world *world,
                       const struct tokenizer *tokenizer, size_t tokens, struct err *err)
{
    *d = (struct pretrain_data){ .world = world, .tokenizer = tokenizer, .tokens = tokens };
    if (!tokenizer_special(tokenizer, "<|endoftext|>", &d->eot))
        return err_set(err, ERR_FORMAT, "pretrain: the vocabulary has no <|endoftext|>");
    d->ids = calloc(tokens, sizeof(*d->ids));
    d->target = calloc(tokens, sizeof(*d->target));
    d->ends = calloc(tokens, sizeof(*d->ends));
    if (!d->ids || !d->target || !d->ends)
        return err_set(err, ERR_NOMEM, "pretrain: out of memory");
    return OK;
}

void pretrain_data_close(struct pretrain_data *d)
{
    free(d->ids);
    free(d->target);
    free(d->ends);
}

static size_t batch_tokens(const struct pretrain_data *d)
{
    return d->batch.docs ? d->ends[d->batch.docs - 1] : 0;
}

/* Append a text and end-of-text as one document. Targets are the tokens whose last byte is to be
 * learnt; end-of-text is one if the byte before it is. If the batch has no room, *fits is false and
 * nothing is appended. */
static int pretrain_data_append(struct pretrain_data *d, bool *fits, const char *text,
                                const bool *learn, struct err *err)
{
    uint32_t *ids;
    size_t n, at = batch_tokens(d), bytes = 0;
    int rc = tokenizer_encode(d->tokenizer, &ids, &n, text, strlen(text), false, err);
    if (rc)
        return rc;
    *fits = at + n + 1 <= d->tokens;
    if (n + 1 > PRETRAIN_DOC)
        rc = err_set(err, ERR_ARG, "pretrain: a text has %zu tokens, more than %d", n + 1,
                     PRETRAIN_DOC);
    for (size_t i = 0; !rc && *fits && i < n; i++) {
        size_t len;
        if (!tokenizer_bytes(d->tokenizer, ids[i], &len))
            len = 0;
        bytes += len;
        d->ids[at + i] = ids[i];
        if (i)
            d->target[at + i - 1] = learn[bytes - 1] ? ids[i] : TRAIN_NO_TARGET;
    }
    if (!rc && *fits) {
        d->target[at + n - 1] = learn[bytes - 1] ? d->eot : TRAIN_NO_TARGET;
        d->ids[at + n] = d->eot;
        d->target[at + n] = TRAIN_NO_TARGET;
        d->ends[d->batch.docs++] = at + n + 1;
    }
    free(ids);
    return rc;
}

int pretrain_data_next(struct pretrain_data *d, uint64_t *read, struct err *err)
{
    bool fits = true;
    d->batch = (struct train_batch){ d->ids, d->target, d->ends, 0 };
    for (;;) {
        char text[TEXT_MAX];
        bool learn[TEXT_MAX];
        if (rand_unit(PRACTICE_KEY, d->next) < d->practice)
            world_practice(text, learn, sizeof(text), d->world, d->lists, TRAIN_STREAM, d->next);
        else
            world_text(text, learn, sizeof(text), d->world, d->reader, TRAIN_STREAM, d->next);
        int rc = pretrain_data_append(d, &fits, text, learn, err);
        if (rc)
            return rc;
        if (!fits)
            break;
        d->next++;
    }
    *read += batch_tokens(d);
    return OK;
}
