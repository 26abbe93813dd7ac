/* caps.h - limits on what the cloud may cost: tokens, bytes up, money.
 *
 * Calls count in commit order and from their prefix alone: neither the clock nor the server's own
 * numbers matter. So decoding ahead reaches a limit at the same token as decoding in step. A call
 * is charged for all tokens it asks for, answered or not; those that are used later come from the
 * memo, which is no call and costs nothing. Neither does the store. The limit on tokens is a quota
 * (traffic.h), which also has those that the network thread asks for: probes, and requests that
 * go out again.
 *
 * Money is exact: integers of 10^-12 ("pico") of any currency. There are three prices per million
 * tokens: up, up but in the server's prefix cache, and down. A token counts as cached when the
 * prefix shares it with the prefix of the previous committed call. Real servers cache whole blocks
 * and evict them, so the bill may be a little higher, and the bill is what counts. */
#ifndef ROUTER_CAPS_H
#define ROUTER_CAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/http/traffic.h"

struct caps_price { /* pico per token, which is millionths of the currency per million tokens */
    uint64_t up, cached, down;
};

struct caps_limits { /* UINT64_MAX: no limit */
    uint64_t tokens; /* requested tokens */
    uint64_t upload; /* bytes of request bodies */
    uint64_t budget; /* pico */
    struct caps_price price;
};

extern const struct caps_limits caps_none;
/* True if anything is limited. */
bool caps_limited(const struct caps_limits *l);

struct caps_count {                /* plain data: decoding ahead works on a copy */
    uint64_t tokens, upload, cost; /* tokens: as the quota had them then */
    size_t warm; /* ids at the start of this text that the server has seen: its prefix cache */
};

struct caps_call { /* a call as the limits see it */
    size_t n;      /* ids of its prefix */
    size_t tokens; /* tokens it asks for; all are charged, as that many may come and be billed */
    size_t sent;   /* once it has ended: these, each time that they went out */
    size_t bytes;  /* size of its body; 0 when nothing limits it */
};

/* Return NULL, or why this call must not be made: one static line that names the flag, such as
 * "--max-cloud-tokens is reached". */
const char *caps_refuse(const struct caps_limits *l, const struct caps_count *c,
                        const struct caps_call *call);
/* Count the call as committed. answered false: it failed, and what would come down costs nothing,
 * but its tokens were asked for. */
void caps_add(const struct caps_limits *l, struct caps_count *c, const struct caps_call *call,
              bool answered);

struct caps { /* of one process, over all its texts */
    struct caps_limits limits;
    struct quota quota; /* of tokens, shared with the network thread */
    struct caps_count count;
    uint32_t *last; /* [last_n]: prefix of the last committed call before this text */
    size_t last_n, last_cap;
};

/* Start to count; limits NULL means caps_none. */
void caps_begin(struct caps *c, const struct caps_limits *limits);
/* Begin a new text with prompt[n]; the part that the server has seen is warm. */
void caps_text(struct caps *c, const uint32_t *prompt, size_t n);
/* Do caps_add on c->count, with the tokens of the quota, and keep the prefix, ids[call->n], for the
 * next caps_text. */
void caps_commit(struct caps *c, const uint32_t *ids, const struct caps_call *call, bool answered);
/* Go on with what another one, such as that of an interrupted run, has counted and kept last. */
void caps_resume(struct caps *c, const struct caps *from);
void caps_end(struct caps *c);

/* Read a decimal number times 10^places: with 12 places "1.50" is 1500000000000. At most `places`
 * digits may follow the point. False: it is anything else or too large. */
bool caps_decimal(uint64_t *out, const char *text, size_t n, unsigned places);
enum { CAPS_AMOUNT = 24 };
/* Write pico as an amount of the currency: "0.0125". */
void caps_amount(char out[CAPS_AMOUNT], uint64_t pico);

/* Parse "UP,CACHED,DOWN", prices per million tokens; false if it is anything else. */
bool caps_price(struct caps_price *out, const char *text);

#endif
