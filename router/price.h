/* price.h - a price instead of a threshold: is a call worth what it costs?
 *
 * Asked is where worth x p > cost: p is the chance that the answer mends the text, that is, that
 * the cloud's token differs and the local one is wrong; worth is what that is worth. A call costs
 * what the server charges for it, and the time that somebody waits, which a guess that the cloud
 * confirms hides: waiting costs only where the tokens differ. The server keeps what it has read
 * (its prefix cache), so the first call of a text costs most, and those that follow in the same
 * text are worth asking sooner.
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
    double wait;             /* waiting for one call */
};

/* What the router says of a token. */
struct price_odds {
    float wrong;   /* 0..1, chance that the answer mends the text */
    float differs; /* 0..1, chance that the cloud's token is another one */
};

/* Set a price from what a user gives: `seconds` that a call takes and what a second costs. Prices
 * of zero mean that a call costs 1. */
void price_set(struct price *out, double worth, const struct caps_price *tokens, double seconds,
               double second);
/* Return cost / (cost + worth x wrong), 0..1: below 1/2 the call is worth its cost. n: ids of the
 * prefix; warm: how many of them an earlier call of the text has sent. Where there is nothing to
 * gain, 1. */
float price_score(const struct price *p, const struct price_odds *odds, size_t n, size_t warm);

/* Spreads the caps over a number of answers, which would else spend them first come, first served:
 * what their calls are worth is divided by one factor.
 *
 * Each answer may spend an equal part of what the caps have left: its target. An answer that spends
 * more raises the factor, one that spends less lowers it, never below 1; of several caps the
 * scarcest counts. So the calls that pay least are left out in all answers alike, instead of all
 * calls of the last ones.
 *
 * The factor is fixed while an answer is written and changes when it ends, by committed calls
 * alone. So it depends neither on decoding ahead nor on drafts, and the same answers in the same
 * order have the same factors on every machine.
 *
 * Source: adaptive pacing, a dual ascent with one multiplier (Balseiro and Gur 2019, Management
 * Science 65(9)). Its step is 1/i at answer i, which settles within ten answers, and stays at 1/25,
 * which follows questions that become harder or easier. */
struct price_pace {          /* plain data; all zero: no pace */
    uint64_t answers;        /* over which the caps are spread; beyond, each is as the last one */
    uint64_t ended;          /* of these */
    double level;            /* natural logarithm of the factor, 0 or more */
    struct caps_count spent; /* by all answers that have ended */
};

/* Return the factor for the next answer, 1 or more; without pace 1. */
double price_pace_factor(const struct price_pace *p);
/* Note that an answer has ended, when the counts of the caps are these. Without pace nothing
 * happens. */
void price_pace_ended(struct price_pace *p, const struct caps_limits *l,
                      const struct caps_count *now);

#endif
