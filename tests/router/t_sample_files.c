/* Tests collections on disk: they are read as they were written, and everything that is wrong with
 * one is refused by name: every cut and every flipped byte of a shard included. */
#include <sys/stat.h>
#include <sys/wait.h>

#include "router/learn/sample_files.h"
#include "tests/support/test.h"

enum { DIM = 3, VOCAB = 50, TEXTS = SAMPLE_FILES_TEXTS + 4, SHARDS = 2, FILE_MAX = 1 << 14 };

static const char *dir, *labels = "gain";

static struct sample_meta options(void)
{
    struct sample_meta m = { .task = "csqa",
                             .data = "d0",
                             .prompt = "citer",
                             .tap = "final",
                             .kv = "f32",
                             .round = 1,
                             .max_rollouts = SAMPLE_FILES_NO_LIMIT,
                             .max_tokens = 512,
                             .seed = UINT64_MAX - 1,
                             .questions = TEXTS,
                             .edge = "tiny",
                             .weights = "Q8_0",
                             .model = 0x1234,
                             .tokenizer = 0xfedcba9876543210,
                             .cloud = "large",
                             .context = 4096,
                             .dim = DIM,
                             .vocab = VOCAB };
    memcpy(m.dir, dir, strlen(dir));
    memcpy(m.labels, labels, strlen(labels));
    return m;
}

/* Return a shard with two rows for each text but the third, which is too long. */
static struct sample_shard shard_of(size_t i)
{
    const struct sample_meta meta = options();
    struct sample_shard s;
    sample_files_begin(&s, &meta, i);
    for (uint32_t t = (uint32_t)s.first; t < s.first + s.ntexts; t++) {
        for (int32_t k = 0; t != 2 && k < 2; k++) {
            const float x[DIM] = { (float)t, (float)k, -0.5f };
            const struct sample_row row = { .edge = (int32_t)t,
                                            .cloud = k ? 7 : SAMPLE_NOT_ASKED,
                                            .gold = k,
                                            .before = { k ? 4 : SAMPLES_NONE, 5 },
                                            .text = t,
                                            .subject = 0xf0000000 + t,
                                            .label = k == 0,
                                            .way = k ? SAMPLE_ROLLOUT : SAMPLE_EDGE_RIGHT,
                                            .gain = k ? 1 : -1,
                                            .right = t % 2 };
            CHECK(samples_add(&s.samples, x, &row, NULL) == OK);
        }
        s.counts.too_long += t == 2;
        s.counts.texts += t != 2;
    }
    s.counts.samples = s.samples.n;
    s.counts.right = s.counts.rollouts = s.samples.n / 2;
    s.counts.left_out = 1;
    return s;
}

static void put(struct sample_shard *s)
{
    CHECK(sample_files_write(s, NULL) == OK);
    samples_close(&s->samples);
}

static void put_again(size_t i)
{
    struct sample_shard s = shard_of(i);
    put(&s);
}

/* Make what is missing of the collection. */
static void make(void)
{
    const struct sample_meta meta = options();
    struct sample_files f;
    CHECK(sample_files_open(&f, &meta, dir, NULL) == OK && sample_files_shards(&f.meta) == SHARDS);
    for (size_t i = 0; i < SHARDS; i++) {
        struct sample_shard s;
        bool exists;
        CHECK(sample_files_shard(&s, &exists, &f, i, NULL) == OK);
        CHECK(!exists || s.counts.left_out == 1);
        samples_close(&s.samples);
        if (!exists)
            put_again(i);
    }
    sample_files_close(&f);
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
    CHECK_MSG(rc == code && strstr(err.msg, one) && strstr(err.msg, two), "%d: %s", rc, err.msg);
}

