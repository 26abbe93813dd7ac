/* keep.h - what the cloud may get and cost, and what is kept of its answers: the options and what
 * they open. */
#ifndef TOOLS_CLI_KEEP_H
#define TOOLS_CLI_KEEP_H

#include <stdbool.h>

#include "router/caps.h"
#include "tools/cli/options.h"

struct answers;
struct err;
struct private_filter;
struct tokenizer;

extern const struct option_group keep_option_rows;

struct keep {
    struct answers *answers;
    struct private_filter *spans; /* NULL: none */
    struct caps caps;
    bool priced; /* the prices are known */
};

/* All but prices of a file. t is borrowed. ERR_ARG, ERR_IO, ERR_FORMAT, ERR_NOMEM. */
int keep_open(struct keep *k, const struct tokenizer *t, struct err *err);
/* True with --replay: no server is asked, or started. */
bool keep_replays(const struct keep *k);
/* True where prices are in a file, by the model's name at the server. */
bool keep_wants_model(const struct keep *k);
/* Read them. model may be NULL. ERR_ARG, ERR_IO, ERR_FORMAT. */
int keep_price(struct keep *k, const char *model, struct err *err);
/* Print what caches and store have to say. */
void keep_notes(struct keep *k);
/* ERR_IO where the recording is incomplete. All zero is fine. */
int keep_close(struct keep *k, struct err *err);

#endif
