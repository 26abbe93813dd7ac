/* Tests collections on disk: they are read as they were written, and everything that is wrong with
 * one is refused by name: every cut and flipped byte of meta.json and of a shard included. */
#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kernels/sys/base.h"
#include "router/learn/sample_files.h"
#include "router/learn/samples.h"
#include "tests/support/test.h"
#include "tests/support/torture.h"

enum { DIM = 3, VOCAB = 50, TEXTS = SAMPLE_FILES_TEXTS + 4, SHARDS = 2, FILE_MAX = 1 << 14 };

static char dir[] = "build/samples-XXXXXX";

static struct sample_meta options(void)
{
    return (struct sample_meta){ .task = "csqa",
                                 .data = "d0",
                                 .prompt = "citer",
                                 .labels = "citer",
                                 .tap = TAP_POST_ATTN,
                                 .kv = "f32",
                                 .round = 1,
                                 .rollouts = SAMPLE_FILES_NO_LIMIT,
                                 .max_tokens = 512,
                                 .seed = UINT64_MAX - 1,
                                 .texts = TEXTS,
                                 .edge = "tiny",
                                 .weights = "Q8_0",
                                 .model = 0x1234,
                                 .tokenizer = 0xfedcba9876543210,
                                 .cloud = "large",
                                 .context = 4096,
                                 .dim = DIM,
                                 .vocab = VOCAB };
}

/* Fill a shard with two rows for each text but the third, which is too long. */
static void fill(struct sample_shard *s)
{
    struct err err = { "" };
    for (size_t i = 0; i < s->ntexts; i++) {
        int32_t t = (int32_t)(s->first + i);
        for (int32_t k = 0; t != 2 && k < 2; k++) {
            const float x[DIM] = { (float)t, (float)k, -0.5f };
            const struct sample_row row = { .edge = t,
                                            .cloud = k ? 7 : SAMPLE_NOT_ASKED,
                                            .gold = k,
                                            .before = { k ? 4 : SAMPLE_NOT_ASKED, 5 },
                                            .text = t,
                                            .subject = 0xf0000000 + (uint32_t)t,
                                            .label = k == 0,
                                            .way = k ? SAMPLE_ROLLOUT : SAMPLE_EDGE_RIGHT };
            CHECK(sample_shard_add(s, x, &row, &err) == OK);
        }
        s->counts.too_long += t == 2;
        s->counts.texts += t != 2;
    }
    s->counts.samples = s->n;
    s->counts.right = s->counts.rollouts = s->n / 2;
    s->counts.left_out = 1;
}

/* Make the whole collection in the folder. */
static void make(void)
{
    struct err err = { "" };
    const struct sample_meta meta = options();
    struct sample_files f;
    struct sample_counts sum = { 0 };
    CHECK(sample_files_open(&f, &meta, dir, &err) == OK && sample_files_shards(&f.meta) == SHARDS);
    for (size_t i = 0; i < SHARDS; i++) {
        struct sample_shard s;
        bool exists;
        CHECK(sample_files_shard(&s, &exists, &f, i, &err) == OK);
        if (!exists) {
            fill(&s);
            CHECK(sample_files_write(&f, i, &s, &err) == OK);
        }
        sample_counts_add(&sum, &s.counts);
        sample_shard_close(&s);
    }
    CHECK(sample_files_finish(&f, &sum, &err) == OK);
    sample_files_close(&f);
}

static const char *path_of(const char *name)
{
    static char paths[2][100];
    static size_t turn;
    char *path = paths[turn++ % 2];
    snprintf(path, sizeof(paths[0]), "%s/%s", dir, name);
    return path;
}

static size_t load(unsigned char *to, const char *name)
{
    FILE *f = fopen(path_of(name), "rb");
    CHECK(f);
    size_t n = fread(to, 1, FILE_MAX, f);
    CHECK(n && n < FILE_MAX && !fclose(f));
    return n;
}

static void store(const char *name, const void *p, size_t n)
{
    FILE *f = fopen(path_of(name), "wb");
    CHECK(f && fwrite(p, 1, n, f) == n && !fclose(f));
}

