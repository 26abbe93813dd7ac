/* adapt.h - a router learns from the cloud's answers while texts are written.
 *
 * The label is free: a routed token that the cloud answered says whether the local model's own
 * token differs. It does not say whether the local one was wrong. So what learns is the second
 * output of a hurdle network (router.h), which predicts just that; nobody tells what the first one
 * would have to learn, and its weights stay. The second row of w2 and its bias take a step of
 * logistic regression by stochastic gradient: with h the hidden units and p = sigmoid(w . h + b),
 *
 *     w -= step x (p - label) x h / (s + 1e-6),    b -= step x (p - label)
 *
 * s is the mean square of h, and step = 0.75 x weight / (1 + the number of units), so a token moves
 * its own logit by 0.75 x weight x (p - label), however large and many its units are.
 *
 * The threshold stays. Where the cloud differs more often, more tokens score below it; limits and a
 * pace say what may be spent.
 *
 * Where the score is high, nobody is asked, and the router would never learn that it has become
 * wrong there. So the audit (decode.h) asks about a share of these tokens once the text is written.
 * The weight of such an answer is a tenth over this share, and at most 10, where that of a routed
 * token is 1. So, down to a share of 1 %, the tokens that were kept weigh together a tenth of what
 * they would if all had been asked about.
 *
 * Weights change between texts only: while one is written, scores depend on the file and the text
 * alone, so the answer, its calls and what is learnt are the same whatever was decided ahead. All
 * arithmetic is plain C in the order of the text, and then in that of the audit. A learner serves
 * one text at a time. */
#ifndef ROUTER_ADAPT_H
#define ROUTER_ADAPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The share that an audit draws when nobody says another. */
#define ADAPT_AUDIT 0.01

struct adapt;
struct err;
struct kernels;
struct router;
struct router_form;

/* Open the file `path` of what was learnt, which is a router file; if there is none, begin with the
 * router of the file `router`; it is not written before something is learnt. *r is that router at
 * work, as router_open opens it; it gets the last layer that is learnt after each text, and the
 * caller closes it after the learner. k must outlive it. ERR_FORMAT names the file if one of them
 * is damaged, if `path` is another file or began from another router, or if the router is a table
 * or has one output. ERR_ARG if `path` is empty, ERR_IO, ERR_NOMEM. On error both are NULL. */
int adapt_open(struct adapt **out, struct router **r, const char *path, const char *router,
               const struct kernels *k, struct err *err);
/* Free it; what is not saved is lost. NULL is fine. */
void adapt_close(struct adapt *a);
/* Return what was learnt by the end of the latest text, as adapt_save writes it. */
const struct router_form *adapt_form(const struct adapt *a);
/* Replace the file, or make it, if anything was learnt since it was written; when the program is
 * killed, the file is the old or the new one. ERR_IO, ERR_NOMEM: it is the old one, and a later
 * call may still succeed. NULL is fine. */
int adapt_save(struct adapt *a, struct err *err);

/* Begin a text. */
void adapt_begin(struct adapt *a);
/* Keep the hidden units of the token after the first `at` ids, as router_score leaves them in its
 * scratch, until that token is decided. ERR_NOMEM. */
int adapt_keep(struct adapt *a, size_t at, const float *units, struct err *err);
/* Keep them until the end of the text: the audit has drawn this token. */
void adapt_hold(struct adapt *a, size_t at);

/* Tell that a token is decided, in the order of the text. answered: it was routed, and the cloud's
 * answer was used; differs: that is not the local model's own token. */
void adapt_decide(struct adapt *a, size_t at, bool answered, bool differs);
/* Tell what the audit, which draws this share, has found of a decided token that was the local
 * model's own. */
void adapt_audited(struct adapt *a, size_t at, double share, bool differs);
/* End the text, so that the next one is scored by what was learnt. Returns how many answers. A
 * text that is not ended teaches nothing. */
size_t adapt_end(struct adapt *a);

#endif
