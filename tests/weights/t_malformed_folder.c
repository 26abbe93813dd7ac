/* t_malformed_folder.c - Hugging Face folders and safetensors files that are wrong in one way
 * each. */
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kernels/sys/base.h"
#include "tests/support/files.h"
#include "tests/support/malformed.h"
#include "weights/weights.h"

enum { ROOM = 1 << 16, HIDDEN = 16, FFN = 32, VOCAB = 24, HEAD = 4 };

static const char *folder;
static bool three; /* a Qwen3 is written */

/* Key, its value, and that of a Qwen3 if it has another one. */
static const char *const config[][3] = {
    { "architectures", "[\"Qwen2ForCausalLM\"]", "[\"Qwen3ForCausalLM\"]" },
    { "model_type", "\"qwen2\"", "\"qwen3\"" },
    { "hidden_act", "\"silu\"" },
    { "hidden_size", "16" },
    { "intermediate_size", "32" },
    { "num_hidden_layers", "1" },
    { "num_attention_heads", "4" },
    { "num_key_value_heads", "2" },
    { "vocab_size", "24" },
    { "max_position_embeddings", "64" },
    { "rms_norm_eps", "1e-06" },
    { "rope_theta", "10000.0" },
    { "tie_word_embeddings", "false" },
    { "rope_scaling", NULL },
    { "rope_parameters", NULL },
    { "quantization_config", NULL },
    { "partial_rotary_factor", NULL },
    { "use_sliding_window", NULL },
    { "sliding_window", NULL },
    { "max_window_layers", NULL },
    { "layer_types", NULL },
    { "head_dim", NULL, "4" },
    { "attention_bias", NULL },
};

/* The tensors of the model: type, shape and bytes, as the header gives them. */
static const struct {
    const char *name;
    unsigned rows, cols; /* cols 0: a vector */
} tensors[] = {
    { "model.embed_tokens.weight", VOCAB, HIDDEN },
    { "model.norm.weight", HIDDEN, 0 },
    { "lm_head.weight", VOCAB, HIDDEN },
    { "model.layers.0.input_layernorm.weight", HIDDEN, 0 },
    { "model.layers.0.self_attn.q_proj.weight", HIDDEN, HIDDEN },
    { "model.layers.0.self_attn.q_proj.bias", HIDDEN, 0 },
    { "model.layers.0.self_attn.k_proj.weight", HIDDEN / 2, HIDDEN },
    { "model.layers.0.self_attn.k_proj.bias", HIDDEN / 2, 0 },
    { "model.layers.0.self_attn.v_proj.weight", HIDDEN / 2, HIDDEN },
    { "model.layers.0.self_attn.v_proj.bias", HIDDEN / 2, 0 },
    { "model.layers.0.self_attn.o_proj.weight", HIDDEN, HIDDEN },
    { "model.layers.0.post_attention_layernorm.weight", HIDDEN, 0 },
    { "model.layers.0.mlp.gate_proj.weight", FFN, HIDDEN },
    { "model.layers.0.mlp.up_proj.weight", FFN, HIDDEN },
    { "model.layers.0.mlp.down_proj.weight", HIDDEN, FFN },
};

enum { KEYS = sizeof(config) / sizeof(*config), TENSORS = sizeof(tensors) / sizeof(*tensors) };

static void write_config(const struct malformed_kind *k)
{
    char text[2048] = "{";
    size_t at = 1;
    for (size_t i = 0; i < KEYS; i++) {
        const char *usual = three && config[i][2] ? config[i][2] : config[i][1];
        const char *v = strcmp(config[i][0], k->what) == 0 ? k->to : usual;
        if (v)
            at += (size_t)snprintf(text + at, sizeof(text) - at, "%s\"%s\":%s", at > 1 ? "," : "",
                                   config[i][0], v);
    }
    CHECK(at + 2 < sizeof(text));
    text[at++] = '}';
    spill(in_scratch("config.json"), text, at);
}

