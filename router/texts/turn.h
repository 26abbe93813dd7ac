/* turn.h - one at a time, in the order in which they come. Engines of one process share the
 * processors: two passes at once would each wait for the other's threads. */
#ifndef ROUTER_TEXTS_TURN_H
#define ROUTER_TEXTS_TURN_H

#include <pthread.h>
#include <stdint.h>

struct turn {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint64_t next, now; /* the number of the next one to come, and of that whose turn it is */
};

void turn_open(struct turn *t);
void turn_close(struct turn *t);
/* Wait until those who came before have given it back. NULL: nobody shares it, here and below. */
void turn_take(struct turn *t);
void turn_give(struct turn *t);

#endif
