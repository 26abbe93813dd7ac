#include <stdlib.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "kernels/math.h"
#include "model/text/tokenizer.h"
#include "tools/demo/pretrain_data.h"
#include "tools/demo/world.h"

enum { TRAIN_STREAM = 0, PRACTICE_KEY = 77, TEXT_MAX = 1024 };

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

/* Start an empty batch. */
static void restart(struct pretrain_data *d)
{
    d->batch = (struct train_batch){ d->ids, d->target, d->ends, 0 };
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

int pretrain_data_next(struct pretrain_data *d, struct err *err)
{
    bool fits = true;
    restart(d);
    for (;;) {
        char text[TEXT_MAX];
        bool learn[TEXT_MAX];
        if (rand_unit(PRACTICE_KEY, d->next) < d->practice)
            world_practice(text, learn, sizeof(text), d->world, d->easy, TRAIN_STREAM, d->next);
        else
            world_text(text, learn, sizeof(text), d->world, TRAIN_STREAM, d->next);
        int rc = pretrain_data_append(d, &fits, text, learn, err);
        if (rc)
            return rc;
        if (!fits)
            break;
        d->next++;
    }
    d->read += batch_tokens(d);
    return OK;
}

/* Return the index of the token that holds byte `at` of the document, or end. */
static size_t token_at(const struct pretrain_data *d, size_t first, size_t end, size_t at)
{
    for (size_t i = first, bytes = 0; i < end; i++) {
        size_t len;
        if (!tokenizer_bytes(d->tokenizer, d->ids[i], &len))
            len = 0;
        bytes += len;
        if (bytes > at)
            return i;
    }
    return end;
}

/* True if the token that follows `mark` in the answer was predicted. */
static bool foreseen(const struct pretrain_data *d, const uint32_t *best, size_t doc,
                     const struct world_question *q, const char *mark)
{
    const char *p = strstr(q->answer, mark);
    if (!p)
        return false;
    size_t first = doc ? d->ends[doc - 1] : 0;
    size_t at = strlen(q->prompt) + (size_t)(p - q->answer) + strlen(mark);
    size_t i = token_at(d, first, d->ends[doc], at);
    return i > first && i < d->ends[doc] && best[i - 1] == d->ids[i];
}

struct tally {
    size_t kind, place, letter, tokens, right;
};

/* Add the results of the batch, whose documents are the questions from number `first` on. */
static void pretrain_data_count(struct tally *n, const struct pretrain_data *d,
                                const uint32_t *best, uint64_t stream, uint64_t first)
{
    struct world_question q;
    for (size_t i = 0; i < batch_tokens(d); i++)
        if (d->target[i] != TRAIN_NO_TARGET) {
            n->tokens++;
            n->right += best[i] == d->target[i];
        }
    for (size_t i = 0; i < d->batch.docs; i++) {
        world_question(&q, d->world, stream, first + i);
        n->kind += foreseen(d, best, i, &q, " kind of");
        n->place += foreseen(d, best, i, &q, " in the");
        n->letter += foreseen(d, best, i, &q, "answer is (");
    }
}

/* Fill the batch with questions and answers from number `first` on, as many as fit, up to `end`. */
static int fill_questions(struct pretrain_data *d, uint64_t stream, uint64_t first, uint64_t end,
                          struct err *err)
{
    bool fits = true;
    int rc = OK;
    restart(d);
    for (uint64_t i = first; rc == OK && fits && i < end; i++) {
        struct world_question q;
        char text[TEXT_MAX];
        bool learn[TEXT_MAX];
        world_question(&q, d->world, stream, i);
        size_t n = strlen(q.prompt);
        memcpy(text, q.prompt, n);
        memcpy(text + n, q.answer, strlen(q.answer) + 1);
        for (size_t j = 0; j < sizeof(learn); j++)
            learn[j] = j >= n;
        rc = pretrain_data_append(d, &fits, text, learn, err);
    }
    return rc;
}

int pretrain_examine(struct pretrain_score *out, struct pretrain_data *d, struct train *t,
                     uint64_t stream, size_t questions, struct err *err)
{
    struct tally n = { 0 };
    uint32_t *best = calloc(d->tokens, sizeof(*best));
    int rc = best ? OK : err_set(err, ERR_NOMEM, "pretrain: out of memory");
    for (size_t done = 0; rc == OK && done < questions; done += d->batch.docs) {
        double loss;
        rc = fill_questions(d, stream, done, questions, err);
        if (rc == OK)
            rc = train_predict(&loss, best, NULL, t, &d->batch, err);
        if (rc == OK)
            pretrain_data_count(&n, d, best, stream, done);
    }
    free(best);
    double all = (double)questions;
    size_t critical = n.kind + n.place + n.letter;
    *out = (struct pretrain_score){
        (double)n.kind / all, (double)n.place / all, (double)n.letter / all,
        rc == OK ? (double)(n.right - critical) / (double)(n.tokens - 3 * questions) : 0
    };
    return rc;
}
