/* collect_help.h - for t_collect.c: what edge and cloud say after a prefix, which answers are
 * right, and a cloud behind the port of cloud_port.h that says so. */
#ifndef TESTS_ROUTER_COLLECT_HELP_H
#define TESTS_ROUTER_COLLECT_HELP_H

#include "router/learn/collect.h"

#include <string.h>

#include "kernels/sys/base.h"
#include "kernels/math.h"
#include "model/model.h"
#include "model/text/tokenizer.h"
#include "router/cloud_port.h"
#include "router/engine.h"
#include "tests/support/test.h"
#include "tests/support/tiny.h"

enum { TEXTS = 20, WRITTEN = 10, MEMO = 1 << 14, LONG = 2, TOO_LONG = 3, BARE = 5, REFUSED = 7 };
enum { REFUSED_ID = 254 }; /* the cloud refuses texts that begin with it */

static struct engine engine;
static struct batch *plains; /* of `plain`, which computes between the passes of the loop */
static struct session *session, *plain; /* of the code under test; of the definitions */
static struct sampler *sampler;
static struct router *router;
static float scratch[4096];
static struct collect_text texts[TEXTS];

static inline uint64_t key_of(const uint32_t *ids, size_t n)
{
    uint64_t key = n;
    for (size_t i = 0; i < n; i++)
        key = rand_u64(key, ids[i]);
    return key;
}

/* Bring the plain session to this prefix. */
static inline void reach(const uint32_t *ids, size_t n)
{
    size_t same = 0;
    const uint32_t *have = session_ids(plain);
    while (same < session_length(plain) && same + 1 < n && have[same] == ids[same])
        same++;
    session_rewind(plain, same);
    CHECK(session_eval(plain, ids + same, n - same, NULL, NULL) == OK);
}

static inline uint32_t edge_says(const uint32_t *ids, size_t n)
{
    reach(ids, n);
    return (uint32_t)engine.kernels.argmax_f32(session_logits(plain, 0),
                                               tokenizer_size(engine.tokenizer));
}

/* The cloud: often the edge's token, sometimes the end, else a random id. */
static inline uint32_t cloud_says(const uint32_t *ids, size_t n)
{
    uint64_t draw = rand_below(1, key_of(ids, n), 100);
    return draw < 45   ? edge_says(ids, n)
           : draw < 60 ? TINY_EOS
                       : (uint32_t)rand_below(2, key_of(ids, n), TINY_IM_END);
}

static inline bool is_end(uint32_t id)
{
    return id == TINY_EOS || id == TINY_IM_END;
}

static inline bool is_right(const uint32_t *ids, size_t n)
{
    return rand_below(3, key_of(ids, n), 100) < 45;
}

static inline int judge(void *arg, bool *right, size_t text, const uint32_t *ids, size_t n,
                        struct err *err)
{
    (void)arg;
    (void)err;
    CHECK(text < TEXTS && n && n + texts[text].prompt <= TINY_CONTEXT + 1);
    *right = is_right(ids, n);
    return OK;
}

/* A cloud behind the port. It checks that calls are ended once, and at most 16 are in flight. */
static struct fake {
    struct call {
        bool live, taken;
        size_t n, tokens;
        uint32_t ids[TINY_CONTEXT];
    } calls[COLLECT_CALLS];
    size_t live, most, asked, tokens, fails_after;
    unsigned stored;            /* percent of all prefixes that need no call */
    uint64_t memo[MEMO], nmemo; /* keys of the further tokens of replies */
    uint64_t order;             /* hash of all commits */
} fake;

static inline enum origin known(void *arg, const uint32_t *ids, size_t n, uint32_t *id)
{
    (void)arg;
    uint64_t key = key_of(ids, n);
    bool in = ids[0] != REFUSED_ID && rand_below(4, key, 100) < fake.stored;
    for (size_t i = 0; !in && i < fake.nmemo; i++)
        in = fake.memo[i] == key;
    if (in)
        *id = cloud_says(ids, n);
    return in ? ORIGIN_MEMO : ORIGIN_NONE;
}

static inline size_t tokens(void *arg)
{
    (void)arg;
    return fake.tokens;
}

static inline int ask(void *arg, const uint32_t *ids, size_t n, size_t want,
                      struct cloud_tally *tally, void **call, struct err *err)
{
    (void)arg;
    (void)tally;
    (void)err;
    size_t at = 0;
    while (at < COLLECT_CALLS && fake.calls[at].live)
        at++;
    CHECK(at < COLLECT_CALLS && n && n < TINY_CONTEXT && want && want <= fake.tokens);
    CHECK(!is_end(ids[n - 1]));
    struct call *c = &fake.calls[at];
    *c = (struct call){ .live = true, .n = n, .tokens = want };
    memcpy(c->ids, ids, n * sizeof(*ids));
    fake.live++;
    fake.most = fake.live > fake.most ? fake.live : fake.most;
    fake.asked++;
    *call = c;
    return OK;
}

static inline bool done(const void *call)
{
    return call != NULL;
}

static inline int take(void *call, uint32_t *id, struct err *err)
{
    struct call *c = call;
    CHECK(c->live);
    c->taken = true;
    if (fake.asked > fake.fails_after)
        return err_set(err, ERR_NET, "the cloud died");
    if (c->ids[0] == REFUSED_ID)
        return err_set(err, ERR_TEXT, "not this text");
    *id = cloud_says(c->ids, c->n);
    return OK;
}

static inline void commit(void *call)
{
    struct call *c = call;
    CHECK(c->live && c->taken);
    fake.order = rand_u64(fake.order, key_of(c->ids, c->n) + c->tokens);
    for (size_t i = 1; i < c->tokens && c->n + 1 < TINY_CONTEXT; i++) {
        c->ids[c->n] = cloud_says(c->ids, c->n);
        if (is_end(c->ids[c->n++]))
            break;
        CHECK(fake.nmemo < MEMO);
        fake.memo[fake.nmemo++] = key_of(c->ids, c->n);
    }
    c->live = false;
    fake.live--;
}

static inline void drop(void *call)
{
    struct call *c = call;
    CHECK(c->live);
    c->live = false;
    fake.live--;
}

static inline size_t bytes(void *arg, const uint32_t *ids, size_t n, size_t want)
{
    (void)arg;
    (void)ids;
    return n + want;
}

static inline enum cloud_sight peek(void *arg, const uint32_t *ids, size_t n, uint32_t *id)
{
    return known(arg, ids, n, id) == ORIGIN_NONE ? CLOUD_UNKNOWN : CLOUD_HERE;
}

static inline bool settled(void *arg)
{
    (void)arg;
    return true;
}

static inline struct traffic traffic(void *arg, const struct cloud_tally *tally)
{
    (void)arg;
    return tally->traffic;
}

static inline void end_tally(void *arg, struct cloud_tally *tally)
{
    (void)arg;
    (void)tally;
}

static const struct cloud_port port = { NULL,      known,  peek, tokens, ask,     done,
                                        take,      commit, drop, bytes,  settled, traffic,
                                        end_tally, NULL,   NULL, NULL, NULL, NULL };

#endif