/* Write a header with its length and `bytes` zeros after it. */
static void write_safetensors(const char *file, const char *header, size_t bytes)
{
    static unsigned char p[ROOM];
    size_t n = strlen(header);
    CHECK(8 + n + bytes <= ROOM);
    memset(p, 0, 8 + n + bytes);
    for (size_t i = 0; i < 8; i++)
        p[i] = (unsigned char)((uint64_t)n >> (8 * i));
    memcpy(p + 8, header, n);
    spill(in_scratch(file), p, 8 + n + bytes);
}

/* Write the tensors, all F32, with one change: to is "[shape]" or a new name; NULL leaves it out. A
 * Qwen3 has norms in place of the biases of queries and keys, and no bias of values. */
static void write_tensors(const struct malformed_kind *k)
{
    static char header[8192];
    size_t at = 0, offset = 0;
    for (size_t i = 0; i < TENSORS; i++) {
        const char *name = tensors[i].name, *bias = strstr(name, "_proj.bias");
        char own[40], norm[64];
        if (three && bias) {
            snprintf(norm, sizeof(norm), "model.layers.0.self_attn.%c_norm.weight", bias[-1]);
            name = norm;
        }
        bool changed = strcmp(name, k->what) == 0;
        bool shape = changed && k->to && k->to[0] == '[';
        unsigned rows = three && bias ? HEAD : tensors[i].rows, cols = tensors[i].cols;
        size_t bytes = (size_t)rows * (cols ? cols : 1) * sizeof(float);
        if ((changed && !k->to) || strstr(name, ".v_norm."))
            continue;
        snprintf(own, sizeof(own), cols ? "[%u,%u]" : "[%u]", rows, cols);
        at += (size_t)snprintf(
            header + at, sizeof(header) - at,
            "%c\"%s\":{\"dtype\":\"F32\",\"shape\":%s,\"data_offsets\":[%zu,%zu]}", at ? ',' : '{',
            changed && !shape ? k->to : name, shape ? k->to : own, offset, offset + bytes);
        offset += bytes;
    }
    CHECK(at + 2 < sizeof(header));
    header[at++] = '}';
    header[at] = '\0';
    write_safetensors("model.safetensors", header, offset);
}

/* What Git LFS leaves in place of a file that is not fetched. */
#define POINTER                                                                                 \
    "version https://git-lfs.github.com/spec/v1\noid sha256:0000000000000000000000000000000000" \
    "000000000000000000000000000000\nsize 4935256712\n"

#define YARN "\"rope_type\":\"yarn\",\"factor\":4.0"

