/* t_answers.c - tests answers.h: memo, store and recording together, replays, threads, and
 * no memory. */
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "kernels/sys/base.h"
#include "net/answers/answers.h"
#include "tests/support/files.h"
#include "tests/support/torture.h"

static const char *path, *store;
static struct err err;
static const uint32_t ids[] = { 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22 };

/* Open answers with these files. */
static struct answers *open_answers(const char *with_store, const char *rec, const char *replay)
{
    struct answers *c;
    const struct answers_options o = {
        .store = with_store, .record = rec, .replay = replay, .tokenizer = 5, .vocab = 1000
    };
    CHECK_MSG(answers_open(&c, &o, &err) == OK, "%s", err.msg);
    return c;
}

/* The recording of test_answers gives the same answers without a network. */
static void test_replayed(void)
{
    uint32_t id = 0;
    struct answers *c = open_answers(NULL, NULL, path);
    CHECK(answers_replays(c) && strcmp(answers_model(c), "big") == 0);
    CHECK(strcmp(answers_api(c), "openai") == 0);
    CHECK(answers_server(c, NULL, NULL, &err) == OK && answers_server(c, "big", "x", &err) == OK);
    CHECK(answers_server(c, "small", "openai", &err) == ERR_FORMAT);
    CHECK(answers_get(c, ids, 3, &id) == ORIGIN_NONE); /* it was a call, and is one again */
    CHECK(answers_replay(c, ids, 3, &id, &err) == OK && id == 30);
    answers_put(c, ids, 3, OK, 30, "");
    CHECK(answers_get(c, ids, 3, &id) == ORIGIN_MEMO && id == 30);
    CHECK(answers_get(c, ids, 4, &id) == ORIGIN_MEMO && id == 40);
    CHECK(answers_replay(c, ids, 6, &id, &err) == ERR_NET && strstr(err.msg, "cut off"));
    CHECK(answers_replay(c, ids, 9, &id, &err) == ERR_TEXT && strstr(err.msg, "too long"));
    CHECK(answers_replay(c, ids, 5, &id, &err) == ERR_NET);
    CHECK(answers_replay(c, ids, 7, &id, &err) == ERR_NET && strstr(err.msg, "below 1000"));
    CHECK(answers_replay(c, ids, 8, &id, &err) == ERR_NET && strstr(err.msg, "prefix of 8 tokens"));
    CHECK(answers_close(c, &err) == OK);
}

static void test_answers(void)
{
    uint32_t id = 0;
    struct answers *c = open_answers(store, path, NULL);
    CHECK(answers_get(c, ids, 3, &id) == ORIGIN_NONE && !answers_model(c) && !answers_replays(c));
    answers_put(c, ids, 3, OK, 4, ""); /* no server is named yet */
    CHECK(answers_server(c, "big", "openai", &err) == OK);
    CHECK(answers_server(c, "big", "openai", &err) == OK);
    CHECK(answers_server(c, "small", "openai", &err) == ERR_REMOTE);
    CHECK(answers_get(c, ids, 3, &id) == ORIGIN_NONE);
    CHECK(answers_replay(c, ids, 3, &id, &err) == ERR_ARG);
    answers_put(c, ids, 3, OK, 30, "");
    answers_put(c, ids, 7, OK, 2000,
                ""); /* not an id of this vocabulary; kept as the caller gave it */
    answers_extra(c, ids, 4, 40);
    answers_extra(c, ids, 5, 50);
    answers_put(c, ids, 6, ERR_NET, 0, "cut off");
    answers_put(c, ids, 6, ERR_STOP, 0, "interrupted");
    answers_put(c, ids, 9, ERR_TEXT, 0, "too long");
    CHECK(answers_get(c, ids, 3, &id) == ORIGIN_MEMO && id == 30);
    CHECK(answers_get(c, ids, 4, &id) == ORIGIN_MEMO && id == 40);
    CHECK(answers_peek(c, ids, 5, &id) == ORIGIN_MEMO && id == 50); /* a look does not keep it */
    CHECK(answers_get(c, ids, 6, &id) == ORIGIN_NONE && !answers_note(c, &err));
    CHECK(answers_close(c, &err) == OK);

    /* A later process: the store has what was committed and what was used. */
    c = open_answers(store, NULL, NULL);
    CHECK(answers_server(c, "big", "openai", &err) == OK);
    CHECK(answers_peek(c, ids, 3, &id) == ORIGIN_STORE && id == 30);
    CHECK(answers_get(c, ids, 3, &id) == ORIGIN_STORE && id == 30); /* a look did not move it */
    CHECK(answers_peek(c, ids, 3, &id) == ORIGIN_MEMO && id == 30);
    CHECK(answers_get(c, ids, 3, &id) == ORIGIN_MEMO && id == 30);
    CHECK(answers_get(c, ids, 4, &id) == ORIGIN_STORE && id == 40);
    CHECK(answers_get(c, ids, 5, &id) == ORIGIN_NONE);
    CHECK(answers_get(c, ids, 7, &id) == ORIGIN_NONE); /* id beyond the vocabulary */
    CHECK(answers_close(c, &err) == OK);
    c = open_answers(store, NULL, NULL);
    CHECK(answers_server(c, "small", "openai", &err) == OK);
    CHECK(answers_get(c, ids, 3, &id) == ORIGIN_NONE); /* of another model */
    CHECK(answers_close(c, &err) == OK);

    test_replayed();
    const struct answers_options both = { .store = store, .replay = path };
    CHECK(answers_open(&c, &both, &err) == ERR_ARG && !c);
    CHECK(unlink(path) == 0 && unlink(store) == 0);
}

