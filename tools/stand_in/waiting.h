/* waiting.h - waiting of the server's threads: until an answer is due, the client has gone, or the
 * server closes. */
#ifndef TOOLS_STAND_IN_WAITING_H
#define TOOLS_STAND_IN_WAITING_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { STAND_IN_SLICE_MS = 25 }; /* interval at which a waiting thread checks on its client */

struct stand_in_waiting {
    pthread_mutex_t lock;
    pthread_cond_t change; /* signalled when busy or closing changes */
    size_t busy;           /* requests in progress */
    size_t bytes;          /* request bodies in memory */
    bool closing;
};

void stand_in_waiting_open(struct stand_in_waiting *h);
void stand_in_waiting_close(struct stand_in_waiting *h);

/* Count a request in or out; stand_in_waiting_drain waits for the count to reach zero. */
void stand_in_waiting_enter(struct stand_in_waiting *h);
void stand_in_waiting_leave(struct stand_in_waiting *h);
/* Claim bytes of memory for a body. False if all bodies together would take more than `most`. */
bool stand_in_waiting_claim(struct stand_in_waiting *h, size_t bytes, size_t most);
void stand_in_waiting_release(struct stand_in_waiting *h, size_t bytes);

/* Wait until os_now_ns() reaches `until` or the server closes. False: the client on fd has
 * disconnected. */
bool stand_in_waiting_until(struct stand_in_waiting *h, int fd, uint64_t until);
/* True if the client on fd has closed its side of the connection. */
bool stand_in_waiting_gone(int fd);
bool stand_in_waiting_closing(struct stand_in_waiting *h);

/* Begin closing: wake all waiting threads, and return when no request is in progress or after
 * ms. */
void stand_in_waiting_drain(struct stand_in_waiting *h, unsigned ms);

#endif
