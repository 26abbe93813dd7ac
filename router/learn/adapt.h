/* adapt.h - a router's last layer learns from the cloud's answers while texts are written.
 *
 * The label is free: a routed token that the cloud answered says whether the local model's own
 * token was the same. The first layer stays. The last one takes a step of normalised least mean
 * squares (Nagumo and Noda, IEEE Trans. Automatic Control 12, 1967) on the logistic loss: with h
 * the hidden units, m their running mean and d = h - m,
 *
 *     w2 -= RATE x (p - label) x d / (1 + |d|^2) + PULL x (w2 - w2 of the beginning)
 *
 * so one token moves its own logit by at most RATE, whatever the width is, and what is no
 * longer confirmed fades. p = sigmoid(w2 . h + b2 + level). The level is learnt beside, because b2
 * has another task: it keeps the share of tokens that score below the router's threshold at the
 * share of its calibration. Labels say that the tokens differ, not that the local one was wrong,
 * so the level of the scores must not follow them.
 *
 * Only routed tokens have labels, and no others are asked for the sake of learning. One in a
 * hundred of those, drawn at random, was tried: where such an answer differs, it nearly always
 * differs harmlessly, at a free choice of words, and a router that learns from these asks at free
 * choices.
 *
 * Weights change between texts only: while one is written, scores depend on the file and the text
 * alone, so the answer, its calls and what is learnt are the same whatever was decided ahead. All
 * arithmetic is plain C in the order of the text. A learner serves one text at a time. */
#ifndef ROUTER_LEARN_ADAPT_H
#define ROUTER_LEARN_ADAPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct adapt;
struct err;
struct router;
struct router_form;

/* Open the file `path` of what was learnt, which is a router file; if there is none, begin with the
 * router of the file `router`, and make it. r is that router, opened and borrowed: it gets the last
 * layer that was learnt, now and after each text. Threshold and share are those of `router`.
 * ERR_FORMAT names the file if one of them is damaged, if `path` is another file or began from
 * another router, or if the router is a table, has two outputs or was not calibrated (without a
 * threshold and a share). ERR_IO, ERR_NOMEM. On error *out is NULL. */
int adapt_open(struct adapt **out, const char *path, const char *router, struct router *r,
               struct err *err);
/* Free it; what is not saved is lost. NULL is fine. */
void adapt_close(struct adapt *a);
/* Return what was learnt by the end of the latest text, as adapt_save writes it. */
const struct router_form *adapt_form(const struct adapt *a);
/* Replace the file, if anything was learnt since it was written; when the program is killed, the
 * file is the old or the new one. ERR_IO, ERR_NOMEM: it is the old one, and a later call may still
 * succeed. */
int adapt_save(struct adapt *a, struct err *err);

/* Begin a text. */
void adapt_begin(struct adapt *a);
/* Keep the score of the token after the first `at` ids and the hidden units from which it was
 * computed, as router_score leaves them in its scratch, until that token is decided. ERR_NOMEM. */
int adapt_keep(struct adapt *a, size_t at, float score, const float *units, struct err *err);

/* Tell that a token is decided, in the order of the text. answered: it was routed, and the cloud's
 * answer was used; agrees: that is the local model's own token. */
void adapt_decide(struct adapt *a, size_t at, bool answered, bool agrees);
/* End the text, so that the next one is scored by what was learnt. */
void adapt_end(struct adapt *a);

#endif
