/* t_config.c - what RoPE's scaling does to the context and the fingerprint of a model, and what is
 * beyond its context. t_malformed_gguf.c has the keys and tensors that make no model. */
#include "kernels/sys/cpu.h"
#include "kernels/kernels.h"
#include "model/fingerprint.h"
#include "model/model.h"
#include "model/session.h"
#include "tests/support/test.h"
#include "tests/support/gguf_model.h"
#include "weights/gguf_write.h"

enum { DIM = 4, VOCAB = 7 };

/* A key of the architecture that comes. */
struct change {
    const char *name;
    enum { NUMBER, FLOAT, TEXT } kind;
    double value;     /* NUMBER, FLOAT */
    const char *text; /* TEXT */
};

static const char *path;
static struct kernels kernels;
static struct err err;

static const struct change *now; /* what the next file has */
static size_t nnow;
static const char *architecture;

static void write_changes(struct ggufw *g)
{
    for (size_t i = 0; i < nnow; i++) {
        const struct change *c = &now[i];
        char key[96];
        snprintf(key, sizeof(key), "%s.%s", architecture, c->name);
        if (c->kind == NUMBER)
            ggufw_u32(g, key, (uint32_t)c->value);
        else if (c->kind == FLOAT)
            ggufw_f32(g, key, (float)c->value);
        else if (c->kind == TEXT)
            ggufw_str(g, key, c->text);
    }
}

/* Write a model with n changes; arch is what its keys begin with. */
static void write_file(const char *arch, const struct change *changes, size_t n)
{
    const struct gguf_shape shape = { .layers = 1,
                                      .hidden = 6,
                                      .heads = 2,
                                      .kv_heads = 1,
                                      .head_dim = DIM,
                                      .ffn = 5,
                                      .vocab = VOCAB,
                                      .three = !strcmp(arch, "qwen3"),
                                      .tied = true,
                                      .context = 100,
                                      .base = 1e6f };
    now = changes;
    nnow = n;
    architecture = arch;
    gguf_model_write(path, &shape, W_F32, write_changes);
}

static int open_file(struct model **m)
{
    struct weights *w;
    CHECK(weights_open(&w, path, &err) == OK);
    int rc = model_open(m, w, &kernels, NULL, NULL, NULL, &err);
    weights_close(w);
    CHECK((rc == OK) == (*m != NULL));
    return rc;
}

static const struct change yarn[3] = { { "rope.scaling.type", TEXT, 0, "yarn" },
                                       { "rope.scaling.factor", FLOAT, 4, NULL } };

/* Open a model with these changes; return its fingerprint. */
static uint64_t opened(const char *arch, const struct change *changes, size_t n,
                       struct model_config *c)
{
    struct model *m;
    write_file(arch, changes, n);
    CHECK_MSG(open_file(&m) == OK, "%s", err.msg);
    *c = m->config;
    uint64_t h = model_fingerprint(m, NULL);
    model_close(m);
    return h;
}

/* The context is what the scaling makes of it, whose numbers are all in the fingerprint. */
static void check_scaling(void)
{
    static const struct change more[] = {
        { "rope.scaling.original_context_length", NUMBER, 50, NULL },
        { "rope.scaling.attn_factor", FLOAT, 1.5, NULL },
        { "rope.scaling.yarn_beta_fast", FLOAT, 30, NULL },
        { "rope.scaling.yarn_beta_slow", FLOAT, 2, NULL },
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
    CHECK(model_check_context(&m->config, 100, &err) == OK);
    CHECK(model_check_context(&m->config, 101, &err) == ERR_ARG);
    CHECK(!strcmp(
        err.msg,
        "context: expected at most 100, the context that the model was made for, found 101"));
    model_close(m);
}

static int open_once(const void *arg)
{
    struct weights *w;
    struct model *m = NULL;
    int rc = weights_open(&w, path, &err);
    (void)arg;
    if (rc == OK)
        rc = model_open(&m, w, &kernels, NULL, NULL, NULL, &err);
    weights_close(w);
    model_close(m);
    return rc;
}

int main(void)
{
    CHECK(kernels_pick(&kernels, NULL, cpu_detect(), &err) == OK);
    path = in_scratch("m.gguf");
    check_scaling();
    check_context();
    torture_each(open_once, NULL);
    return 0;
}
