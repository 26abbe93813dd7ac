/* features.h - features of the next token that need no hidden state: the local model's confidence
 * and the place in the answer.
 *
 * The baseline `combined` reads only these features; `mix` reads the hidden state, too (router.h).
 * Both need the head for every token that they score. */
#ifndef ROUTER_FEATURES_H
#define ROUTER_FEATURES_H

#include <stddef.h>
#include <stdint.h>

struct kernels;
struct router;
struct router_context;
struct tokenizer;

/* In this order in samples and routers. */
enum feature {
    FEATURE_P1,       /* probability of the likeliest token */
    FEATURE_P2,       /* and of the second */
    FEATURE_MARGIN,   /* their difference */
    FEATURE_ENTROPY,  /* of the distribution, in nats */
    FEATURE_GAP,      /* difference of the two largest logits */
    FEATURE_POSITION, /* ln(1 + tokens of the answer before it); 0 in the prompt */
    FEATURE_WORD,     /* 1: the last token ended a word: the likeliest next one does not continue
                         it */
    FEATURE_SENTENCE, /* 1: the last token ends in . ! ? or a newline */
    FEATURE_CONTEXT,  /* score of a table of the last two ids, which the router holds */
    FEATURES
};

struct features_text { /* where the token stands: after ids[n], n >= 1 */
    const struct tokenizer *tok;
    const uint32_t *ids;
    size_t n, prompt; /* the first `prompt` ids are the prompt */
};

/* Set the features of a token from the local model's logits[size]. If the largest is not finite,
 * the first five are 0. FEATURE_CONTEXT is the score of table's contexts; 0 if table is NULL. The
 * same bits on every machine. */
void features_of(float out[FEATURES], const struct features_text *t, const float *logits,
                 size_t size, const struct router *table, const struct kernels *k);

/* Return the score of a table for the token after ids[n]: that of the last two ids, else of the
 * last id, else the mean. rows[nrows] are as in router_form. n may be 0. */
float features_context(const struct router_context *rows, size_t nrows, const uint32_t *ids,
                       size_t n);

#endif
