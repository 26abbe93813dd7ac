/* mizzle_prompt.cache_file as a program uses it: what is loaded and replaced from call to call,
 * what an interrupt leaves, what the notes say, and no memory. */
#include "router/mizzle.h"

#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/files.h"
#include "tests/support/tiny.h"
#include "tests/support/torture.h"

enum { LONG = 240, TOKENS = 8 };

static const char *model;
static char path[96], second[96];
static uint32_t ids[LONG];

/* What a call sees, and when it ends it. */
struct seen {
    struct mizzle *m;
    uint32_t ids[TOKENS];
    size_t n, read; /* tokens; what on_reading said first */
    size_t stop_reading, stop_token;
};

static void on_reading(void *arg, size_t done, size_t all)
{
    struct seen *s = arg;
    s->read = s->read ? s->read : done;
    if (s->stop_reading && done < all)
        mizzle_stop(s->m);
}

static bool on_token(void *arg, const struct mizzle_token *t)
{
    struct seen *s = arg;
    CHECK(s->n < TOKENS);
    s->ids[s->n++] = t->id;
    if (s->n == s->stop_token)
        mizzle_stop(s->m);
    return true;
}

/* The next note, or "". */
static const char *note(struct mizzle *m)
{
    static struct mizzle_error e;
    e = (struct mizzle_error){ .size = sizeof(e) };
    return mizzle_note(m, &e) ? e.message : "";
}

static struct mizzle *open_model(const char *kv)
{
    struct mizzle_options o;
    struct mizzle *m;
    mizzle_options_init(&o, sizeof(o));
    o.model = model;
    o.threads = 1;
    o.max_tokens = TOKENS;
    o.kv = kv;
    CHECK(mizzle_open(&m, &o, NULL) == MIZZLE_OK);
    while (*note(m))
        continue;
    return m;
}

/* Answer ids[n] with this file, and return the code and how many tokens came from it. */
static int answer(struct mizzle *m, size_t n, const char *file, struct seen *s, size_t *cached)
{
    struct mizzle_prompt p = {
        .size = sizeof(p), .ids = ids, .n_ids = n, .on_reading = on_reading, .cache_file = file
    };
    struct mizzle_stats stats = { .size = sizeof(stats) };
    s->m = m;
    int rc = mizzle_generate(m, &p, on_token, s, &stats, NULL);
    *cached = stats.prompt_cached;
    return rc;
}

/* The answer must be that without a file, and so many tokens must come from the file. */
static void expect_answer(struct mizzle *m, size_t n, const char *file, size_t cached)
{
    struct seen with = { 0 }, without = { 0 };
    struct mizzle *plain = open_model(NULL);
    size_t found;
    CHECK(answer(plain, n, NULL, &without, &found) == MIZZLE_OK && found == 0);
    CHECK(mizzle_close(plain) == MIZZLE_OK);
    CHECK(answer(m, n, file, &with, &found) == MIZZLE_OK && found == cached);
    CHECK(with.n == without.n && memcmp(with.ids, without.ids, sizeof(with.ids)) == 0);
}

/* From call to call, what the handle still holds need not be loaded. */
static void check_calls(void)
{
    struct mizzle *m = open_model(NULL);
    expect_answer(m, 100, path, 0);
    expect_answer(m, 100, path, 0);
    ids[50] ^= 1;
    expect_answer(m, 90, second, 0); /* shares 50, which the handle has */
    ids[50] ^= 1;
    expect_answer(m, 100, path, 99);
    expect_answer(m, 120, path, 0); /* the handle has 100; the file is replaced */
    CHECK(mizzle_close(m) == MIZZLE_OK);
    m = open_model(NULL);
    expect_answer(m, 120, path, 119);
    CHECK(mizzle_close(m) == MIZZLE_OK);
    m = open_model(NULL);
    expect_answer(m, 60, second, 50);
    expect_answer(m, 110, path, 109);
    CHECK(!*note(m) && mizzle_close(m) == MIZZLE_OK);
}

