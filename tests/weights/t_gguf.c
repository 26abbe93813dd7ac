/* t_gguf.c - GGUF files: written, read back, and damaged in every way that can be enumerated, as
 * are the heads of real files of each type. t_malformed_gguf.c has counts and lengths that lie, and
 * fuzz/fuzz_gguf.c damages files in any other way. */
#include <sys/stat.h>

#include "model/model.h"
#include "tests/weights/opening.h"
#include "weights/gguf_write.h"
#include "weights/table.h"

enum { ROOM = 1 << 16 };

static const char *path;
static struct err err;

static const float values[6] = { 1, -2, 3.5f, 0, 1e-3f, 6e4f };

/* Write a small file with every kind of key that the writer knows; returns the writer's code. */
static int write_sample(bool checksum, bool commit)
{
    static const struct str words[3] = { { "a", 1 }, { "", 0 }, { "b\0c", 3 } };
    static const int32_t ints[2] = { -1, 7 };
    unsigned char block[34] = { 0, 0x3c, 5 };
    struct ggufw *g;
    int code = ggufw_open(&g, path, &err);
    if (code != OK)
        return code;
    ggufw_str(g, "general.architecture", "qwen2");
    ggufw_u32(g, "n", 12);
    ggufw_f32(g, "x", 0.5f);
    ggufw_bool(g, "yes", true);
    ggufw_strs(g, "words", words, 3);
    ggufw_i32s(g, "ints", ints, 2);
    if (checksum)
        ggufw_checksum(g);
    ggufw_tensor(g, "m", W_F32, 2, (const size_t[]){ 2, 3 });
    ggufw_tensor(g, "none", W_F32, 2, (const size_t[]){ 0, 3 });
    ggufw_tensor(g, "q", W_Q8_0, 1, (const size_t[]){ 32 });
    ggufw_data(g, values, 4);
    ggufw_data(g, values + 1, 20);
    ggufw_data(g, block, sizeof(block));
    return ggufw_close(g, commit, &err);
}

/* Read it back through every getter. */
static void check_sample(void)
{
    struct weights *w;
    uint64_t u = 0;
    double d = 0;
    bool b = false;
    struct str s;
    float x[32];
    CHECK(weights_open(&w, path, &err) == OK);
    CHECK(strcmp(weights_format(w), "gguf") == 0 && strcmp(weights_path(w), path) == 0);
    CHECK(weights_str(w, "general.architecture", &s) && s.n == 5 && memcmp(s.p, "qwen2", 5) == 0);
    CHECK(weights_u64(w, "n", &u) && u == 12 && weights_f64(w, "n", &d) && d == 12);
    CHECK(weights_f64(w, "x", &d) && d == 0.5 && !weights_u64(w, "x", &u));
    CHECK(weights_bool(w, "yes", &b) && b && !weights_bool(w, "n", &b) && !weights_key(w, "z"));
    const struct kv *words = weights_key(w, "words"), *ints = weights_key(w, "ints");
    CHECK(words->type == KV_ARR && words->elem == KV_STR && words->count == 3);
    CHECK(words->strs[0].n == 1 && words->strs[1].n == 0 && words->strs[2].p[2] == 'c');
    CHECK(ints->count == 2 && ints->elem == KV_I32 && !ints->strs && !weights_str(w, "ints", &s));
    CHECK(weights_ntensors(w) == 3 && strcmp(weights_tensor(w, 1)->name, "none") == 0);
    const struct tensor *m = weights_want(w, "m", 2, 3, &err), *q = weights_find(w, "q");
    CHECK(m && memcmp(m->data, values, sizeof(values)) == 0);
    CHECK(weights_floats(x, q, 0, 32, "f.gguf", &err) == OK && x[0] == 5 && x[1] == 0);
    CHECK(!weights_want(w, "m", 3, 2, &err) && strstr(err.msg, "expected [3,2], found [2,3]"));
    CHECK(!weights_want(w, "o", 3, 0, &err) && strstr(err.msg, "expected [3], found none"));
    weights_close(w);
}

static size_t fine, models; /* of all bytes that were tried */

/* Read p[n] as weights_open does; if it opens, it is a model or refused as one. all: every byte and
 * string of it is read. */
