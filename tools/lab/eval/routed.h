/* routed.h - routing for the commands that measure, with the notes and errors of setup.h. */
#ifndef TOOLS_LAB_EVAL_ROUTED_H
#define TOOLS_LAB_EVAL_ROUTED_H

#include "router/engine.h"
#include "router/routing.h"

struct err;

/* Open what all shared options ask for, and print the notes. Errors of setup_options,
 * setup_large_model and routing_open. *r must not move afterwards. */
int routed_open(struct routing *r, const struct engine *e, struct err *err);
void routed_close(struct routing *r); /* prints the remaining notes */

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
void routed_identity(struct cloud_identity *out, const struct routing *r, const struct engine *e);

#endif