static const struct malformed_kind configs[] = {
    { "no model type", "model_type", NULL, "model_type" },
    { "model type llama", "model_type", "\"llama\"", "model_type" },
    { "model type of Qwen2's mixtures", "model_type", "\"qwen2_moe\"", "model_type" },
    { "model type as a number", "model_type", "2", "model_type" },
    { "no architectures", "architectures", NULL, "architectures" },
    { "two architectures", "architectures", "[\"Qwen2ForCausalLM\",\"X\"]", "architectures" },
    { "no architecture in the list", "architectures", "[]", "architectures" },
    { "Qwen3 in the list", "architectures", "[\"Qwen3ForCausalLM\"]", "architectures" },
    { "a classifier", "architectures", "[\"Qwen2ForTokenClassification\"]", "architectures" },
    { "architectures as text", "architectures", "\"Qwen2ForCausalLM\"", "architectures" },
    { "another activation", "hidden_act", "\"gelu\"", "hidden_act" },
    { "activation as a list", "hidden_act", "[\"silu\"]", "hidden_act" },
    { "no hidden size", "hidden_size", NULL, "hidden_size" },
    { "hidden size null", "hidden_size", "null", "hidden_size" },
    { "hidden size 0", "hidden_size", "0", "hidden_size" },
    { "hidden size -16", "hidden_size", "-16", "hidden_size" },
    { "hidden size 16.5", "hidden_size", "16.5", "hidden_size" },
    { "hidden size as text", "hidden_size", "\"16\"", "hidden_size" },
    { "hidden size of 2^32 + 16", "hidden_size", "4294967312", "hidden_size" },
    { "hidden size of 30 digits", "hidden_size", "160000000000000000000000000000", "config.json" },
    { "hidden size twice", "hidden_size", "16,\"hidden_size\":16",
      "config.json: line 1: duplicate object key near '\"hidden_size\"'" },
    { "another hidden size", "hidden_size", "32", "expected [" },
    { "hidden size 1e9", "hidden_size", "1e9", "hidden_size" },
    { "no ffn size", "intermediate_size", NULL, "intermediate_size" },
    { "another ffn size", "intermediate_size", "31", "expected [" },
    { "ffn size true", "intermediate_size", "true", "intermediate_size" },
    { "no layers", "num_hidden_layers", "0", "num_hidden_layers" },
    { "two layers, one there", "num_hidden_layers", "2", "model.layers.1." },
    { "two billion layers", "num_hidden_layers", "2000000000", "model.layers.1." },
    { "no heads", "num_attention_heads", NULL, "num_attention_heads" },
    { "heads 0", "num_attention_heads", "0", "num_attention_heads" },
    { "heads that do not divide", "num_attention_heads", "3", "head_count" },
    { "heads as text", "num_attention_heads", "\"4\"", "num_attention_heads" },
    { "heads -1", "num_attention_heads", "-1", "num_attention_heads" },
    { "no KV heads", "num_key_value_heads", NULL, "num_key_value_heads" },
    { "KV heads that do not divide", "num_key_value_heads", "3", "head_count_kv" },
    { "other KV heads", "num_key_value_heads", "4", "expected [" },
    { "no vocabulary", "vocab_size", NULL, "vocab_size" },
    { "another vocabulary", "vocab_size", "23", "vocab_size" },
    { "no context", "max_position_embeddings", NULL, "max_position_embeddings" },
    { "context 0", "max_position_embeddings", "0", "max_position_embeddings" },
    { "context as a list", "max_position_embeddings", "[64]", "max_position_embeddings" },
    { "no epsilon", "rms_norm_eps", NULL, "rms_norm_eps" },
    { "epsilon 0", "rms_norm_eps", "0", "rms_norm_eps" },
    { "epsilon as text", "rms_norm_eps", "\"x\"", "rms_norm_eps" },
    { "epsilon below 0", "rms_norm_eps", "-1e-6", "rms_norm_eps" },
    { "epsilon NaN", "rms_norm_eps", "NaN", "config.json" },
    { "epsilon 1e999", "rms_norm_eps", "1e999", "config.json" },
    { "no RoPE base", "rope_theta", NULL, "rope_theta" },
    { "RoPE base -1", "rope_theta", "-1", "rope_theta" },
    { "RoPE base 0", "rope_theta", "0", "rope_theta" },
    { "RoPE scaling as a number", "rope_scaling", "4", "rope_scaling" },
    { "RoPE scaling that is unknown", "rope_scaling", "{\"type\":\"longrope\"}", "config.json" },
    { "RoPE scaling that is dynamic", "rope_scaling", "{\"type\":\"dynamic\",\"factor\":4}",
      "type: expected default, linear or yarn, found \"dynamic\"" },
    { "RoPE scaling by 1e9", "rope_scaling", "{\"type\":\"yarn\",\"factor\":1e9}",
      "scaling.factor: expected 1 to 1024" },
    { "YaRN turned around", "rope_scaling", "{\"type\":\"yarn\",\"factor\":4,\"beta_slow\":40}",
      "yarn_beta_fast: expected 40 to" },
    { "RoPE scaling of type 7", "rope_scaling", "{\"type\":7}", "found 7" },
    { "RoPE scaling of llama3", "rope_scaling", "{\"rope_type\":\"llama3\"}", "\"llama3\"" },
    { "YaRN without a factor", "rope_scaling", "{\"type\":\"yarn\"}",
      "factor: expected a positive" },
    { "YaRN by a half", "rope_scaling", "{\"type\":\"yarn\",\"factor\":0.5}",
      "factor: expected at" },
    { "linear by text", "rope_scaling", "{\"type\":\"linear\",\"factor\":\"4\"}",
      "factor: expected" },
    { "YaRN, beta_fast", "rope_scaling", "{" YARN ",\"beta_fast\":-1}", "beta_fast: expected" },
    { "YaRN, beta_slow", "rope_scaling", "{" YARN ",\"beta_slow\":\"x\"}", "beta_slow: expected" },
    { "YaRN, attention", "rope_scaling", "{" YARN ",\"attention_factor\":0}", "attention_factor" },
    { "YaRN, mscale", "rope_scaling", "{" YARN ",\"mscale_all_dim\":1}",
      "mscale_all_dim: expected" },
    { "YaRN, truncate", "rope_scaling", "{" YARN ",\"truncate\":false}",
      "truncate: expected true" },
    { "YaRN, original 0", "rope_scaling", "{" YARN ",\"original_max_position_embeddings\":0}",
      "original_max_position_embeddings: expected" },
    { "YaRN, original of 2^32", "rope_parameters",
      "{" YARN ",\"original_max_position_embeddings\":4294967296}",
      "original_max_position_embeddings: expected" },
    { "RoPE scaling without a type", "rope_scaling", "{\"factor\":4}", "config.json" },
    { "RoPE of half the head", "partial_rotary_factor", "0.5", "partial_rotary_factor" },
    { "RoPE factor as text", "partial_rotary_factor", "\"1\"", "partial_rotary_factor" },
    { "tied as a number", "tie_word_embeddings", "1", "tie_word_embeddings" },
    { "quantised by another program", "quantization_config", "{\"quant_method\":\"awq\"}",
      "quantization_config" },
    { "window as text", "use_sliding_window", "\"true\"", "use_sliding_window" },
    { "window that matters", "max_window_layers",
      "0,\"use_sliding_window\":true,\"sliding_window\":8", "use_sliding_window" },
    { "window of the context, which YaRN stretches", "max_window_layers",
      "0,\"use_sliding_window\":true,\"sliding_window\":255,\"rope_parameters\":{" YARN
      ",\"rope_theta\":1e4}",
      "use_sliding_window" },
    { "layers with a window", "layer_types", "[\"sliding_attention\"]", "layer_types" },
    { "layer types as numbers", "layer_types", "[1]", "layer_types" },
    { "head size 0", "head_dim", "0", "head_dim" },
    { "head size as text", "head_dim", "\"4\"", "head_dim" },
};