static bool reads(const unsigned char *p, size_t n, bool header_only, bool all)
{
    struct weights *w = table_new("file", "gguf");
    struct mapping m = { .p = p, .n = n };
    struct model *model = NULL;
    unsigned sum = 0;
    CHECK(w);
    int code = gguf_read_alone(w, &m, header_only, &err);
    if (code == OK)
        code = table_index(w, &err);
    CHECK(code == OK || (code == ERR_FORMAT && err.msg[0] && !strchr(err.msg, '\n')));
    for (size_t i = 0; all && code == OK && i < weights_ntensors(w); i++) {
        const struct tensor *t = weights_tensor(w, i);
        for (size_t k = 0; t->data && k < t->bytes; k++)
            sum += ((const unsigned char *)t->data)[k];
    }
    for (size_t i = 0; all && code == OK && i < weights_nkv(w); i++) {
        const struct kv *kv = weights_kv(w, i);
        for (size_t k = 0; kv->strs && k < kv->count; k++)
            sum += kv->strs[k].n ? kv->strs[k].p[kv->strs[k].n - 1] != 0 : 0;
    }
    CHECK(sum < UINT32_MAX);
    if (code == OK) {
        int rc = model_outline(&model, w, &err);
        CHECK(rc == OK ? model != NULL : !model && rc == ERR_FORMAT && !strchr(err.msg, '\n'));
    }
    fine += code == OK;
    models += model != NULL;
    model_close(model);
    weights_close(w);
    return code == OK;
}

/* Read it in memory of exactly n bytes, so that a sanitizer sees any byte read beyond it. */
static bool opens(const unsigned char *p, size_t n, bool header_only)
{
    unsigned char *copy = malloc(n ? n : 1);
    CHECK(copy);
    memcpy(copy, p, n);
    bool opened = reads(copy, n, header_only, true);
    free(copy);
    return opened;
}

/* Bytes of padding after the 34 bytes of the sample's last tensor. */
enum { PADDING = 30 };

/* With the checksum no bit may be wrong; only flips in the names of the checksum's own keys go
 * unseen. A file of another size is only as good as its table of tensors. */
static void test_checksum(void)
{
    static unsigned char p[ROOM];
    CHECK(write_sample(true, true) == OK);
    check_sample();
    size_t n = slurp(path, p, ROOM), key = 0;
    while (memcmp(p + key, "mizzle.bytes", 12) != 0)
        key++;
    CHECK(key == 32 && memcmp(p + 64, "mizzle.crc32", 12) == 0); /* they are the first keys */
    for (size_t i = 0; i < n; i++)
        for (int bit = 0; bit < 8; bit++) {
            p[i] ^= (unsigned char)(1 << bit);
            if (opens(p, n, true))
                CHECK((i >= key && i < key + 12) || (i >= 64 && i < 64 + 12));
            p[i] ^= (unsigned char)(1 << bit);
        }
    for (size_t cut = 0; cut < n; cut++) {
        CHECK(opens(p, cut, false) == (cut == n - PADDING));
        CHECK(!opens(p, cut, true) || opens(p, cut, false) || cut <= n - 96);
    }
    CHECK(opens(p, n, false) && opens(p, n + 1, false));
}

/* Rewrite a file as other tools do: copy every key, the checksum's included, and add one. */
static void test_rewritten(void)
{
    struct weights *w;
    struct ggufw *g;
    CHECK(write_sample(true, true) == OK && weights_open(&w, path, &err) == OK);
    CHECK(ggufw_open(&g, path, &err) == OK);
    for (size_t i = 0; i < weights_nkv(w); i++)
        ggufw_kv(g, weights_kv(w, i));
    ggufw_str(g, "general.author", "somebody else");
    for (size_t i = 0; i < weights_ntensors(w); i++) {
        const struct tensor *t = weights_tensor(w, i);
        ggufw_tensor(g, t->name, t->type, t->ndim, t->shape);
    }
    for (size_t i = 0; i < weights_ntensors(w); i++)
        ggufw_data(g, weights_tensor(w, i)->data, weights_tensor(w, i)->bytes);
    CHECK(ggufw_close(g, true, &err) == OK);
    weights_close(w);
    check_sample();
    CHECK(weights_open(&w, path, &err) == OK && weights_key(w, "mizzle.crc32"));
    weights_close(w);
}