/* Read the folder; return the error's code. */
static int reading(struct err *err)
{
    struct samples s = { .dim = 0 };
    struct sample_meta meta = { .dir = "" };
    int rc = sample_files_read(&s, &meta, dir, err);
    CHECK(rc == OK || !s.n);
    samples_close(&s);
    return rc;
}

/* The folder is refused with this code, and the message holds these words. */
static void refused(int code, const char *one, const char *two)
{
    struct err err = { "" };
    int rc = reading(&err);
    if (rc != code || !strstr(err.msg, one) || !strstr(err.msg, two))
        fprintf(stderr, "%d: %s\n", rc, err.msg);
    CHECK(rc == code && strstr(err.msg, one) && strstr(err.msg, two));
}

static void check_read(void)
{
    struct err err = { "" };
    struct samples s = { .dim = 0 };
    struct sample_meta meta = { .dir = "" };
    CHECK(sample_files_read(&s, &meta, dir, &err) == OK);
    CHECK(s.dim == DIM && s.n == 2 * (TEXTS - 1) && meta.texts == TEXTS);
    CHECK(!strcmp(meta.task, "csqa") && meta.tap == TAP_POST_ATTN && meta.model == 0x1234);
    CHECK(meta.seed == UINT64_MAX - 1 && meta.rollouts == SAMPLE_FILES_NO_LIMIT);
    CHECK(meta.counts.too_long == 1 && meta.counts.left_out == 2 && meta.counts.samples == s.n);
    for (size_t i = 0; i < s.n; i++) {
        uint32_t k = i % 2, t = (uint32_t)(i / 2) + (i >= 4);
        CHECK(s.text[i] == t && s.group[i] == 0xf0000000 + t && s.label[i] == !k);
        CHECK(s.before[i][0] == (k ? 4 : SAMPLES_NONE) && s.before[i][1] == 5);
        CHECK(s.x[i * DIM] == (float)t && s.x[i * DIM + 1] == (float)k);
    }
    /* The same folder again: its texts are numbered on. */
    CHECK(sample_files_read(&s, &meta, dir, &err) == OK && s.n == 4 * (TEXTS - 1));
    CHECK(s.text[s.n / 2] == TEXTS && s.group[s.n / 2] == 0xf0000000 && meta.texts == 2 * TEXTS);
    /* Tasks that are read together are named together. */
    struct sample_meta other = meta;
    snprintf(other.task, sizeof(other.task), "arc+csq");
    CHECK(sample_files_read(&s, &other, dir, &err) == OK && !strcmp(other.task, "arc+csq+csqa"));
    CHECK(sample_files_read(&s, &other, dir, &err) == OK && !strcmp(other.task, "arc+csq+csqa"));
    s.n = 4 * (TEXTS - 1);
    other = meta;
    other.tap = TAP_FINAL;
    CHECK(sample_files_read(&s, &other, dir, &err) == ERR_ARG && strstr(err.msg, "tap: expected"));
    CHECK(s.n == 4 * (TEXTS - 1));
    samples_close(&s);
}

/* Change one byte of a file. */
static void change(const char *name, size_t at, unsigned char to)
{
    FILE *f = fopen(path_of(name), "r+b");
    CHECK(f && !fseek(f, (long)at, SEEK_SET) && fputc(to, f) == to && !fclose(f));
}

/* Every cut of a file is refused. Every byte of it changed is refused or changes a value alone; in
 * meta.json nothing can change, because shards are bound to it by its checksum. */
static void check_torn(const char *name, bool json)
{
    static unsigned char whole[FILE_MAX];
    struct err err;
    size_t n = load(whole, name), fine = 0;
    for (size_t i = n; i--;) {
        CHECK(!truncate(path_of(name), (off_t)i));
        refused(ERR_FORMAT, name, "");
    }
    store(name, whole, n);
    for (size_t i = 0; i < n; i++) {
        change(name, i, whole[i] ^ 0x14);
        int rc = reading(&err);
        CHECK(rc == OK || rc == ERR_FORMAT);
        fine += rc == OK;
        change(name, i, whole[i]);
    }
    CHECK(!json || fine == 0);
    CHECK(reading(&err) == OK);
}

