/* t_record.c - tests recordings: every line torn and flipped, faults that come back, misses that
 * are named. */
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zlib.h>

#include "kernels/sys/base.h"
#include "net/answers/record.h"
#include "tests/support/files.h"
#include "tests/support/test.h"

static const char *path;
static struct err err;
static const uint32_t ids[] = { 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22 };

/* How many answers make_one records. */
enum { LINES = 4 };

/* Open the recording; a replay if it is only to be read. */
static int open_record(struct record **r, bool replay)
{
    return record_open(r, path, 0x1234, replay, &err);
}

/* The key of ids[n] at the server of these tests. */
static struct prefix_key key_of(const uint32_t *at, size_t n)
{
    const struct prefix_key print = prefix_key_fingerprint("Qwen", 0x1234);
    return prefix_key_of(&print, at, n);
}

static void put(struct record *r, size_t n, enum origin from, uint32_t id)
{
    const struct prefix_key k = key_of(ids, n);
    record_put(r, &k, ids, n, &(struct answer){ .from = from, .id = id }, NULL);
}

static void put_fault(struct record *r, size_t n)
{
    const struct prefix_key k = key_of(ids, n);
    const struct answer fault = { .from = ORIGIN_CALL, .fault = ERR_REMOTE };
    record_put(r, &k, ids, n, &fault, "status 401: \x1b[31m\"no\"");
}

/* Return what is recorded after ids[n]. */
static const struct answer *get(struct record *r, const uint32_t *at, size_t n)
{
    const struct prefix_key k = key_of(at, n);
    return record_get(r, &k);
}

/* Say whose answers are recorded. */
static int begin(struct record *r, const char *model, const char *api)
{
    struct answer_server s;
    answer_line_set_server(&s, model, api, 0x1234);
    return record_begin(r, &s, &err);
}

/* Record LINES answers. */
static void make_one(void)
{
    struct record *r;
    unlink(path);
    CHECK(open_record(&r, false) == OK && !record_server(r));
    CHECK(begin(r, "Qwen \"x\"\n\x1b[2J", "openai") == OK && record_server(r));
    put(r, 12, ORIGIN_CALL, 151935);
    put(r, 12, ORIGIN_CALL, 151935); /* once */
    put(r, 2, ORIGIN_MEMO, 7);
    put(r, 1, ORIGIN_STORE, 0);
    put_fault(r, 3);
    put_fault(r, 12); /* a fault does not replace an answer */
    CHECK(record_size(r) == LINES && !record_note(r, &err));
    CHECK(record_whole(r, &err) == OK && record_close(r, &err) == OK);
}

/* The first `whole` answers are right, and there are no others. */
static void check_answers(struct record *r, size_t whole)
{
    const struct answer *a;
    CHECK(record_size(r) == whole);
    CHECK(((a = get(r, ids, 12)) != NULL) == (whole > 0));
    CHECK(!a || (a->id == 151935 && a->from == ORIGIN_CALL && !a->fault));
    CHECK(((a = get(r, ids, 2)) != NULL) == (whole > 1));
    CHECK(!a || (a->id == 7 && a->from == ORIGIN_MEMO && !a->fault));
    CHECK(((a = get(r, ids, 1)) != NULL) == (whole > 2));
    CHECK(!a || (a->id == 0 && a->from == ORIGIN_STORE && !a->fault));
    CHECK(((a = get(r, ids, 3)) != NULL) == (whole > 3));
    CHECK(!a || (a->fault == ERR_REMOTE && !strcmp(a->message, "status 401: [31m\"no\"")));
    CHECK(!get(r, ids, 4) && !get(r, ids + 1, 1));
}