static const struct malformed_kind threes[] = {
    { "Qwen3: head size 0", "head_dim", "0", "head_dim: expected a positive" },
    { "Qwen3: head size -4", "head_dim", "-4", "head_dim: expected a positive" },
    { "Qwen3: head size 3", "head_dim", "3", "key_length: expected an even number, found 3" },
    { "Qwen3: huge head", "head_dim", "16386", "key_length: expected an integer from 1 to 16384" },
    { "Qwen3: another head size", "head_dim", "8",
      "attn_q.weight: expected [32,16], found [16,16]" },
    { "Qwen3: no head size, so 128", "head_dim", NULL,
      "attn_q.weight: expected [512,16], found [16" },
    { "Qwen3: with biases", "attention_bias", "true",
      "attention_bias: expected false, found true" },
    { "Qwen3: head size as text", "head_dim", "\"4\"", "head_dim" },
    { "Qwen3: head size of 2^32", "head_dim", "4294967296", "head_dim" },
    { "Qwen3: biases as 0", "attention_bias", "0", "attention_bias: expected true or false" },
    { "Qwen3 called Qwen2", "model_type", "\"qwen2\"", "architectures: expected" },
    { "Qwen3's mixtures", "model_type", "\"qwen3_moe\"",
      "model_type: expected qwen2 or qwen3, found \"qwen3_moe\"" },
};

