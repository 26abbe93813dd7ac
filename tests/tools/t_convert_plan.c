/* t_convert_plan.c - the types that convert chooses, for the shapes of real models. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernels/sys/base.h"
#include "tests/support/test.h"
#include "tools/convert_plan.h"
#include "weights/gguf_write.h"

struct shape {
    size_t layers, hidden, ffn, kv, vocab;
    bool tied;
};

static const struct shape qwen25_05b = { 24, 896, 4864, 128, 151936, true };
static const struct shape qwen25_72b = { 80, 8192, 29568, 1024, 152064, false };
static const struct shape qwen3_06b = { 28, 1024, 3072, 1024, 151936, true };

enum { TYPES = 32 };

/* Count the types of all tensors of a model, and those that fell back in counts[TYPES]. */
static void count_types(size_t counts[TYPES + 1], const struct shape *s, const char *target,
                        bool pure, bool weighted)
{
    const struct {
        const char *name;
        size_t rows, cols; /* rows 0: a vector */
    } tensors[] = {
        { "attn_norm.weight", 0, s->hidden },           { "ffn_norm.weight", 0, s->hidden },
        { "attn_q.weight", s->hidden, s->hidden },      { "attn_k.weight", s->kv, s->hidden },
        { "attn_v.weight", s->kv, s->hidden },          { "attn_v.bias", 0, s->kv },
        { "attn_output.weight", s->hidden, s->hidden }, { "attn_q_norm.weight", 1, 128 },
        { "ffn_gate.weight", s->ffn, s->hidden },       { "ffn_up.weight", s->ffn, s->hidden },
        { "ffn_down.weight", s->hidden, s->ffn },
    };
    struct convert_plan p = { convert_target(target), pure,     weighted, s->tied,
                              s->layers == 80,        s->layers };
    bool fell_back = false;
    memset(counts, 0, (TYPES + 1) * sizeof(*counts));
    CHECK(p.target);
    for (size_t layer = 0; layer < s->layers; layer++)
        for (size_t i = 0; i < sizeof(tensors) / sizeof(*tensors); i++) {
            char name[64];
            size_t shape[2] = { tensors[i].rows, tensors[i].cols };
            size_t *from = tensors[i].rows ? shape : shape + 1;
            snprintf(name, sizeof(name), "blk.%zu.%s", layer, tensors[i].name);
            fell_back = false;
            counts[convert_plan_type(&p, name, tensors[i].rows ? 2 : 1, from, &fell_back)]++;
            counts[TYPES] += fell_back;
        }
    const size_t big[2] = { s->vocab, s->hidden };
    fell_back = false;
    counts[convert_plan_type(&p, "token_embd.weight", 2, big, &fell_back)]++;
    if (!s->tied)
        counts[convert_plan_type(&p, "output.weight", 2, big, &fell_back)]++;
    counts[TYPES] += fell_back;
}

/* Rows of 896 values fall back: what is on download has exactly these. */
static void test_05b(void)
{
    size_t n[TYPES + 1];
    count_types(n, &qwen25_05b, "q4_k_m", false, false);
    CHECK(n[W_Q5_0] == 132 && n[W_Q8_0] == 13 && n[W_Q4_K] == 12 && n[W_Q6_K] == 12);
    CHECK(n[W_F32] == 24 * 4 && n[TYPES] == 144);
    count_types(n, &qwen25_05b, "Q5_K_M", false, false);
    CHECK(n[W_Q5_1] == 132 && n[W_Q8_0] == 13 && n[W_Q5_K] == 12 && n[W_Q6_K] == 12);
    count_types(n, &qwen25_05b, "q6_K", false, false);
    CHECK(n[W_Q8_0] == 145 && n[W_Q6_K] == 24);
    count_types(n, &qwen25_05b, "q4_K_M", true, false);
    CHECK(n[W_Q5_0] == 145 && n[W_Q4_K] == 24 && n[TYPES] == 145);
    count_types(n, &qwen25_05b, "q4_0", false, false);
    CHECK(n[W_Q4_0] == 168 && n[W_Q8_0] == 1 && n[TYPES] == 0);
    count_types(n, &qwen25_05b, "q4_0", true, false);
    CHECK(n[W_Q4_0] == 169);
}

/* 28 layers: 0 to 2, 24 to 27, and 5, 8, ..., 23 get more bits. */
static void test_mix(void)
{
    static const bool more[28] = {
        1,        1,        1,        [5] = 1,  [8] = 1, [11] = 1, [14] = 1,
        [17] = 1, [20] = 1, [23] = 1, [24] = 1, 1,       1,        1
    };
    const size_t shape[2] = { 1024, 3072 };
    bool fell_back = false;
    struct convert_plan p = { convert_target("Q4_K_M"), false, false, true, false, 28 };
    for (size_t i = 0; i < 28; i++) {
        char name[64];
        snprintf(name, sizeof(name), "blk.%zu.ffn_down.weight", i);
        CHECK(convert_plan_type(&p, name, 2, shape, &fell_back) == (more[i] ? W_Q6_K : W_Q4_K));
        snprintf(name, sizeof(name), "blk.%zu.attn_v.weight", i);
        CHECK(convert_plan_type(&p, name, 2, shape, &fell_back) == (more[i] ? W_Q6_K : W_Q4_K));
        snprintf(name, sizeof(name), "blk.%zu.ffn_up.weight", i);
        CHECK(convert_plan_type(&p, name, 2, shape, &fell_back) == W_Q4_K);
    }
    CHECK(!fell_back);
    size_t n[TYPES + 1];
    count_types(n, &qwen3_06b, "q4_K_M", false, false);
    CHECK(n[W_Q6_K] == 1 + 2 * 14 && n[W_Q4_K] == 28 * 7 - 2 * 14 && n[W_F32] == 28 * 4);
    count_types(n, &qwen3_06b, "q4_K", false, false);
    CHECK(n[W_Q6_K] == 1 && n[W_Q4_K] == 28 * 7);
    count_types(n, &qwen3_06b, "q5_0", false, true); /* weighted: first eighth of ffn_down */
    CHECK(n[W_Q6_K] == 1 && n[W_Q5_1] == 3 && n[W_Q5_0] == 28 * 7 - 3);
    count_types(n, &qwen3_06b, "f16", false, true);
    CHECK(n[W_F16] == 1 + 28 * 7);
}

