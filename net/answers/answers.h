/* answers.h - every answer that costs no call, behind one interface: memo, store, recording,
 * replay. cloud*.c ask here before they call, and report here what a call brought. Threads may
 * share it. */
#ifndef NET_ANSWERS_ANSWERS_H
#define NET_ANSWERS_ANSWERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/answers/answer_origin.h"

struct err;
struct answers;

struct answers_options {
    size_t memo;          /* most answers kept in memory; 0: 65,536 */
    const char *store;    /* file, or NULL for none */
    uint64_t store_limit; /* bytes; 0: 64 MiB */
    const char *record;   /* file to append to, or NULL */
    const char *replay;   /* file to answer from, without a network; NULL, or no other file */
    uint64_t tokenizer;   /* fingerprint of the tokenizer */
    size_t vocab;         /* ids from a file must be below this; others are ignored */
};

/* Open the files. ERR_ARG, ERR_IO, ERR_FORMAT, ERR_NOMEM. */
int answers_open(struct answers **out, const struct answers_options *o, struct err *err);
/* Close everything. ERR_IO: the recording is incomplete. NULL is fine. */
int answers_close(struct answers *c, struct err *err);

/* Name the server that answers: model is its name there, or the server's URL if it has none; api is
 * its dialect. Before this, nothing is found and nothing kept. A replay knows both from its file:
 * model NULL takes those, another name is ERR_FORMAT. ERR_FORMAT also when a recording to be
 * continued is of another model; ERR_IO, ERR_NOMEM. A second call with the same model does nothing;
 * with another one (the server was replaced meanwhile) it is ERR_REMOTE. */
int answers_server(struct answers *c, const char *model, const char *api, struct err *err);

/* True with a replay file: there is no network at all. */
bool answers_replays(const struct answers *c);
/* The model and the dialect: the replay's, or what answers_server was given; NULL before. */
const char *answers_model(const struct answers *c);
const char *answers_api(const struct answers *c);

/* Find an answer that needs no call, and keep it where the next look finds it first. In a replay,
 * find only what needed no call when it was recorded, so that calls are counted as they were then.
 * ORIGIN_NONE: there is none. */
enum origin answers_get(struct answers *c, const uint32_t *ids, size_t n, uint32_t *id);
/* Find an answer without a trace: memo, store and recording stay as they are. For a token whose
 * turn has not come. */
enum origin answers_peek(struct answers *c, const uint32_t *ids, size_t n, uint32_t *id);
/* In a replay, return what a call after this prefix brought then. A recorded fault (ERR_NET,
 * ERR_REMOTE, ERR_TEXT) comes back as it was; a prefix that is missing is ERR_NET with its length,
 * hash and last ids in err. */
int answers_replay(struct answers *c, const uint32_t *ids, size_t n, uint32_t *id, struct err *err);

/* Keep what a committed call brought: with OK its id in memo, store and recording; with ERR_NET,
 * ERR_REMOTE or ERR_TEXT the fault and why in the recording alone; other codes are ignored. why
 * must not hold the API key. */
void answers_put(struct answers *c, const uint32_t *ids, size_t n, int code, uint32_t id,
                 const char *why);
/* Keep a further token of a committed call's reply, in the memo alone. */
void answers_extra(struct answers *c, const uint32_t *ids, size_t n, uint32_t id);
/* Empty the memo, so that what follows costs what it costs without it. */
void answers_forget(struct answers *c);

/* Give one line that a person should see (a torn tail was cut off, the store's disk is full), each
 * once. False: there is none. */
bool answers_note(struct answers *c, struct err *note);
/* Return ERR_IO and the reason if the recording is already incomplete. */
int answers_recorded(struct answers *c, struct err *err);

#endif
