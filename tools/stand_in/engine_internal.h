/* engine_internal.h - what the files of the engine share. */
#ifndef TOOLS_STAND_IN_ENGINE_INTERNAL_H
#define TOOLS_STAND_IN_ENGINE_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "kernels/kernels.h"
#include "kernels/sys/pool.h"
#include "model/batch.h"
#include "model/model.h"
#include "model/text/tokenizer.h"
#include "tools/stand_in/engine.h"
#include "tools/stand_in/slots.h"
#include "tools/stand_in/stand_in.h"

enum { WORKERS_MAX = 16 };

enum state { WAITING, READY, RUNNING, FINISHED };

struct stand_in_job {
    struct stand_in_engine *engine;
    struct stand_in_job *next; /* in the queue or the ready list */
    enum state state;
    bool dropped;
    size_t n, max;
    long wanted;
    bool go_on;
    struct stand_in_slot *slot;
    size_t cached, fed; /* fed: tokens of prompt and text that the session holds */
    int rc;             /* of its latest step */
    bool told;          /* which has computed next_id */
    uint32_t next_id;
    _Atomic int stop; /* checked between layers */
    pthread_cond_t news;
    struct stand_in_text text;
    uint64_t *at;
    uint32_t ids[]; /* [n + max] */
};

struct list {
    struct stand_in_job *first, **end;
};

struct stand_in_engine {
    struct kernels kernels;
    struct pool *pool;
    struct model *model;   /* NULL with an oracle or with a vocabulary alone */
    struct batch *batch;   /* likewise */
    struct tokenizer *own; /* NULL with an oracle */
    const struct tokenizer *tokenizer;
    struct known_texts *known;     /* or NULL */
    struct stand_in_oracle oracle; /* next is NULL if there is none */
    size_t size, vocab, trained;   /* size: ids that the model may choose */
    size_t limit, waiting;
    pthread_mutex_t lock;
    pthread_cond_t work;
    struct stand_in_slots slots;
    struct list queue, ready;
    bool look; /* a slot was freed or a question added: run stand_in_engine_admit */
    bool stopped, closing;
    _Atomic int halt; /* ends a pass */
    size_t nworkers;
    pthread_t workers[WORKERS_MAX];
};

/* Thread function: run one step of all jobs that have a slot, or without a model of the one whose
 * turn it is, until the engine closes. */
void *stand_in_engine_work(void *engine);

#endif
