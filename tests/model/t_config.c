/* t_config.c - the keys and tensors that make a Qwen2 or Qwen3 model of a GGUF file: what is
 * refused, and with which words; what RoPE's scaling does to the context and the fingerprint. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernels/sys/base.h"
#include "kernels/sys/cpu.h"
#include "kernels/kernels.h"
#include "model/fingerprint.h"
#include "model/model.h"
#include "model/session.h"
#include "tests/support/test.h"
#include "tests/support/torture.h"
#include "weights/gguf_write.h"

enum { KEYS = 10, TENSORS = 15, HIDDEN = 6, HEADS = 2, DIM = 4, FFN = 5, VOCAB = 7 };

/* A change of the file: a key of the architecture, or a tensor. */
struct change {
    const char *name;
    enum { NUMBER, FLOAT, TEXT, NO_KEY, SHAPE, NO_TENSOR } kind;
    double value;      /* NUMBER, FLOAT */
    const char *text;  /* TEXT */
    size_t rows, cols; /* SHAPE */
};

static char path[64];
static struct kernels kernels;
static struct err err;

static const struct {
    const char *name;
    unsigned value;
} keys[KEYS] = {
    { "block_count", 1 },
    { "embedding_length", HIDDEN },
    { "feed_forward_length", FFN },
    { "attention.head_count", HEADS },
    { "attention.head_count_kv", 1 },
    { "attention.key_length", DIM },
    { "attention.value_length", DIM },
    { "rope.dimension_count", DIM },
    { "context_length", 100 },
    { "vocab_size", VOCAB },
};

static const struct {
    const char *name;
    size_t rows, cols;
    const char *only;
} tensors[TENSORS] = {
    { "token_embd.weight", VOCAB, HIDDEN, NULL },
    { "output_norm.weight", HIDDEN, 0, NULL },
    { "blk.0.attn_norm.weight", HIDDEN, 0, NULL },
    { "blk.0.attn_q.weight", HEADS *DIM, HIDDEN, NULL },
    { "blk.0.attn_q.bias", HEADS *DIM, 0, "qwen2" },
    { "blk.0.attn_k.weight", DIM, HIDDEN, NULL },
    { "blk.0.attn_k.bias", DIM, 0, "qwen2" },
    { "blk.0.attn_v.weight", DIM, HIDDEN, NULL },
    { "blk.0.attn_v.bias", DIM, 0, "qwen2" },
    { "blk.0.attn_q_norm.weight", DIM, 0, "qwen3" },
    { "blk.0.attn_k_norm.weight", DIM, 0, "qwen3" },
    { "blk.0.attn_output.weight", HIDDEN, HEADS *DIM, NULL },
    { "blk.0.ffn_norm.weight", HIDDEN, 0, NULL },
    { "blk.0.ffn_gate.weight", FFN, HIDDEN, NULL },
    { "blk.0.ffn_up.weight", FFN, HIDDEN, NULL },
};

static void write_key(struct ggufw *g, const char *arch, const struct change *c)
{
    char key[96];
    snprintf(key, sizeof(key), "%s.%s", arch, c->name);
    if (c->kind == NUMBER)
        ggufw_u32(g, key, (uint32_t)c->value);
    else if (c->kind == FLOAT)
        ggufw_f32(g, key, (float)c->value);
    else if (c->kind == TEXT)
        ggufw_str(g, key, c->text);
}

/* Announce a tensor and return its values. */
static size_t add_tensor(struct ggufw *g, const char *name, size_t rows, size_t cols)
{
    ggufw_tensor(g, name, W_F32, cols ? 2 : 1, (const size_t[]){ rows, cols });
    return rows * (cols ? cols : 1);
}

/* Write a model with n changes; arch is what its keys begin with. */
static void write_file(const char *arch, const struct change *changes, size_t n)
{
    struct ggufw *g;
    size_t values = 0;
    CHECK(ggufw_open(&g, path, &err) == OK);
    ggufw_str(g, "general.architecture", arch);
    for (size_t i = 0, j; i < KEYS; i++) {
        for (j = 0; j < n && strcmp(changes[j].name, keys[i].name) != 0; j++)
            ;
        const struct change plain = { .name = keys[i].name, .value = keys[i].value };
        if (j == n)
            write_key(g, arch, &plain);
    }
    for (size_t j = 0; j < n; j++)
        write_key(g, arch, &changes[j]);
    for (size_t i = 0, j; i < TENSORS; i++) {
        for (j = 0; j < n && strcmp(changes[j].name, tensors[i].name) != 0; j++)
            ;
        if (j == n && (!tensors[i].only || !strcmp(tensors[i].only, arch)))
            values += add_tensor(g, tensors[i].name, tensors[i].rows, tensors[i].cols);
    }
    values += add_tensor(g, "blk.0.ffn_down.weight", HIDDEN, FFN);
    for (size_t j = 0; j < n; j++)
        if (changes[j].kind == SHAPE)
            values += add_tensor(g, changes[j].name, changes[j].rows, changes[j].cols);
    for (size_t i = 0; i < values; i++) {
        float v = 0.5f + (float)(i % 7) / 8;
        ggufw_data(g, &v, sizeof(v));
    }
    CHECK(ggufw_close(g, true, &err) == OK);
}

