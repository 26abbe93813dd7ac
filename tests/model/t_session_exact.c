/* t_session_exact.c - one hash per type of weights and of KV cache, equal on every machine. Every
 * instruction set evaluates random models of odd shapes: with 1 to 8 threads, in chunks from 1
 * token to more than BATCH_ROWS. Each token's logits and hidden states must be the same bits. Under
 * an emulator ($RUN) or a sanitizer, each model is evaluated by the fastest set and one other, in
 * turn; a sanitizer sees some of the shapes, each with one type of KV cache. */
#include "kernels/sys/cpu.h"
#include "kernels/kernels.h"
#include "kernels/sys/pool.h"
#include "model/model.h"
#include "model/session.h"
#include "tests/support/test.h"
#include "tests/support/gguf_model.h"
#include "weights/weights.h"

enum { TYPES = 6, QWEN3 = 8, SHAPES = 11, KVS = 3 };
enum { MOST = 270, THREADS = 8, CHUNKS = 16, SETS = 16 };

static const enum kvcache kvs[KVS] = { KVCACHE_F32, KVCACHE_F16, KVCACHE_Q8 };
static const char *const kv_names[KVS] = { "f32", "f16", "q8" };

/* -1: mixed, each matrix has another type, as in a file of K-quants. */
static const int types[TYPES] = { W_F32, W_F16, W_BF16, W_Q8_0, W_Q4_0, -1 };

/* Hashes over logits and hidden states of all tokens and shapes, of Qwen2, then of Qwen3. */
static const uint64_t expected[2][TYPES][KVS] = {
    {
        { 0x32d7b04a53f53f98u, 0xaa96c52c75a2c098u, 0x058c8dfe7a240979u },
        { 0x196e22258fcdcea4u, 0x2dba409905394a0eu, 0x3f38948dbb80e93fu },
        { 0x93cccc5ffd3059d9u, 0x45711148aa429ed7u, 0x31eb5899ffbb3c8du },
        { 0x8552c602f6da1f50u, 0x8fe7e4f93e8e2d4bu, 0xee389b1613ccd20fu },
        { 0x1e1ed073f9d515feu, 0x8bc7b96b6a969a7cu, 0x3b5e25bfad060503u },
        { 0x7659290a190b3efau, 0x49c66b29ea4eabfcu, 0x6dfda2a8c642a299u },
    },
    {
        { 0xbb57c873572720adu, 0x5646dee7b1ae4500u, 0x0048a58022c233e6u },
        { 0xacf8a671940f166bu, 0x47a338c709c0302fu, 0x94fa8558916fe95du },
        { 0xfbc8b81daade0a18u, 0xadca9ee37414a961u, 0xe54cc6f715b697d7u },
        { 0x874b43287658404fu, 0x7e18175bdf6141dfu, 0xb66382308eb6b2dau },
        { 0xf18ab384788a3c67u, 0xf29da57053bcaf1cu, 0x18e499b5318199c4u },
        { 0x8fb970ac45d983b4u, 0x7c3c60e10275e81du, 0x9d1ff0d2d63a6dcbu },
    }
};

/* Head sizes 32, 64, 80, 128; then odd ones, whose rows end inside a vector and a panel; the last
 * one is large enough that decoding is split among threads, with 7 query heads per KV head. From
 * QWEN3 on, shapes of that architecture: all heads are together wider than the hidden state or
 * narrower, and RoPE is stretched by YaRN. */
static const struct shape {
    struct gguf_shape is;
    size_t tokens;
    bool odd;
} shapes[SHAPES] = {
    { { 2, 96, 3, 1, 32, 160, 333, false, true, false, 512, 1e6f }, MOST, false },
    { { 1, 128, 2, 2, 64, 96, 271, false, false, false, 512, 1e6f }, MOST, false },
    { { 1, 160, 2, 1, 80, 64, 97, false, true, false, 512, 1e6f }, MOST, false },
    { { 1, 128, 1, 1, 128, 32, 33, false, false, false, 512, 1e6f }, MOST, false },
    { { 2, 50, 5, 1, 10, 77, 91, false, true, false, 512, 1e6f }, MOST, true },
    { { 1, 14, 7, 7, 2, 33, 35, false, false, false, 512, 1e6f }, MOST, true },
    { { 1, 136, 4, 2, 34, 97, 101, false, false, false, 512, 1e6f }, MOST, true },
    { { 1, 224, 14, 2, 16, 704, 1003, false, true, false, 512, 1e6f }, 70, false },
    { { 1, 96, 3, 1, 128, 160, 131, true, true, false, 512, 1e6f }, MOST, false },
    { { 1, 128, 4, 2, 64, 96, 97, true, false, true, 512, 1e6f }, MOST, false },
    { { 2, 50, 4, 2, 6, 77, 91, true, true, true, 512, 1e6f }, MOST, true },
};

static const size_t chunks[CHUNKS] = {
    1, 2, 3, 5, 6, 7, 16, 17, 63, 64, 65, 96, 191, 192, 193, MOST
};

static uint64_t fnv(uint64_t h, const void *p, size_t n)
{
    const unsigned char *b = p;
    for (size_t i = 0; i < n; i++)
        h = (h ^ b[i]) * 0x100000001b3u;
    return h;
}

static struct pool *pools[THREADS + 1];
static struct kernels tables[SETS]; /* of the exact sets that run here */
static size_t nsets, turns[SETS];   /* runs of each set so far */
static bool light;

