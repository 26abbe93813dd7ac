/* price.h - a price instead of a threshold: is a call worth what it costs?
 *
 * The cloud is asked where worth x p > cost: p is the chance that the answer mends the text, which
 * is that the local token is wrong; worth is what that is worth. A call costs what the server
 * charges for it. The server keeps what it has read (its prefix cache), so the first call of a text
 * costs most, and those that follow in the same text are worth asking sooner.
 *
 * All figures are constants that the user gives, never measured, so the same text asks for the same
 * tokens on every machine. Amounts are in the currency of the prices, or, without prices, in calls:
 * then each costs 1. */
#ifndef ROUTER_PRICE_H
#define ROUTER_PRICE_H

#include <stddef.h>
#include <stdint.h>

#include "router/caps.h"

struct price {
    double worth;            /* of a mended error, > 0; 0: there is no price */
    double call;             /* what each call costs beside its tokens */
    double up, cached, down; /* a token sent, one that the server has read before, one received */
};

/* Set a price from what a user gives. Prices of zero mean that a call costs 1. */
void price_set(struct price *out, double worth, const struct caps_price *tokens);
/* Return cost / (cost + worth x wrong), 0..1: below 1/2 the call is worth its cost. wrong: the
 * chance that the answer mends the text; n: ids of the prefix; warm: how many of them an earlier
 * call of the text has sent. Where there is nothing to gain, 1. */
float price_score(const struct price *p, float wrong, size_t n, size_t warm);

#endif
