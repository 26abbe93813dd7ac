#include "tools/stand_in/waiting.h"

#include <errno.h>
#include <sys/socket.h>
#include <time.h>

#include "kernels/sys/os.h"

void stand_in_waiting_open(struct stand_in_waiting *h)
{
    pthread_mutex_init(&h->lock, NULL);
    pthread_cond_init(&h->change, NULL);
}

void stand_in_waiting_close(struct stand_in_waiting *h)
{
    pthread_cond_destroy(&h->change);
    pthread_mutex_destroy(&h->lock);
}

void stand_in_waiting_enter(struct stand_in_waiting *h)
{
    pthread_mutex_lock(&h->lock);
    h->busy++;
    pthread_mutex_unlock(&h->lock);
}

void stand_in_waiting_leave(struct stand_in_waiting *h)
{
    pthread_mutex_lock(&h->lock);
    h->busy--;
    pthread_cond_broadcast(&h->change);
    pthread_mutex_unlock(&h->lock);
}

bool stand_in_waiting_claim(struct stand_in_waiting *h, size_t bytes, size_t most)
{
    pthread_mutex_lock(&h->lock);
    bool fits = bytes <= most && h->bytes <= most - bytes;
    if (fits)
        h->bytes += bytes;
    pthread_mutex_unlock(&h->lock);
    return fits;
}

void stand_in_waiting_release(struct stand_in_waiting *h, size_t bytes)
{
    pthread_mutex_lock(&h->lock);
    h->bytes -= bytes;
    pthread_mutex_unlock(&h->lock);
}

/* A client has gone if its stream ends or holds a TLS record as short as an alert. While a client
 * awaits an answer, no other input is expected; one that sends its next request early sends
 * more. */
bool stand_in_waiting_gone(int fd)
{
    enum { ALERT = 21, DATA = 23, SHORT = 5 + 26 };
    unsigned char seen[64];
    ssize_t n = fd < 0 ? 1 : recv(fd, seen, sizeof(seen), MSG_PEEK | MSG_DONTWAIT);
    if (n < 0)
        return errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR;
    return n == 0 || (n >= 5 && n <= SHORT && (seen[0] == ALERT || seen[0] == DATA) &&
                      seen[1] == 3 && seen[3] == 0 && seen[4] + 5 == n);
}

/* Wait for a change, for at most ns or one slice. Called with the lock held. */
static void stand_in_waiting_slice(struct stand_in_waiting *h, uint64_t ns)
{
    struct timespec t;
    uint64_t most = STAND_IN_SLICE_MS * UINT64_C(1000000);
    clock_gettime(CLOCK_REALTIME, &t);
    uint64_t at = (uint64_t)t.tv_nsec + (ns < most ? ns : most);
    t.tv_sec += (time_t)(at / 1000000000);
    t.tv_nsec = (long)(at % 1000000000);
    pthread_cond_timedwait(&h->change, &h->lock, &t);
}

bool stand_in_waiting_until(struct stand_in_waiting *h, int fd, uint64_t until)
{
    bool gone = false;
    pthread_mutex_lock(&h->lock);
    for (uint64_t now = os_now_ns(); !h->closing && !gone && now < until; now = os_now_ns()) {
        stand_in_waiting_slice(h, until - now);
        gone = stand_in_waiting_gone(fd);
    }
    pthread_mutex_unlock(&h->lock);
    return !gone;
}

bool stand_in_waiting_closing(struct stand_in_waiting *h)
{
    pthread_mutex_lock(&h->lock);
    bool closing = h->closing;
    pthread_mutex_unlock(&h->lock);
    return closing;
}

void stand_in_waiting_drain(struct stand_in_waiting *h, unsigned ms)
{
    uint64_t until = os_now_ns() + ms * UINT64_C(1000000);
    pthread_mutex_lock(&h->lock);
    h->closing = true;
    pthread_cond_broadcast(&h->change);
    for (uint64_t now = os_now_ns(); h->busy && now < until; now = os_now_ns())
        stand_in_waiting_slice(h, until - now);
    pthread_mutex_unlock(&h->lock);
}
