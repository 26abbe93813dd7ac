/* t_answers.c - tests answers.h: what is kept in memory and what in the file, the memory that
 * begins anew, models, offline, threads, and no memory; and a file that cannot be read, or is
 * removed or renamed while it is open. */
#include <errno.h>

#include "tests/net/answers/answers_help.h"

static const uint32_t ids[] = { 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22 };

/* Open answers with this file for a vocabulary of 1000, of this model unless that is NULL. */
static struct answers *open_answers(const char *file, bool offline, const char *model)
{
    struct answers *c;
    const struct answers_options o = {
        .file = file, .offline = offline, .tokenizer = 5, .vocab = 1000
    };
    CHECK_MSG(answers_open(&c, &o, &err) == OK, "%s", err.msg);
    CHECK(!model || answers_server(c, model, &err) == OK);
    return c;
}

static enum cloud_sight get(struct answers *c, size_t n, uint32_t *id)
{
    return answers_get(c, ids, n, true, id);
}

static enum cloud_sight look(struct answers *c, size_t n, uint32_t *id)
{
    return answers_get(c, ids, n, false, id);
}

static void test_kept(void)
{
    uint32_t id = 0;
    struct answers *c = open_answers(path, false, NULL);
    CHECK(get(c, 3, &id) == CLOUD_UNKNOWN && !answers_model(c));
    answers_put(c, ids, 3, true, 4); /* no model is named yet */
    CHECK(answers_server(c, "big", &err) == OK && answers_server(c, "big", &err) == OK);
    CHECK(answers_server(c, NULL, &err) == OK && strcmp(answers_model(c), "big") == 0);
    CHECK(answers_server(c, "small", &err) == ERR_REMOTE && strstr(err.msg, "found small"));
    CHECK(get(c, 3, &id) == CLOUD_UNKNOWN);
    answers_put(c, ids, 3, true, 30);
    answers_put(c, ids, 3, true, 31);   /* the first one stays */
    answers_put(c, ids, 7, true, 2000); /* no id of this vocabulary; kept as the caller gave it */
    answers_put(c, ids, 4, false, 40);  /* further tokens of a reply */
    answers_put(c, ids, 5, false, 50);
    CHECK(get(c, 3, &id) == CLOUD_MEMO && id == 30);
    CHECK(get(c, 4, &id) == CLOUD_MEMO && id == 40);
    CHECK(look(c, 5, &id) == CLOUD_MEMO && id == 50); /* a look does not keep it */
    CHECK(get(c, 6, &id) == CLOUD_UNKNOWN);
    silent(c);
    answers_forget(c); /* only what the file does not have */
    CHECK(look(c, 3, &id) == CLOUD_STORE && look(c, 5, &id) == CLOUD_UNKNOWN);
    answers_close(c);

    /* A later process has what was committed and what was used. */
    c = open_answers(path, false, "big");
    CHECK(look(c, 3, &id) == CLOUD_STORE && id == 30);
    CHECK(get(c, 3, &id) == CLOUD_STORE && id == 30); /* a look did not move it */
    CHECK(look(c, 3, &id) == CLOUD_MEMO && get(c, 3, &id) == CLOUD_MEMO && id == 30);
    CHECK(get(c, 4, &id) == CLOUD_STORE && id == 40 && get(c, 5, &id) == CLOUD_UNKNOWN);
    CHECK(get(c, 7, &id) == CLOUD_UNKNOWN); /* beyond the vocabulary */
    answers_close(c);
    c = open_answers(path, false, "small");
    CHECK(get(c, 3, &id) == CLOUD_UNKNOWN); /* of another model */
    answers_put(c, ids, 3, true, 33);
    answers_close(c);
}

/* The file of test_kept answers without a network, and nothing is written. */
static void test_offline(void)
{
    uint32_t id = 0;
    size_t size = size_of(path);
    CHECK(chmod(path, 0444) == 0);
    struct answers *c = open_answers(path, true, NULL);
    CHECK(answers_server(c, NULL, &err) == OK && strcmp(answers_model(c), "big") == 0);
    CHECK(get(c, 3, &id) == CLOUD_STORE && id == 30 && get(c, 8, &id) == CLOUD_UNKNOWN);
    answers_put(c, ids, 8, true, 80);
    CHECK(get(c, 8, &id) == CLOUD_MEMO && id == 80 && size_of(path) == size);
    answers_close(c);
    c = open_answers(path, true, "small");
    CHECK(get(c, 3, &id) == CLOUD_STORE && id == 33);
    answers_close(c);
    c = open_answers(path, true, NULL);
    CHECK(answers_server(c, "other", &err) == ERR_FORMAT && strstr(err.msg, path));
    CHECK(strstr(err.msg, "expected {\"mizzle_answers\":3,\"model\":\"other\",") &&
          strstr(err.msg, "found {\"mizzle_answers\":3,\"model\":\"big\",\"tokenizer\":\"") &&
          !strchr(err.msg, '\n'));
    CHECK(get(c, 3, &id) == CLOUD_UNKNOWN); /* nothing is named */
    answers_close(c);
    const struct answers_options o = { .file = path, .offline = true, .tokenizer = 6 };
    CHECK(answers_open(&c, &o, &err) == OK && answers_server(c, NULL, &err) == ERR_FORMAT);
    CHECK(strstr(err.msg, "\"tokenizer\":\"0000000000000006\",... found") &&
          strstr(err.msg, "0000000000000005"));
    close_clean(c);
}

