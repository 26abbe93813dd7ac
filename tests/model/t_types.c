/* t_types.c - every type of GGUF that the engine runs: what a packed matrix holds has the hashes of
 * llama.cpp's own dequantisation (golden.tsv), and a model gives the same bits on every set. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/kernels.h"
#include "kernels/sys/base.h"
#include "kernels/sys/cpu.h"
#include "kernels/sys/sha256.h"
#include "model/model.h"
#include "model/session.h"
#include "tests/support/test.h"
#include "weights/weights.h"

enum { TOKENS = 40 };

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
        return model_embedding(m);
    if (sscanf(name, "blk.%zu.%60[^.].weight", &i, part) != 2)
        return NULL;
    const struct model_layer *l = model_layer(m, i);
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

/* Evaluate a few tokens; return their last logits, which the caller frees. */
static float *types_logits(const struct model *m)
{
    struct err err;
    struct batch *b;
    struct session *s;
    size_t vocab = model_config(m)->vocab;
    uint32_t ids[TOKENS];
    for (size_t i = 0; i < TOKENS; i++)
        ids[i] = (uint32_t)(i * 7919 % vocab);
    CHECK(batch_open(&b, m, NULL, &err) == OK);
    CHECK(session_open(&s, b, TOKENS, KVCACHE_F16, &err) == OK);
    CHECK(session_eval(s, ids, TOKENS - 2, NULL, &err) == OK);
    CHECK(session_eval(s, ids + TOKENS - 2, 1, NULL, &err) == OK);
    CHECK(session_eval(s, ids + TOKENS - 1, 1, NULL, &err) == OK);
    float *out = malloc(vocab * sizeof(*out));
    CHECK(out && session_logits(s, 0));
    memcpy(out, session_logits(s, 0), vocab * sizeof(*out));
    session_close(s);
    batch_close(b);
    return out;
}

/* Return the logits of a file by the set of this name, after checking its matrices. */
static float *check_file(const char *path, const char *isa, FILE *golden, size_t *vocab)
{
    struct err err;
    struct kernels k;
    struct weights *w;
    struct model *m;
    char file[64], name[64], type[16], want[80], got[SHA256_HEX];
    size_t found = 0;
    CHECK(kernels_pick(&k, isa, cpu_detect(), &err) == OK);
    CHECK(weights_open(&w, path, &err) == OK && model_open(&m, w, &k, NULL, &err) == OK);
    weights_close(w);
    rewind(golden);
    while (!isa && fscanf(golden, "%63s %63s %15s %79s", file, name, type, want) == 4) {
        const struct panels *matrix =
            strcmp(file, strrchr(path, '/') + 1) ? NULL : matrix_of(m, name);
        if (!matrix)
            continue;
        matrix_hash(got, matrix);
        if (strcmp(got, want) != 0)
            fprintf(stderr, "%s: %s (%s): other values than llama.cpp's\n", path, name, type);
        CHECK(!strcmp(got, want));
        found++;
    }
    CHECK(isa || found == 8);
    *vocab = model_config(m)->vocab;
    float *logits = types_logits(m);
    model_close(m);
    return logits;
}

int main(void)
{
    static const char *const files[] = { "f16",    "bf16", "q8_0",   "q4_0",   "q4_1",
                                         "q5_0",   "q5_1", "q2_k",   "q3_k_m", "q4_k_m",
                                         "q5_k_m", "q6_k", "iq4_nl", "iq4_xs" };
    const char *data = getenv("MIZZLE_TESTDATA");
    char path[512];
    data = data ? data : "../shared/data";
    snprintf(path, sizeof(path), "%s/weights/kquants/golden.tsv", data);
    FILE *golden = fopen(path, "r");
    if (!golden) {
        printf("SKIP: no %s\n", path);
        return 0;
    }
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        size_t vocab;
        snprintf(path, sizeof(path), "%s/weights/kquants/%s.gguf", data, files[i]);
        float *want = check_file(path, NULL, golden, &vocab);
        for (size_t j = 0; j < kernels_nsets; j++) {
            if (!kernels_runs(kernels_sets[j], cpu_detect()) ||
                (kernels_sets[j]->needs & CPU_INEXACT))
                continue;
            float *got = check_file(path, kernels_sets[j]->isa, golden, &vocab);
            CHECK(!memcmp(want, got, vocab * sizeof(*want)));
            free(got);
        }
        free(want);
    }
    fclose(golden);
    return 0;
}
