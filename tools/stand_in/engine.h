/* engine.h - runs the model of the stand-in: greedy decoding for many requests at once.
 *
 * Questions wait in one queue. The engine keeps a few sessions ("slots"), each of which holds the
 * text it worked on last. A question goes to the free slot that shares the longest prefix with it,
 * so a growing prefix costs only its new tokens. All questions that have a slot are computed in one
 * pass (model/batch.h), a token or a piece of the prompt each. So a long answer does not block
 * others, and the first question in the queue gets the first free slot. The answer is the same
 * whatever else is in progress, because the bits of a session depend on its own tokens alone. */
#ifndef TOOLS_STAND_IN_ENGINE_H
#define TOOLS_STAND_IN_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct stand_in_engine; /* any thread may use it */
struct stand_in_job;    /* one question; belongs to the caller */
struct tokenizer;

struct stand_in_options;

/* Open the model and start the engine. Of o, isa, kv, threads, slots, queue, context, say
 * and oracle are used. ERR_FORMAT if the model has no tokenizer; errors of known_texts_open. */
int stand_in_engine_open(struct stand_in_engine **out, const char *path,
                         const struct stand_in_options *o, struct err *err);
/* Free the engine; all jobs must have been dropped. NULL is fine. */
void stand_in_engine_close(struct stand_in_engine *e);

size_t stand_in_engine_vocab(const struct stand_in_engine *e);
size_t stand_in_engine_context(const struct stand_in_engine *e);
size_t stand_in_engine_trained(const struct stand_in_engine *e); /* context of the model */
size_t stand_in_engine_slots(struct stand_in_engine *e);
/* True while slot i works on a question. */
bool stand_in_engine_busy(struct stand_in_engine *e, size_t i);
/* Return the number of questions that wait for a slot. */
size_t stand_in_engine_waiting(struct stand_in_engine *e);
const struct tokenizer *stand_in_engine_tokenizer(const struct stand_in_engine *e);
/* End every job, present or future, with ERR_STOP. */
void stand_in_engine_stop(struct stand_in_engine *e);

/* A question for the engine. */
struct stand_in_wish {
    const uint32_t *prompt; /* [n], n >= 1, ids below vocab; copied */
    size_t n, max;          /* at most max tokens, max >= 1; n + max - 1 <= context */
    bool go_on;             /* continue past end-of-text */
    long slot;              /* use this slot if it exists; -1: any */
};

/* What a job has produced so far. */
struct stand_in_text {
    const uint32_t *ids; /* [n], end-of-text included; owned by the job */
    const uint64_t *at;  /* [n], os_now_ns() when each was computed */
    size_t n;
    bool finished; /* no more tokens will follow */
    bool ended;    /* stopped at end-of-text */
    int rc;        /* result of a finished job: OK, ERR_STOP, ERR_NOMEM, ERR_ARG; ERR_TEXT: there is
                      no model, and no known text begins like this */
    size_t slot;
    size_t cached; /* prompt tokens that were in the slot already */
    double prompt_ms, text_ms;
};

/* Queue a question and return at once. ERR_NET: the queue is full; ERR_STOP; ERR_NOMEM; ERR_ARG. */
int stand_in_engine_ask(struct stand_in_engine *e, struct stand_in_job **out,
                        const struct stand_in_wish *wish, struct err *err);
/* Wait up to ms milliseconds until there are more than `have` tokens or the job is finished, and
 * return what there is then. */
struct stand_in_text stand_in_engine_wait(struct stand_in_job *j, size_t have, unsigned ms);
/* Free the job; its slot becomes free when the step in progress is over. NULL is fine. */
void stand_in_engine_drop(struct stand_in_job *j);

#endif
