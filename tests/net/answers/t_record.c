/* t_record.c - tests recordings and answers.h: every line torn and flipped, faults that come back,
 * misses that are named; memo, store and recording together. */
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kernels/sys/base.h"
#include "net/answers/answers.h"
#include "net/answers/record.h"
#include "net/answers/record_internal.h"
#include "tests/support/files.h"
#include "tests/support/test.h"
#include "tests/support/torture.h"

static char folder[] = "build/record-XXXXXX", path[64], store[64];
static struct err err;
static const uint32_t ids[] = { 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22 };

/* How many answers make_one records. */
enum { LINES = 4 };

/* Record LINES answers. */
static void make_one(void)
{
    struct record *r;
    unlink(path);
    CHECK(record_create(&r, path, &err) == OK);
    CHECK(record_put(r, ids, 1, &(struct record_answer){ ORIGIN_CALL, .id = 1 }, &err) == ERR_ARG);
    CHECK(record_server(r, "Qwen \"x\"\n\x1b[2J", "openai", 0x1234, &err) == OK);
    CHECK(record_put(r, ids, 12, &(struct record_answer){ ORIGIN_CALL, .id = 151935 }, &err) == OK);
    CHECK(record_put(r, ids, 12, &(struct record_answer){ ORIGIN_CALL, .id = 151935 }, &err) ==
          OK); /* once */
    CHECK(record_put(r, ids, 2, &(struct record_answer){ ORIGIN_MEMO, .id = 7 }, &err) == OK);
    CHECK(record_put(r, ids, 1, &(struct record_answer){ ORIGIN_STORE, .id = 0 }, &err) == OK);
    const struct record_answer fault = { .from = ORIGIN_CALL,
                                         .fault = ERR_REMOTE,
                                         .message = "status 401: \x1b[31m\"no\"" };
    CHECK(record_put(r, ids, 3, &fault, &err) == OK);
    CHECK(record_put(r, ids, 12, &fault, &err) == OK); /* a fault does not replace an answer */
    CHECK(record_size(r) == LINES && !record_note(r, &err));
    CHECK(record_close(r, &err) == OK);
}

/* The first `whole` answers are right, and there are no others. */
static void check_answers(struct record *r, size_t whole)
{
    struct record_answer a;
    CHECK(record_size(r) == whole);
    CHECK(record_get(r, ids, 12, &a) == (whole > 0));
    CHECK(!whole || (a.id == 151935 && a.from == ORIGIN_CALL && !a.fault));
    CHECK(record_get(r, ids, 2, &a) == (whole > 1));
    CHECK(whole < 2 || (a.id == 7 && a.from == ORIGIN_MEMO && !a.fault));
    CHECK(record_get(r, ids, 1, &a) == (whole > 2));
    CHECK(whole < 3 || (a.id == 0 && a.from == ORIGIN_STORE && !a.fault));
    CHECK(record_get(r, ids, 3, &a) == (whole > 3));
    CHECK(whole < 4 || (a.fault == ERR_REMOTE && strcmp(a.message, "status 401: [31m\"no\"") == 0));
    CHECK(!record_get(r, ids, 4, &a) && !record_get(r, ids + 1, 1, &a));
}