static void test_text(void)
{
    struct record *r;
    char text[2000];
    make_one();
    size_t n = slurp(path, text, sizeof(text) - 1);
    text[n] = 0;
    static const char first[] =
        "{\"mizzle_answers\":2,\"model\":\"Qwen \\\"x\\\" [2J\",\"api\":\"openai\",\"tokenizer\":"
        "\"0000000000001234\",\"crc\":\"";
    CHECK(strncmp(text, first, strlen(first)) == 0);
    CHECK(strstr(text, "\n{\"n\":12,\"hash\":\"") &&
          strstr(text, "\",\"last\":[15,16,17,18,19,20,21,22]"
                       ",\"from\":\"call\",\"id\":151935,"));
    CHECK(strstr(text, "\"fault\":\"remote\",\"message\":\"status 401: [31m\\\"no\\\"\",\"crc\""));
    CHECK(open_record(&r, true) == OK && strcmp(record_server(r)->api, "openai") == 0);
    CHECK(strcmp(record_server(r)->model, "Qwen \"x\" [2J") == 0);
    check_answers(r, LINES);
    const struct prefix_key k = key_of(ids, 7);
    CHECK(record_miss(r, &k, ids, 7, &err) == ERR_NET && strstr(err.msg, path));
    CHECK(strstr(err.msg, "prefix of 7 tokens, hash ") &&
          strstr(err.msg, "last ids [14,15,16,17]"));
    record_miss(r, &k, ids, 0, &err);
    CHECK(strstr(err.msg, "0 tokens") && strstr(err.msg, "last ids []"));
    record_close(r, NULL);
    for (int replay = 0; replay < 2; replay++) {
        CHECK(record_open(&r, path, 0x1235, replay, &err) == ERR_FORMAT && !r);
        CHECK(strstr(err.msg, "line 1: tokenizer: expected 0000000000001235, found "));
    }

    /* Only the same server may continue a recording, and only one process at a time. */
    CHECK(open_record(&r, false) == OK);
    CHECK(begin(r, "other", "openai") == ERR_FORMAT && strstr(err.msg, "model: expected other"));
    CHECK(begin(r, "Qwen \"x\"\n\x1b[2J", "sglang") == ERR_FORMAT && strstr(err.msg, "api: "));
    CHECK(begin(r, "Qwen \"x\"\n\x1b[2J", "openai") == OK);
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (!pid) {
        struct record *other;
        _exit(open_record(&other, false) == ERR_IO && strstr(err.msg, "another process") ? 0 : 1);
    }
    int status;
    CHECK(waitpid(pid, &status, 0) == pid && status == 0);
    put(r, 3, ORIGIN_CALL, 9);
    CHECK(record_close(r, &err) == OK);
    CHECK(open_record(&r, true) == OK && get(r, ids, 3) && get(r, ids, 3)->id == 9);
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
        int rc = open_record(&r, true);
        CHECK(rc == (lines ? OK : ERR_FORMAT));
        if (lines) {
            check_answers(r, lines - 1);
            CHECK(record_note(r, &err) == (torn > 0) && !record_note(r, &err));
            CHECK(!torn || strstr(err.msg, "torn line"));
            record_close(r, NULL);
        }
        if (torn > 1 && cut % 16) /* closing syncs to the disk, which is slow */
            continue;
        CHECK(open_record(&r, false) == OK);
        CHECK(record_note(r, &err) == (torn > 0));
        CHECK(begin(r, "Qwen \"x\"\n\x1b[2J", "openai") == OK);
        check_answers(r, lines ? lines - 1 : 0);
        put(r, 9, ORIGIN_CALL, 3);
        CHECK(record_close(r, &err) == OK);
        CHECK(open_record(&r, true) == OK && !record_note(r, &err));
        CHECK(get(r, ids, 9)->id == 3 && record_size(r) == (lines ? lines : 1));
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
        int rc = open_record(&r, true);
        /* Only a flip of the last LF leaves a torn line. */
        CHECK(rc == ERR_FORMAT || (rc == OK && bit / 8 == n - 1));
        CHECK(rc == OK || (strstr(err.msg, path) && !strchr(err.msg, '\n')));
        record_close(r, NULL);
        text[bit / 8] ^= (char)(1 << bit % 8);
    }
    /* Other files are refused and left as they are. */
    memset(big, 'x', sizeof(big));
    for (size_t i = 0; i < 3; i++) {
        static const char *const begins[] = { "", "{\"mizzle_record\":1,",
                                              "{\"mizzle_answers\":2,\"model\":\"" };
        static const char *const says[] = { "other bytes", "version: expected 2, found 1",
                                            "line 1: expected at most 8192 bytes" };
        memcpy(big, begins[i], strlen(begins[i]));
        spill(path, big, sizeof(big));
        CHECK(open_record(&r, false) == ERR_FORMAT && !r && strstr(err.msg, says[i]));
        CHECK(open_record(&r, true) == ERR_FORMAT && !r && strstr(err.msg, says[i]));
        CHECK(slurp(path, big, sizeof(big)) == sizeof(big));
        memset(big, 'x', sizeof(big));
    }
    CHECK(unlink(path) == 0 && open_record(&r, true) == ERR_IO);
    CHECK(mkfifo(path, 0600) == 0 && open_record(&r, false) == ERR_ARG);
    CHECK(unlink(path) == 0 && record_open(&r, scratch_folder(), 0, false, &err) == ERR_ARG);
    spill(path, "", 0);
    CHECK(open_record(&r, true) == ERR_FORMAT && strstr(err.msg, "an empty file"));
    CHECK(unlink(path) == 0);
}

