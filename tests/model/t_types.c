/* t_types.c - every type of weights that the engine runs. Random models of each type give the hash
 * that is recorded here, on every set, with any threads and chunks. Files that llama.cpp quantised,
 * once packed, hold the values that llama.cpp reads from them (golden.tsv). */
#include "kernels/kernels.h"
#include "kernels/sys/cpu.h"
#include "kernels/sys/pool.h"
#include "kernels/sys/sha256.h"
#include "model/model.h"
#include "model/train/random.h"
#include "model/session.h"
#include "tests/support/test.h"
#include "weights/weights.h"

enum { TOKENS = 61, CHUNKS = 6 };

/* Return the hash of a matrix that was packed, unpacked to floats row by row. */
static void matrix_hash(char out[SHA256_HEX], const struct panels *w)
{
    struct sha256 s;
    unsigned char hash[SHA256_BYTES];
    float *row = malloc(w->cols * sizeof(*row));
    CHECK(row);
    sha256_begin(&s);
    for (size_t r = 0; r < w->rows; r++) {
        panels_row(row, w, r);
        sha256_add(&s, row, w->cols * sizeof(*row));
    }
    sha256_end(hash, &s);
    sha256_text(out, hash);
    free(row);
}

/* Find a matrix of a model by its name in the file; NULL: it is a vector. */
static const struct panels *matrix_of(const struct model *m, const char *name)
{
    char part[64];
    size_t i;
    if (!strcmp(name, "token_embd.weight"))
        return &m->embedding;
    if (sscanf(name, "blk.%zu.%60[^.].weight", &i, part) != 2)
        return NULL;
    const struct model_layer *l = &m->layers[i];
    const struct {
        const char *name;
        const struct panels *w;
    } all[] = { { "attn_q", &l->q },      { "attn_k", &l->k },      { "attn_v", &l->v },
                { "attn_output", &l->o }, { "ffn_gate", &l->gate }, { "ffn_up", &l->up },
                { "ffn_down", &l->down } };
    for (size_t j = 0; j < sizeof(all) / sizeof(all[0]); j++)
        if (!strcmp(part, all[j].name) && !strstr(name, ".bias"))
            return all[j].w;
    return NULL;
}

/* Return a hash over the logits of all tokens of a model. */
static uint64_t types_hash(const struct model *m, struct pool *pool, size_t chunk)
{
    struct batch *b;
    struct session *s;
    uint64_t h = 0xcbf29ce484222325u;
    size_t vocab = m->config.vocab;
    uint32_t ids[TOKENS];
    for (size_t i = 0; i < TOKENS; i++)
        ids[i] = (uint32_t)(i * 7919 % vocab);
    CHECK(batch_open(&b, m, pool, NULL) == OK);
    CHECK(session_open(&s, b, TOKENS, KVCACHE_F16, NULL) == OK);
    for (size_t at = 0, n; at < TOKENS; at += n) {
        n = chunk < TOKENS - at ? chunk : TOKENS - at;
        CHECK(session_eval(s, ids + at, n, NULL, NULL) == OK);
        for (size_t back = n; back-- > 0;) {
            const float *logits = session_logits(s, back);
            CHECK(logits);
            for (size_t i = 0; i < vocab; i++) {
                uint32_t bits;
                memcpy(&bits, logits + i, sizeof(bits));
                h = (h ^ bits) * 0x100000001b3u;
            }
        }
    }
    session_close(s);
    batch_close(b);
    return h;
}

static const struct {
    unsigned type;
    uint64_t hash;
} expected[] = {
    { P_Q8, 0xc128cc3e9971ad66u },         { P_Q4, 0x1757b7a43fa94498u },
    { P_Q4_1, 0xe32394bc115abc0du },       { P_Q5_0, 0xe454477ea8e8d403u },
    { P_Q5_1, 0x6290b60699c4640bu },       { P_Q2_K, 0xb7595c4b37d5b287u },
    { P_Q3_K, 0xd115fbcfb3b0a9feu },       { P_Q4_K, 0x8d95c6951bad99e1u },
    { P_Q5_K, 0x915cb2d1b50ee9c5u },       { P_Q6_K, 0xdffe933d6f6e67b1u },
    { P_IQ4_NL, 0x25c743869d907a65u },     { P_IQ4_XS, 0x75502c78ca4ffde8u },
    { MODEL_Q4_K_M, 0xad443a689797fd77u },
};

/* Run a random model of a type on every set, on the one called `best` in chunks of every size;
 * return whether all hashes are as recorded. Under a sanitizer or an emulator, run it once on
 * `best` and on one of the others by turns: t_kernels gives every type to every set there. The mix
 * has rows that blocks of 256 columns do not suit. */
