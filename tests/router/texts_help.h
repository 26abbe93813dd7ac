/* texts_help.h - shared by t_texts*.c: the tiny model, routers, a scripted cloud, a text alone. */
#ifndef TESTS_ROUTER_TEXTS_HELP_H
#define TESTS_ROUTER_TEXTS_HELP_H

#include "model/text/tokenizer.h"
#include "router/routing.h"
#include "router/texts/texts.h"
#include "tests/router/routers_help.h"
#include "tests/support/port.h"
#include "tests/support/script.h"

static struct sampler *greedy;
static const struct sample_params plain = { .top_p = 1, .repeat_penalty = 1 };

static inline void open_all(void)
{
    routers_open(false);
    size_t size = tokenizer_size(engine.tokenizer);
    CHECK(sampler_open(&greedy, &plain, size, &engine.kernels, NULL) == OK);
}

static inline void close_all(void)
{
    sampler_close(greedy);
    routers_close();
}

static inline struct texts *texts_with(struct routing *r, size_t slots, size_t queue,
                                       size_t context)
{
    struct texts *e;
    const struct texts_options o = { .engine = &engine,
                                     .routing = r,
                                     .slots = slots,
                                     .queue = queue,
                                     .context = context,
                                     .kv = KVCACHE_F32 };
    CHECK(texts_open(&e, &o, NULL) == OK);
    return e;
}

/* Wish for max tokens after prompt[n], greedy and past end-of-text. */
static inline struct text_wish wish_of(const uint32_t *prompt, size_t n, size_t max)
{
    return (struct text_wish){
        .prompt = prompt, .n = n, .max = max, .sample = plain, .ignore_eos = true, .slot = -1
    };
}

static inline struct text *ask_text(struct texts *e, const struct text_wish *w)
{
    struct text *t;
    CHECK(texts_ask(e, &t, w, NULL) == OK);
    return t;
}

/* Write a text to its end. Of what is returned, only numbers outlive the call. */
static inline struct text_view text_written(struct texts *e, const struct text_wish *w)
{
    struct text *t = ask_text(e, w);
    struct text_view v = text_wait(t, SIZE_MAX);
    text_drop(t);
    return v;
}

/* Return log-softmax(logits)[id], in double throughout. */
static inline double log_softmax(const float *logits, size_t n, uint32_t id)
{
    double max = (double)-INFINITY, sum = 0;
    for (size_t i = 0; i < n; i++)
        max = (double)logits[i] > max ? (double)logits[i] : max;
    for (size_t i = 0; i < n; i++)
        sum += exp_f64((double)logits[i] - max);
    return (double)logits[id] - max - log_f64(sum);
}

/* Check logprob and alternatives of ids[n], which follows ids[n] tokens, against the model. */
static inline void check_logprob(const uint32_t *ids, size_t n, double logprob,
                                 const struct text_top *tops, size_t top)
{
    size_t vocab = tokenizer_size(engine.tokenizer); /* the model has more rows */
    port_reach(session, ids, n);
    const float *logits = session_logits(session, 0);
    CHECK(fabs(logprob - log_softmax(logits, vocab, ids[n])) < 1e-6);
    for (size_t i = 0; i < top; i++) {
        size_t better = 0;
        CHECK(tops[i].id < tokenizer_size(engine.tokenizer));
        CHECK(fabs(tops[i].logprob - log_softmax(logits, vocab, tops[i].id)) < 1e-6);
        for (uint32_t id = 0; id < tokenizer_size(engine.tokenizer); id++)
            better += logits[id] > logits[tops[i].id] ||
                      (logits[id] == logits[tops[i].id] && id < tops[i].id);
        CHECK(better == i);
        CHECK(tops[i].id != ids[n] || tops[i].logprob == logprob);
    }
}

#endif