static void test_text(void)
{
    struct record *r;
    char text[2000];
    make_one();
    size_t n = slurp(path, text, sizeof(text) - 1);
    text[n] = 0;
    static const char first[] =
        "{\"mizzle_record\":1,\"model\":\"Qwen \\\"x\\\" [2J\",\"api\":\"openai\",\"tokenizer\":"
        "\"0000000000001234\",\"crc\":\"";
    CHECK(strncmp(text, first, strlen(first)) == 0);
    CHECK(strstr(text, "\n{\"n\":12,\"hash\":\"") &&
          strstr(text, "\",\"last\":[15,16,17,18,19,20,21,22]"
                       ",\"from\":\"call\",\"id\":151935,"));
    CHECK(strstr(text, "\"fault\":\"remote\",\"message\":\"status 401: [31m\\\"no\\\"\",\"crc\""));
    CHECK(record_open(&r, path, 0x1234, &err) == OK && strcmp(record_api(r), "openai") == 0);
    CHECK(strcmp(record_model(r), "Qwen \"x\" [2J") == 0);
    check_answers(r, LINES);
    CHECK(record_put(r, ids, 5, &(struct record_answer){ ORIGIN_CALL, .id = 1 }, &err) == ERR_ARG);
    CHECK(record_miss(r, ids, 7, &err) == ERR_NET && strstr(err.msg, path));
    CHECK(strstr(err.msg, "prefix of 7 tokens, hash ") &&
          strstr(err.msg, "last ids [14,15,16,17]"));
    record_miss(r, ids, 0, &err);
    CHECK(strstr(err.msg, "0 tokens") && strstr(err.msg, "last ids []"));
    record_close(r, NULL);
    CHECK(record_open(&r, path, 0x1235, &err) == ERR_FORMAT && !r && strstr(err.msg, "tokenizer"));

    /* Only the same server may continue a recording, and only one process at a time. */
    CHECK(record_create(&r, path, &err) == OK);
    CHECK(record_server(r, "other", "openai", 0x1234, &err) == ERR_FORMAT);
    CHECK(record_server(r, "Qwen \"x\"\n\x1b[2J", "sglang", 0x1234, &err) == ERR_FORMAT);
    CHECK(record_server(r, "Qwen \"x\"\n\x1b[2J", "openai", 1, &err) == ERR_FORMAT);
    CHECK(record_server(r, "Qwen \"x\"\n\x1b[2J", "openai", 0x1234, &err) == OK);
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (!pid) {
        struct record *other;
        _exit(record_create(&other, path, &err) == ERR_IO && strstr(err.msg, "another process")
                  ? 0
                  : 1);
    }
    int status;
    CHECK(waitpid(pid, &status, 0) == pid && status == 0);
    CHECK(record_put(r, ids, 3, &(struct record_answer){ ORIGIN_CALL, .id = 9 }, &err) == OK);
    CHECK(record_close(r, &err) == OK);
    struct record_answer a;
    CHECK(record_open(&r, path, 0x1234, &err) == OK && record_get(r, ids, 3, &a) && a.id == 9);
    record_close(r, NULL);
}

/* A file torn at every byte keeps its whole lines. */
static void test_torn(void)
{
    char text[2000];
    make_one();
    size_t n = slurp(path, text, sizeof(text));
    for (size_t cut = 0; cut < n; cut++) {
        struct record *r;
        size_t lines = 0, torn = 0;
        for (size_t i = 0; i < cut; i++) {
            torn = text[i] == '\n' ? 0 : torn + 1;
            lines += text[i] == '\n';
        }
        spill(path, text, cut);
        int rc = record_open(&r, path, 0x1234, &err);
        CHECK(rc == (lines ? OK : ERR_FORMAT));
        if (lines) {
            check_answers(r, lines - 1);
            CHECK(record_note(r, &err) == (torn > 0) && !record_note(r, &err));
            CHECK(!torn || strstr(err.msg, "torn line"));
            record_close(r, NULL);
        }
        if (torn > 1 && cut % 16) /* closing syncs to the disk, which is slow */
            continue;
        CHECK(record_create(&r, path, &err) == OK);
        CHECK(record_note(r, &err) == (torn > 0));
        CHECK(record_server(r, "Qwen \"x\"\n\x1b[2J", "openai", 0x1234, &err) == OK);
        check_answers(r, lines ? lines - 1 : 0);
        CHECK(record_put(r, ids, 9, &(struct record_answer){ ORIGIN_CALL, .id = 3 }, &err) == OK);
        CHECK(record_close(r, &err) == OK);
        struct record_answer a;
        CHECK(record_open(&r, path, 0x1234, &err) == OK && !record_note(r, &err));
        CHECK(record_get(r, ids, 9, &a) && a.id == 3 && record_size(r) == (lines ? lines : 1));
        record_close(r, NULL);
    }
}

