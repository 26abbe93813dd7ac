/* t_session_file.c - a session that was loaded from a file goes on with the bits of one that has
 * read its text; a file that is damaged, cut, or made by something else is named and not used. */
#include "model/session_file.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kernels/kernels.h"
#include "kernels/math.h"
#include "kernels/sys/base.h"
#include "kernels/sys/cpu.h"
#include "kernels/sys/crc.h"
#include "kernels/sys/pool.h"
#include "model/model.h"
#include "model/session.h"
#include "tests/support/files.h"
#include "tests/support/torture.h"

enum { N = 100, CONTEXT = 128, WEIGHTS = 4711, ROOM = 400000 };
/* Where things are in a file, in words of 8 bytes: see session_file.h. */
enum { VERSION = 1, KV = 3, KERNELS = 4, TOKENS = 6, CONFIG = 7, WORDS = 25, HEAD = 8 * WORDS };

static const struct model_config config = { 2,   48,    4,    2,    12,    84,   200,
                                            512, 1e-6f, 1e4f, true, false, { 0 } };
static char folder[64], path[96];
static struct kernels kernels;
static struct model *model;
static struct batch *batch;
static struct session *session; /* F16, holds nothing that matters */
static uint32_t ids[CONTEXT];
static unsigned char file[ROOM], other[ROOM];

/* A model with sessions of its own. */
struct rig {
    struct kernels k;
    struct pool *pool;
    struct model *m;
    struct batch *b;
    struct session *s;
};

static void rig_open(struct rig *r, const char *isa, size_t threads, enum kvcache kv)
{
    struct err err = { "" };
    CHECK(kernels_pick(&r->k, isa, cpu_detect(), &err) == OK);
    CHECK(pool_open(&r->pool, threads, &err) == OK);
    CHECK(model_random(&r->m, &config, P_F32, &r->k, r->pool, 7, &err) == OK);
    CHECK(batch_open(&r->b, r->m, r->pool, &err) == OK);
    CHECK(session_open(&r->s, r->b, CONTEXT, kv, &err) == OK);
}

static void rig_close(struct rig *r)
{
    session_close(r->s);
    batch_close(r->b);
    model_close(r->m);
    pool_close(r->pool);
}

static uint64_t fnv(uint64_t h, const void *p, size_t n)
{
    const unsigned char *b = p;
    for (size_t i = 0; i < n; i++)
        h = (h ^ b[i]) * 0x100000001b3u;
    return h;
}

/* Evaluate what s lacks of text[n], at least its last token, and hash the logits and the state. */
static uint64_t finish(struct session *s, const uint32_t *text, size_t n)
{
    struct err err;
    if (session_length(s) == n)
        session_rewind(s, n - 1);
    size_t have = session_length(s);
    CHECK(have < n && memcmp(session_ids(s), text, have * sizeof(*text)) == 0);
    CHECK(session_eval(s, text + have, n - have, NULL, &err) == OK);
    uint64_t h = fnv(0xcbf29ce484222325u, session_logits(s, 0), config.vocab * sizeof(float));
    return fnv(h, session_hidden(s, TAP_FINAL, 0), config.hidden * sizeof(float));
}

/* Save the first n ids after reading them and some more. */
static void save_first(struct session *s, size_t n)
{
    struct err err = { "" };
    session_rewind(s, 0);
    CHECK(session_eval(s, ids, n + 9, NULL, &err) == OK);
    CHECK(session_file_save(s, n, path, WEIGHTS, &err) == OK);
}

/* Fill the whole cache with another text, so that what is not loaded is wrong; then read text[n].
 */
static void hold_only(struct session *s, const uint32_t *text, size_t n)
{
    uint32_t another[CONTEXT];
    for (size_t i = 0; i < CONTEXT; i++)
        another[i] = (ids[i] + 7) % (uint32_t)config.vocab;
    session_rewind(s, 0);
    CHECK(session_eval(s, another, CONTEXT, NULL, NULL) == OK);
    session_rewind(s, 0);
    CHECK(n == 0 || session_eval(s, text, n, NULL, NULL) == OK);
}

/* Load ids[n] with `changed` (SIZE_MAX: none) of them replaced, into a session that holds `held` of
 * them, and compare how it goes on with reading all. The file has `stored` of ids. */