static bool check_random(size_t which, const char *best, struct pool *pool)
{
    static const size_t chunks[CHUNKS] = { TOKENS, 1, 8, 3, 13, 2 };
    const unsigned type = expected[which].type;
    const struct model_config config = {
        .layers = 4,
        .hidden = type == MODEL_Q4_K_M ? 224 : 256,
        .heads = 4,
        .kv_heads = 2,
        .head_dim = type == MODEL_Q4_K_M ? 56 : 64,
        .ffn = 512,
        .vocab = 310,
        .context = 64,
        .eps = 1e-6f,
        .rope_theta = 1e4f,
        .tied = true,
    };
    bool good = true, light = SANITIZED || (getenv("RUN") && *getenv("RUN"));
    for (size_t i = 0, run = which; i < kernels_nsets; i++) {
        struct kernels k;
        struct model *m;
        size_t bytes;
        if (!kernels_runs(kernels_sets[i], cpu_detect()) || (kernels_sets[i]->needs & CPU_INEXACT))
            continue;
        CHECK(kernels_pick(&k, kernels_sets[i]->isa, cpu_detect(), NULL) == OK);
        if (light && strcmp(k.isa, best) != 0 && which % kernels_nsets != i)
            continue;
        CHECK(model_random(&m, &config, type, &k, NULL, 7, NULL) == OK);
        CHECK(model_random_size(&bytes, &config, type, NULL) == OK && bytes == m->bytes);
        bool fastest = !strcmp(k.isa, best) && !light;
        for (size_t turn = 0; turn < (fastest ? CHUNKS : 1); turn++, run++) {
            uint64_t h = types_hash(m, run % 2 ? pool : NULL, chunks[run % CHUNKS]);
            if (h != expected[which].hash)
                printf("%s on %s, chunks of %zu: 0x%016llxu, expected 0x%016llxu\n",
                       model_random_type(type), k.isa, chunks[run % CHUNKS], (unsigned long long)h,
                       (unsigned long long)expected[which].hash);
            good = good && h == expected[which].hash;
        }
        model_close(m);
    }
    return good;
}

static void check_file(const char *path, FILE *golden)
{
    struct kernels k;
    struct weights *w;
    struct model *m;
    char file[64], name[64], type[16], want[80], got[SHA256_HEX];
    size_t found = 0;
    CHECK(kernels_pick(&k, NULL, cpu_detect(), NULL) == OK);
    CHECK(weights_open(&w, path, NULL) == OK &&
          model_open(&m, w, &k, NULL, NULL, NULL, NULL) == OK);
    weights_close(w);
    rewind(golden);
    while (fscanf(golden, "%63s %63s %15s %79s", file, name, type, want) == 4) {
        bool other = strcmp(file, strrchr(path, '/') + 1) != 0;
        const struct panels *matrix = other ? NULL : matrix_of(m, name);
        if (!matrix)
            continue;
        matrix_hash(got, matrix);
        CHECK_MSG(!strcmp(got, want), "%s: %s (%s): other values than llama.cpp's", path, name,
                  type);
        found++;
    }
    CHECK(found == 8);
    model_close(m);
}

/* Columns that are no whole blocks are refused; t_quant.c has the types that do not run. */
static void check_refused(const struct kernels *k)
{
    const struct model_config odd = {
        2, 40, 5, 1, 8, 100, 333, 512, 1e-6f, 1e6f, true, false, { 0 }
    };
    struct err err;
    struct model *m;
    size_t bytes;
    CHECK(model_random_size(&bytes, &odd, P_Q8, &err) == ERR_FORMAT);
    CHECK(model_random(&m, &odd, P_Q8, k, NULL, 7, &err) == ERR_FORMAT && !m);
    CHECK(strstr(err.msg, "40 columns"));
}

int main(void)
{
    static const char *const files[] = { "f16",    "bf16", "q8_0",   "q4_0",   "q4_1",
                                         "q5_0",   "q5_1", "q2_k",   "q3_k_m", "q4_k_m",
                                         "q5_k_m", "q6_k", "iq4_nl", "iq4_xs" };
    struct kernels k;
    struct pool *pool;
    bool good = true;
    CHECK(kernels_pick(&k, NULL, cpu_detect(), NULL) == OK);
    CHECK(pool_open(&pool, 3, NULL) == OK);
    for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++)
        good = check_random(i, k.isa, pool) && good;
    pool_close(pool);
    check_refused(&k);
    FILE *golden = fopen(test_data("weights/kquants/golden.tsv"), "r");
    if (!golden) {
        printf("SKIP: no weights/kquants/golden.tsv\n");
        return !good;
    }
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
        check_file(test_data("weights/kquants/%s.gguf", files[i]), golden);
    fclose(golden);
    return !good;
}