/* Flipped bytes are found. */
static void test_hostile(void)
{
    struct record *r;
    char text[2000], big[20000];
    make_one();
    size_t n = slurp(path, text, sizeof(text));
    for (size_t bit = 0; bit < 8 * n; bit++) {
        text[bit / 8] ^= (char)(1 << bit % 8);
        spill(path, text, n);
        int rc = record_open(&r, path, 0x1234, &err);
        /* Only a flip of the last LF leaves a torn line. */
        CHECK(rc == ERR_FORMAT || (rc == OK && bit / 8 == n - 1));
        CHECK(rc == OK || (strstr(err.msg, path) && !strchr(err.msg, '\n')));
        record_close(r, NULL);
        text[bit / 8] ^= (char)(1 << bit % 8);
    }
    /* Other files are refused and left as they are. */
    memset(big, 'x', sizeof(big));
    for (size_t i = 0; i < 3; i++) {
        static const char *const begins[] = { "", "{\"mizzle_record\":1,", "{\"mizzle" };
        memcpy(big, begins[i], strlen(begins[i]));
        spill(path, big, sizeof(big));
        CHECK(record_create(&r, path, &err) == ERR_FORMAT && !r);
        CHECK(record_open(&r, path, 0x1234, &err) == ERR_FORMAT && !r);
        CHECK(slurp(path, big, sizeof(big)) == sizeof(big));
        memset(big, 'x', sizeof(big));
    }
    CHECK(unlink(path) == 0 && record_open(&r, path, 0, &err) == ERR_IO);
    CHECK(mkfifo(path, 0600) == 0 && record_create(&r, path, &err) == ERR_ARG);
    CHECK(unlink(path) == 0 && record_create(&r, folder, &err) == ERR_ARG);
    spill(path, "", 0);
    CHECK(truncate(path, (off_t)2 << 30) != 0 || record_open(&r, path, 0, &err) == ERR_FORMAT);
    CHECK(unlink(path) == 0);
}

/* Append a line with a right checksum. */
static size_t add_line(char *to, const char *body)
{
    char crc[9];
    record_crc(crc, body, strlen(body));
    return (size_t)snprintf(to, 500, "%s,\"crc\":\"%s\"}\n", body, crc);
}

/* Lines with a right checksum and wrong fields are refused. */
static void test_fields(void)
{
    static const char good[] = "{\"mizzle_record\":1,\"model\":\"m\",\"api\":\"openai\","
                               "\"tokenizer\":\"0000000000001234\"";
    static const char hash[] = "\"hash\":\"0123456789abcdef0123456789abcdef\"";
    static const struct {
        const char *first, *begin, *rest, *names;
    } bad[] = {
        { "{\"mizzle_record\":2,\"model\":\"m\"", "", "", "mizzle_record" },
        { "{\"mizzle_record\":\"1\"", "", "", "mizzle_record" },
        { "{\"mizzle_record\":1,\"model\":5,\"api\":\"a\"", "", "", "model" },
        { "{\"mizzle_record\":1,\"model\":\"a\\u0000b\",\"api\":\"a\"", "", "", "model" },
        { "{\"mizzle_record\":1,\"model\":\"m\",\"api\":null", "", "", "api" },
        { "{\"mizzle_record\":1,\"model\":\"m\",\"api\":\"a\",\"tokenizer\":\"12\"", "", "",
          "tokenizer" },
        { "{\"mizzle_record\":[[[", "", "", "not JSON" },
        { good, "{\"n\":1", "", "hash" },
        { good, "{\"hash\":\"0123456789abcdef0123456789abcdeF\"", "", "hash" },
        { good, "{", ",\"id\":1", "from" },
        { good, "{", ",\"from\":\"god\",\"id\":1", "from" },
        { good, "{", ",\"from\":\"call\"", "id" },
        { good, "{", ",\"from\":\"call\",\"id\":-1", "id" },
        { good, "{", ",\"from\":\"call\",\"id\":4294967296", "id" },
        { good, "{", ",\"from\":\"call\",\"id\":1.5", "id" },
        { good, "{", ",\"from\":\"call\",\"id\":1e999", "line 2" },
        { good, "{", ",\"from\":\"call\",\"fault\":\"bad\",\"message\":\"\"", "fault" },
        { good, "{", ",\"from\":\"call\",\"fault\":\"net\",\"message\":7", "message" },
        { good, "{", ",\"from\":\"audit\",\"id\":1", "nth" },
        { good, "{", ",\"from\":\"audit\",\"nth\":0,\"id\":1", "nth" },
        { good, "\"a\"", "", "line 2" },
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct record *r;
        char text[1000], body[500];
        size_t n = add_line(text, bad[i].first);
        bool whole = strlen(bad[i].begin) > 1;
        if (*bad[i].begin) {
            snprintf(body, sizeof(body), "%s%s%s", bad[i].begin, whole ? "" : hash, bad[i].rest);
            n += add_line(text + n, body);
        }
        spill(path, text, n);
        CHECK(record_open(&r, path, 0x1234, &err) == ERR_FORMAT && !r);
        if (!strstr(err.msg, bad[i].names))
            fprintf(stderr, "expected %s, found %s\n", bad[i].names, err.msg);
        CHECK(strstr(err.msg, bad[i].names) && strstr(err.msg, ": line "));
        CHECK(record_create(&r, path, &err) == ERR_FORMAT && !r);
    }
    CHECK(unlink(path) == 0);
}

