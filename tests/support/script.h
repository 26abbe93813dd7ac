/* script.h - a cloud without a network for several texts at once. Its answers depend on the prefix
 * alone; they arrive after a number of looks, and a thread of its own says again and again that
 * something may have come. */
#ifndef TESTS_SUPPORT_SCRIPT_H
#define TESTS_SUPPORT_SCRIPT_H

#include <pthread.h>

#include "net/cloud_port.h"

struct sampler;
struct session;

struct script {
    struct cloud_port port;
    /* What it answers; shares are in percent of all prefixes. */
    uint64_t seed;
    unsigned agree;       /* as the small model would, of the greedy kind */
    unsigned unfit;       /* with ERR_TEXT */
    unsigned store;       /* known without a call */
    size_t tokens;        /* of a reply; 0: 1. Those after the first are known from then on */
    size_t delay;         /* most looks until an answer has come */
    bool dead;            /* no answer ever comes */
    size_t size;          /* ids are below this */
    struct session *edge; /* of another batch: the small model */
    struct sampler *greedy;
    uint64_t *kept; /* [nkept]: keys of prefixes whose answers are known */
    size_t nkept;
    size_t live; /* calls that have not ended */
    /* The thread. */
    pthread_mutex_t lock;
    pthread_t thread;
    void (*notify)(void *arg);
    void *notify_arg;
    bool closing;
};

/* Fill in the port and start the thread; what it answers has been set. */
void script_open(struct script *s);
void script_close(struct script *s);
/* Forget what has become known. */
void script_forget(struct script *s);

#endif
