#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "model/train/bpe_train.h"
#include "tools/demo/pretrain_save.h"
#include "weights/gguf_write.h"
#include "weights/quant.h"

enum { MOSTLY_Q8_0 = 7, Q8_BLOCK = 32, Q8_BYTES = 34 };

#define KEY "mizzle.pretrain."

static void write_tokenizer(struct ggufw *g, const struct bpe_vocab *v)
{
    ggufw_str(g, "tokenizer.ggml.model", "gpt2");
    ggufw_str(g, "tokenizer.ggml.pre", "qwen2");
    ggufw_strs(g, "tokenizer.ggml.tokens", v->pieces, v->npieces);
    ggufw_i32s(g, "tokenizer.ggml.token_type", v->types, v->npieces);
    ggufw_strs(g, "tokenizer.ggml.merges", v->merges, v->nmerges);
    ggufw_u32(g, "tokenizer.ggml.eos_token_id", v->eot);
    ggufw_u32(g, "tokenizer.ggml.padding_token_id", v->eot);
    ggufw_bool(g, "tokenizer.ggml.add_bos_token", false);
}

static void pretrain_save_write_config(struct ggufw *g, const struct model_config *c)
{
    ggufw_u32(g, "qwen2.block_count", (uint32_t)c->layers);
    ggufw_u32(g, "qwen2.context_length", (uint32_t)c->context);
    ggufw_u32(g, "qwen2.embedding_length", (uint32_t)c->hidden);
    ggufw_u32(g, "qwen2.feed_forward_length", (uint32_t)c->ffn);
    ggufw_u32(g, "qwen2.attention.head_count", (uint32_t)c->heads);
    ggufw_u32(g, "qwen2.attention.head_count_kv", (uint32_t)c->kv_heads);
    ggufw_f32(g, "qwen2.attention.layer_norm_rms_epsilon", c->eps);
    ggufw_f32(g, "qwen2.rope.freq_base", c->rope_theta);
}

/* Write the keys that tell how far the training is. */
static void write_progress(struct ggufw *g, const struct train *t, const struct pretrain_plan *p,
                           uint64_t seed, uint64_t tokens)
{
    ggufw_str(g, KEY "size", p->size);
    ggufw_u32(g, KEY "seed_low", (uint32_t)seed);
    ggufw_u32(g, KEY "seed_high", (uint32_t)(seed >> 32));
    ggufw_u32(g, KEY "steps", (uint32_t)train_steps(t));
    ggufw_u32(g, KEY "tokens", (uint32_t)tokens);
}

int pretrain_save_vocab(const char *path, const struct bpe_vocab *v, struct err *err)
{
    struct ggufw *g;
    int rc = ggufw_open(&g, path, err);
    if (rc)
        return rc;
    ggufw_str(g, "general.architecture", "qwen2");
    ggufw_str(g, "general.name", "Mizzle milli vocabulary");
    write_tokenizer(g, v);
    ggufw_checksum(g);
    return ggufw_close(g, true, err);
}

static bool is_matrix(const struct train_tensor *x)
{
    return x->rows > 1;
}

/* Declare all tensors, then write their data, matrices quantised to Q8_0. */
static int write_tensors(struct ggufw *g, const struct train *t, struct err *err)
{
    size_t n = train_ntensors(t), most = 0;
    for (size_t i = 0; i < n; i++) {
        const struct train_tensor *x = train_tensor(t, i);
        const size_t shape[2] = { x->rows, x->cols };
        if (is_matrix(x))
            ggufw_tensor(g, x->name, W_Q8_0, 2, shape);
        else /* a vector has one dimension */
            ggufw_tensor(g, x->name, W_F32, 1, shape + 1);
        most = x->rows * x->cols > most ? x->rows * x->cols : most;
    }
    unsigned char *bytes = malloc(most / Q8_BLOCK * Q8_BYTES + 1);
    if (!bytes)
        return err_set(err, ERR_NOMEM, "pretrain: out of memory");
    for (size_t i = 0; i < n; i++) {
        const struct train_tensor *x = train_tensor(t, i);
        size_t count = x->rows * x->cols;
        if (!is_matrix(x)) {
            ggufw_data(g, x->value, count * sizeof(float));
            continue;
        }
        quant_encode(bytes, W_Q8_0, x->value, count);
        ggufw_data(g, bytes, count / Q8_BLOCK * Q8_BYTES);
    }
    free(bytes);
    return OK;
}

int pretrain_save_model(const char *path, const struct train *t, const struct pretrain_plan *p,
                        uint64_t seed, uint64_t tokens, const struct bpe_vocab *v, struct err *err)
{
    struct ggufw *g;
    int rc = ggufw_open(&g, path, err);
    if (rc)
        return rc;
    char name[64];
    snprintf(name, sizeof(name), "Mizzle milli %s", p->name);
    ggufw_str(g, "general.architecture", "qwen2");
    ggufw_str(g, "general.name", name);
    ggufw_str(g, "general.description",
              "Small demo model, trained from scratch by `mizzle pretrain` on an invented world; "
              "it knows nothing else.");
    ggufw_str(g, "general.license", "mit");
    ggufw_u32(g, "general.file_type", MOSTLY_Q8_0);
    ggufw_u32(g, "general.quantization_version", 2);
    pretrain_save_write_config(g, train_config(t));
    write_tokenizer(g, v);
    write_progress(g, t, p, seed, tokens);
    ggufw_checksum(g);
    rc = write_tensors(g, t, err);
    int closed = ggufw_close(g, rc == OK, rc == OK ? err : NULL);
    return rc ? rc : closed;
}

bool pretrain_finished(const char *path, const struct pretrain_plan *p, uint64_t seed)
{
    struct weights *w;
    struct str size;
    uint64_t low, high, steps;
    if (weights_open(&w, path, NULL))
        return false;
    bool done = weights_str(w, KEY "size", &size) && size.n == strlen(p->size) &&
                !memcmp(size.p, p->size, size.n) && weights_u64(w, KEY "seed_low", &low) &&
                weights_u64(w, KEY "seed_high", &high) && (high << 32 | low) == seed &&
                weights_u64(w, KEY "steps", &steps) && steps == p->steps;
    weights_close(w);
    return done;
}
