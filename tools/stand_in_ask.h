/* stand_in_ask.h - what a completion request asks for, checked; both dialects. */
#ifndef TOOLS_STAND_IN_ASK_H
#define TOOLS_STAND_IN_ASK_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct stand_in_engine;

struct stand_in_ask {
    uint32_t *ids; /* [n] the prompt; malloc'ed */
    size_t n;
    json_int_t max;  /* tokens wanted; -1: as many as fit */
    bool return_ids; /* return_token_ids or return_tokens */
    bool go_on;      /* ignore_eos */
};

/* limit: the field with the number of tokens; ids_field: the one that asks for ids. Anything that
 * would make the answer other than one greedy text (temperature, penalties, stop, n, ...) is
 * refused. ERR_ARG with the field's name in err, ERR_NOMEM. The caller frees out->ids. */
int stand_in_ask_read(struct stand_in_ask *out, const struct stand_in_engine *e, const json_t *in,
                      const char *limit, json_int_t fallback, const char *ids_field,
                      struct err *err);

/* A list of ids below vocab, malloc'ed. */
int stand_in_ask_ids(uint32_t **ids, size_t *n, const json_t *list, size_t vocab, struct err *err);

#endif