static const struct malformed_kind texts[] = {
    { "empty config.json", "", NULL, "config.json" },
    { "config.json of blanks", " \n ", NULL, "config.json" },
    { "config.json is a list", "[1]", NULL, "expected a JSON object" },
    { "config.json is a number", "1", NULL, "config.json" },
    { "config.json without its end", "{\"model_type\":\"qwen2\"", NULL, "config.json" },
    { "config.json with more behind", "{} {}", NULL, "config.json" },
    { "config.json in Latin-1", "{\"a\":\"\xe9\"}", NULL, "config.json" },
    { "config.json with a comment", "{/* */}", NULL, "config.json" },
    { "config.json in single quotes", "{'a':1}", NULL, "config.json" },
    { "list behind a byte order mark", "\xef\xbb\xbf[]", NULL, "expected a JSON object" },
    { "half a surrogate", "{\"a\":\"\\ud800\"}", NULL, "config.json: line 1: invalid" },
    { "config.json as a pointer", POINTER, NULL, "config.json: expected the file itself, found a" },
};

static const struct malformed_kind shapes[] = {
    { "no embedding", "model.embed_tokens.weight", NULL, "model.embed_tokens.weight" },
    { "no last norm", "model.norm.weight", NULL, "model.norm.weight is missing" },
    { "no head", "lm_head.weight", NULL, "lm_head.weight is missing" },
    { "no queries", "model.layers.0.self_attn.q_proj.weight", NULL, "q_proj.weight is missing" },
    { "bias of keys missing", "model.layers.0.self_attn.k_proj.bias", NULL, "k_proj.bias" },
    { "no down", "model.layers.0.mlp.down_proj.weight", NULL, "down_proj.weight is missing" },
    { "name of another model", "model.norm.weight", "transformer.ln_f.weight", "not part of" },
    { "bias that Qwen2 does not have", "lm_head.weight", "lm_head.bias", "not part of" },
    { "layer beyond the last", "model.norm.weight", "model.layers.1.mlp.up_proj.weight",
      "not part of" },
    { "bias of the output", "model.norm.weight", "model.layers.0.self_attn.o_proj.bias",
      "not part of" },
    { "bias of the gate", "model.norm.weight", "model.layers.0.mlp.gate_proj.bias", "not part of" },
    { "layer 00", "model.norm.weight", "model.layers.00.mlp.up_proj.weight", "not part of" },
    { "layer x", "model.norm.weight", "model.layers.x.mlp.up_proj.weight", "not part of" },
    { "layer of nothing", "model.norm.weight", "model.layers..mlp.up_proj.weight", "not part of" },
    { "layer of 20 digits", "model.norm.weight",
      "model.layers.99999999999999999999.mlp.up_proj.weight", "not part of" },
    { "layer of a sign", "model.norm.weight", "model.layers.+0.mlp.up_proj.weight", "not part of" },
    { "GGUF's name", "model.norm.weight", "output_norm.weight", "not part of" },
    { "adapter", "lm_head.weight", "base_model.model.lm_head.lora_A.weight", "not part of" },
    { "tensor twice", "lm_head.weight", "model.embed_tokens.weight", "two tensors" },
    { "embedding transposed", "model.embed_tokens.weight", "[16,24]", "token_embd.weight" },
    { "embedding flat", "model.embed_tokens.weight", "[384]", "token_embd.weight" },
    { "queries folded", "model.layers.0.self_attn.q_proj.weight", "[4,4,16]", "attn_q.weight" },
    { "norm as a row", "model.norm.weight", "[1,16]", "output_norm.weight" },
    { "gate transposed", "model.layers.0.mlp.gate_proj.weight", "[16,32]", "ffn_gate.weight" },
};