static void expect_same(struct session *s, size_t stored, size_t n, size_t changed, size_t held)
{
    struct err err = { "" };
    uint32_t text[CONTEXT];
    size_t shared = 77, want = n < stored ? n : stored;
    memcpy(text, ids, sizeof(text));
    if (changed < n)
        text[changed] ^= 1;
    want = changed < want ? changed : want;
    session_rewind(s, 0);
    uint64_t whole = finish(s, text, n);
    held = held < n ? held : n;
    hold_only(s, text, held);
    CHECK(session_file_load(&shared, s, path, WEIGHTS, text, n, &err) == OK && shared == want);
    CHECK(session_length(s) == (held >= want ? held : want));
    CHECK(finish(s, text, n) == whole);
}

/* Prompts of all relations to what is stored, with each KV type, thread count and exact set: the
 * file is written by the plainest; where that is slow, for one KV type only. */
static void check_bits(void)
{
    const bool slow = SANITIZED || (getenv("RUN") && *getenv("RUN"));
    static const size_t lengths[] = { 1, 15, 16, 17, 64, 91 };
    for (size_t kv = 0; kv < 3; kv++) {
        struct rig plain, fast;
        rig_open(&plain, slow && kv ? NULL : "scalar", 1, (enum kvcache)kv);
        rig_open(&fast, NULL, 2, (enum kvcache)kv);
        for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
            size_t n = lengths[i];
            save_first(plain.s, n);
            expect_same(fast.s, n, n, SIZE_MAX, 0);
            expect_same(fast.s, n, n + 9, SIZE_MAX, n / 2);
            expect_same(fast.s, n, n / 2 + 1, SIZE_MAX, n);
            expect_same(fast.s, n, N, n - 1, 0);
            expect_same(fast.s, n, N, 0, 3);
            for (size_t at = 1; at < n; at += 1 + n / (SANITIZED ? 2 : 7))
                expect_same(fast.s, n, N, at, at / 2);
        }
        rig_close(&fast);
        for (size_t i = 0; i < kernels_nsets; i++) {
            struct rig r;
            if (!kernels_runs(kernels_sets[i], cpu_detect()) ||
                (kernels_sets[i]->needs & CPU_INEXACT))
                continue;
            rig_open(&r, kernels_sets[i]->isa, 1 + i % 3, (enum kvcache)kv);
            expect_same(r.s, 91, N, SIZE_MAX, 0);
            hold_only(r.s, ids, 0);
            CHECK(session_file_load(&(size_t){ 0 }, r.s, path, WEIGHTS, ids, 91, NULL) == OK);
            session_rewind(plain.s, 0);
            CHECK(finish(r.s, ids, N) == finish(plain.s, ids, N));
            rig_close(&r);
        }
        rig_close(&plain);
    }
}

/* The bytes depend on the ids alone, not on what followed them. If one of these hashes changes,
 * files of older programs no longer hold what this one computes: SESSION_FILE_VERSION goes up. */
static void check_bytes(void)
{
    static const uint64_t golden[] = { UINT64_C(0x4c20bb0260cbc0ba), UINT64_C(0x15a1438184a619df),
                                       UINT64_C(0x8c0204f046427fd2) };
    CHECK(SESSION_FILE_VERSION == 1);
    for (size_t kv = 0; kv < 3; kv++) {
        struct rig r;
        struct stat st;
        rig_open(&r, NULL, 2, (enum kvcache)kv);
        save_first(r.s, 45);
        size_t n = slurp(path, file, ROOM);
        CHECK(stat(path, &st) == 0 && (st.st_mode & 0777) == 0600);
        session_rewind(r.s, 45);
        for (uint32_t i = 0; i < 20; i++)
            CHECK(session_eval(r.s, &i, 1, NULL, NULL) == OK);
        CHECK(session_file_save(r.s, 45, path, WEIGHTS, NULL) == OK);
        CHECK(slurp(path, other, ROOM) == n && memcmp(file, other, n) == 0);
        uint64_t h = fnv(0xcbf29ce484222325u, file, n);
        if (h != golden[kv])
            fprintf(stderr, "%zu: 0x%016llxu\n", kv, (unsigned long long)h);
        CHECK(h == golden[kv]);
        rig_close(&r);
    }
}