/* An interrupt while the prompt is read leaves what was there; one in the answer costs nothing. */
static void check_interrupts(void)
{
    static unsigned char before[1 << 20], after[1 << 20];
    struct seen s = { .stop_reading = 1 };
    size_t cached, n = slurp(path, before, sizeof(before));
    struct mizzle *m = open_model(NULL);
    CHECK(remove(second) == 0);
    ids[0] ^= 1; /* so much is not shared that it takes more than one pass */
    CHECK(answer(m, LONG, second, &s, &cached) == MIZZLE_STOPPED && s.n == 0 && s.read < LONG);
    CHECK(access(second, F_OK) != 0);
    s = (struct seen){ .stop_reading = 1 };
    ids[1] ^= 1; /* again, as the handle keeps what it has read */
    CHECK(answer(m, LONG, path, &s, &cached) == MIZZLE_STOPPED);
    ids[1] ^= 1;
    CHECK(slurp(path, after, sizeof(after)) == n && memcmp(before, after, n) == 0);
    s = (struct seen){ .stop_token = 2 };
    CHECK(answer(m, LONG, second, &s, &cached) == MIZZLE_STOPPED && s.n >= 2);
    CHECK(mizzle_close(m) == MIZZLE_OK);
    m = open_model(NULL);
    s = (struct seen){ 0 };
    CHECK(answer(m, LONG, second, &s, &cached) == MIZZLE_OK && cached == LONG - 1);
    CHECK(s.read == LONG);
    ids[0] ^= 1;
    CHECK(mizzle_close(m) == MIZZLE_OK);
}

/* Each note comes once; a path that cannot be meant ends the call. */
static void check_notes(void)
{
    struct mizzle *m = open_model("q8");
    struct seen s = { 0 };
    size_t cached;
    CHECK(answer(m, 100, path, &s, &cached) == MIZZLE_OK && cached == 0 && s.n);
    const char *said = note(m);
    CHECK(
        strstr(said, ": KV type: expected q8, found f32; evaluating the prompt and replacing it"));
    CHECK(!*note(m));
    s = (struct seen){ 0 };
    CHECK(answer(m, 100, path, &s, &cached) == MIZZLE_OK && cached == 0 && s.n);
    CHECK(!*note(m));
    s = (struct seen){ 0 };
    CHECK(answer(m, 100, "", &s, &cached) == MIZZLE_ARG && !s.n);
    CHECK(answer(m, 100, model, &s, &cached) == MIZZLE_ARG && !s.n);
    CHECK(answer(m, 100, "build/none/x", &s, &cached) == MIZZLE_IO && !s.n);
    CHECK(!*note(m));
    CHECK(answer(m, 100, path, &s, &cached) == MIZZLE_OK && s.n);
    CHECK(mizzle_close(m) == MIZZLE_OK);
}

/* A failed allocation is an error, a note, or a file that is not used, and never another answer. */
static void check_torture(void)
{
    struct seen first = { 0 };
    struct mizzle *m = open_model(NULL);
    size_t cached, notes = 0;
    int hit = 1;
    CHECK(answer(m, 100, NULL, &first, &cached) == MIZZLE_OK);
    for (long n = 1; hit; n++) {
        struct seen s = { 0 };
        remove(path);
        torture_begin(n);
        int rc = answer(m, 100, path, &s, &cached);
        hit = torture_end();
        const char *said = note(m);
        notes += *said != '\0';
        CHECK(rc == MIZZLE_NOMEM || rc == MIZZLE_IO || rc == MIZZLE_OK);
        CHECK(rc != MIZZLE_OK || !memcmp(s.ids, first.ids, sizeof(s.ids)));
        CHECK(rc != MIZZLE_OK || (access(path, F_OK) == 0) == !*said);
        CHECK(!*said || strstr(said, "prompt cache not written"));
        CHECK(torture_live() == 0);
    }
    CHECK(notes > 2);
    CHECK(mizzle_close(m) == MIZZLE_OK);
}

int main(void)
{
    model = tiny_make();
    snprintf(path, sizeof(path), "%s.cache", model);
    snprintf(second, sizeof(second), "%s.second", model);
    for (size_t i = 0; i < LONG; i++)
        ids[i] = (uint32_t)('a' + i * i % 23);
    check_calls();
    check_interrupts();
    check_notes();
    check_torture();
    remove(path);
    remove(second);
    tiny_remove();
    return 0;
}