/* Replace text in a file, which must be there, by text of the same length. */
static void edit(const char *name, const char *from, const char *to)
{
    static unsigned char bytes[FILE_MAX];
    size_t n = load(bytes, name), k = strlen(from), i = 0;
    while (i + k <= n && memcmp(bytes + i, from, k) != 0)
        i++;
    CHECK(strlen(to) == k && i + k <= n);
    memcpy(bytes + i, to, k);
    store(name, bytes, n);
}

/* Write shard 1 with one thing changed in it, which must be refused by its name. */
static void check_rows(void)
{
    static const struct {
        const char *what;
        struct sample_row row;
        float x;
    } bad[] = {
        { "label", { .label = 2 }, 0 },
        { "way", { .way = SAMPLE_WAYS }, 0 },
        { "edge", { .edge = VOCAB }, 0 },
        { "edge", { .edge = -1 }, 0 },
        { "cloud", { .cloud = VOCAB }, 0 },
        { "cloud", { .cloud = -2 }, 0 },
        { "gold", { .gold = INT32_MIN }, 0 },
        { "before", { .before = { VOCAB, 0 } }, 0 },
        { "before", { .before = { 0, -1 } }, 0 },
        { "text", { .text = -TEXTS }, 0 },
        { "text", { .text = 4 }, 0 },
        { "hidden", { 0 }, NAN },
        { "hidden", { 0 }, -INFINITY },
    };
    struct err err = { "" };
    const struct sample_meta meta = options();
    struct sample_files f;
    struct sample_shard s;
    bool exists;
    CHECK(sample_files_open(&f, &meta, dir, &err) == OK);
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        const float x[DIM] = { 0, bad[i].x, 0 };
        struct sample_row row = bad[i].row;
        row.text += SAMPLE_FILES_TEXTS; /* the first of this shard */
        s = (struct sample_shard){ .dim = DIM, .first = SAMPLE_FILES_TEXTS, .ntexts = 4 };
        CHECK(sample_shard_add(&s, x, &row, &err) == OK);
        s.counts = (struct sample_counts){ .texts = 1, .samples = 1 };
        CHECK(sample_files_write(&f, 1, &s, &err) == OK);
        sample_shard_close(&s);
        refused(ERR_FORMAT, "00001.safetensors", bad[i].what);
        CHECK(sample_files_shard(&s, &exists, &f, 1, &err) == ERR_FORMAT && exists);
    }
    s = (struct sample_shard){ .dim = DIM, .first = SAMPLE_FILES_TEXTS, .ntexts = 4 };
    CHECK(sample_files_write(&f, 1, &s, &err) == OK); /* empty: fine in itself */
    CHECK(sample_files_shard(&s, &exists, &f, 1, &err) == OK && exists && !s.n);
    sample_shard_close(&s);
    refused(ERR_FORMAT, "meta.json", "counts");
    sample_files_close(&f);
    unlink(path_of("00001.safetensors"));
    refused(ERR_FORMAT, "00001.safetensors", "");
    make();
    CHECK(reading(&err) == OK);
}

static void check_foreign(void)
{
    struct err err = { "" };
    edit("00000.safetensors", "\"right\":\"15\"", "\"right\":\"14\"");
    refused(ERR_FORMAT, "right", "expected 15");
    unlink(path_of("00000.safetensors"));
    make();
    edit("00001.safetensors", "\"first\":\"16\"", "\"first\":\"32\"");
    refused(ERR_FORMAT, "first", "expected 16");
    rename(path_of("00000.safetensors"), path_of("00001.safetensors"));
    refused(ERR_FORMAT, "00000.safetensors", "");
    unlink(path_of("00001.safetensors"));
    edit("meta.json", "\"samples\": 38", "\"samples\": 39");
    refused(ERR_FORMAT, "00000.safetensors", "");
    make();
    edit("meta.json", "\"samples\": 38", "\"samples\": 39");
    refused(ERR_FORMAT, "meta.json: counts", "38");
    make(); /* the shards are complete, so this writes meta.json alone */
    CHECK(reading(&err) == OK);
    edit("meta.json", "\"edge\": \"tiny\"", "\"edge\": \"tony\"");
    refused(ERR_FORMAT, "00000.safetensors", "collection");
    edit("meta.json", "\"edge\": \"tony\"", "\"edge\": \"tiny\"");
    edit("meta.json", "\"dim\": 3", "\"dim\": 0");
    refused(ERR_FORMAT, "meta.json: dim", "found 0");
    edit("meta.json", "\"dim\": 0", "\"dom\": 3");
    refused(ERR_FORMAT, "meta.json: dim", "found nothing");
    edit("meta.json", "\"dom\": 3", "\"dim\": 3");
    edit("meta.json", "post_attn", "middlemen");
    refused(ERR_FORMAT, "meta.json: tap", "found middlemen");
    edit("meta.json", "middlemen", "post_attn");
    CHECK(reading(&err) == OK);
}