/* Without the checksum, a file may end where its data should begin, but only for `info`. */
static void test_cuts(void)
{
    static unsigned char p[ROOM];
    CHECK(write_sample(false, true) == OK);
    check_sample();
    size_t n = slurp(path, p, ROOM), opened = 0;
    for (size_t cut = 0; cut < n; cut++) {
        CHECK(opens(p, cut, false) == (cut == n - PADDING));
        opened += opens(p, cut, true);
    }
    CHECK(opened == 2 || opened == 3); /* before and after the padding; without the last padding */
    spill(path, p, n - 96);            /* m has 32 bytes, q 64 */
    struct weights *w;
    float x[6];
    CHECK(weights_open_header(&w, path, &err) == OK);
    CHECK(weights_floats(x, weights_find(w, "m"), 0, 6, "f.gguf", &err) == ERR_FORMAT);
    CHECK(strstr(err.msg, "f.gguf: tensor m: its data is not in the file"));
    weights_close(w);
}

/* When the writer refuses, it leaves no file behind, neither the final nor an unfinished one. */
static void test_writer(void)
{
    struct ggufw *g;
    unlink(path);
    CHECK(write_sample(false, false) == OK && access(path, F_OK) != 0);
    CHECK(ggufw_open(&g, path, &err) == OK);
    ggufw_tensor(g, "t", W_F32, 1, (const size_t[]){ 6 });
    ggufw_data(g, values, 20);
    CHECK(ggufw_close(g, true, &err) == ERR_ARG && strstr(err.msg, "less data"));
    CHECK(ggufw_open(&g, path, &err) == OK);
    ggufw_tensor(g, "t", W_F32, 1, (const size_t[]){ 2 });
    ggufw_data(g, values, 20);
    CHECK(ggufw_close(g, true, &err) == ERR_ARG && strstr(err.msg, "more data"));
    CHECK(ggufw_open(&g, path, &err) == OK);
    ggufw_tensor(g, "t", W_Q8_0, 2, (const size_t[]){ 2, 33 });
    CHECK(ggufw_close(g, true, &err) == ERR_ARG);
    CHECK(access(path, F_OK) != 0);
    CHECK(ggufw_open(&g, "/nonexistent/x.gguf", &err) == ERR_IO && !g);
    CHECK(ggufw_open(&g, path, &err) == OK && ggufw_close(g, true, &err) == OK);
    struct weights *w;
    CHECK(weights_open(&w, path, &err) == OK && weights_nkv(w) == 0); /* no keys, no tensors */
    weights_close(w);
}

static int write_once(const void *arg)
{
    int code = write_sample(true, true);
    (void)arg;
    return code == ERR_IO ? ERR_NOMEM : code; /* what the C library says of its own memory */
}

static const char *const names[] = {
    "weights/kquants/src-f32.gguf", "weights/kquants/f16.gguf",    "weights/kquants/bf16.gguf",
    "weights/kquants/q8_0.gguf",    "weights/kquants/q4_0.gguf",   "weights/kquants/q4_1.gguf",
    "weights/kquants/q5_0.gguf",    "weights/kquants/q5_1.gguf",   "weights/kquants/q2_k.gguf",
    "weights/kquants/q3_k_m.gguf",  "weights/kquants/q4_k_m.gguf", "weights/kquants/q5_k_m.gguf",
    "weights/kquants/q6_k.gguf",    "weights/kquants/iq4_nl.gguf", "weights/kquants/iq4_xs.gguf",
    "weights/qwen3/random.gguf",
};

/* Real heads of each type, cut at every byte and changed in every bit; false without the files. */
static bool test_heads(void)
{
    enum { HEAD = 2048 };
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        size_t n;
        unsigned char *p = (unsigned char *)slurp_all(test_data("%s", names[i]), &n);
        if (!p)
            return false;
        CHECK(n > HEAD && opens(p, n, false));
        for (size_t cut = 0; cut < HEAD; cut++) {
            opens(p, cut, false);
            opens(p, cut, true);
        }
        for (size_t k = 0; k < HEAD * 8; k++) {
            p[k / 8] ^= (unsigned char)(1u << k % 8);
            reads(p, n, false, false);
            p[k / 8] ^= (unsigned char)(1u << k % 8);
        }
        free(p);
    }
    printf("%zu opened, %zu of them as models\n", fine, models);
    return true;
}

int main(void)
{
    path = in_scratch("a.gguf"); /* at the end nothing unfinished may be beside it */
    test_checksum();
    test_rewritten();
    test_cuts();
    test_writer();
    torture_some(write_once, NULL);
    torture_each(open_weights, path);
    if (!test_heads())
        SKIP("no weights/kquants and weights/qwen3");
    return 0;
}
