/* mizzle_help.h - handles of the public interface with the tiny model, and what they write. */
#ifndef TESTS_ROUTER_MIZZLE_HELP_H
#define TESTS_ROUTER_MIZZLE_HELP_H

#include "router/mizzle.h"
#include "tests/support/test.h"
#include "tests/support/tiny.h"

enum { TOKENS = 12, MANY = 24 };

static const char *model;
static struct mizzle_options base; /* the tiny model, one thread, no cloud */

/* Make the tiny model, and set base. */
static inline void base_make(void)
{
    model = tiny_make();
    mizzle_options_init(&base, sizeof(base));
    CHECK(base.size == sizeof(base) && base.max_tokens == 256 && base.ahead == 1);
    base.model = model;
    base.threads = 1;
    base.max_tokens = TOKENS;
    base.policy = "never";
}

/* What on_token has seen, and what it should do. */
struct seen {
    struct mizzle *m;
    uint32_t ids[MANY];
    size_t n, from[3], faults;
    size_t reached;                 /* by the reading of the prompt */
    size_t most;                    /* return false after this many tokens; 0: never */
    void (*first)(struct seen *s);  /* called with the first token, or NULL */
    const struct mizzle_token *now; /* while in first */
};

/* Check the token's fields and note it. */
static inline bool on_token(void *arg, const struct mizzle_token *t)
{
    struct seen *s = arg;
    CHECK(t->size == sizeof(*t) && t->pos == s->n && s->n < MANY);
    CHECK(t->piece && t->piece[t->piece_size] == '\0');
    CHECK((t->fault != NULL) == (t->source == MIZZLE_FALLBACK));
    s->from[t->source]++;
    s->faults += t->fault != NULL;
    s->ids[s->n++] = t->id;
    s->now = t;
    if (s->n == 1 && s->first)
        s->first(s);
    return s->n != s->most;
}

/* Open a handle, which must succeed. */
static inline struct mizzle *open_with(const struct mizzle_options *o)
{
    struct mizzle *m;
    struct mizzle_error e = { .size = sizeof(e), .code = 77 };
    int rc = mizzle_open(&m, o, &e);
    CHECK_MSG(rc == MIZZLE_OK && m && e.code == MIZZLE_OK && !*e.message, "%d: %s", rc, e.message);
    return m;
}

static inline int write_text(struct mizzle *m, const char *text, struct seen *s,
                             struct mizzle_stats *st)
{
    const struct mizzle_prompt p = { .size = sizeof(p), .text = text };
    s->m = m;
    return mizzle_generate(m, &p, on_token, s, st, NULL);
}

/* The handle works: it gives the same answer as every other handle in this program. */
static inline void expect_answer(struct mizzle *m)
{
    static struct seen first;
    struct seen s = { 0 };
    CHECK(write_text(m, "some text", &s, NULL) == MIZZLE_OK && s.n > 4);
    if (!first.n)
        first = s;
    CHECK(s.n == first.n && memcmp(s.ids, first.ids, sizeof(s.ids)) == 0);
}

#endif