/* Open the file as a model. */
static int open_file(struct model **m)
{
    struct weights *w;
    CHECK(weights_open(&w, path, &err) == OK);
    int rc = model_open(m, w, &kernels, NULL, &err);
    weights_close(w);
    CHECK((rc == OK) == (*m != NULL));
    return rc;
}

static const struct {
    const char *arch;
    struct change change;
    const char *says;
} refused[] = {
    { "llama", { .name = "x" }, "general.architecture: expected qwen2 or qwen3, found \"llama\"" },
    { "qwen3moe", { .name = "x" }, "expected qwen2 or qwen3, found \"qwen3moe\"" },
    { "qwen2vl", { .name = "x" }, "expected qwen2 or qwen3, found \"qwen2vl\"" },
    { "qwen", { .name = "x" }, "expected qwen2 or qwen3, found \"qwen\"" },
    { "", { .name = "x" }, "expected qwen2 or qwen3, found \"\"" },
    { "qwen3", { "attention.key_length", NUMBER, 0, NULL, 0, 0 }, "qwen3.attention.key_length" },
    { "qwen3",
      { "attention.key_length", NUMBER, 65536, NULL, 0, 0 },
      "an integer from 1 to 32768" },
    { "qwen3", { "attention.key_length", NUMBER, 6, NULL, 0, 0 }, "value_length: expected 6" },
    { "qwen3", { "attention.key_length", FLOAT, 4, NULL, 0, 0 }, "qwen3.attention.key_length" },
    { "qwen3",
      { "attention.key_length", NO_KEY, 0, NULL, 0, 0 },
      "qwen3.attention.key_length: expected an even number, found 3" },
    { "qwen3", { "attention.value_length", NUMBER, 2, NULL, 0, 0 }, "value_length: expected 4" },
    { "qwen3", { "attention.value_length", TEXT, 0, "4", 0, 0 }, "value_length: expected 4" },
    { "qwen2", { "rope.dimension_count", NUMBER, 2, NULL, 0, 0 }, "dimension_count: expected 4" },
    { "qwen3", { "attention.head_count", NUMBER, 0, NULL, 0, 0 }, "head_count: expected" },
    { "qwen3", { "attention.head_count", NUMBER, 65537, NULL, 0, 0 }, "from 1 to 65536" },
    { "qwen3",
      { "attention.head_count", NUMBER, 4, NULL, 0, 0 },
      "attn_q.weight: expected [16,6]" },
    { "qwen3", { "attention.head_count_kv", NUMBER, 3, NULL, 0, 0 }, "head_count_kv: expected a" },
    { "qwen3", { "context_length", NO_KEY, 0, NULL, 0, 0 }, "context_length: expected a number" },
    { "qwen3", { "vocab_size", NUMBER, 8, NULL, 0, 0 }, "vocab_size: expected 7" },
    { "qwen3",
      { "blk.0.attn_q_norm.weight", NO_TENSOR, 0, NULL, 0, 0 },
      "expected [4], found none" },
    { "qwen3",
      { "blk.0.attn_k_norm.weight", NO_TENSOR, 0, NULL, 0, 0 },
      "attn_k_norm.weight: exp" },
    { "qwen3", { "blk.0.attn_q_norm.weight", SHAPE, 0, NULL, 8, 0 }, "expected [4], found [8]" },
    { "qwen3", { "blk.0.attn_k_norm.weight", SHAPE, 0, NULL, 4, 1 }, "expected [4], found [4,1]" },
    { "qwen3", { "blk.0.attn_k_norm.weight", SHAPE, 0, NULL, 0, 0 }, "expected [4], found [0]" },
    { "qwen3",
      { "blk.0.attn_output.weight", SHAPE, 0, NULL, 6, 6 },
      "expected [6,8], found [6,6]" },
    { "qwen3",
      { "blk.0.attn_q.bias", SHAPE, 0, NULL, 8, 0 },
      "attn_q.bias: expected none in a qwen3 model, found one" },
    { "qwen3", { "blk.0.attn_v.bias", SHAPE, 0, NULL, 4, 0 }, "attn_v.bias: expected none" },
    { "qwen2",
      { "blk.0.attn_q_norm.weight", SHAPE, 0, NULL, 4, 0 },
      "attn_q_norm.weight: expected none in a qwen2 model, found one" },
    { "qwen2",
      { "blk.0.attn_k_norm.weight", SHAPE, 0, NULL, 4, 0 },
      "attn_k_norm.weight: expected" },
    { "qwen2", { "blk.0.attn_v.bias", NO_TENSOR, 0, NULL, 0, 0 }, "attn_v.bias: expected [4]" },
    { "qwen3",
      { "rope.scaling.type", TEXT, 0, "longrope", 0, 0 },
      "qwen3.rope.scaling.type: expected none, linear or yarn, found \"longrope\"" },
    { "qwen2", { "rope.scaling.type", TEXT, 0, "", 0, 0 }, "expected none, linear or yarn" },
    { "qwen2", { "rope.scaling.type", NUMBER, 1, NULL, 0, 0 }, "expected none, linear or yarn" },
    { "qwen2", { "rope.scaling.factor", FLOAT, -1, NULL, 0, 0 }, "factor: expected 1 to 1024" },
    { "qwen2",
      { "rope.scaling.factor", FLOAT, (double)NAN, NULL, 0, 0 },
      "factor: expected 1 to 1024" },
    { "qwen2", { "rope.scaling.factor", TEXT, 0, "4", 0, 0 }, "factor: expected a number" },
    { "qwen2", { "rope.scale_linear", FLOAT, 0.5, NULL, 0, 0 }, "qwen2.rope.scale_linear" },
    { "qwen2",
      { "rope.freq_base", FLOAT, (double)INFINITY, NULL, 0, 0 },
      "freq_base: expected 1 to 1e+12" },
};