/* What one thread asks and keeps. */
static void *thread_main(void *arg)
{
    struct answers *c = arg;
    for (uint32_t i = 0, id = 0; i < 1500; i++) {
        const uint32_t one = i, other = 1500 - i;
        answers_put(c, &one, 1, OK, i % 1000, "");
        CHECK(answers_get(c, &other, 1, &id) == ORIGIN_NONE || id == other % 1000);
    }
    return NULL;
}

/* Threads share memo, store and recording. */
static void test_threads(void)
{
    pthread_t t[3];
    uint32_t id, last = 1499;
    struct answers *c = open_answers(store, path, NULL);
    CHECK(answers_server(c, "big", "openai", &err) == OK);
    for (size_t i = 0; i < 3; i++)
        CHECK(pthread_create(&t[i], NULL, thread_main, c) == 0);
    for (size_t i = 0; i < 3; i++)
        CHECK(pthread_join(t[i], NULL) == 0);
    CHECK(!answers_note(c, &err) && answers_close(c, &err) == OK);
    c = open_answers(store, NULL, NULL);
    CHECK(answers_server(c, "big", "openai", &err) == OK);
    CHECK(answers_get(c, &last, 1, &id) == ORIGIN_STORE && id == 499);
    CHECK(answers_close(c, &err) == OK && unlink(path) == 0 && unlink(store) == 0);
}

/* Every allocation fails once. */
static void test_memory(void)
{
    long n = 0;
    int reached;
    do {
        struct answers *c;
        const struct answers_options o = {
            .memo = 8, .store = store, .record = path, .vocab = 1000
        };
        uint32_t id;
        torture_begin(++n);
        int rc = answers_open(&c, &o, &err);
        CHECK(rc == (c ? OK : ERR_NOMEM));
        if (c && answers_server(c, "big", "openai", &err) == OK) {
            for (size_t i = 1; i <= 12; i++)
                answers_put(c, ids, i, OK, (uint32_t)i, "");
            answers_put(c, ids + 1, 3, ERR_NET, 0, "cut off");
            CHECK(answers_get(c, ids, 12, &id) == ORIGIN_MEMO && id == 12);
        }
        answers_close(c, NULL);
        reached = torture_end();
        CHECK(torture_live() == 0);
        long m = 0;
        int inner;
        do { /* what was written can be read, unless memory is short again */
            const struct answers_options again = { .memo = 8, .replay = path, .vocab = 1000 };
            torture_begin(reached ? 1000000 : ++m);
            rc = answers_open(&c, &again, &err);
            CHECK(rc == OK || rc == ERR_NOMEM || (reached && rc == ERR_FORMAT) || rc == ERR_IO);
            answers_close(c, NULL);
            inner = torture_end();
            CHECK(torture_live() == 0);
        } while (inner);
        unlink(path);
        unlink(store);
    } while (reached);
    CHECK(n > 10);
}

int main(void)
{
    path = in_scratch("record");
    store = in_scratch("store");
    test_answers();
    test_threads();
    test_memory();
    return 0;
}
