/* answers.h - the cloud's answers that need no call: in memory and, with a file, from run to run.
 * answers_port.c looks here before it asks, and keeps here what a call brought. Threads may share
 * it.
 *
 * An answer is one token after one prefix. A used call's token goes to memory and file; a
 * further token of its reply goes to memory, and to the file when a text uses it. Faults are no
 * answers. The first answer to a prefix stays. Memory that holds 65,536 answers and the file's
 * begins anew. */
#ifndef NET_ANSWERS_ANSWERS_H
#define NET_ANSWERS_ANSWERS_H

#include "net/cloud_port.h"

struct err;
struct answers;

struct answers_options {
    const char *file;   /* as in answer_file.h, or NULL for none */
    uint64_t limit;     /* most bytes of the file; 0: 64 MiB */
    bool offline;       /* answer from the file alone, which is only read */
    uint64_t tokenizer; /* fingerprint of the tokenizer */
    size_t vocab;       /* ids from the file must be below this; others are ignored */
};

/* Open the file. ERR_ARG, ERR_IO, ERR_FORMAT, ERR_NOMEM. */
int answers_open(struct answers **out, const struct answers_options *o, struct err *err);
void answers_close(struct answers *c); /* NULL is fine */

/* Name the model that answers, as its server does, or by the server's URL. Before this, nothing is
 * found and nothing kept. Offline, NULL is the model of the file's first answer, NAME is also the
 * latest NAME@..., and a file without answers of this model is ERR_FORMAT. A second call with the
 * same model does nothing; with another one (the server was replaced meanwhile) it is ERR_REMOTE.
 * ERR_NOMEM. */
int answers_server(struct answers *c, const char *model, struct err *err);
/* The model's name, valid until answers_close; NULL before. */
const char *answers_model(struct answers *c);

/* Find the answer to a prefix. used: a text uses it now, so it goes to the file, and is in memory
 * from then on; else the look leaves no trace. CLOUD_UNKNOWN: there is none. */
enum cloud_sight answers_get(struct answers *c, const uint32_t *ids, size_t n, bool used,
                             uint32_t *id);
/* Keep an answer that a used call has brought; used as above. */
void answers_put(struct answers *c, const uint32_t *ids, size_t n, bool used, uint32_t id);
/* Forget what is in memory alone, so that what follows costs what it costs without it. */
void answers_forget(struct answers *c);

/* Give one line that a person should see (a torn line was cut off, the disk is full), each once.
 * False: there is none. */
bool answers_note(struct answers *c, struct err *note);

#endif
