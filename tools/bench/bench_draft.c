#include "tools/bench/bench_draft.h"

#include <stdlib.h>
#include <string.h>

#include "kernels/math.h"
#include "kernels/sys/base.h"
#include "model/model.h"
#include "model/sample.h"
#include "model/text/tokenizer.h"
#include "router/decode/step.h"
#include "router/engine.h"
#include "tools/bench/synthetic_vocab.h"
#include "tools/cli/setup.h"

enum { FOR_NEW = 11 };

struct bench_draft {
    struct tokenizer *vocab;
    struct sampler *sampler;
    size_t size;
    float *planted; /* [size] logits: zero but for the id that is to follow */
    /* Of the present text. */
    struct session *session;
    size_t prompt, first; /* first: length of the session before the latest pass */
    bool repeats;
};

uint32_t bench_draft_id(double draw, size_t vocab)
{
    uint32_t id = (uint32_t)exp_f64(draw * log_f64((double)vocab + 1)) - 1;
    return id < vocab ? id : (uint32_t)vocab - 1;
}

int bench_draft_open(struct bench_draft **out, const struct engine *e, struct err *err)
{
    const struct sample_params greedy = { .top_p = 1, .repeat_penalty = 1 };
    struct bench_draft *d = *out = calloc(1, sizeof(*d));
    if (!d)
        return err_set(err, ERR_NOMEM, "bench: out of memory");
    int rc = synthetic_vocab_open(&d->vocab, model_config(e->model)->vocab, err);
    if (rc == OK)
        rc = sampler_open(&d->sampler, &greedy, tokenizer_size(d->vocab), &e->kernels, err);
    if (rc == OK) {
        d->size = tokenizer_size(d->vocab);
        d->planted = calloc(d->size, sizeof(*d->planted));
        rc = d->planted ? OK : err_set(err, ERR_NOMEM, "bench: out of memory");
    }
    if (rc != OK) {
        bench_draft_close(d);
        *out = NULL;
    }
    return rc;
}

void bench_draft_close(struct bench_draft *d)
{
    if (!d)
        return;
    free(d->planted);
    sampler_close(d->sampler);
    tokenizer_close(d->vocab);
    free(d);
}

/* Return the id at position `at` of the text, the prompt included. */
static uint32_t bench_draft_next(const struct bench_draft *d, size_t at)
{
    size_t i = at - d->prompt, half = d->prompt / 2;
    if (d->repeats && i < half)
        return session_ids(d->session)[d->prompt - half + i];
    return bench_draft_id(rand_unit(FOR_NEW, at), d->size);
}

/* Evaluate the ids that the loop wants. */
static void bench_draft_rows(struct bench_draft *d, struct step *step)
{
    struct err err = { "" };
    size_t n;
    const uint32_t *ids = step_ids(step, &n);
    d->first = session_length(d->session);
    int rc = session_eval(d->session, ids, n, &interrupted, &err);
    if (rc == OK)
        step_give_rows(step, n);
    else
        step_fail(step, rc, &err);
}

/* Read the head for the rows that the loop wants, and give it the planted ids. */
static void bench_draft_head(struct bench_draft *d, struct step *step)
{
    struct err err = { "" };
    size_t n;
    const size_t *rows = step_rows(step, &n);
    int rc = batch_logits(session_batch(d->session), rows, n, &err);
    for (size_t i = 0; i < n && rc == OK; i++) {
        uint32_t id = bench_draft_next(d, d->first + rows[i] + 1);
        d->planted[id] = 1;
        step_give_head(step, rows[i], d->planted);
        d->planted[id] = 0;
    }
    if (rc != OK)
        step_fail(step, rc, &err);
}

int bench_draft_write(struct bench_draft *d, struct decode_stats *stats, struct session *s,
                      size_t prompt, size_t n, enum draft_kind kind, bool repeats, struct err *err)
{
    const struct decode_options o = { .policy = POLICY_NEVER,
                                      .max_tokens = n,
                                      .drafts = kind,
                                      .draft_max = DRAFT_DEFAULT,
                                      .stop = &interrupted };
    uint32_t *ids = malloc(prompt * sizeof(*ids));
    struct step *step = NULL;
    if (!ids)
        return err_set(err, ERR_NOMEM, "bench: out of memory");
    memcpy(ids, session_ids(s), prompt * sizeof(*ids));
    const struct step_text text = {
        .session = s, .tok = d->vocab, .sampler = d->sampler, .prompt = ids, .n = prompt
    };
    d->session = s;
    d->prompt = prompt;
    d->repeats = repeats;
    int rc = step_open(&step, &text, &o, stats, err);
    for (enum step_want want = 0; rc == OK && want != STEP_DONE;) {
        want = step_next(step);
        if (want == STEP_ROWS)
            bench_draft_rows(d, step);
        if (want == STEP_HEAD)
            bench_draft_head(d, step);
    }
    if (rc == OK)
        rc = step_close(step, err);
    free(ids);
    return rc;
}
