#include "tools/eval/loglik.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/math.h"
#include "kernels/sys/base.h"
#include "model/model.h"
#include "model/session.h"
#include "model/text/tokenizer.h"

/* A prompt and its continuation as ids; the first `prompt` of n belong to the prompt. */
struct loglik_ids {
    uint32_t *ids;
    size_t n, prompt;
};

/* Return the natural logarithm of the probability of id; -INFINITY unless all logits are finite. */
static double loglik_token(const float *logits, size_t rows, uint32_t id)
{
    double max = (double)logits[0], sum = 0;
    for (size_t i = 0; i < rows; i++) {
        if (!isfinite(logits[i]))
            return (double)-INFINITY;
        max = (double)logits[i] > max ? (double)logits[i] : max;
    }
    for (size_t i = 0; i < rows; i++)
        sum += exp_f64((double)logits[i] - max);
    return (double)logits[id] - max - log_f64(sum);
}

/* Encode as the harness does: ids of the prompt without its last blanks, then those of the whole
 * text beyond their number. */
static int loglik_encode(struct loglik_ids *out, const struct tokenizer *tok, const char *prompt,
                         const char *continuation, struct err *err)
{
    size_t n = strlen(prompt), more = strlen(continuation), size, count = 0;
    uint32_t *ids = NULL, *whole = NULL;
    char *text = size_add(&size, n, more) && size_add(&size, size, 1) ? malloc(size) : NULL;
    if (!text)
        return err_set(err, ERR_NOMEM, "loglik: out of memory");
    memcpy(text, prompt, n);
    memcpy(text + n, continuation, more + 1);
    more += n;
    while (n && strchr(" \t\n\v\f\r", text[n - 1]))
        n--;
    *out = (struct loglik_ids){ .prompt = 0 };
    int rc = tokenizer_encode(tok, &ids, &out->prompt, text, n, false, err);
    if (rc == OK && !out->prompt)
        rc = err_set(err, ERR_ARG, "loglik: expected a prompt, found an empty one");
    if (rc == OK)
        rc = tokenizer_encode(tok, &whole, &count, text, more, false, err);
    if (rc == OK && count > out->prompt) {
        memcpy(whole, ids, out->prompt * sizeof(*ids));
        out->ids = whole;
        out->n = count;
        whole = NULL;
    } else if (rc == OK) { /* nothing to score */
        out->ids = ids;
        out->n = out->prompt;
        ids = NULL;
    }
    free(ids);
    free(whole);
    free(text);
    return rc;
}

/* Return how many of ids[n] the session begins with. */
static size_t loglik_common(const struct session *s, const uint32_t *ids, size_t n)
{
    size_t at = 0, most = session_length(s) < n ? session_length(s) : n;
    const uint32_t *have = session_ids(s);
    while (at < most && have[at] == ids[at])
        at++;
    return at;
}

/* Add up the continuation. The session keeps the prompt; the logits after it stay valid while
 * choices are single tokens. */
static int loglik_score(double *nats, struct session *s, const struct loglik_ids *t,
                        const _Atomic int *stop, struct err *err)
{
    size_t rows = model_config(session_model(s))->vocab, at = loglik_common(s, t->ids, t->prompt);
    bool whole = at == t->prompt && session_length(s) == at;
    const float *logits = whole ? session_logits(s, 0) : NULL; /* NULL if another pass came since */
    int rc = OK;
    *nats = 0;
    if (logits) {
        *nats += loglik_token(logits, rows, t->ids[at]);
    } else {
        at -= at == t->prompt;
        session_rewind(s, at);
    }
    while (rc == OK && at + 1 < t->n) {
        size_t left = t->n - 1 - at, m = left < BATCH_ROWS ? left : BATCH_ROWS;
        rc = session_eval(s, t->ids + at, m, stop, err);
        for (size_t i = 0; rc == OK && i < m; i++)
            if (at + i + 1 >= t->prompt)
                *nats += loglik_token(session_logits(s, m - 1 - i), rows, t->ids[at + i + 1]);
        at += m;
    }
    if (rc == OK && !isfinite(*nats))
        rc = err_set(err, ERR_FORMAT, "loglik: the model's logits are not finite");
    return rc;
}

int loglik_text(struct loglik_text *out, struct session *s, const struct tokenizer *tok,
                const char *prompt, const char *continuation, const _Atomic int *stop,
                struct err *err)
{
    struct loglik_ids t;
    *out = (struct loglik_text){ 0 };
    int rc = loglik_encode(&t, tok, prompt, continuation, err);
    if (rc != OK)
        return rc;
    if (t.n - 1 > session_context(s)) {
        out->left_out = true;
    } else if (t.n > t.prompt) {
        out->tokens = t.n - t.prompt;
        rc = loglik_score(&out->nats, s, &t, stop, err);
    }
    free(t.ids);
    return rc;
}

/* Return the number of characters of valid UTF-8. */
static size_t loglik_characters(const char *s)
{
    size_t n = 0;
    for (; *s; s++)
        n += ((unsigned char)*s & 0xc0) != 0x80;
    return n;
}

/* Write a blank and a choice as the harness continues the prompt, and return its text without the
 * blank. *out is malloc'ed; NULL without memory. */
static const char *loglik_choice(char **out, const struct task *t, const struct task_item *item,
                                 size_t i)
{
    const char *text = strcmp(task_name(t), "csqa") == 0 ? item->labels[i] : item->choices[i];
    size_t n = strlen(text);
    *out = malloc(n + 2);
    if (*out) {
        (*out)[0] = ' ';
        memcpy(*out + 1, text, n + 1);
    }
    return text;
}

int loglik_item(struct loglik *out, struct session *s, const struct tokenizer *tok,
                const struct task *t, const struct task_item *item, const _Atomic int *stop,
                struct err *err)
{
    double norm[TASK_CHOICES];
    *out = (struct loglik){ 0 };
    if (!item->nchoices || task_form(t) != TASK_LM_EVAL)
        return err_set(err, ERR_ARG,
                       "loglik: expected csqa or arc with --prompt lm-eval, found %s%s",
                       task_name(t), item->nchoices ? " with another prompt" : "");
    for (size_t i = 0; i < item->nchoices; i++) {
        struct loglik_text one;
        char *continuation;
        const char *choice = loglik_choice(&continuation, t, item, i);
        int rc = continuation ? loglik_text(&one, s, tok, item->prompt, continuation, stop, err)
                              : err_set(err, ERR_NOMEM, "loglik: out of memory");
        free(continuation);
        if (rc != OK)
            return rc;
        if (one.left_out) {
            *out = (struct loglik){ .left_out = true };
            return OK;
        }
        out->nats[i] = one.nats;
        out->tokens += one.tokens;
        norm[i] = one.nats / (double)loglik_characters(choice);
        if (one.nats > out->nats[out->pick])
            out->pick = i;
        if (norm[i] > norm[out->pick_norm])
            out->pick_norm = i;
    }
    out->acc = strcmp(item->labels[out->pick], item->key) == 0;
    out->acc_norm = strcmp(item->labels[out->pick_norm], item->key) == 0;
    return OK;
}
