/* routers_help.h - shared by ahead_help.h and texts_help.h: the tiny model with a router of each
 * kind, and a second batch of it for what texts are alone and for what a cloud says. */
#ifndef TESTS_ROUTER_ROUTERS_HELP_H
#define TESTS_ROUTER_ROUTERS_HELP_H

#include "tests/router/loop_help.h"

static struct engine engine;
static struct batch *others; /* of `other`, which computes between the passes of the loop */
static struct session *session, *other;
static struct router *network, *table;  /* for mlp and for context */
static struct router *combined, *mixed; /* with features */
static struct router *gain, *blind;     /* and of several members, with and without hidden states */
static struct router *deep;             /* of several layers */

/* Open all of them; `session` is one of the engine's own batch, or of the second one. */
static inline void routers_open(bool own)
{
    const struct engine_options o = { .model = tiny_make(), .threads = 1 };
    CHECK(engine_open(&engine, &o, true, NULL) == OK);
    size_t hidden = engine.model->config.hidden;
    network = network_open(&engine);
    table = table_open(&engine.kernels);
    combined = featured_open(&engine, 0, 1);
    mixed = featured_open(&engine, hidden, 1);
    gain = featured_open(&engine, hidden, 4);
    blind = featured_open(&engine, 0, 4);
    deep = deep_random(&engine);
    CHECK(batch_open(&others, engine.model, NULL, NULL) == OK);
    CHECK(session_open(&session, own ? engine.batch : others, TINY_CONTEXT, KVCACHE_F32, NULL) ==
          OK);
    CHECK(session_open(&other, others, TINY_CONTEXT, KVCACHE_F32, NULL) == OK);
}

static inline void routers_close(void)
{
    struct router *all[] = { network, table, combined, mixed, gain, blind, deep };
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        router_close(all[i]);
    session_close(session);
    session_close(other);
    batch_close(others);
    engine_close(&engine);
}

#endif
