/* engine.h - the model behind the stand-in: greedy, many askers at once.
 *
 * Questions wait in one queue. A few sessions ("slots") are kept; each holds the text it worked on
 * last, and a question goes to the free slot that shares most with it, so a growing prefix costs
 * its new tokens only. Workers take turns between the questions that have a slot: one chunk of
 * the prompt, or one token, then the next. So a long answer holds up nobody, and the first in the
 * queue gets the first slot that is free. The answer is the same whatever else is asked: a
 * session's bits depend on its own tokens alone. */
#ifndef TOOLS_STAND_IN_ENGINE_H
#define TOOLS_STAND_IN_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct stand_in_engine; /* any thread */
struct stand_in_job;    /* one question; belongs to who asked it */
struct tokenizer;

struct stand_in_options;

/* o: its isa, kv, threads, workers, slots, queue and context count here. ERR_FORMAT where the model
 * has no tokenizer. */
int stand_in_engine_open(struct stand_in_engine **out, const char *path,
                         const struct stand_in_options *o, struct err *err);
/* All jobs have been dropped. NULL is fine. */
void stand_in_engine_close(struct stand_in_engine *e);

size_t stand_in_engine_vocab(const struct stand_in_engine *e);
size_t stand_in_engine_context(const struct stand_in_engine *e);
size_t stand_in_engine_trained(const struct stand_in_engine *e); /* positions of the model */
size_t stand_in_engine_slots(struct stand_in_engine *e);
/* Slot i works on something. */
bool stand_in_engine_busy(struct stand_in_engine *e, size_t i);
/* Questions that wait for a slot. */
size_t stand_in_engine_waiting(struct stand_in_engine *e);
const struct tokenizer *stand_in_engine_tokenizer(const struct stand_in_engine *e);
/* From now on every job, new or old, ends with ERR_STOP. */
void stand_in_engine_stop(struct stand_in_engine *e);

struct stand_in_wish {
    const uint32_t *prompt; /* [n], n >= 1, ids below vocab; copied */
    size_t n, max;          /* at most max >= 1 tokens; n + max - 1 <= context */
    bool go_on;             /* past end-of-text */
    long slot;              /* this one, if it exists; -1: any */
};

struct stand_in_text {
    const uint32_t *ids; /* [n], end-of-text included; the job's */
    const uint64_t *at;  /* [n] os_now_ns() when each was known */
    size_t n;
    bool finished; /* no more will come */
    bool ended;    /* by end-of-text */
    int rc;        /* of the finished job: OK, ERR_STOP, ERR_NOMEM, ERR_ARG */
    size_t slot;
    size_t cached; /* tokens of the prompt that were not computed again */
    double prompt_ms, text_ms;
};

/* Returns at once. ERR_NET: the queue is full; ERR_STOP; ERR_NOMEM; ERR_ARG. */
int stand_in_engine_ask(struct stand_in_engine *e, struct stand_in_job **out,
                        const struct stand_in_wish *wish, struct err *err);
/* Waits at most ms milliseconds until there are more than have tokens or the job is finished; what
 * there is then. */
struct stand_in_text stand_in_engine_wait(struct stand_in_job *j, size_t have, unsigned ms);
/* Frees; its slot is free as soon as the step in progress is over. NULL is fine. */
void stand_in_engine_drop(struct stand_in_job *j);

#endif
