#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

#include "tools/stand_in_delay.h"

/* Prefixes whose number of askings is remembered; beyond that, the ones that share a place start
 * over. */
enum { PLACES = 1 << 16, PROBES = 8 };

struct place {
    uint64_t hash;
    uint64_t asked;
};

struct stand_in_delay {
    unsigned latency_ms, jitter_ms;
    uint64_t seed;
    pthread_mutex_t lock;
    struct place places[PLACES];
};

/* splitmix64's finisher (Steele, Lea, Flood 2014). */
static uint64_t mix(uint64_t x)
{
    x += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

struct stand_in_delay *stand_in_delay_open(unsigned latency_ms, unsigned jitter_ms, uint64_t seed)
{
    struct stand_in_delay *d = calloc(1, sizeof(*d));
    if (!d)
        return NULL;
    d->latency_ms = latency_ms;
    d->jitter_ms = jitter_ms;
    d->seed = seed;
    pthread_mutex_init(&d->lock, NULL);
    return d;
}

void stand_in_delay_close(struct stand_in_delay *d)
{
    if (!d)
        return;
    pthread_mutex_destroy(&d->lock);
    free(d);
}

static uint64_t attempt_of(struct stand_in_delay *d, uint64_t hash)
{
    struct place *p = NULL;
    pthread_mutex_lock(&d->lock);
    for (size_t i = 0; i < PROBES; i++) {
        p = &d->places[(hash + i) % PLACES];
        if (p->hash == hash || !p->asked)
            break;
    }
    if (p->hash != hash) {
        p->hash = hash;
        p->asked = 0;
    }
    uint64_t attempt = p->asked++;
    pthread_mutex_unlock(&d->lock);
    return attempt;
}

uint64_t stand_in_delay_draw(struct stand_in_delay *d, const uint32_t *ids, size_t n)
{
    uint64_t base = d->latency_ms * UINT64_C(1000), swing = d->jitter_ms * UINT64_C(1000);
    if (!swing)
        return base;
    uint64_t hash = n;
    for (size_t i = 0; i < n; i++)
        hash = mix(hash ^ ids[i]);
    uint64_t at = mix(mix(d->seed ^ hash) + attempt_of(d, hash)) % (2 * swing + 1);
    return base + at > swing ? base + at - swing : 0;
}
