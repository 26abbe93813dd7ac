/* routed.h - routing for the commands that measure: as setup.h, with a stand-in server in place of
 * the large model of this process where a network is simulated. */
#ifndef TOOLS_LAB_EVAL_ROUTED_H
#define TOOLS_LAB_EVAL_ROUTED_H

#include <stdbool.h>
#include <stddef.h>

#include "router/engine.h"
#include "router/routing.h"
#include "tools/cli/shared_options.h"

struct err;
struct stand_in;
struct stand_in_net;

extern struct network_options { /* of the network that the stand-in server simulates */
    size_t latency;             /* ms of a round trip */
    const char *bandwidth;      /* "N" or "UP,DOWN", bytes per second; NULL: no limit */
    float loss;                 /* share of the packets */
    bool served;                /* calls go over HTTP even if nothing is simulated */
} network_options;
extern const struct option_group network_option_rows; /* --latency --bandwidth --loss */

/* Set latency, bandwidth and loss of *net to network_options. ERR_ARG. */
int routed_network(struct stand_in_net *net, struct err *err);
/* Open what all shared options ask for, and print the notes. If network_options ask for a network,
 * the large model of this process is a stand-in server (*server, else NULL), which answers with it
 * over HTTP. Errors of setup_options, setup_large_model, stand_in_open and routing_open. *r must
 * not move afterwards. */
int routed_open(struct routing *r, struct stand_in **server, const struct engine *e,
                struct err *err);
/* Print the remaining notes and close both. */
void routed_close(struct routing *r, struct stand_in *server);

/* Print, once in this process, what is to be said of e's chat form, as chat_note does. */
void routed_chat_note(const struct engine *e);
/* Return "exact" if the kernels give the bits that every exact set gives, else the set's name: only
 * with the same one are its answers those of another run. */
const char *routed_exactness(const struct engine *e);

/* What the large model says it is, by which a journal or a collection tells one from another. */
struct cloud_identity {
    char name[128];      /* "": there is no cloud */
    char url[256];       /* "": it is in this process */
    char says[256];      /* of its weights, as in cloud.h: a fingerprint, sizes; "": nothing */
    char vocabulary[17]; /* fingerprint of the tokenizer, once it was compared; else "" */
};
/* Find out what r asks; e is the small model's engine. All is "" if that is nothing. */
void routed_identity(struct cloud_identity *out, const struct routing *r,
                     const struct stand_in *server, const struct engine *e);

#endif
