/* port.h - what the simulated clouds of the tests have alike: a key for each prefix, a session that
 * is brought to one, and the functions of a cloud_port.h that need not do anything of their own. */
#ifndef TESTS_SUPPORT_PORT_H
#define TESTS_SUPPORT_PORT_H

#include "kernels/math.h"
#include "kernels/sys/base.h"
#include "model/session.h"
#include "router/cloud_port.h"
#include "tests/support/test.h"

/* Return a key for ids[n], another one from any other beginning. */
static inline uint64_t port_key(uint64_t key, const uint32_t *ids, size_t n)
{
    for (size_t i = 0; i < n; i++)
        key = rand_u64(key, ids[i]);
    return key;
}

/* Bring a session to ids[n], whose last one is evaluated in any case. */
static inline void port_reach(struct session *s, const uint32_t *ids, size_t n)
{
    size_t same = 0, length = session_length(s);
    const uint32_t *have = session_ids(s);
    while (same < length && same + 1 < n && have[same] == ids[same])
        same++;
    session_rewind(s, same);
    CHECK(session_eval(s, ids + same, n - same, NULL, NULL) == OK);
}

static inline struct traffic port_traffic(void *arg, const struct cloud_tally *tally)
{
    (void)arg;
    return tally->traffic;
}

static inline void port_end_tally(void *arg, struct cloud_tally *tally)
{
    (void)arg, (void)tally;
}

#endif