/* Append a line with a right checksum. */
static size_t add_line(char *to, const char *body)
{
    return (size_t)snprintf(to, 500, "%s,\"crc\":\"%08x\"}\n", body,
                            (unsigned)crc32_z(0, (const Bytef *)body, strlen(body)));
}

/* Lines with a right checksum and wrong fields are refused. */
static void test_fields(void)
{
#define FIRST "{\"mizzle_answers\":2,\""
    static const char good[] = FIRST "model\":\"m\",\"api\":\"openai\","
                                     "\"tokenizer\":\"0000000000001234\"";
#define HASH "{\"hash\":\"0123456789abcdef0123456789abcdef\""
    static const struct {
        const char *first; /* NULL: good */
        const char *rest, *names;
    } bad[] = {
        { FIRST "model\":5,\"api\":\"a\"", NULL, "found" },
        { FIRST "model\":\"m\",\"api\":null", NULL, "api" },
        { FIRST "model\":\"m\",\"api\":\"a\",\"tokenizer\":\"12\"", NULL, "tokenizer" },
        { FIRST "model\":\"m\",[[[", NULL, "not JSON" },
        { NULL, "{\"n\":1", "hash" },
        { NULL, "{\"hash\":\"0123456789abcdef0123456789abcdeF\"", "hash" },
        { NULL, HASH ",\"id\":1", "from" },
        { NULL, HASH ",\"from\":\"god\",\"id\":1", "from" },
        { NULL, HASH ",\"from\":\"call\"", "id" },
        { NULL, HASH ",\"from\":\"call\",\"id\":-1", "id" },
        { NULL, HASH ",\"from\":\"call\",\"id\":4294967296", "id" },
        { NULL, HASH ",\"from\":\"call\",\"id\":1.5", "id" },
        { NULL, HASH ",\"from\":\"call\",\"id\":1e999", "line 2" },
        { NULL, HASH ",\"from\":\"call\",\"fault\":\"bad\",\"message\":\"\"", "fault" },
        { NULL, HASH ",\"from\":\"call\",\"fault\":\"net\",\"message\":7", "message" },
        { NULL, HASH ",\"from\":\"audit\",\"nth\":1,\"id\":1", "from" }, /* of version 0.5.1 */
        { NULL, "\"a\"", "line 2" },
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct record *r;
        char text[1000];
        size_t n = add_line(text, bad[i].first ? bad[i].first : good);
        if (bad[i].rest)
            n += add_line(text + n, bad[i].rest);
        spill(path, text, n);
        CHECK(open_record(&r, true) == ERR_FORMAT && !r);
        CHECK_MSG(strstr(err.msg, bad[i].names), "expected %s, found %s", bad[i].names, err.msg);
        CHECK(open_record(&r, false) == ERR_FORMAT && !r);
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
        CHECK(open_record(&r, false) == OK);
        now = was;
        now.rlim_cur = most;
        CHECK(setrlimit(RLIMIT_FSIZE, &now) == 0);
        rc = begin(r, "Qwen \"x\"\n\x1b[2J", "openai");
        for (size_t i = 1; rc == OK && i <= 12; i++) {
            put(r, i, ORIGIN_CALL, 1);
            rc = record_whole(r, &err);
        }
        CHECK(rc == ERR_IO && strstr(err.msg, "incomplete"));
        size_t lines = record_size(r);
        put(r, 12, ORIGIN_CALL, 1);
        CHECK(record_size(r) == lines && record_close(r, &err) == ERR_IO);
        CHECK(setrlimit(RLIMIT_FSIZE, &was) == 0);
        rc = open_record(&r, true);
        CHECK(rc == ERR_FORMAT || record_size(r) == lines);
        CHECK(rc != OK || !record_note(r, &err));
        record_close(r, NULL);
    }
    CHECK(unlink(path) == 0);
}

int main(void)
{
    path = in_scratch("record");
    test_text();
    test_torn();
    test_hostile();
    test_fields();
    test_full_disk();
    return 0;
}