static void check_read(void)
{
    struct err err = { "" };
    struct samples s = { .dim = 0 };
    struct sample_meta meta = { .dir = "" };
    CHECK(sample_files_read(&s, &meta, dir, &err) == OK);
    CHECK(s.dim == DIM && s.n == 2 * (TEXTS - 1) && meta.questions == TEXTS);
    CHECK(!strcmp(meta.task, "csqa") && !strcmp(meta.tap, "final") && meta.model == 0x1234);
    CHECK(meta.seed == UINT64_MAX - 1 && meta.max_rollouts == SAMPLE_FILES_NO_LIMIT);
    for (size_t i = 0; i < s.n; i++) {
        uint32_t k = i % 2, t = (uint32_t)(i / 2) + (i >= 4);
        const struct sample_row *r = &s.rows[i];
        CHECK(r->text == t && r->subject == 0xf0000000 + t && r->label == !k);
        CHECK(r->before[0] == (k ? 4 : SAMPLES_NONE) && r->before[1] == 5);
        CHECK(r->edge == (int32_t)t && r->cloud == (k ? 7 : SAMPLE_NOT_ASKED));
        bool gains = !strcmp(meta.labels, "gain"); /* other labels have neither */
        CHECK(r->gain == (gains ? k ? 1 : -1 : 0) && r->right == (gains && t % 2));
        CHECK(s.x[i * DIM] == (float)t && s.x[i * DIM + 1] == (float)k);
    }
    /* The same folder again: its texts are numbered on. */
    CHECK(sample_files_read(&s, &meta, dir, &err) == OK && s.n == 4 * (TEXTS - 1));
    CHECK(s.rows[s.n / 2].text == TEXTS && s.rows[s.n / 2].subject == 0xf0000000);
    CHECK(meta.questions == 2 * TEXTS);
    /* Tasks that are read together are named together. */
    struct sample_meta other = meta;
    snprintf(other.task, sizeof(other.task), "arc+csq");
    CHECK(sample_files_read(&s, &other, dir, &err) == OK && !strcmp(other.task, "arc+csq+csqa"));
    CHECK(sample_files_read(&s, &other, dir, &err) == OK && !strcmp(other.task, "arc+csq+csqa"));
    s.n = 4 * (TEXTS - 1);
    other = meta;
    memcpy(other.tap, "1", 2);
    CHECK(sample_files_read(&s, &other, dir, &err) == ERR_ARG && strstr(err.msg, "tap: expected"));
    CHECK(s.n == 4 * (TEXTS - 1));
    samples_close(&s);
}

/* Every cut of a shard is refused. Every byte of it changed is refused or changes a value alone; in
 * the header nothing can change. */
static void check_torn(const char *name)
{
    static unsigned char whole[FILE_MAX];
    struct err err;
    size_t n = slurp(in_scratch(name), whole, FILE_MAX), header = 8 + whole[0] + 256u * whole[1];
    for (size_t i = n; i--;) {
        CHECK(!truncate(in_scratch(name), (off_t)i));
        refused(ERR_FORMAT, name, "");
    }
    spill(in_scratch(name), whole, n);
    FILE *f = fopen(in_scratch(name), "r+b");
    CHECK(f && !setvbuf(f, NULL, _IONBF, 0));
    for (size_t i = 0; i < n; i++) {
        CHECK(!fseek(f, (long)i, SEEK_SET) && fputc(whole[i] ^ 0x14, f) != EOF);
        int rc = reading(&err);
        CHECK(rc == ERR_FORMAT || (rc == OK && i >= header));
        CHECK(!fseek(f, (long)i, SEEK_SET) && fputc(whole[i], f) != EOF);
    }
    CHECK(!fclose(f) && reading(&err) == OK);
}

