/* answers.h - every answer that costs no call, behind one door: memo, store, record, replay.
 *
 * cloud.c asks here before it calls and tells here what it has learnt. Threads may share it. */
#ifndef NET_ANSWERS_ANSWERS_H
#define NET_ANSWERS_ANSWERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/answers/origin.h"

struct err;
struct answers;

struct answers_options {
    size_t memo;          /* answers kept in memory; 0: 65,536 */
    const char *store;    /* file, or NULL: none */
    uint64_t store_limit; /* bytes; 0: 64 MiB */
    const char *record;   /* file to append to, or NULL */
    const char *replay;   /* file to answer from, without a network, or NULL; then no other */
    uint64_t tokenizer;   /* its fingerprint */
    size_t vocab;         /* ids from a file must be below this, or are no answers */
};

/* Opens the files. ERR_ARG, ERR_IO, ERR_FORMAT, ERR_NOMEM. */
int answers_open(struct answers **out, const struct answers_options *o, struct err *err);
/* ERR_IO where the recording is incomplete. NULL is fine. */
int answers_close(struct answers *c, struct err *err);

/* Who answers: model as the server names it, or the server's URL where it names none; api its
 * dialect. Before this, nothing is found and nothing kept. A replay knows both from its file: there
 * model NULL takes the file's, another name is ERR_FORMAT. ERR_FORMAT also where a recording that
 * is continued is of another model; ERR_IO, ERR_NOMEM. Once; a second call with the same model does
 * nothing, with another one (the server was changed meanwhile) is ERR_REMOTE. */
int answers_server(struct answers *c, const char *model, const char *api, struct err *err);

/* True with --replay: no network at all. */
bool answers_replays(const struct answers *c);
const char *answers_model(const struct answers *c); /* the replay's; else what was told, or NULL */
const char *answers_api(const struct answers *c);

/* An answer that needs no call, or ORIGIN_NONE. In a replay, only what needed no call when it was
 * recorded, so that calls are counted as they were. */
enum origin answers_get(struct answers *c, const uint32_t *ids, size_t n, uint32_t *id);
/* The same without a trace: memo, store and recording stay as they are. For a token whose turn has
 * not come. */
enum origin answers_peek(struct answers *c, const uint32_t *ids, size_t n, uint32_t *id);
/* In a replay: what a call gave. The recorded fault (ERR_NET, ERR_REMOTE, ERR_TEXT) comes back as
 * it was; a prefix that is not there is ERR_NET and named: its length, its hash, its last ids. */
int answers_call(struct answers *c, const uint32_t *ids, size_t n, uint32_t *id, struct err *err);

/* The answer of a committed call: into memo, store and recording. */
void answers_put(struct answers *c, const uint32_t *ids, size_t n, uint32_t id);
/* A further token of a committed call's reply: into the memo. */
void answers_extra(struct answers *c, const uint32_t *ids, size_t n, uint32_t id);
/* A committed call that failed, code ERR_NET, ERR_REMOTE or ERR_TEXT, why without the key: into the
 * recording. Other codes are not kept. */
void answers_fault(struct answers *c, const uint32_t *ids, size_t n, int code, const char *why);

/* What a person should know and was not told yet (a torn tail was cut, the store's disk is full):
 * one line, or false. */
bool answers_note(struct answers *c, struct err *note);
/* ERR_IO, and why, where the recording is incomplete already. */
int answers_recorded(struct answers *c, struct err *err);

#endif