/* A disk that is full at every byte keeps whole lines, and the error says so. */
static void test_full_disk(void)
{
    char text[2000];
    struct rlimit was, now;
    make_one();
    size_t n = slurp(path, text, sizeof(text));
    CHECK(signal(SIGXFSZ, SIG_IGN) != SIG_ERR && getrlimit(RLIMIT_FSIZE, &was) == 0);
    for (size_t most = 0; most < n; most += 37) {
        struct record *r;
        int rc = OK;
        unlink(path);
        CHECK(record_create(&r, path, &err) == OK);
        now = was;
        now.rlim_cur = most;
        CHECK(setrlimit(RLIMIT_FSIZE, &now) == 0);
        rc = record_server(r, "Qwen \"x\"\n\x1b[2J", "openai", 0x1234, &err);
        for (size_t i = 1; rc == OK && i <= 12; i++)
            rc = record_put(r, ids, i, &(struct record_answer){ ORIGIN_CALL, .id = 1 }, &err);
        CHECK(rc == ERR_IO && strstr(err.msg, "incomplete"));
        size_t lines = record_size(r);
        CHECK(record_put(r, ids, 12, &(struct record_answer){ ORIGIN_CALL, .id = 1 }, &err) == OK);
        CHECK(record_size(r) == lines && record_close(r, &err) == ERR_IO);
        CHECK(setrlimit(RLIMIT_FSIZE, &was) == 0);
        rc = record_open(&r, path, 0x1234, &err);
        CHECK(rc == ERR_FORMAT || record_size(r) == lines);
        CHECK(rc != OK || !record_note(r, &err));
        record_close(r, NULL);
    }
    CHECK(unlink(path) == 0);
}

/* Open answers with these files. */
static struct answers *open_answers(const char *with_store, const char *rec, const char *replay)
{
    struct answers *c;
    const struct answers_options o = {
        .store = with_store, .record = rec, .replay = replay, .tokenizer = 5, .vocab = 1000
    };
    int rc = answers_open(&c, &o, &err);
    if (rc != OK)
        fprintf(stderr, "%s\n", err.msg);
    CHECK(rc == OK);
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
    CHECK(answers_call(c, ids, 3, &id, &err) == OK && id == 30);
    answers_put(c, ids, 3, 30);
    CHECK(answers_get(c, ids, 3, &id) == ORIGIN_MEMO && id == 30);
    CHECK(answers_get(c, ids, 4, &id) == ORIGIN_MEMO && id == 40);
    CHECK(answers_call(c, ids, 6, &id, &err) == ERR_NET && strstr(err.msg, "cut off"));
    CHECK(answers_call(c, ids, 9, &id, &err) == ERR_TEXT && strstr(err.msg, "too long"));
    CHECK(answers_call(c, ids, 5, &id, &err) == ERR_NET);
    CHECK(answers_call(c, ids, 7, &id, &err) == ERR_NET && strstr(err.msg, "below 1000"));
    CHECK(answers_call(c, ids, 8, &id, &err) == ERR_NET && strstr(err.msg, "prefix of 8 tokens"));
    CHECK(answers_close(c, &err) == OK);
}