/* Replace text in a file, which must be there, by text of the same length. */
static void edit(const char *name, const char *from, const char *to)
{
    static unsigned char bytes[FILE_MAX];
    size_t n = slurp(in_scratch(name), bytes, FILE_MAX), k = strlen(from), i = 0;
    while (i + k <= n && memcmp(bytes + i, from, k) != 0)
        i++;
    CHECK(strlen(to) == k && i + k <= n);
    memcpy(bytes + i, to, k);
    spill(in_scratch(name), bytes, n);
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
        { "gain: row 0: expected -1 to 1, found 2", { .gain = 2 }, 0 },
        { "gain: row 0: expected -1 to 1, found -2", { .gain = -2 }, 0 },
        { "gain: row 0: expected -1 to 0, found 1", { .gain = 1, .label = 1 }, 0 },
        { "right: row 0: expected 0 to 1, found 2", { .right = 2 }, 0 },
        { "edge", { .edge = VOCAB }, 0 },
        { "edge", { .edge = -1 }, 0 },
        { "cloud", { .cloud = VOCAB }, 0 },
        { "cloud", { .cloud = -2 }, 0 },
        { "gold", { .gold = INT32_MIN }, 0 },
        { "before", { .before = { VOCAB, 0 } }, 0 },
        { "before", { .before = { 0, SAMPLES_NONE } }, 0 },
        { "text", { .text = -(uint32_t)TEXTS }, 0 },
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
    sample_files_begin(&s, &f.meta, 1);
    CHECK(samples_add(&s.samples, (const float[DIM]){ 0, NAN }, &bad[0].row, &err) == ERR_FORMAT);
    CHECK(strstr(err.msg, "the model: tensor hidden: row 0: expected finite values, found"));
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        struct sample_row row = bad[i].row;
        row.text += SAMPLE_FILES_TEXTS; /* the first of this shard */
        sample_files_begin(&s, &f.meta, 1);
        CHECK(samples_add(&s.samples, (const float[DIM]){ 0 }, &row, &err) == OK);
        s.samples.x[1] = bad[i].x;
        s.counts = (struct sample_counts){ .texts = 1, .samples = 1, .right = row.label == 1 };
        put(&s);
        refused(ERR_FORMAT, "00001.safetensors", bad[i].what);
        CHECK(sample_files_shard(&s, &exists, &f, 1, &err) == ERR_FORMAT && exists);
    }
    sample_files_begin(&s, &f.meta, 1);
    put(&s); /* an empty one is fine */
    CHECK(sample_files_shard(&s, &exists, &f, 1, &err) == OK && exists && !s.samples.n);
    samples_close(&s.samples);
    CHECK(reading(&err) == OK);
    sample_files_close(&f);
    unlink(in_scratch("00001.safetensors"));
    refused(ERR_FORMAT, "00001.safetensors", "collect again");
    make();
    CHECK(reading(&err) == OK);
}

/* A shard without hidden states is one to collect into, not one to learn from. */
static void check_no_states(void)
{
    const struct sample_meta meta = options();
    struct sample_shard s = shard_of(1), found;
    struct sample_files f;
    bool exists;
    s.no_states = true;
    memcpy(s.meta.tap, "1,final", 8); /* another tap than that of the options */
    CHECK(sample_files_write(&s, NULL) == OK);
    CHECK(sample_files_open(&f, &meta, dir, NULL) == OK);
    CHECK(sample_files_shard(&found, &exists, &f, 1, NULL) == OK && exists && found.no_states);
    CHECK(found.samples.n == s.samples.n);
    CHECK(!memcmp(found.samples.rows, s.samples.rows, s.samples.n * sizeof(*s.samples.rows)));
    refused(ERR_FORMAT, "00001.safetensors: tensor hidden", "expected hidden states, found none");
    samples_close(&found.samples);
    sample_files_close(&f);
    struct sample_meta deeper = meta; /* into which it may be collected, too */
    deeper.dim *= 2;
    snprintf(deeper.mizzle, sizeof(deeper.mizzle), "9.9.9");
    unlink(in_scratch("00000.safetensors"));
    CHECK(sample_files_open(&f, &deeper, dir, NULL) == OK);
    CHECK(sample_files_shard(&found, &exists, &f, 1, NULL) == OK && exists && found.no_states);
    CHECK(found.samples.dim == 2 * DIM && found.samples.room > found.samples.n);
    samples_close(&found.samples);
    sample_files_close(&f);
    put_again(0);
    s.no_states = false;
    memcpy(s.meta.tap, "final", 6);
    put(&s);
    CHECK(reading(NULL) == OK);
}