#define T(dtype, shape, offsets) \
    "{\"a\":{\"dtype\":" dtype ",\"shape\":" shape ",\"data_offsets\":" offsets "}}"

#define U(shape, offsets) "{\"dtype\":\"U8\",\"shape\":" shape ",\"data_offsets\":" offsets "}"

/* Headers of a file alone, with four bytes of data. */
static const struct malformed_kind headers[] = {
    { "header of no bytes", "", NULL, "expected {" },
    { "header is a list", "[]", NULL, "expected {" },
    { "header without its end", "{", NULL, "header" },
    { "data without tensors", "{}", NULL, "expected 0 bytes of data, found 4" },
    { "type of GGUF", T("\"Q8_0\"", "[4]", "[0,4]"), NULL, "dtype Q8_0 is not known" },
    { "type of four bits", T("\"F4\"", "[4]", "[0,4]"), NULL, "dtype F4 is not known" },
    { "type as a number", T("4", "[4]", "[0,4]"), NULL, "a string" },
    { "shape of nine", T("\"U8\"", "[1,1,1,1,1,1,1,1,4]", "[0,4]"), NULL, "fewer numbers" },
    { "shape below 0", T("\"U8\"", "[-4]", "[0,4]"), NULL, "a whole number" },
    { "shape of a real", T("\"U8\"", "[4.0]", "[0,4]"), NULL, "a whole number" },
    { "shape that overflows", T("\"U8\"", "[4294967296,4294967296]", "[0,4]"), NULL, "overflows" },
    { "dimension of 2^64", T("\"U8\"", "[18446744073709551616]", "[0,4]"), NULL, "that fits" },
    { "one offset", T("\"U8\"", "[4]", "[0]"), NULL, "two offsets" },
    { "three offsets", T("\"U8\"", "[4]", "[0,4,4]"), NULL, "fewer numbers" },
    { "offsets turned around", T("\"U8\"", "[4]", "[4,0]"), NULL, "data_offsets [0,4]" },
    { "hole in front", T("\"U8\"", "[3]", "[1,4]"), NULL, "data_offsets [0,3], found [1,4]" },
    { "more bytes than the shape", T("\"U8\"", "[3]", "[0,4]"), NULL, "data_offsets [0,3]" },
    { "fewer bytes than the shape", T("\"U8\"", "[5]", "[0,4]"), NULL, "data_offsets [0,5]" },
    { "bytes beyond the end", T("\"U8\"", "[5]", "[0,5]"), NULL, "expected 5 bytes of data" },
    { "bytes beyond the end, before a lie that ends there",
      "{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]},"
      "\"b\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[4,7]},"
      "\"c\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[9,4]}}",
      NULL, "expected 7 bytes of data, found 4" },
    { "bytes behind the last", T("\"U8\"", "[3]", "[0,3]"), NULL, "expected 3 bytes of data" },
    { "zero byte in a name", "{\"a\\u0000\":1}", NULL, "escape" },
    { "half a surrogate", "{\"\\ud800\":1}", NULL, "escape" },
    { "tab in a name", "{\"a\tb\":1}", NULL, "plain character" },
    { "name in Latin-1", "{\"\xe9\":1}", NULL, "UTF-8" },
    { "brace too many", "{}}", NULL, "" },
    { "comma alone", "{,}", NULL, "" },
    { "name alone", "{\"a\"}", NULL, "" },
    { "tensor as a number", "{\"a\":1}", NULL, "" },
    { "tensor of nothing", "{\"a\":{}}", NULL, "" },
    { "tensor of U9", T("\"U9\"", "[4]", "[0,4]"), NULL, "dtype U9 is not known" },
    { "shape of an exponent", T("\"U8\"", "[4e0]", "[0,4]"), NULL, "" },
    { "shape of 04", T("\"U8\"", "[04]", "[0,4]"), NULL, "" },
    { "shape of text", T("\"U8\"", "[\"4\"]", "[0,4]"), NULL, "" },
    { "shape with a comma behind", T("\"U8\"", "[4,]", "[0,4]"), NULL, "" },
    { "shape of a list", T("\"U8\"", "[[4]]", "[0,4]"), NULL, "" },
    { "offset of 2^64", T("\"U8\"", "[4]", "[0,18446744073709551620]"), NULL, "" },
    { "shape twice", T("\"U8\"", "[4],\"shape\":[4]", "[0,4]"), NULL, "" },
    { "another member", T("\"U8\"", "[4],\"x\":1", "[0,4]"), NULL, "" },
    { "comma behind a tensor", "{\"a\":" U("[4]", "[0,4]") ",}", NULL, "" },
    { "hole between", "{\"a\":" U("[2]", "[0,2]") ",\"b\":" U("[1]", "[3,4]") "}", NULL, "" },
    { "overlap", "{\"a\":" U("[3]", "[0,3]") ",\"b\":" U("[2]", "[2,4]") "}", NULL, "" },
    { "same bytes", "{\"a\":" U("[4]", "[0,4]") ",\"b\":" U("[4]", "[0,4]") "}", NULL, "" },
    { "same name", "{\"a\":" U("[2]", "[0,2]") ",\"a\":" U("[2]", "[2,4]") "}", NULL, "" },
    { "half a surrogate, then A", "{\"\\ud800\\u0041\":1}", NULL, "escape" },
    { "escape of x", "{\"a\\x\":1}", NULL, "" },
    { "escape cut", "{\"a\\u12", NULL, "" },
    { "backslash at the end", "{\"a\\", NULL, "" },
    { "surrogate in UTF-8", "{\"a\xed\xa0\x80\":1}", NULL, "UTF-8" },
    { "metadata twice", "{\"__metadata__\":{},\"__metadata__\":{}}", NULL, "" },
    { "metadata with a key twice", "{\"__metadata__\":{\"a\":\"b\",\"a\":\"c\"}}", NULL, "" },
    { "metadata of numbers", "{\"__metadata__\":{\"a\":1}}", NULL, "a string" },
};