/* Write a file over the one that is there. Some systems flush one that is made anew to the disk,
 * which takes long when there are thousands. */
static void overwrite(const unsigned char *bytes, size_t n)
{
    FILE *f = fopen(path, "r+b");
    CHECK(f && fwrite(bytes, 1, n, f) == n && fclose(f) == 0);
    CHECK(truncate(path, (off_t)n) == 0);
}

/* Write bytes[n] and load them; the session is empty unless the result is OK. */
static int load_bytes(const unsigned char *bytes, size_t n, size_t *shared, struct err *err)
{
    overwrite(bytes, n);
    session_rewind(session, 0);
    int rc = session_file_load(shared, session, path, WEIGHTS, ids, N, err);
    CHECK(rc == OK || rc == ERR_FORMAT || rc == ERR_ARG);
    CHECK(session_length(session) == *shared && (rc == OK || !*shared));
    CHECK((rc == OK) == !err->msg[0] && !strchr(err->msg, '\n'));
    CHECK(rc == OK || !strncmp(err->msg, path, strlen(path)));
    return rc;
}

/* Give a file of n tokens and `size` bytes the checksums of what it holds. */
static void repair(unsigned char *bytes, size_t size, size_t n)
{
    size_t at[] = { 0, HEAD + 4, HEAD + 8 + 4 * n }, end[] = { HEAD, HEAD + 4 + 4 * n, size - 4 };
    uint32_t crc = 0;
    for (size_t i = 0; i < 3; i++) {
        crc = crc_add(crc, bytes + at[i], end[i] - at[i]);
        memcpy(bytes + end[i], &crc, sizeof(crc));
    }
}

/* Change a word of the head, with its checksum right, and expect this in the error. */
static void expect_field(const unsigned char *good, size_t size, size_t n, size_t word,
                         uint64_t value, const char *says)
{
    struct err err = { "" };
    size_t shared;
    memcpy(other, good, size);
    memcpy(other + 8 * word, &value, sizeof(value));
    repair(other, size, n);
    CHECK(load_bytes(other, size, &shared, &err) == ERR_FORMAT);
    if (!strstr(err.msg, says))
        fprintf(stderr, "%s, not %s\n", err.msg, says);
    CHECK(strstr(err.msg, says));
}

static uint64_t text_word(const char *text)
{
    uint64_t word = 0;
    memcpy(&word, text, strlen(text));
    return word;
}

static uint64_t number_word(double x)
{
    uint64_t word;
    memcpy(&word, &x, sizeof(word));
    return word;
}

/* Each field of the head is checked and named. */
static void check_fields(const unsigned char *good, size_t size, size_t n)
{
    static const char *const fields[] = {
        "layers: expected 2",         "hidden: expected 48",   "heads: expected 4",
        "kv_heads: expected 2",       "head_dim: expected 12", "ffn: expected 84",
        "vocab: expected 200",        "context: expected 512", "eps: expected 9.999999975",
        "rope_theta: expected 10000", "tied: expected 1",      "qk_norm: expected 0",
        "kind: expected 0",           "factor: expected 0",    "magnitude: expected 0",
        "beta_fast: expected 0",      "beta_slow: expected 0", "original: expected 0"
    };
    struct err err = { "" };
    size_t shared;
    expect_field(good, size, n, VERSION, 0, "version: expected 1, found 0");
    expect_field(good, size, n, VERSION, 2, "version: expected 1, found 2");
    expect_field(good, size, n, 2, 0xabc, "made with other weights");
    expect_field(good, size, n, KV, text_word("q8"), "KV type: expected f16, found q8");
    expect_field(good, size, n, KV, text_word("\033[31m"), "KV type: expected f16, found ?[31m");
    expect_field(good, size, n, KERNELS, text_word("blas"), "kernels: expected exact, found blas");
    expect_field(good, size, n, KERNELS + 1, text_word("more"), "kernels: expected exact, found");
    expect_field(good, size, n, TOKENS, 0, "tokens: expected 1 to 4294967295, found 0");
    expect_field(good, size, n, TOKENS, UINT64_C(1) << 32, "tokens: expected 1 to");
    expect_field(good, size, n, TOKENS, UINT32_MAX, "size: expected");
    expect_field(good, size, n, TOKENS, n + 1, "size: expected");
    CHECK(CONFIG + sizeof(fields) / sizeof(fields[0]) == WORDS);
    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
        expect_field(good, size, n, CONFIG + i, number_word(77.5), fields[i]);
    expect_field(good, size, n, CONFIG + 9, number_word(1e6),
                 "rope_theta: expected 10000, found 1000000");
    memcpy(other, good, size + 1);
    CHECK(load_bytes(other, size + 1, &shared, &err) == ERR_FORMAT && strstr(err.msg, "size: "));
}