/* Write shard 1 with other metadata, which must be refused in these words. */
static void check_metadata(void)
{
    static const struct {
        const char *edge, *tap, *one, *two;
        size_t dim, fewer_right, more_samples;
    } bad[] = {
        { "tony", "final", "00001.safetensors: edge: expected tiny", "found tony", DIM, 0, 0 },
        { "tiny", "middle", "tap: expected final", "found middle", DIM, 0, 0 },
        { "tiny", "final", "dim: expected 1 to", "found 0", 0, 0, 0 },
        { "tiny", "final", "right: expected 4, as the rows have", "found 3", DIM, 1, 0 },
        { "tiny", "final", "hidden: expected [9,3]", "found [8,3]", DIM, 0, 1 },
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        struct sample_shard s = shard_of(1);
        snprintf(s.meta.edge, sizeof(s.meta.edge), "%s", bad[i].edge);
        snprintf(s.meta.tap, sizeof(s.meta.tap), "%s", bad[i].tap);
        s.meta.dim = bad[i].dim;
        s.counts.right -= bad[i].fewer_right;
        s.counts.samples += bad[i].more_samples;
        put(&s);
        refused(ERR_FORMAT, bad[i].one, bad[i].two);
    }
    put_again(1);
    CHECK(reading(NULL) == OK);
    edit("00001.safetensors", "\"right\":\"4\"", "\"right\":\"3\"");
    refused(ERR_FORMAT, "metadata checksum: expected", "");
    edit("00001.safetensors", "\"right\":\"3\"", "\"right\":\"x\"");
    refused(ERR_FORMAT, "metadata right: expected 0", "found x");
    edit("00001.safetensors", "\"right\":", "\"wrong\":");
    refused(ERR_FORMAT, "metadata right: expected a value", "found nothing");
    edit("00001.safetensors", "mizzle samples 4", "mizzle samples 9");
    refused(ERR_FORMAT, "metadata format: expected mizzle samples 4", "found mizzle samples 9");
    rename(in_scratch("00000.safetensors"), in_scratch("00001.safetensors"));
    refused(ERR_FORMAT, "00000.safetensors", "collect again");
    put_again(0);
    refused(ERR_FORMAT, "00001.safetensors: first: expected 16", "found 0");
    put_again(1);
    CHECK(reading(NULL) == OK);
}

/* Another collection into the same folder is refused: the field and both values are named. */
static void check_contradiction(void)
{
    struct err err = { "" };
    struct sample_files f, second;
    struct sample_meta meta = options();
    memcpy(meta.labels, "match", 6);
    CHECK(sample_files_open(&f, &meta, dir, &err) == ERR_ARG && f.lock < 0);
    CHECK(strstr(err.msg, "labels: expected match, as the options say, found citer"));
    meta = options();
    meta.max_rollouts = 5;
    CHECK(sample_files_open(&f, &meta, dir, &err) == ERR_ARG);
    CHECK(strstr(err.msg, "rollouts: expected 5") && strstr(err.msg, "found no limit"));
    unlink(in_scratch("00000.safetensors")); /* any shard says what the settings were */
    CHECK(sample_files_open(&f, &meta, dir, &err) == ERR_ARG);
    CHECK(strstr(err.msg, "00001.safetensors: max_rollouts: expected 5"));
    make();
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
    struct sample_files f;
    const struct sample_meta meta = options();
    refused(ERR_FORMAT, dir, "found no such file");
    CHECK(sample_files_open(&f, &meta, dir, NULL) == OK);
    sample_files_close(&f);
    refused(ERR_FORMAT, "00000.safetensors", "collect again");
    spill(in_scratch("00001.safetensors.77.0.part"), "x", 1);
    spill(in_scratch("notes.part"), "x", 1);
    CHECK(sample_files_open(&f, &meta, dir, NULL) == OK);
    sample_files_close(&f);
    CHECK(access(in_scratch("00001.safetensors.77.0.part"), F_OK));
    CHECK(!access(in_scratch("notes.part"), F_OK));
    unlink(in_scratch("notes.part"));
}

static int read_once(const void *arg)
{
    struct samples s = { .dim = 0 };
    struct sample_meta found = { .dir = "" };
    int rc = sample_files_read(&s, &found, dir, NULL);
    (void)arg;
    CHECK(rc == OK || !s.n);
    samples_close(&s);
    return rc;
}

static int write_once(const void *meta)
{
    struct sample_files f;
    struct sample_shard s;
    bool exists;
    int rc = sample_files_open(&f, meta, dir, NULL);
    if (rc == OK) {
        rc = sample_files_shard(&s, &exists, &f, 1, NULL);
        if (rc == OK)
            rc = sample_files_write(&s, NULL);
        samples_close(&s.samples);
    }
    sample_files_close(&f);
    return rc;
}

int main(void)
{
    dir = scratch_folder();
    check_unfinished();
    make();
    check_read();
    check_rows();
    check_no_states();
    unlink(in_scratch("00000.safetensors"));
    unlink(in_scratch("00001.safetensors"));
    labels = "citer";
    make();
    check_read();
    check_torn("00001.safetensors");
    check_metadata();
    check_contradiction();
    const struct sample_meta meta = options();
    torture_each(read_once, NULL);
    torture_each(write_once, &meta);
    in_scratch("lock"); /* stays */
    return 0;
}
