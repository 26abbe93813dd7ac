/* port.h - what the simulated clouds of the tests have alike: a key for each prefix, a session that
 * is brought to one, and the functions of a port that need not do anything of their own; and a
 * client of a server, and one token of it, asked for and awaited. */
#ifndef TESTS_SUPPORT_PORT_H
#define TESTS_SUPPORT_PORT_H

#include "model/session.h"
#include "net/cloud.h"
#include "tests/support/test.h"

/* Return a key for ids[n], another one from any other beginning. */
static inline uint64_t port_key(uint64_t seed, const uint32_t *ids, size_t n)
{
    for (size_t i = 0; i < n; i++)
        seed = rand_u64(seed, ids[i]);
    return seed;
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

static inline struct traffic port_traffic(void *arg, struct cloud_tally *tally, bool last)
{
    (void)arg, (void)last;
    return tally->traffic;
}

/* Open a client of the server at this URL: of OpenAI's dialect and the model "m" with 1000 ids,
 * unless o says otherwise. */
static inline struct cloud *port_open(const char *url, struct cloud_options o)
{
    struct cloud *c;
    struct err err = { "" };
    o.url = url;
    o.api = o.api ? o.api : CLOUD_OPENAI;
    o.model = o.model ? o.model : "m";
    o.vocab = o.vocab ? o.vocab : 1000;
    CHECK_MSG(cloud_open(&c, &o, &err) == OK, "%s", err.msg);
    return c;
}

/* Ask for as many tokens as the cloud allows, and wait for the first one. */
static inline int port_next(struct cloud *c, const uint32_t *ids, size_t n, uint32_t *id,
                            struct err *err)
{
    void *call;
    int rc = cloud_ask(c, ids, n, CLOUD_MAX_TOKENS, NULL, &call, err);
    if (rc)
        return rc;
    rc = cloud_take(call, 0, id, err);
    cloud_end(call, CLOUD_USE);
    return rc;
}

#endif