static const struct malformed_kind indices[] = {
    { "empty index", "", NULL, "index.json" },
    { "index without a map", "{}", NULL, "weight_map is missing" },
    { "map as a list", "{\"weight_map\":[]}", NULL, "weight_map is missing" },
    { "map of numbers", "{\"weight_map\":{\"a\":1}}", NULL, "no string" },
    { "file outside", "{\"weight_map\":{\"a\":\"../a.safetensors\"}}", NULL, "in the folder" },
    { "absolute path", "{\"weight_map\":{\"a\":\"/a.safetensors\"}}", NULL, "in the folder" },
    { "file of pickles", "{\"weight_map\":{\"a\":\"a.bin\"}}", NULL, "in the folder" },
    { "the folder above", "{\"weight_map\":{\"a\":\"..\"}}", NULL, "in the folder" },
    { "file without a name", "{\"weight_map\":{\"a\":\"\"}}", NULL, "in the folder" },
    { "map of null", "{\"weight_map\":{\"a\":null}}", NULL, "no string" },
    { "hidden file", "{\"weight_map\":{\"a\":\".a.safetensors\"}}", NULL, "in the folder" },
    { "part that is missing", "{\"weight_map\":{\"a\":\"b.safetensors\"}}", NULL, "b.safetensors" },
    { "tensor that is missing", "{\"weight_map\":{\"a\":\"a.safetensors\"}}", NULL,
      "expects 1 tensors here, found 0" },
    { "map of nothing", "{\"weight_map\":{}}", NULL, "is missing" },
    { "file in a folder below", "{\"weight_map\":{\"a\":\"b/a.safetensors\"}}", NULL,
      "in the folder" },
    { "file named by its ending", "{\"weight_map\":{\"a\":\".safetensors\"}}", NULL,
      "in the folder" },
    { "tensor in two parts", "{\"weight_map\":{\"a\":\"a.safetensors\",\"a\":\"b.safetensors\"}}",
      NULL, "duplicate" },
    { "part that is a folder", "{\"weight_map\":{\"a\":\"c.safetensors\"}}", NULL,
      "expected a regular file" },
    { "part without end", "{\"weight_map\":{\"a\":\"d.safetensors\"}}", NULL,
      "expected a regular file" },
};

