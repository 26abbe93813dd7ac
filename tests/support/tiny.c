#include "model/model.h"
#include "tests/support/test.h"
#include "tests/support/letters.h"
#include "tests/support/tiny.h"
#include "router/learn/safetensors_write.h"

enum { HIDDEN = 32, HEADS = 2, KV_HEADS = 1, HEAD = 16, WIDE_HEAD = 24, FFN = 48, TENSORS = 14 };

const struct model_config tiny_shape = { .vocab = 4096,
                                         .hidden = 64,
                                         .ffn = 64,
                                         .layers = 1,
                                         .heads = 1,
                                         .kv_heads = 1,
                                         .head_dim = 64,
                                         .context = 64,
                                         .rope_theta = 1e4f,
                                         .eps = 1e-6f,
                                         .tied = true };

static float values[64 << 10];
static struct tensor tensors[TENSORS];
static size_t used, count;
static uint64_t state;

static float draw(void)
{
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (float)((double)(state >> 40) / (1 << 24) - 0.5);
}

/* Add a tensor with random values around a mean; cols 0 makes a vector. */
static void add(const char *name, size_t rows, size_t cols, float around)
{
    size_t n = rows * (cols ? cols : 1);
    CHECK(used + n <= sizeof(values) / sizeof(values[0]) && count < TENSORS);
    for (size_t i = 0; i < n; i++)
        values[used + i] = around + draw() * (around > 0 ? 0.1f : 0.5f);
    tensors[count++] = (struct tensor){ .name = name,
                                        .type = W_F32,
                                        .ndim = cols ? 2 : 1,
                                        .shape = { rows, cols },
                                        .data = values + used,
                                        .bytes = n * sizeof(float) };
    used += n;
}

static FILE *create(const char *name)
{
    const char *path = in_scratch(name);
    remove(path); /* an earlier model of this name may be open */
    FILE *f = fopen(path, "w");
    CHECK(f);
    return f;
}

static void write_text(const char *name, const char *text)
{
    FILE *f = create(name);
    CHECK(fputs(text, f) >= 0 && fclose(f) == 0);
}

static void write_vocab(void)
{
    FILE *f = create("vocab.json");
    for (unsigned b = 0; b < 256; b++)
        fprintf(f, "%s\"\\u%04x\": %u", b ? ", " : "{", (unsigned)letter_code(b), b);
    CHECK(fputs("}\n", f) >= 0 && fclose(f) == 0);
}

/* Add the tensors of the layer; a Qwen3 has norms where a Qwen2 has biases. */
static void add_layer(bool three)
{
    size_t head = three ? WIDE_HEAD : HEAD;
    add("model.layers.0.input_layernorm.weight", HIDDEN, 0, 1);
    add("model.layers.0.self_attn.q_proj.weight", HEADS * head, HIDDEN, 0);
    if (!three)
        add("model.layers.0.self_attn.q_proj.bias", HEADS * head, 0, 0);
    add("model.layers.0.self_attn.k_proj.weight", KV_HEADS * head, HIDDEN, 0);
    if (!three)
        add("model.layers.0.self_attn.k_proj.bias", KV_HEADS * head, 0, 0);
    add("model.layers.0.self_attn.v_proj.weight", KV_HEADS * head, HIDDEN, 0);
    if (!three)
        add("model.layers.0.self_attn.v_proj.bias", KV_HEADS * head, 0, 0);
    add("model.layers.0.self_attn.o_proj.weight", HIDDEN, HEADS * head, 0);
    if (three) {
        add("model.layers.0.self_attn.q_norm.weight", head, 0, 1);
        add("model.layers.0.self_attn.k_norm.weight", head, 0, 1);
    }
    add("model.layers.0.post_attention_layernorm.weight", HIDDEN, 0, 1);
    add("model.layers.0.mlp.gate_proj.weight", FFN, HIDDEN, 0);
    add("model.layers.0.mlp.up_proj.weight", FFN, HIDDEN, 0);
    add("model.layers.0.mlp.down_proj.weight", HIDDEN, FFN, 0);
}

static const char two_config[] =
    "\"architectures\":[\"Qwen2ForCausalLM\"],\"model_type\":\"qwen2\","
    "\"max_position_embeddings\":256,";
static const char three_config[] =
    "\"architectures\":[\"Qwen3ForCausalLM\"],\"model_type\":\"qwen3\",\"head_dim\":24,"
    "\"max_position_embeddings\":64,\"rope_scaling\":{\"type\":\"yarn\",\"factor\":16},";

static const char *tiny_write(unsigned seed, bool three)
{
    char config[1024];
    used = count = 0;
    state = seed;
    add("model.embed_tokens.weight", TINY_VOCAB, HIDDEN, 0);
    add_layer(three);
    add("model.norm.weight", HIDDEN, 0, 1);
    CHECK(safetensors_write(in_scratch("model.safetensors"), tensors, count, NULL, NULL) == OK);
    snprintf(config, sizeof(config),
             "{%s\"hidden_size\":32,\"intermediate_size\":48,\"num_hidden_layers\":1,"
             "\"num_attention_heads\":2,\"num_key_value_heads\":1,\"vocab_size\":272,"
             "\"rms_norm_eps\":1e-6,\"rope_theta\":10000.0,"
             "\"hidden_act\":\"silu\",\"tie_word_embeddings\":true}\n",
             three ? three_config : two_config);
    write_text("config.json", config);
    write_text("merges.txt", "#version: 0.2\n");
    write_text("tokenizer_config.json",
               "{\"added_tokens_decoder\":{"
               "\"256\":{\"content\":\"<|im_end|>\",\"special\":true},"
               "\"257\":{\"content\":\"<|endoftext|>\",\"special\":true}},"
               "\"eos_token\":\"<|endoftext|>\",\"tokenizer_class\":\"Qwen2Tokenizer\"}\n");
    write_vocab();
    return scratch_folder();
}

const char *tiny_make(void)
{
    return tiny_make_seed(1);
}

const char *tiny_make_seed(unsigned seed)
{
    return tiny_write(seed, false);
}

const char *tiny_make_qwen3(void)
{
    return tiny_write(1, true);
}