/* Eight heads share a value head; rows of 29568 values are no multiple of 256. */
static void test_72b(void)
{
    size_t n[TYPES + 1];
    count_types(n, &qwen25_72b, "q4_K_M", false, false);
    CHECK(n[W_Q5_K] == 40 && n[W_Q6_K] == 41 && n[W_Q8_0] == 40 && n[W_Q5_0] == 40);
    CHECK(n[W_Q4_K] == 80 * 5 + 1 && n[TYPES] == 80);
    count_types(n, &qwen25_72b, "q5_K_M", false, false);
    CHECK(n[W_Q6_K] == 41 && n[W_Q8_0] == 40 && n[W_Q5_1] == 40 && n[W_Q5_K] == 80 * 5 + 41);
}

/* What depends on the model is read from it: 80 layers of Qwen2 are big, those of Qwen3 are not,
 * and the order in the file does not matter. */
static void test_model(void)
{
    static const struct {
        const char *arch;
        size_t layers;
        bool big;
    } models[] = { { "qwen2", 80, true }, { "qwen3", 80, false }, { "qwen2", 79, false } };
    char folder[] = "/tmp/mizzle-plan-XXXXXX";
    CHECK(mkdtemp(folder));
    for (size_t i = 0; i < sizeof(models) / sizeof(*models); i++) {
        struct convert_plan p = { .target = convert_target("q4_K_M") };
        struct weights *w;
        struct ggufw *g;
        struct err err;
        char path[128], name[48];
        float row[32] = { 0 };
        snprintf(path, sizeof(path), "%s/model.gguf", folder);
        CHECK(ggufw_open(&g, path, &err) == OK);
        ggufw_str(g, "general.architecture", models[i].arch);
        for (size_t k = models[i].layers; k-- > 0;) {
            snprintf(name, sizeof(name), "blk.%zu.attn_v.weight", k);
            ggufw_tensor(g, name, W_F32, 1, (const size_t[]){ 32 });
        }
        for (size_t k = 0; k < models[i].layers; k++)
            ggufw_data(g, row, sizeof(row));
        CHECK(ggufw_close(g, true, &err) == OK);
        CHECK(weights_open(&w, path, &err) == OK);
        convert_plan_model(&p, w);
        CHECK(p.layers == models[i].layers && p.big == models[i].big && p.tied);
        weights_close(w);
        remove(path);
    }
    rmdir(folder);
}

static void test_names(void)
{
    bool fell_back = false;
    struct convert_plan p = { convert_target("q4_K"), false, false, false, false, 2 };
    CHECK(!convert_target("q4_") && !convert_target("q2_K") && !convert_target(""));
    CHECK(convert_target("BF16")->file_type == 32 && convert_target("q5_k_m")->file_type == 17);
    CHECK(convert_plan_type(&p, "x.weight", 2, (const size_t[]){ 3, 33 }, &fell_back) == W_F16);
    CHECK(fell_back);
    fell_back = false;
    CHECK(convert_plan_type(&p, "x.weight", 0, NULL, &fell_back) == W_F32);
    CHECK(convert_plan_type(&p, "x.weight", 1, (const size_t[]){ 256 }, &fell_back) == W_F32);
    CHECK(convert_plan_type(&p, "x.weight", 2, (const size_t[]){ 1, 256 }, &fell_back) == W_F32);
    CHECK(convert_plan_type(&p, "x.weight", 3, (const size_t[]){ 1, 1, 33 }, &fell_back) == W_F32);
    CHECK(convert_plan_type(&p, "x.weight", 3, (const size_t[]){ 2, 1, 256 }, &fell_back) ==
          W_Q4_K);
    CHECK(convert_plan_type(&p, "x.table", 2, (const size_t[]){ 2, 256 }, &fell_back) == W_F32);
    CHECK(convert_plan_type(&p, "t", 2, (const size_t[]){ 2, 256 }, &fell_back) == W_F32);
    CHECK(!fell_back);
    CHECK(convert_plan_type(&p, "blk.99999999999999999999.attn_v.weight", 2,
                            (const size_t[]){ 3, 256 }, &fell_back) == W_Q4_K);
}

int main(void)
{
    test_05b();
    test_mix();
    test_72b();
    test_model();
    test_names();
    return 0;
}
