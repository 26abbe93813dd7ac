/* quota.h - how many tokens may still be asked for. Who decides on a call takes its tokens; the
 * network thread takes those of a request that goes out again, and gives back what never went
 * out. */
#ifndef NET_QUOTA_H
#define NET_QUOTA_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct quota {
    uint64_t most; /* UINT64_MAX: no limit */
    _Atomic uint64_t taken;
};

/* Take n tokens. False: that many are not left. */
static inline bool quota_take(struct quota *q, uint64_t n)
{
    uint64_t had = atomic_load(&q->taken);
    do {
        if (n > q->most || had > q->most - n)
            return false;
    } while (!atomic_compare_exchange_weak(&q->taken, &had, had + n));
    return true;
}

#endif
