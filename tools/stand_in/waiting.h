/* waiting.h - the time that a server's threads spend waiting: until an answer is due, the
 * client has gone, or the server closes. */
#ifndef TOOLS_STAND_IN_WAITING_H
#define TOOLS_STAND_IN_WAITING_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { STAND_IN_SLICE_MS = 25 }; /* how often a waiting thread looks whether its client is there */

struct stand_in_waiting {
    pthread_mutex_t lock;
    pthread_cond_t change; /* of busy or closing */
    size_t busy;           /* requests between first byte and last */
    size_t bytes;          /* of request bodies in memory */
    bool closing;
};

void stand_in_waiting_open(struct stand_in_waiting *h);
void stand_in_waiting_close(struct stand_in_waiting *h);

void stand_in_waiting_enter(struct stand_in_waiting *h);
void stand_in_waiting_leave(struct stand_in_waiting *h);
/* False where all bodies together would be more than most. */
bool stand_in_waiting_claim(struct stand_in_waiting *h, size_t bytes, size_t most);
void stand_in_waiting_release(struct stand_in_waiting *h, size_t bytes);

/* Until os_now_ns() is `until`, or the server closes. False: the client behind fd has gone. */
bool stand_in_waiting_until(struct stand_in_waiting *h, int fd, uint64_t until);
bool stand_in_waiting_gone(int fd);
bool stand_in_waiting_closing(struct stand_in_waiting *h);

/* Closing begins; returns when nothing is busy, or after ms. */
void stand_in_waiting_drain(struct stand_in_waiting *h, unsigned ms);

#endif
