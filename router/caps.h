/* caps.h - how much the cloud may cost: tokens, bytes up, money.
 *
 * Counted in committed calls, in commit order, from the prefix alone: never from the clock, from a
 * wasted call or from what the server says. So decoding ahead is capped at the same token as
 * decoding in step. A call is charged all the tokens it asks for; one of them that is used later
 * comes from the memo, which is no call and costs nothing, and nor does one from the store.
 *
 * Money is exact: whole millionths of a millionth ("pico") of the currency, whichever it is. Three
 * prices per million tokens: up, up but in the server's prefix cache, down. As cached counts what a
 * prefix shares with the prefix of the committed call before it; real servers cache whole blocks
 * and forget, so their bill may be a little higher, and theirs is the one that counts. */
#ifndef ROUTER_CAPS_H
#define ROUTER_CAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;

struct caps_price { /* pico of the currency a token = millionths of it per million tokens */
    uint64_t up, cached, down;
};

struct caps_limits { /* UINT64_MAX: none */
    uint64_t tokens; /* asked for */
    uint64_t upload; /* bytes of request bodies */
    uint64_t budget; /* pico */
    struct caps_price price;
};

extern const struct caps_limits caps_none;

struct caps_count { /* plain: decoding ahead may let a copy run in front */
    uint64_t tokens, upload, cost;
    size_t warm; /* ids of the present text that the server has seen: its prefix cache */
};

struct caps_call { /* as a limit sees it */
    size_t n;      /* ids of its prefix */
    size_t tokens; /* that it asks for. All are charged, for that many may come and be billed */
    size_t bytes;  /* of its body; 0 where nothing counts them */
};

/* NULL, or why this call must not be made: one line that names the flag. static:
 * "--max-cloud-tokens is reached", ... */
const char *caps_refuse(const struct caps_limits *l, const struct caps_count *c,
                        const struct caps_call *call);
/* Count that call as committed. answered false: it failed, and only what went up counts. */
void caps_add(const struct caps_limits *l, struct caps_count *c, const struct caps_call *call,
              bool answered);

struct caps { /* of one process: over all its texts */
    struct caps_limits limits;
    struct caps_count count;
    uint32_t *last; /* prefix of the committed call before this text, [last_n] */
    size_t last_n, last_cap;
};

/* limits NULL: caps_none. */
void caps_begin(struct caps *c, const struct caps_limits *limits);
/* A new text begins with prompt[n]: what of it the server has seen is warm. */
void caps_text(struct caps *c, const uint32_t *prompt, size_t n);
/* caps_add on c->count; keeps the prefix, ids[call->n], for the next caps_text. */
void caps_commit(struct caps *c, const uint32_t *ids, const struct caps_call *call, bool answered);
void caps_end(struct caps *c);

/* "1.50" -> 1500000000000 with 12 places: digits, at most places of them behind the point, times
 * 10^places. False where it is anything else or too large. */
bool caps_decimal(uint64_t *out, const char *text, size_t n, unsigned places);
enum { CAPS_AMOUNT = 24 };
/* Pico as an amount of the currency: "0.0125". */
void caps_amount(char out[CAPS_AMOUNT], uint64_t pico);

/* "UP,CACHED,DOWN" per million tokens; false where it is anything else. */
bool caps_price(struct caps_price *out, const char *text);
/* From a file of lines "MODEL UP CACHED DOWN" (# begins a comment, MODEL * stands for any other):
 * the line of model, which may be NULL. ERR_IO, ERR_FORMAT (with the line's number), ERR_ARG (no
 * line for this model). */
int caps_price_file(struct caps_price *out, const char *path, const char *model, struct err *err);

#endif