/* With YaRN of factor 4, these are refused. */
static const struct {
    struct change change;
    const char *says;
} refused_yarn[] = {
    { { "rope.scaling.original_context_length", NUMBER, 0, NULL, 0, 0 },
      "original_context_length" },
    { { "rope.scaling.original_context_length", TEXT, 0, "32768", 0, 0 },
      "original_context_length" },
    { { "rope.scaling.attn_factor", FLOAT, 0, NULL, 0, 0 }, "scaling.attn_factor: expected 0.001" },
    { { "rope.scaling.yarn_attn_factor", FLOAT, (double)NAN, NULL, 0, 0 },
      "yarn_attn_factor: expected" },
    { { "rope.scaling.yarn_ext_factor", FLOAT, 0, NULL, 0, 0 },
      "yarn_ext_factor: expected 1 to 1" },
    { { "rope.scaling.yarn_beta_slow", FLOAT, 0, NULL, 0, 0 }, "yarn_beta_slow: expected" },
    { { "rope.scaling.yarn_beta_fast", FLOAT, 0.5, NULL, 0, 0 }, "yarn_beta_fast: expected 1 to" },
    { { "rope.freq_base", FLOAT, 1, NULL, 0, 0 }, "qwen3.rope.freq_base: expected above 1" },
};

static const struct change yarn[3] = { { "rope.scaling.type", TEXT, 0, "yarn", 0, 0 },
                                       { "rope.scaling.factor", FLOAT, 4, NULL, 0, 0 } };

static void check_says(const char *arch, const struct change *changes, size_t n, const char *says)
{
    struct model *m;
    write_file(arch, changes, n);
    int rc = open_file(&m);
    if (rc != ERR_FORMAT || !strstr(err.msg, says) || strchr(err.msg, '\n'))
        printf("expected \"%s\" in: %d %s\n", says, rc, err.msg);
    CHECK(rc == ERR_FORMAT && strstr(err.msg, path) && strstr(err.msg, says));
}

static void check_refusals(void)
{
    struct change with[3] = { yarn[0], yarn[1] };
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++)
        check_says(refused[i].arch, &refused[i].change, 1, refused[i].says);
    for (size_t i = 0; i < sizeof(refused_yarn) / sizeof(refused_yarn[0]); i++) {
        with[2] = refused_yarn[i].change;
        check_says("qwen3", with, 3, refused_yarn[i].says);
    }
}

/* Open a model with these changes; return its fingerprint. */
static uint64_t opened(const char *arch, const struct change *changes, size_t n,
                       struct model_config *c)
{
    struct model *m;
    write_file(arch, changes, n);
    int rc = open_file(&m);
    if (rc != OK)
        printf("%s\n", err.msg);
    CHECK(rc == OK);
    *c = *model_config(m);
    uint64_t h = model_fingerprint(m, NULL);
    model_close(m);
    return h;
}

/* The context is what the scaling makes of it; every number of the scaling is in the
 * fingerprint. */
