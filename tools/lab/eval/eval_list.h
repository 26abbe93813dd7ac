/* eval_list.h - the policies of `mizzle eval`, and the routers that they name. */
#ifndef TOOLS_LAB_EVAL_EVAL_LIST_H
#define TOOLS_LAB_EVAL_EVAL_LIST_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "kernels/sys/sha256.h"
#include "router/policy_kind.h"

struct engine;
struct err;
struct router;

enum { EVAL_POLICIES = 40, EVAL_LABEL = 64 };

struct eval_entry {
    enum policy policy;
    bool slot;                   /* policy slot: always, after the text of slot=TEXT (asking.h) */
    bool query;                  /* policy query: mlp's score of the first token, for the answer */
    char *file;                  /* of NAME=FILE; NULL: the one beside the model */
    struct router *router;       /* NULL: none, or not open yet */
    char label[EVAL_LABEL];      /* for people: "mlp", or "mlp=" and the file without its folders;
                                  * the second of that name ends with #2 */
    struct {                     /* of its router, once it is open; "": none, or not known */
        char name[EVAL_LABEL];   /* file without its folders, numbered as the label is */
        char sha256[SHA256_HEX]; /* of the file */
        char fingerprint[17];    /* of the model that it is bound to */
    } known;
};

struct eval_list {
    struct eval_entry at[EVAL_POLICIES];
    size_t n;
    char *text; /* of which the files are parts */
};

/* Parse policies separated by commas; those that need a router may name it: "never,mlp,mlp=FILE".
 * ERR_ARG names the one that is unknown; ERR_NOMEM. On error *out is empty. */
int eval_list_parse(struct eval_list *out, const char *text, struct err *err);
/* Open the routers of all entries that read one, and note what they are. Without a file it is the
 * one that routing_find_router finds. Prints a note for each that was calibrated with other
 * weights. ERR_ARG: none is there, or one of the other kind; the errors of setup_options and
 * routing_router.
 */
int eval_list_open(struct eval_list *l, const struct engine *engine, struct err *err);
void eval_list_close(struct eval_list *l); /* all zero is fine */
/* Return the policies with what is known of their routers; NULL: out of memory. */
json_t *eval_list_json(const struct eval_list *l);

/* Return the name of its policy. */
const char *eval_entry_policy(const struct eval_entry *e);
/* True for the policies that have a threshold, which decides what share they route. */
bool eval_entry_scores(const struct eval_entry *e);
/* True if one of the policies may need the cloud. */
bool eval_list_asks(const struct eval_list *l);

#endif
