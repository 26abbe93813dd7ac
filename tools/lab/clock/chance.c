#include "tools/lab/clock/chance.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* Hash table of the prefixes whose attempts are counted. When it is full, prefixes that collide
 * start over. */
enum { PLACES = 1 << 18, PROBES = 8 };

struct place {
    uint64_t hash;
    uint64_t asked;
};

struct stand_in_chance {
    uint64_t seed;
    pthread_mutex_t lock;
    struct place places[PLACES];
};

/* The finisher of splitmix64 (Steele, Lea, Flood 2014). */
static uint64_t stand_in_chance_mix(uint64_t x)
{
    x += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

struct stand_in_chance *stand_in_chance_open(uint64_t seed)
{
    struct stand_in_chance *d = calloc(1, sizeof(*d));
    if (!d)
        return NULL;
    d->seed = seed;
    pthread_mutex_init(&d->lock, NULL);
    return d;
}

void stand_in_chance_close(struct stand_in_chance *d)
{
    if (!d)
        return;
    pthread_mutex_destroy(&d->lock);
    free(d);
}

/* Count an attempt for the prefix and return the number of earlier ones. */
static uint64_t attempt_of(struct stand_in_chance *d, uint64_t hash)
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

static uint64_t stand_in_chance_hash(const uint32_t *ids, size_t n)
{
    uint64_t hash = n;
    for (size_t i = 0; i < n; i++)
        hash = stand_in_chance_mix(hash ^ ids[i]);
    return hash;
}

uint64_t stand_in_chance_key(struct stand_in_chance *d, const uint32_t *ids, size_t n)
{
    uint64_t hash = stand_in_chance_hash(ids, n);
    return stand_in_chance_mix(stand_in_chance_mix(d->seed ^ hash) + attempt_of(d, hash));
}

double stand_in_chance_unit(uint64_t key, uint64_t purpose)
{
    return (double)(stand_in_chance_mix(key ^ stand_in_chance_mix(purpose)) >> 11) /
           9007199254740992.0;
}
