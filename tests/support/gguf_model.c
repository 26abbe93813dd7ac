#include "tests/support/gguf_model.h"

#include "tests/support/test.h"
#include "weights/gguf_write.h"

/* A model file in progress. Its random numbers depend only on the shape. */
struct form {
    struct ggufw *g;
    const struct gguf_shape *sh;
    int type;
    uint64_t seed, drawn;
    size_t count;
    struct {
        int type;
        size_t rows, cols; /* cols 0: a vector */
        float around;
    } tensors[64];
};

static uint64_t draw(struct form *f)
{
    return rand_u64(f->seed, f->drawn++);
}

/* Announce a tensor; a quantised type that the columns do not suit is replaced. */
static void add(struct form *f, const char *name, size_t rows, size_t cols, float around)
{
    static const int any[] = { W_Q8_0, W_BF16, W_Q4_0, W_F32, W_F16 };
    int type = !cols ? W_F32 : f->type;
    if (type < 0)
        type = any[f->count % 5];
    size_t values, bytes;
    CHECK(wtype_block(type, &values, &bytes));
    if (cols % values)
        type = type == W_Q8_0 ? W_F16 : W_BF16;
    CHECK(f->count < sizeof(f->tensors) / sizeof(f->tensors[0]));
    f->tensors[f->count].type = type;
    f->tensors[f->count].rows = rows;
    f->tensors[f->count].cols = cols;
    f->tensors[f->count++].around = around;
    ggufw_tensor(f->g, name, type, cols ? 2 : 1, (const size_t[]){ rows, cols });
}

static void add_layer(struct form *f, size_t i)
{
    const struct gguf_shape *c = f->sh;
    size_t h = c->hidden, q = c->heads * c->head_dim, kv = c->kv_heads * c->head_dim;
    const struct {
        const char *name;
        size_t rows, cols;
        float around;
        bool two, three; /* tensors of Qwen2, of Qwen3 */
    } list[] = {
        { "attn_norm.weight", h, 0, 1, true, true },
        { "ffn_norm.weight", h, 0, 1, true, true },
        { "attn_q.weight", q, h, 0, true, true },
        { "attn_q.bias", q, 0, 0, true, false },
        { "attn_k.weight", kv, h, 0, true, true },
        { "attn_k.bias", kv, 0, 0, true, false },
        { "attn_v.weight", kv, h, 0, true, true },
        { "attn_v.bias", kv, 0, 0, true, false },
        { "attn_output.weight", h, q, 0, true, true },
        { "ffn_gate.weight", c->ffn, h, 0, true, true },
        { "ffn_up.weight", c->ffn, h, 0, true, true },
        { "ffn_down.weight", h, c->ffn, 0, true, true },
        { "attn_q_norm.weight", c->head_dim, 0, 1, false, true },
        { "attn_k_norm.weight", c->head_dim, 0, 1, false, true },
    };
    for (size_t j = 0; j < sizeof(list) / sizeof(list[0]); j++) {
        char name[64];
        if (!(c->three ? list[j].three : list[j].two))
            continue;
        snprintf(name, sizeof(name), "blk.%zu.%s", i, list[j].name);
        add(f, name, list[j].rows, list[j].cols, list[j].around);
    }
}

/* Write a row of a matrix. Quantised rows are random bytes, -128 included. */
static void write_row(struct form *f, int type, size_t cols)
{
    static unsigned char row[4096];
    float spread = 1.7f / sqrtf((float)cols);
    size_t bytes = 0, values, block;
    CHECK(wtype_block(type, &values, &block));
    if (values > 1) {
        uint16_t scale = f16_from_f32(spread / (type == W_Q8_0 ? 128.0f : 8.0f));
        for (size_t i = 0; i < cols / values; i++, bytes += block)
            for (size_t j = 0; j < block; j++)
                row[bytes + j] =
                    (unsigned char)(j < 2 ? (unsigned)scale >> (j * 8) : draw(f) >> 56);
    } else {
        for (size_t k = 0; k < cols; k++, bytes += block) {
            float v = ((float)(draw(f) >> 40) * 0x1p-23f - 1) * spread;
            uint16_t h = type == W_F16 ? f16_from_f32(v) : bf16_from_f32(v);
            memcpy(row + bytes, type == W_F32 ? (const void *)&v : &h, block);
        }
    }
    CHECK(bytes <= sizeof(row));
    ggufw_data(f->g, row, bytes);
}

static void write_tensors(struct form *f)
{
    for (size_t i = 0; i < f->count; i++)
        for (size_t r = 0; r < f->tensors[i].rows; r++) {
            float v = f->tensors[i].around + ((float)(draw(f) >> 40) * 0x1p-24f - 0.5f) * 0.5f;
            if (f->tensors[i].cols)
                write_row(f, f->tensors[i].type, f->tensors[i].cols);
            else
                ggufw_data(f->g, &v, sizeof(v));
        }
}

static void write_keys(struct ggufw *g, const struct gguf_shape *sh)
{
    const char *arch = sh->three ? "qwen3" : "qwen2";
    const struct {
        const char *name;
        size_t value;
    } sizes[] = {
        { "block_count", sh->layers },
        { "embedding_length", sh->hidden },
        { "feed_forward_length", sh->ffn },
        { "attention.head_count", sh->heads },
        { "attention.head_count_kv", sh->kv_heads },
        { "attention.key_length", sh->head_dim },
        { "attention.value_length", sh->head_dim },
        { "rope.dimension_count", sh->head_dim },
        { "vocab_size", sh->vocab },
        { "context_length", sh->context },
        { "rope.scaling.original_context_length", 128 },
    };
    char key[64];
    ggufw_str(g, "general.architecture", arch);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]) - !sh->yarn; i++) {
        snprintf(key, sizeof(key), "%s.%s", arch, sizes[i].name);
        ggufw_u32(g, key, (uint32_t)sizes[i].value);
    }
    snprintf(key, sizeof(key), "%s.attention.layer_norm_rms_epsilon", arch);
    ggufw_f32(g, key, 1e-6f);
    snprintf(key, sizeof(key), "%s.rope.freq_base", arch);
    ggufw_f32(g, key, sh->base);
    if (!sh->yarn)
        return;
    snprintf(key, sizeof(key), "%s.rope.scaling.type", arch);
    ggufw_str(g, key, "yarn");
    snprintf(key, sizeof(key), "%s.rope.scaling.factor", arch);
    ggufw_f32(g, key, 4);
}

void gguf_model_write(const char *path, const struct gguf_shape *sh, int type,
                      void (*more)(struct ggufw *g))
{
    struct form f = { .sh = sh, .type = type, .seed = sh->hidden };
    CHECK(ggufw_open(&f.g, path, NULL) == OK);
    write_keys(f.g, sh);
    if (more)
        more(f.g);
    add(&f, "token_embd.weight", sh->vocab, sh->hidden, 0);
    for (size_t i = 0; i < sh->layers; i++)
        add_layer(&f, i);
    add(&f, "output_norm.weight", sh->hidden, 0, 1);
    if (!sh->tied)
        add(&f, "output.weight", sh->vocab, sh->hidden, 0);
    write_tensors(&f);
    CHECK(ggufw_close(f.g, true, NULL) == OK);
}