static void write_text(const struct malformed_kind *k)
{
    spill(in_scratch("config.json"), k->what, strlen(k->what));
}

static void write_index(const struct malformed_kind *k)
{
    spill(in_scratch("model.safetensors.index.json"), k->what, strlen(k->what));
}

static void write_header(const struct malformed_kind *k)
{
    write_safetensors("a.safetensors", k->what, 4);
}

static void test_folder(void)
{
    static const struct malformed_kind none = { .what = "" };
    write_config(&none);
    write_tensors(&none);
    malformed_opens("the folder itself", folder, MALFORMED_MODEL);
    MALFORMED_EACH(configs, write_config, folder, MALFORMED_MODEL);
    MALFORMED_EACH(texts, write_text, folder, MALFORMED_WEIGHTS);
    write_config(&none);
    MALFORMED_EACH(shapes, write_tensors, folder, MALFORMED_MODEL);
    three = true;
    write_config(&none);
    malformed_refused("Qwen2's tensors", folder, MALFORMED_MODEL, "not part of a qwen3 model");
    three = false;
    write_config(&none);
    three = true;
    write_tensors(&none);
    malformed_refused("Qwen3's tensors", folder, MALFORMED_MODEL, "not part of a qwen2 model");
    write_config(&none);
    malformed_opens("a Qwen3", folder, MALFORMED_MODEL);
    MALFORMED_EACH(threes, write_config, folder, MALFORMED_MODEL);
    three = false;
    write_config(&none);
    CHECK(unlink(in_scratch("model.safetensors")) == 0);
    malformed_refused("no weights", folder, MALFORMED_WEIGHTS, "found neither");
    write_safetensors("a.safetensors", "{}", 0);
    CHECK(mkdir(in_scratch("c.safetensors"), 0700) == 0);
    CHECK(symlink("/dev/zero", in_scratch("d.safetensors")) == 0);
    MALFORMED_EACH(indices, write_index, folder, MALFORMED_WEIGHTS);
    CHECK(rmdir(in_scratch("c.safetensors")) == 0 && unlink(in_scratch("d.safetensors")) == 0);
    CHECK(unlink(in_scratch("config.json")) == 0);
    malformed_refused("no config.json", folder, MALFORMED_WEIGHTS,
                      "no model here: expected config.json or a .gguf file");
}

static void test_file(void)
{
    const char *file = in_scratch("a.safetensors");
    static const struct {
        const char *bytes;
        size_t n;
        const char *name, *says;
    } raw[] = {
        { "\1\0\0\0\0\0\0", 7, "seven bytes", "8 bytes" },
        { "\3\0\0\0\0\0\0\0{}", 10, "header beyond the end", "a header of at most 2 bytes" },
        { "\377\377\377\377\377\377\377\377{}", 10, "header of most bytes",
          "a length of 18446744073709551615" },
        { POINTER, sizeof(POINTER) - 1, "a pointer",
          "found a Git LFS pointer; to fetch it: git lfs pull" },
    };
    MALFORMED_EACH(headers, write_header, file, MALFORMED_WEIGHTS);
    for (size_t i = 0; i < sizeof(raw) / sizeof(*raw); i++) {
        spill(file, raw[i].bytes, raw[i].n);
        malformed_refused(raw[i].name, file, MALFORMED_WEIGHTS, raw[i].says);
    }
    write_safetensors("a.safetensors", "{}", 0);
    malformed_refused("a file without config.json", file, MALFORMED_MODEL, "one part of a folder");
}

int main(void)
{
    folder = scratch_folder();
    test_folder();
    test_file();
    malformed_count(190);
    return 0;
}