/* Evaluate the prompt; a hash per token over its logits and hidden states, 0: not recorded. */
static void run(uint64_t at_token[MOST], const struct model *m, enum kvcache kv, size_t tokens,
                size_t threads, size_t chunk)
{
    struct batch *b;
    struct session *s;
    uint32_t ids[MOST];
    const struct model_config *c = &m->config;
    memset(at_token, 0, MOST * sizeof(*at_token));
    for (size_t i = 0; i < tokens; i++)
        ids[i] = (uint32_t)rand_below(11, i, c->vocab / 2 * 2); /* as the hashes were made */
    CHECK(batch_open(&b, m, pools[threads], NULL) == OK);
    CHECK(session_open(&s, b, tokens + 7, kv, NULL) == OK);
    for (size_t at = 0, n; at < tokens; at += n) {
        n = chunk < tokens - at ? chunk : tokens - at;
        CHECK(session_eval(s, ids + at, n, NULL, NULL) == OK);
        for (size_t back = n < BATCH_ROWS ? n : BATCH_ROWS; back-- > 0;) {
            uint64_t h =
                fnv(0xcbf29ce484222325u, session_logits(s, back), c->vocab * sizeof(float));
            at_token[at + n - 1 - back] =
                fnv(h, session_hidden(s, back), c->hidden * sizeof(float));
        }
    }
    CHECK(session_length(s) == tokens);
    session_close(s);
    batch_close(b);
}

static void find_sets(void)
{
    for (size_t i = 0; i < kernels_nsets; i++)
        if (kernels_runs(kernels_sets[i], cpu_detect()) &&
            !(kernels_sets[i]->needs & CPU_INEXACT)) {
            CHECK(nsets < SETS);
            CHECK(kernels_pick(&tables[nsets++], kernels_sets[i]->isa, cpu_detect(), NULL) == OK);
        }
}

/* Check one set and model: the first set makes the whole trace, with which what any run records is
 * compared. Runs 0, 1, 2, ... of a set go through all pairs of threads and chunks. */
static void check_set(uint64_t whole[MOST], bool first, const struct weights *w,
                      const struct shape *sh, enum kvcache kv, size_t set)
{
    static uint64_t part[MOST];
    struct model *m;
    CHECK(model_open(&m, w, &tables[set], pools[2], NULL, NULL, NULL) == OK);
    if (first)
        run(whole, m, kv, sh->tokens, 1, 1);
    size_t runs = light ? !first : set ? 2 : 1; /* scalar is slow */
    for (size_t i = 0; i < runs; i++) {
        size_t turn = turns[set]++, threads = 1 + turn % THREADS, noted = 0;
        size_t chunk = chunks[(turn / THREADS + turn) % CHUNKS];
        run(part, m, kv, sh->tokens, threads, chunk);
        for (size_t k = 0; k < MOST; k++) {
            noted += part[k] != 0;
            CHECK_MSG(!part[k] || part[k] == whole[k],
                      "token %zu on %s, %zu threads, chunks of %zu: other bits", k, tables[set].isa,
                      threads, chunk);
        }
        CHECK(noted);
    }
    model_close(m);
}

static uint64_t check_model(const char *path, uint64_t h, size_t shape, size_t type, size_t kv)
{
    static uint64_t whole[MOST];
    struct weights *w;
    const struct shape *sh = &shapes[shape];
    CHECK(weights_open(&w, path, NULL) == OK);
    static size_t models;
    models++;
    for (size_t i = nsets; i-- > 0;) /* the fastest set comes first and makes the whole trace */
        if (!light || i + 1 == nsets || i == models % nsets)
            check_set(whole, i + 1 == nsets, w, sh, kvs[kv], i);
    weights_close(w);
    h = fnv(h, whole, sh->tokens * sizeof(whole[0]));
    printf("  %s, kv %s, shape %zu: %016llx\n", types[type] < 0 ? "mixed" : wtype_name(types[type]),
           kv_names[kv], shape, (unsigned long long)h);
    return h;
}

/* Check the shapes [first, end) in one type of weights. */
static int check_type(const char *path, size_t type, size_t first, size_t end)
{
    const uint64_t *want = expected[first == QWEN3][type];
    uint64_t h[KVS];
    int wrong = 0;
    for (size_t kv = 0; kv < KVS; kv++)
        h[kv] = 0xcbf29ce484222325u;
    for (size_t i = first; i < end; i++) {
        if (shapes[i].odd && (types[type] == W_Q8_0 || types[type] == W_Q4_0))
            continue;
        if (SANITIZED && i % 4 != 0 && i + 1 != end)
            continue;
        gguf_model_write(path, &shapes[i].is, types[type], NULL);
        for (size_t kv = 0; kv < KVS; kv++)
            if (!SANITIZED || (i + type) % KVS == kv)
                h[kv] = check_model(path, h[kv], i, type, kv);
    }
    for (size_t kv = 0; kv < KVS && !SANITIZED; kv++)
        if (h[kv] != want[kv]) {
            printf("type %zu, kv %s: 0x%016llxu, expected 0x%016llxu\n", type, kv_names[kv],
                   (unsigned long long)h[kv], (unsigned long long)want[kv]);
            wrong++;
        }
    return wrong;
}

int main(void)
{
    const char *path = in_scratch("m.gguf");
    int wrong = 0;
    light = SANITIZED || (getenv("RUN") && *getenv("RUN"));
    find_sets();
    for (size_t i = 1; i <= THREADS; i++)
        CHECK(pool_open(&pools[i], i, NULL) == OK);
    for (size_t i = 0; i < TYPES; i++)
        wrong += check_type(path, i, 0, QWEN3) + check_type(path, i, QWEN3, SHAPES);
    for (size_t i = 1; i <= THREADS; i++)
        pool_close(pools[i]);
    for (size_t i = 0; i < nsets; i++)
        /* Every set must have seen every pair of threads and chunks, scalar at least half. */
        CHECK(light || turns[i] >= THREADS * CHUNKS / (i ? 1 : 2));
    return wrong != 0;
}