static void put_of(const char *model, uint32_t id)
{
    struct answers *c = open_answers(path, false, model);
    answers_put(c, ids, 3, true, id);
    answers_close(c);
}

/* Offline, this model's name (NULL: none) finds that model's answer; with a note about others. */
static void finds(const char *name, const char *model, uint32_t want, bool note)
{
    uint32_t id = 0;
    struct answers *c = open_answers(path, true, NULL);
    CHECK(answers_server(c, name, &err) == OK);
    CHECK_MSG(strcmp(answers_model(c), model) == 0, "%s", answers_model(c));
    CHECK(get(c, 3, &id) == CLOUD_STORE && id == want);
    if (note)
        says(c, model);
    silent_close(c);
}

/* A name finds the latest fingerprint, and no name the first model of FILE, not of FILE.old. */
static void test_names(void)
{
    put_of("big", 30);
    finds("big", "big", 30, false);
    put_of("big@1/f16", 31);
    put_of("bigger@1/f16", 32);
    finds("big", "big@1/f16", 31, false);
    finds("big@1/f16", "big@1/f16", 31, false);
    finds(NULL, "big", 30, true);
    put_of("big@2/q8", 33);
    finds("big", "big@2/q8", 33, false);
    CHECK(rename(path, old) == 0);
    put_of("small", 34);
    finds(NULL, "small", 34, true);
    finds("big", "big@2/q8", 33, false);
    put_of("big@1/f16", 35); /* it has one in FILE.old, so this is the same answer */
    finds("big", "big@2/q8", 33, false);
    struct answers *c = open_answers(path, true, NULL);
    CHECK(answers_server(c, "bi", &err) == ERR_FORMAT);
    CHECK(answers_server(c, "bigger", &err) == OK); /* it may be asked once more */
    answers_close(c);
    CHECK(unlink(path) == 0);
    c = open_answers(path, false, "other"); /* FILE is empty */
    answers_close(c);
    finds(NULL, "big", 30, true);
    clean();
}

/* The memory holds 65,536 answers at most; then it begins anew, with the latest one. */
static void test_anew(void)
{
    enum { ALL = 150000, MOST = 65536 };
    uint32_t id, known = 0;
    struct answers *c = open_answers(NULL, false, "big");
    for (uint32_t i = 0; i < ALL; i++) {
        answers_put(c, &i, 1, i % 2, i * 7);
        CHECK(answers_get(c, &i, 1, false, &id) == CLOUD_MEMO && id == i * 7);
        if (i == MOST - 1)
            for (uint32_t one = 0; one < MOST; one++)
                CHECK(answers_get(c, &one, 1, false, &id) == CLOUD_MEMO && id == one * 7);
    }
    for (uint32_t i = 0; i < ALL; i++) {
        bool found = answers_get(c, &i, 1, false, &id) != CLOUD_UNKNOWN;
        CHECK((!found || id == i * 7) && found == (i >= ALL / MOST * MOST));
        known += found;
    }
    CHECK(known == ALL % MOST);
    answers_forget(c);
    id = ALL - 1;
    CHECK(answers_get(c, &id, 1, false, &id) == CLOUD_UNKNOWN);
    answers_close(c);
}

/* Prefixes that differ in one id, or in length, are told apart. */
static void test_prefixes(void)
{
    uint32_t zeros[130] = { 0 }, id;
    struct answers *c = open_answers(NULL, false, "big");
    for (uint32_t n = 0; n < 130; n++) {
        CHECK(answers_get(c, zeros, n, true, &id) == CLOUD_UNKNOWN);
        answers_put(c, zeros, n, true, n);
    }
    for (uint32_t n = 0; n < 130; n++) {
        CHECK(answers_get(c, zeros, n, true, &id) == CLOUD_MEMO && id == n);
        zeros[n] = 1u << n % 32;
        CHECK(n == 129 || answers_get(c, zeros, n + 1, true, &id) == CLOUD_UNKNOWN);
        zeros[n] = 0;
    }
    answers_close(c);
}

/* What one thread asks and keeps. */
static void *thread_main(void *arg)
{
    struct answers *c = arg;
    for (uint32_t i = 0, id = 0; i < 1500; i++) {
        const uint32_t one = i, other = 1500 - i;
        answers_put(c, &one, 1, true, i % 1000);
        CHECK(answers_get(c, &other, 1, true, &id) == CLOUD_UNKNOWN || id == other % 1000);
    }
    return NULL;
}