static void test_answers(void)
{
    uint32_t id = 0;
    struct answers *c = open_answers(store, path, NULL);
    CHECK(answers_get(c, ids, 3, &id) == ORIGIN_NONE && !answers_model(c) && !answers_replays(c));
    answers_put(c, ids, 3, 4); /* no server is named yet */
    CHECK(answers_server(c, "big", "openai", &err) == OK);
    CHECK(answers_server(c, "big", "openai", &err) == OK);
    CHECK(answers_server(c, "small", "openai", &err) == ERR_REMOTE);
    CHECK(answers_get(c, ids, 3, &id) == ORIGIN_NONE);
    CHECK(answers_call(c, ids, 3, &id, &err) == ERR_ARG);
    answers_put(c, ids, 3, 30);
    answers_put(c, ids, 7, 2000); /* not an id of this vocabulary; kept as the caller gave it */
    answers_extra(c, ids, 4, 40);
    answers_extra(c, ids, 5, 50);
    answers_fault(c, ids, 6, ERR_NET, "cut off");
    answers_fault(c, ids, 6, ERR_STOP, "interrupted");
    answers_fault(c, ids, 9, ERR_TEXT, "too long");
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

/* Every allocation fails once. */
/* The audits of a prefix are kept in their order, apart from what a text is written with, and a
 * replay gives them in that order, faults too. */
static void test_audits(void)
{
    struct answers *c;
    uint32_t id;
    const struct answers_options o = { .store = store, .record = path, .vocab = 1000 };
    CHECK(answers_open(&c, &o, &err) == OK && answers_server(c, "m", "openai", &err) == OK);
    answers_audited(c, ids, 3, OK, 31, ""); /* before the text asks for it */
    CHECK(answers_get(c, ids, 3, &id) == ORIGIN_NONE);
    answers_put(c, ids, 3, 30);
    answers_audited(c, ids, 3, ERR_NET, 0, "gone");
    answers_audited(c, ids, 3, ERR_STOP, 0, "interrupted"); /* says nothing about the server */
    answers_audited(c, ids, 3, OK, 30, "");
    answers_audited(c, ids, 4, OK, 41, "");
    CHECK(answers_get(c, ids, 3, &id) == ORIGIN_MEMO && id == 30);
    CHECK(answers_get(c, ids, 4, &id) == ORIGIN_NONE);
    CHECK(answers_close(c, &err) == OK);
    unlink(store);
    const struct answers_options again = { .replay = path, .vocab = 1000 };
    CHECK(answers_open(&c, &again, &err) == OK);
    CHECK(answers_call(c, ids, 3, &id, &err) == OK && id == 30);
    CHECK(answers_call(c, ids, 4, &id, &err) == ERR_NET);
    for (size_t i = 0; i < 2; i++) /* until it is committed, it is the same one */
        CHECK(answers_audit(c, ids, 3, &id, &err) == OK && id == 31);
    answers_audited(c, ids, 3, OK, 31, "");
    CHECK(answers_audit(c, ids, 3, &id, &err) == ERR_NET && !strcmp(err.msg, "replay: gone"));
    answers_audited(c, ids, 3, ERR_NET, 0, err.msg);
    CHECK(answers_audit(c, ids, 3, &id, &err) == OK && id == 30);
    answers_audited(c, ids, 3, OK, 30, "");
    CHECK(answers_audit(c, ids, 3, &id, &err) == ERR_NET && strstr(err.msg, "no answer"));
    CHECK(answers_audit(c, ids, 4, &id, &err) == OK && id == 41);
    CHECK(answers_audit(c, ids, 5, &id, &err) == ERR_NET);
    CHECK(answers_close(c, NULL) == OK);
    unlink(path);
}

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
                answers_put(c, ids, i, (uint32_t)i);
            answers_fault(c, ids + 1, 3, ERR_NET, "cut off");
            answers_audited(c, ids, 3, OK, 4, "");
            answers_audited(c, ids, 3, ERR_NET, 0, "cut off");
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
    CHECK(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/record", folder);
    snprintf(store, sizeof(store), "%s/store", folder);
    test_text();
    test_torn();
    test_hostile();
    test_fields();
    test_full_disk();
    test_answers();
    test_audits();
    test_memory();
    CHECK(rmdir(folder) == 0);
    return 0;
}