/* Every cut and every flipped bit is noticed. */
static void check_damage(const unsigned char *good, size_t size, size_t n)
{
    size_t shared, usable = 0;
    for (size_t cut = 0; cut < size; cut++) {
        struct err none = { "" };
        int rc = load_bytes(good, cut, &shared, &none);
        CHECK(rc == (cut >= 8 ? ERR_FORMAT : cut ? ERR_ARG : OK) && !shared);
    }
    memcpy(other, good, size);
    for (size_t i = 0; i < 8 * (HEAD + 4) + 600; i++) {
        struct err why = { "" };
        size_t bit = i < 8 * (HEAD + 4) ? i : (size_t)rand_below(3, i, 8 * size);
        other[bit / 8] ^= (unsigned char)(1 << bit % 8);
        CHECK(load_bytes(other, size, &shared, &why) == (bit < 64 ? ERR_ARG : ERR_FORMAT));
        CHECK(bit < 64 || bit >= 128 || strstr(why.msg, "version"));
        CHECK(bit < 128 || bit >= 8 * HEAD || strstr(why.msg, "checksum of the head"));
        CHECK(bit < 8 * (HEAD + 4) ||
              strstr(why.msg, bit < 8 * (HEAD + 8 + 4 * n) ? "checksum of the ids"
                                                           : "checksum of the cache"));
        other[bit / 8] ^= (unsigned char)(1 << bit % 8);
    }
    /* A session that holds something is not left with a part of the damaged cache. */
    struct err err = { "" };
    session_rewind(session, 0);
    uint64_t whole = finish(session, ids, N);
    other[HEAD + 8 + 4 * n] ^= 64;
    spill(path, other, size);
    hold_only(session, ids, 5);
    CHECK(session_file_load(&shared, session, path, WEIGHTS, ids, N, &err) == ERR_FORMAT);
    CHECK(finish(session, ids, N) == whole);
    memcpy(other, good, size);
    /* With right checksums, what is loaded can be used. */
    for (size_t i = 0; i < 400; i++) {
        err.msg[0] = '\0';
        size_t bit = (size_t)rand_below(4, i, i % 2 ? 8 * size : 8 * (HEAD + 8 + 4 * n));
        other[bit / 8] ^= (unsigned char)(1 << bit % 8);
        repair(other, size, n);
        usable += load_bytes(other, size, &shared, &err) == OK;
        finish(session, ids, N);
        memcpy(other, good, size);
    }
    CHECK(usable > 200 && usable < 400);
}