/* Threads share memory and file, which has each answer once. */
static void test_threads(void)
{
    static char bytes[400000];
    pthread_t t[3];
    uint32_t id, last = 1499;
    struct answers *c = open_answers(path, false, "big");
    for (size_t i = 0; i < 3; i++)
        CHECK(pthread_create(&t[i], NULL, thread_main, c) == 0);
    for (size_t i = 0; i < 3; i++)
        CHECK(pthread_join(t[i], NULL) == 0);
    silent_close(c);
    FILE *f = fopen(path, "rb");
    size_t lines = 0;
    CHECK(f);
    while (fgets(bytes, sizeof(bytes), f))
        lines++;
    CHECK(fclose(f) == 0 && lines == 1500);
    c = open_answers(path, false, "big");
    CHECK(answers_get(c, &last, 1, true, &id) == CLOUD_STORE && id == 499);
    close_clean(c);
}

/* Every allocation fails once; what was kept before is still known. */
static void test_memory(void)
{
    long n = 0;
    int reached;
    do {
        struct answers *c;
        const struct answers_options o = { .file = path, .tokenizer = 7, .vocab = SIZE_MAX };
        torture_begin(++n);
        int rc = answers_open(&c, &o, &err);
        CHECK(rc == (c ? OK : ERR_NOMEM));
        rc = c ? answers_server(c, "model", &err) : rc;
        CHECK(rc == OK || rc == ERR_NOMEM);
        if (rc == ERR_NOMEM && c)
            CHECK(answers_server(c, "model", &err) == OK);
        for (uint32_t i = 0; c && i < 60; i++)
            put(c, i);
        uint32_t known = 0;
        for (uint32_t i = 0; c && i < 60; i++)
            known += has(c, i);
        answers_close(c);
        reached = torture_end();
        CHECK_MSG(torture_live() == 0 && (!c || known == 60 || reached), "%ld %u", torture_live(),
                  known);
        unlink(path);
    } while (reached);
    CHECK(n > 8);
}

/* How the file is read: as it is, not at all, or without its end. */
static enum { READS, FAILS, ENDS } reading;

ssize_t pread(int fd, void *p, size_t n, off_t at)
{
    if (reading != READS && at > 0) {
        errno = EIO;
        return reading == FAILS ? -1 : 0;
    }
    if (lseek(fd, at, SEEK_SET) < 0) /* files of answers are appended to, wherever they stand */
        return -1;
    return read(fd, p, n);
}

/* What cannot be read is not cut off. */
static void test_unread(void)
{
    for (reading = FAILS; reading <= ENDS; reading++) {
        struct answers *c = must_open(), *other = must_open();
        for (uint32_t i = 0; i < 400; i++)
            put(c, i);
        size_t n = size_of(path);
        CHECK(n > 4 * ANSWER_FILE_LINE);
        put(other, 400);
        says(other, strerror(EIO));
        CHECK(size_of(path) == n && has(other, 400) && !has(other, 399));
        answers_close(other);
        other = must_open();
        says(other, strerror(EIO));
        CHECK(size_of(path) == n);
        answers_close(other);
        answers_close(c);
        CHECK(open_with(&c, 0, true) == OK && has(c, 0) && !has(c, 399));
        says(c, strerror(EIO));
        answers_close(c);
        CHECK(unlink(path) == 0);
    }
    reading = READS;
}

/* A file that is removed or renamed begins anew with the next answer. */
static void test_removed(void)
{
    struct answers *c = must_open();
    put(c, 1);
    CHECK(unlink(path) == 0);
    put(c, 2);
    CHECK(size_of(path) == line_of(2));
    CHECK(rename(path, old) == 0); /* as a process does that then dies */
    put(c, 3);
    CHECK(has(c, 1) && has(c, 2) && has(c, 3) && size_of(path) == line_of(3));
    silent_close(c);
    c = must_open();
    CHECK(!has(c, 1) && has(c, 2) && has(c, 3));
    answers_close(c);
    CHECK(unlink(old) == 0 && mkdir(old, 0700) == 0); /* what cannot be used is noted */
    c = must_open();
    says(c, "kept.old: ");
    CHECK(has(c, 3));
    answers_close(c);
    CHECK(open_with(&c, 0, true) == OK);
    says(c, "kept.old: ");
    CHECK(unlink(path) == 0 && !has(c, 4) && access(path, F_OK) != 0); /* it is only read */
    silent_close(c);
    CHECK(rmdir(old) == 0);
}

int main(void)
{
    begin();
    test_kept();
    test_offline();
    test_names();
    test_anew();
    test_prefixes();
    test_threads();
    test_memory();
    test_unread();
    test_removed();
    CHECK(rmdir(folder) == 0);
    return 0;
}
