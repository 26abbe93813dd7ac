/* collect_help.h - for t_collect.c: what edge and cloud say after a prefix, which answers are
 * right, and a cloud behind the port of cloud_port.h that says so. */
#ifndef TESTS_ROUTER_LEARN_COLLECT_HELP_H
#define TESTS_ROUTER_LEARN_COLLECT_HELP_H

#include "router/learn/collect.h"

#include "model/model.h"
#include "model/text/tokenizer.h"
#include "router/engine.h"
#include "router/texts/texts.h"
#include "tests/support/port.h"
#include "tests/support/tiny.h"

enum { TEXTS = 20, WRITTEN = 10, MEMO = 1 << 14, LONG = 2, TOO_LONG = 3, BARE = 5, REFUSED = 7 };
enum { CALLS = 1024 };     /* most calls that have not been committed */
enum { SILENT = 101 };     /* nothing ever comes, and no news */
enum { REFUSED_ID = 254 }; /* the cloud refuses texts that begin with it */

static struct engine engine;
static struct batch *plains; /* of `plain`, which computes between the passes of the loop */
static struct session *session, *plain; /* of the code under test; of the definitions */
static struct texts *together;          /* of the edge, with the cloud */
static struct router *router;
static float scratch[4096];
static struct collect_text texts[TEXTS];

static inline uint64_t key_of(const uint32_t *ids, size_t n)
{
    return port_key(n, ids, n);
}

/* Bring the plain session to this prefix. */
static inline void reach(const uint32_t *ids, size_t n)
{
    port_reach(plain, ids, n);
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

/* True when an answer is settled before its end. */
static inline bool is_settled(const uint32_t *ids, size_t n)
{
    return rand_below(7, key_of(ids, n), 100) < 8;
}

static inline int judge(void *arg, enum collect_verdict *verdict, size_t text, const uint32_t *ids,
                        size_t n, bool ended, struct err *err)
{
    (void)arg;
    (void)err;
    CHECK(text < TEXTS && n && n + texts[text].prompt <= TINY_CONTEXT + 1);
    *verdict = !ended && !is_settled(ids, n) ? COLLECT_OPEN
               : is_right(ids, n)            ? COLLECT_RIGHT
                                             : COLLECT_WRONG;
    return OK;
}

/* A cloud behind the port, whose tokens come after any number of looks. It checks that calls are
 * ended once, and that no more are in flight than may be. */
static struct fake {
    struct call {
        bool used, taken, ended; /* ended: nothing more will come */
        size_t n, tokens, come;  /* ids it continues; tokens it asks for; those that have come */
        uint32_t ids[TINY_CONTEXT + 1];
    } calls[CALLS];
    size_t live, most, may; /* in flight; at most so far; may be; 0: COLLECT_CALLS */
    size_t open;            /* not ended */
    size_t asked;           /* calls */
    size_t hold; /* nothing comes before so many were in flight; for a while, lest a test hang */
    size_t tokens, written, fails_after;
    unsigned stored;                   /* percent of all prefixes that need no call */
    unsigned slow;                     /* percent of all looks that see nothing new, or SILENT */
    uint64_t looks, memo[MEMO], nmemo; /* memo: keys of tokens that are known */
} fake;
static void (*fake_news)(void *arg);
static void *fake_news_arg;

static inline enum cloud_sight known(void *arg, const uint32_t *ids, size_t n, bool used,
                                     uint32_t *id)
{
    (void)arg, (void)used;
    uint64_t key = key_of(ids, n);
    bool in = ids[0] != REFUSED_ID && rand_below(4, key, 100) < fake.stored;
    for (size_t i = 0; !in && i < fake.nmemo; i++)
        in = fake.memo[i] == key;
    if (!in)
        return CLOUD_UNKNOWN;
    *id = cloud_says(ids, n);
    return CLOUD_MEMO;
}

static inline struct cloud_info info(void *arg)
{
    (void)arg;
    return (struct cloud_info){ .tokens = fake.tokens };
}

static inline int ask(void *arg, const uint32_t *ids, size_t n, size_t want,
                      struct cloud_tally *tally, void **call, struct err *err)
{
    (void)arg;
    (void)tally;
    (void)err;
    size_t at = 0;
    while (at < CALLS && fake.calls[at].used)
        at++;
    CHECK(at < CALLS && n && n < TINY_CONTEXT && want && want <= fake.tokens);
    CHECK(!is_end(ids[n - 1]));
    struct call *c = &fake.calls[at];
    *c = (struct call){ .used = true, .n = n, .tokens = want };
    memcpy(c->ids, ids, n * sizeof(*ids));
    fake.open++;
    fake.live++;
    fake.most = fake.live > fake.most ? fake.live : fake.most;
    CHECK(fake.live <= (fake.may ? fake.may : COLLECT_CALLS));
    fake.asked++;
    *call = c;
    return OK;
}

/* Nothing more will come of a call. */
static inline void call_ends(struct call *c)
{
    fake.live -= !c->ended;
    c->ended = true;
}

/* Let a token of a call come. */
static inline void call_goes_on(struct call *c)
{
    bool fault = c->ids[0] == REFUSED_ID || fake.asked > fake.fails_after;
    if (!c->ended && !fault) {
        size_t at = c->n + c->come++;
        c->ids[at] = cloud_says(c->ids, at);
        fake.written++;
        if (c->come < c->tokens && !is_end(c->ids[at]) && at + 1 < TINY_CONTEXT)
            return;
    }
    call_ends(c);
}

static inline bool done(const void *call, size_t at)
{
    struct call *c = (struct call *)(size_t)call;
    bool held = fake.most < fake.hold && fake.looks < 1000000;
    if (rand_below(8, fake.looks++, 100) >= fake.slow && !held)
        call_goes_on(c);
    else if (fake.slow < SILENT)
        fake_news(fake_news_arg);
    return at < c->come || c->ended;
}

static inline int take(void *call, size_t at, uint32_t *id, struct err *err)
{
    struct call *c = call;
    CHECK(c->used);
    c->taken = true;
    while (c->come <= at && !c->ended)
        call_goes_on(c);
    if (at >= c->come && c->ids[0] == REFUSED_ID)
        return err_set(err, ERR_TEXT, "not this text");
    if (at >= c->come)
        return err_set(err, ERR_NET, "the cloud died");
    *id = c->ids[c->n + at];
    return OK;
}

/* Keep the tokens of a call. */
static inline void use(struct call *c)
{
    CHECK(c->taken);
    while (!c->ended)
        call_goes_on(c);
    for (size_t i = 0; i < c->come; i++) {
        CHECK(fake.nmemo < MEMO);
        fake.memo[fake.nmemo++] = key_of(c->ids, c->n + i);
    }
}

static inline void end(void *call, enum cloud_end how)
{
    struct call *c = call;
    CHECK(c->used);
    if (how == CLOUD_USE)
        use(c);
    call_ends(c);
    c->used = false;
    fake.open--;
}

static inline void notify(void *arg, void (*f)(void *), void *f_arg)
{
    (void)arg;
    fake_news = f;
    fake_news_arg = f_arg;
}

static const struct cloud_port port = { .known = known,
                                        .info = info,
                                        .ask = ask,
                                        .done = done,
                                        .take = take,
                                        .end = end,
                                        .traffic = port_traffic,
                                        .notify = notify };

#endif