/* Foreign things under the name, and calls that cannot work. */
static void check_refusals(void)
{
    struct err err = { "" };
    struct rig r;
    size_t shared;
    char to[128];
    CHECK(session_file_load(&shared, session, folder, WEIGHTS, ids, N, &err) == ERR_ARG);
    CHECK(strstr(err.msg, "found a folder"));
    snprintf(to, sizeof(to), "%s/none/x", folder);
    CHECK(session_file_load(&shared, session, to, WEIGHTS, ids, N, &err) == OK && !shared);
    CHECK(session_file_save(session, 1, to, WEIGHTS, &err) == ERR_IO && strstr(err.msg, "none/x"));
    snprintf(to, sizeof(to), "%s/pipe", folder);
    CHECK(mkfifo(to, 0600) == 0);
    CHECK(session_file_load(&shared, session, to, WEIGHTS, ids, N, &err) == ERR_ARG);
    remove(to);
    spill(path, "GGUF and so on, which is not a prompt", 37);
    CHECK(session_file_load(&shared, session, path, WEIGHTS, ids, N, &err) == ERR_ARG);
    CHECK(strstr(err.msg, "expected a prompt cache, found another file"));
    CHECK(session_file_load(&shared, session, path, WEIGHTS, ids, CONTEXT + 1, &err) == ERR_ARG);
    CHECK(session_file_save(session, 0, path, WEIGHTS, &err) == ERR_ARG);
    CHECK(session_file_save(session, session_length(session) + 1, path, WEIGHTS, &err) == ERR_ARG);
    /* An inexact set has bits of its own. */
    rig_open(&r, NULL, 1, KVCACHE_F16);
    save_first(session, 30);
    r.k.needs |= CPU_BLAS;
    r.k.isa = "blas";
    CHECK(session_file_load(&shared, r.s, path, WEIGHTS, ids, N, &err) == ERR_FORMAT && !shared);
    CHECK(strstr(err.msg, "kernels: expected blas, found exact"));
    rig_close(&r);
    /* An id that no session may hold. */
    uint32_t beyond[2] = { ids[0], 9999 };
    slurp(path, file, ROOM);
    memcpy(file + HEAD + 8, &beyond[1], sizeof(beyond[1]));
    struct stat st;
    CHECK(stat(path, &st) == 0);
    repair(file, (size_t)st.st_size, 30);
    spill(path, file, (size_t)st.st_size);
    session_rewind(session, 0);
    CHECK(session_file_load(&shared, session, path, WEIGHTS, beyond, 2, &err) == OK && shared == 1);
}

/* Return how many files are in the folder. */
static size_t files_there(void)
{
    size_t n = 0;
    DIR *d = opendir(folder);
    CHECK(d);
    while (readdir(d))
        n++;
    closedir(d);
    return n - 2;
}

/* Without memory or disk, the file that was there stays. */
static void check_faults(void)
{
    struct err err = { "" };
    size_t shared;
    save_first(session, 30);
    size_t size = slurp(path, file, ROOM);
    int hit = 1;
    for (long n = 1; hit; n++) {
        torture_begin(n);
        int rc = session_file_save(session, 33, path, WEIGHTS, &err);
        hit = torture_end();
        CHECK((rc == OK) == !hit && torture_live() == 0 && files_there() == 1);
        CHECK(rc == OK || rc == ERR_NOMEM || rc == ERR_IO); /* fdopen sets errno */
        CHECK(rc == OK || (slurp(path, other, ROOM) == size && !memcmp(file, other, size)));
    }
    session_rewind(session, 0);
    torture_begin(1);
    CHECK(session_file_load(&shared, session, path, WEIGHTS, ids, N, &err) == OK && shared == 33);
    CHECK(!torture_end());
    struct rlimit limit, before;
    CHECK(getrlimit(RLIMIT_FSIZE, &before) == 0);
    limit = (struct rlimit){ size / 2, before.rlim_max };
    CHECK(signal(SIGXFSZ, SIG_IGN) != SIG_ERR && setrlimit(RLIMIT_FSIZE, &limit) == 0);
    size = slurp(path, file, ROOM);
    CHECK(session_file_save(session, 20, path, WEIGHTS, &err) == ERR_IO);
    CHECK(strstr(err.msg, strerror(EFBIG)) && files_there() == 1);
    CHECK(setrlimit(RLIMIT_FSIZE, &before) == 0);
    CHECK(slurp(path, other, ROOM) == size && !memcmp(file, other, size));
}

int main(void)
{
    struct err err;
    static unsigned char good[ROOM];
    strcpy(folder, "build/session-XXXXXX");
    CHECK(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/x.cache", folder);
    for (size_t i = 0; i < CONTEXT; i++)
        ids[i] = (uint32_t)rand_below(5, i, config.vocab);
    CHECK(kernels_pick(&kernels, NULL, cpu_detect(), &err) == OK);
    CHECK(model_random(&model, &config, P_F32, &kernels, NULL, 7, &err) == OK);
    CHECK(batch_open(&batch, model, NULL, &err) == OK);
    CHECK(session_open(&session, batch, CONTEXT, KVCACHE_F16, &err) == OK);
    check_bits();
    check_bytes();
    save_first(session, 21);
    size_t size = slurp(path, good, ROOM);
    check_fields(good, size, 21);
    check_damage(good, size, 21);
    check_refusals();
    check_faults();
    session_close(session);
    batch_close(batch);
    model_close(model);
    remove(path);
    CHECK(rmdir(folder) == 0);
    return 0;
}