static void check_scaling(void)
{
    static const struct change more[] = {
        { "rope.scaling.original_context_length", NUMBER, 50, NULL, 0, 0 },
        { "rope.scaling.attn_factor", FLOAT, 1.5, NULL, 0, 0 },
        { "rope.scaling.yarn_beta_fast", FLOAT, 30, NULL, 0, 0 },
        { "rope.scaling.yarn_beta_slow", FLOAT, 2, NULL, 0, 0 },
    };
    struct change with[3] = { yarn[0], yarn[1] };
    struct model_config c;
    uint64_t seen[8];
    size_t n = 0;
    seen[n++] = opened("qwen3", NULL, 0, &c);
    CHECK(c.qk_norm && c.head_dim == DIM && c.context == 100 && c.rope.kind == ROPE_PLAIN);
    with[0].text = "none";
    CHECK(opened("qwen3", with, 2, &c) == seen[0] && c.rope.kind == ROPE_PLAIN);
    with[0].text = "linear";
    seen[n++] = opened("qwen3", with, 2, &c);
    CHECK(c.rope.kind == ROPE_LINEAR && c.context == 100 && c.rope.factor == 4);
    CHECK(opened("qwen3", yarn + 1, 1, &c) == seen[1]); /* a factor alone means linear */
    with[0].text = "yarn";
    seen[n++] = opened("qwen3", with, 2, &c);
    CHECK(c.context == 400 && c.rope.original == 100 && c.rope.beta_fast == 32 &&
          c.rope.beta_slow == 1 && fabsf(c.rope.magnitude - 1.1386294f) < 1e-6f);
    for (size_t i = 0; i < sizeof(more) / sizeof(more[0]); i++) {
        with[2] = more[i];
        seen[n++] = opened("qwen3", with, 3, &c);
        CHECK(c.context == (i ? 400 : 200));
        CHECK(fabsf(c.rope.magnitude - (i == 1 ? 1.7079442f : 1.1386294f)) < 1e-6f);
    }
    seen[n++] = opened("qwen2", NULL, 0, &c);
    CHECK(!c.qk_norm && c.head_dim == DIM);
    CHECK(n == sizeof(seen) / sizeof(seen[0]));
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < i; j++)
            CHECK(seen[i] != seen[j]);
}

/* A session beyond the context is refused in one line; the longest one works to its end. */
static void check_context(void)
{
    struct model *m;
    struct batch *b;
    struct session *s;
    uint32_t ids[400];
    for (size_t i = 0; i < 400; i++)
        ids[i] = (uint32_t)(i % VOCAB);
    write_file("qwen3", yarn, 2);
    CHECK(open_file(&m) == OK && batch_open(&b, m, NULL, &err) == OK);
    CHECK(session_open(&s, b, 401, KVCACHE_F32, &err) == ERR_ARG && !s);
    CHECK(!strcmp(err.msg, "context: expected at most 400 (100 by a YaRN factor of 4), the context "
                           "that the model was made for, found 401"));
    CHECK(session_open(&s, b, 400, KVCACHE_F32, &err) == OK);
    CHECK(session_eval(s, ids, 400, NULL, &err) == OK);
    for (size_t i = 0; i < VOCAB; i++)
        CHECK(isfinite(session_logits(s, 0)[i]));
    session_close(s);
    batch_close(b);
    model_close(m);
    write_file("qwen3", NULL, 0);
    CHECK(open_file(&m) == OK);
    CHECK(model_check_context(model_config(m), 100, &err) == OK);
    CHECK(model_check_context(model_config(m), 101, &err) == ERR_ARG);
    CHECK(!strcmp(
        err.msg,
        "context: expected at most 100, the context that the model was made for, found 101"));
    model_close(m);
}

/* Each allocation of opening a Qwen3 model fails in turn. */
static void check_memory(void)
{
    int hit = 1;
    for (long n = 1; hit; n++) {
        struct weights *w;
        struct model *m = NULL;
        torture_begin(n);
        int rc = weights_open(&w, path, &err);
        if (rc == OK)
            rc = model_open(&m, w, &kernels, NULL, &err);
        hit = torture_end();
        CHECK(rc == (hit ? ERR_NOMEM : OK));
        weights_close(w);
        model_close(m);
        CHECK(torture_live() == 0 && n < 1000);
    }
}

int main(void)
{
    char folder[] = "build/config-XXXXXX";
    CHECK(kernels_pick(&kernels, NULL, cpu_detect(), &err) == OK && mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/m.gguf", folder);
    check_refusals();
    check_scaling();
    check_context();
    check_memory();
    unlink(path);
    CHECK(rmdir(folder) == 0);
    return 0;
}