/* Another collection into the same folder is refused: the field and both values are named. */
static void check_contradiction(void)
{
    struct err err = { "" };
    struct sample_files f, second;
    struct sample_meta meta = options();
    memcpy(meta.labels, "match", 6);
    CHECK(sample_files_open(&f, &meta, dir, &err) == ERR_ARG && f.lock < 0);
    CHECK(strstr(err.msg, "meta.json: labels: expected match") && strstr(err.msg, "found citer"));
    meta = options();
    meta.rollouts = 5;
    CHECK(sample_files_open(&f, &meta, dir, &err) == ERR_ARG);
    CHECK(strstr(err.msg, "rollouts: expected 5") && strstr(err.msg, "found no limit"));
    meta = options();
    CHECK(sample_files_open(&f, &meta, dir, &err) == OK);
    pid_t child = fork(); /* a lock is one process's */
    if (!child)
        _exit(sample_files_open(&second, &meta, dir, &err) == ERR_IO &&
                      strstr(err.msg, "another process")
                  ? 0
                  : 1);
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    sample_files_close(&f);
}

/* A collection that was begun is not samples; what a killed process left is deleted. */
static void check_unfinished(void)
{
    struct err err = { "" };
    struct sample_files f;
    const struct sample_meta meta = options();
    refused(ERR_FORMAT, dir, "no meta.json");
    CHECK(sample_files_open(&f, &meta, dir, &err) == OK);
    sample_files_close(&f);
    refused(ERR_FORMAT, "meta.json: complete", "collect again");
    store("00001.safetensors.77.0.part", "x", 1);
    store("meta.json.77.0.part", "x", 1);
    store("notes.part", "x", 1);
    CHECK(sample_files_open(&f, &meta, dir, &err) == OK);
    sample_files_close(&f);
    CHECK(access(path_of("00001.safetensors.77.0.part"), F_OK));
    CHECK(access(path_of("meta.json.77.0.part"), F_OK) && !access(path_of("notes.part"), F_OK));
    unlink(path_of("notes.part"));
}

/* Without memory, reading and writing fail cleanly: nothing leaks, and no sample is added. */
static void check_memory(void)
{
    struct err err = { "" };
    const struct sample_meta meta = options();
    int reached = 1;
    for (long n = 1; reached; n++) {
        struct samples s = { .dim = 0 };
        struct sample_meta found = { .dir = "" };
        torture_begin(n);
        int rc = sample_files_read(&s, &found, dir, &err);
        reached = torture_end();
        CHECK(rc == (reached ? ERR_NOMEM : OK) && (!s.n || !reached));
        samples_close(&s);
        CHECK(torture_live() == 0);
    }
    reached = 1;
    for (long n = 1; reached; n++) {
        struct sample_files f;
        struct sample_shard s;
        bool exists;
        torture_begin(n);
        int rc = sample_files_open(&f, &meta, dir, &err);
        if (rc == OK) {
            rc = sample_files_shard(&s, &exists, &f, 1, &err);
            if (rc == OK)
                rc = sample_files_write(&f, 1, &s, &err);
            sample_shard_close(&s);
        }
        sample_files_close(&f);
        reached = torture_end();
        CHECK(rc == (reached ? ERR_NOMEM : OK) && torture_live() == 0);
    }
    CHECK(reading(&err) == OK);
}

int main(void)
{
    CHECK(mkdtemp(dir));
    check_unfinished();
    make();
    check_read();
    check_torn("meta.json", true);
    check_torn("00001.safetensors", false);
    check_rows();
    check_foreign();
    check_contradiction();
    check_memory();
    unlink(path_of("00000.safetensors"));
    unlink(path_of("00001.safetensors"));
    unlink(path_of("meta.json"));
    CHECK(!rmdir(dir));
    return 0;
}
