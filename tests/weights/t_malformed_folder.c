/* t_malformed_folder.c - Hugging Face folders and safetensors files, each wrong in one way. */
#include <sys/stat.h>

#include "tests/support/test.h"
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

#define SIZES                                                                         \
    "hidden_size~intermediate_size~num_hidden_layers~num_attention_heads~vocab_size~" \
    "num_key_value_heads~max_position_embeddings"

static const struct malformed_kind configs[] = {
    { SIZES, "-~null~0~-16~16.5~1e9~true~[16]~\"16\"~4294967312", NULL },
    { SIZES, "160000000000000000000000000000", "config.json" },
    { "rms_norm_eps~rope_theta", "-~0~-1e-6~\"x\"", NULL },
    { "rms_norm_eps~rope_theta", "NaN~1e999", "config.json" },
    { "model_type", "-~\"llama\"~\"qwen2_moe\"~2", NULL },
    { "architectures",
      "-~[\"Qwen2ForCausalLM\",\"X\"]~[]~[\"Qwen3ForCausalLM\"]~[\"Qwen2ForTokenClassification\"]~"
      "\"Qwen2ForCausalLM\"",
      NULL },
    { "hidden_act", "\"gelu\"~[\"silu\"]", NULL },
    { "hidden_size", "16,\"hidden_size\":16",
      "config.json: line 1: duplicate object key near '\"hidden_size\"'" },
    { "hidden_size", "32", "expected [" },
    { "intermediate_size", "31", "expected [" },
    { "num_hidden_layers", "2~2000000000", "model.layers.1." },
    { "num_attention_heads", "3", "head_count" },
    { "num_key_value_heads", "3", "head_count_kv" },
    { "num_key_value_heads", "4", "expected [" },
    { "vocab_size", "23", NULL },
    { "rope_scaling", "4", NULL },
    { "rope_scaling", "{\"type\":\"longrope\"}~{\"factor\":4}", "config.json" },
    { "rope_scaling", "{\"type\":\"dynamic\",\"factor\":4}",
      "type: expected default, linear or yarn, found \"dynamic\"" },
    { "rope_scaling", "{\"type\":\"yarn\",\"factor\":1e9}", "scaling.factor: expected 1 to 1024" },
    { "rope_scaling", "{\"type\":\"yarn\",\"factor\":4,\"beta_slow\":40}",
      "yarn_beta_fast: expected 40 to" },
    { "rope_scaling", "{\"type\":7}", "found 7" },
    { "rope_scaling", "{\"rope_type\":\"llama3\"}", "\"llama3\"" },
    { "rope_scaling", "{\"type\":\"yarn\"}", "factor: expected a positive" },
    { "rope_scaling", "{\"type\":\"yarn\",\"factor\":0.5}", "factor: expected at" },
    { "rope_scaling", "{\"type\":\"linear\",\"factor\":\"4\"}", "factor: expected" },
    { "rope_scaling", "{" YARN ",\"beta_fast\":-1}", "beta_fast: expected" },
    { "rope_scaling", "{" YARN ",\"beta_slow\":\"x\"}", "beta_slow: expected" },
    { "rope_scaling", "{" YARN ",\"attention_factor\":0}", "attention_factor" },
    { "rope_scaling", "{" YARN ",\"mscale_all_dim\":1}", "mscale_all_dim: expected" },
    { "rope_scaling", "{" YARN ",\"truncate\":false}", "truncate: expected true" },
    { "rope_scaling~rope_parameters",
      "{" YARN ",\"original_max_position_embeddings\":0}~"
      "{" YARN ",\"original_max_position_embeddings\":4294967296}",
      "original_max_position_embeddings: expected" },
    { "partial_rotary_factor", "0.5~\"1\"", NULL },
    { "tie_word_embeddings", "1", NULL },
    { "quantization_config", "{\"quant_method\":\"awq\"}", NULL },
    { "use_sliding_window", "\"true\"", NULL },
    { "max_window_layers", /* a window that matters; and the context, which YaRN stretches */
      "0,\"use_sliding_window\":true,\"sliding_window\":8~"
      "0,\"use_sliding_window\":true,\"sliding_window\":255,\"rope_parameters\":{" YARN
      ",\"rope_theta\":1e4}",
      "use_sliding_window" },
    { "layer_types", "[\"sliding_attention\"]~[1]", NULL },
    { "head_dim", "0~\"4\"", NULL },
};

static const struct malformed_kind threes[] = {
    { "head_dim", "0~-4", "head_dim: expected a positive" },
    { "head_dim", "\"4\"~4294967296", NULL },
    { "head_dim", "3", "key_length: expected an even number, found 3" },
    { "head_dim", "16386", "key_length: expected an integer from 1 to 16384" },
    { "head_dim", "8", "attn_q.weight: expected [32,16], found [16,16]" },
    { "head_dim", "-", "attn_q.weight: expected [512,16], found [16" },
    { "attention_bias", "true", "attention_bias: expected false, found true" },
    { "attention_bias", "0", "attention_bias: expected true or false" },
    { "model_type", "\"qwen2\"", "architectures: expected" },
    { "model_type", "\"qwen3_moe\"", "model_type: expected qwen2 or qwen3, found \"qwen3_moe\"" },
};

static const struct malformed_kind texts[] = {
    { "config.json", "~ \n ~1~{\"model_type\":\"qwen2\"~{} {}~{\"a\":\"\xe9\"}~{/* */}~{'a':1}",
      NULL },
    { "config.json", "[1]~\xef\xbb\xbf[]", "expected a JSON object" },
    { "config.json", "{\"a\":\"\\ud800\"}", "config.json: line 1: invalid" },
    { "config.json", POINTER, "config.json: expected the file itself, found a" },
    { "config.json", "-", "no model here: expected config.json or a .gguf file" },
};

#define LAYER "model.layers.0."

static const struct malformed_kind shapes[] = {
    { "model.norm.weight",
      "transformer.ln_f.weight~model.layers.1.mlp.up_proj.weight~" LAYER
      "self_attn.o_proj.bias~" LAYER
      "mlp.gate_proj.bias~model.layers.00.mlp.up_proj.weight~model.layers.x.mlp.up_proj.weight~"
      "model.layers..mlp.up_proj.weight~model.layers.99999999999999999999.mlp.up_proj.weight~"
      "model.layers.+0.mlp.up_proj.weight~output_norm.weight",
      "not part of" },
    { "lm_head.weight", "lm_head.bias~base_model.model.lm_head.lora_A.weight", "not part of" },
    { "lm_head.weight", "model.embed_tokens.weight", "two tensors" },
    { "model.embed_tokens.weight", "[16,24]~[384]", "token_embd.weight" },
    { LAYER "self_attn.q_proj.weight", "[4,4,16]", "attn_q.weight" },
    { "model.norm.weight", "[1,16]", "output_norm.weight" },
    { LAYER "mlp.gate_proj.weight", "[16,32]", "ffn_gate.weight" },
};

#define U(shape, offsets) "{\"dtype\":\"U8\",\"shape\":" shape ",\"data_offsets\":" offsets "}"

/* Headers of a file alone, with four bytes of data: of one tensor, or else the whole text. */
static const struct malformed_kind headers[] = {
    { "header", "~[]", "expected {" },
    { "header", "{", "header" },
    { "header", "{}", "expected 0 bytes of data, found 4" },
    { "dtype", "\"Q8_0\"", "dtype Q8_0 is not known" },
    { "dtype", "\"F4\"", "dtype F4 is not known" },
    { "dtype", "\"U9\"", "dtype U9 is not known" },
    { "dtype", "4", "a string" },
    { "shape", "[1,1,1,1,1,1,1,1,4]", "fewer numbers" },
    { "shape", "[-4]~[4.0]", "a whole number" },
    { "shape", "[4294967296,4294967296]", "overflows" },
    { "shape", "[18446744073709551616]", "that fits" },
    { "shape", "[3]", "data_offsets [0,3]" },
    { "shape", "[5]", "data_offsets [0,5]" },
    { "shape", "[4e0]~[04]~[\"4\"]~[4,]~[[4]]~[4],\"shape\":[4]~[4],\"x\":1", "" },
    { "data_offsets", "[0]", "two offsets" },
    { "data_offsets", "[0,4,4]", "fewer numbers" },
    { "data_offsets", "[4,0]", "data_offsets [0,4]" },
    { "data_offsets", "[1,4]", "data_offsets [0,4], found [1,4]" },
    { "data_offsets", "[0,18446744073709551620]", "" },
    { "header", "{\"a\":" U("[5]", "[0,5]") "}", "expected 5 bytes of data" },
    { "header", /* beyond the end, before a lie that ends there */
      "{\"a\":" U("[4]", "[0,4]") ",\"b\":" U("[3]", "[4,7]") ",\"c\":" U("[1]", "[9,4]") "}",
      "expected 7 bytes of data, found 4" },
    { "header", "{\"a\":" U("[3]", "[0,3]") "}", "expected 3 bytes of data" },
    { "header", "{\"a\\u0000\":1}~{\"\\ud800\":1}~{\"\\ud800\\u0041\":1}", "escape" },
    { "header", "{\"a\tb\":1}", "plain character" },
    { "header", "{\"\xe9\":1}~{\"a\xed\xa0\x80\":1}", "UTF-8" },
    { "header",
      "{}}~{,}~{\"a\"}~{\"a\":1}~{\"a\":{}}~{\"a\\x\":1}~{\"a\\u12~{\"a\\~"
      "{\"__metadata__\":{},\"__metadata__\":{}}~{\"__metadata__\":{\"a\":\"b\",\"a\":\"c\"}}",
      "" },
    { "header", "{\"a\":" U("[4]", "[0,4]") ",}", "" },
    { "header", "{\"a\":" U("[2]", "[0,2]") ",\"b\":" U("[1]", "[3,4]") "}", "" }, /* a hole */
    { "header", "{\"a\":" U("[3]", "[0,3]") ",\"b\":" U("[2]", "[2,4]") "}", "" }, /* an overlap */
    { "header", "{\"a\":" U("[4]", "[0,4]") ",\"b\":" U("[4]", "[0,4]") "}",
      "" }, /* the same bytes */
    { "header", "{\"a\":" U("[2]", "[0,2]") ",\"a\":" U("[2]", "[2,4]") "}", "" }, /* and name */
    { "header", "{\"__metadata__\":{\"a\":1}}", "a string" },
};

/* What an index says of tensor a; or else the whole text. */
static const struct malformed_kind indices[] = {
    { "index", "", "index.json" },
    { "index", "{}~{\"weight_map\":[]}", "weight_map is missing" },
    { "index", "{\"weight_map\":{}}", "is missing" },
    { "index", "{\"weight_map\":{\"a\":\"a.safetensors\",\"a\":\"b.safetensors\"}}", "duplicate" },
    { "a", "1~null", "no string" },
    { "a",
      "\"../a.safetensors\"~\"/a.safetensors\"~\"a.bin\"~\"..\"~\"\"~\".a.safetensors\"~"
      "\"b/a.safetensors\"~\".safetensors\"",
      "in the folder" },
    { "a", "\"b.safetensors\"", "b.safetensors" },
    { "a", "\"a.safetensors\"", "expects 1 tensors here, found 0" },
    { "a", "\"c.safetensors\"~\"d.safetensors\"", "expected a regular file" },
};

static void write_file(const char *name, const char *format, const char *text)
{
    char whole[1200];
    size_t n = (size_t)snprintf(whole, sizeof(whole), format, text);
    CHECK(n < sizeof(whole));
    spill(in_scratch(name), whole, n);
}

static void write_text(const struct malformed_kind *k)
{
    if (k->to)
        write_file("config.json", "%s", k->to);
    else
        CHECK(unlink(in_scratch("config.json")) == 0);
}

static void write_index(const struct malformed_kind *k)
{
    bool whole = strcmp(k->what, "a") != 0;
    write_file("model.safetensors.index.json", whole ? "%s" : "{\"weight_map\":{\"a\":%s}}", k->to);
}

static void write_header(const struct malformed_kind *k)
{
    static const char *const keys[] = { "dtype", "shape", "data_offsets" };
    const char *value[] = { "\"U8\"", "[4]", "[0,4]" };
    char text[256];
    bool whole = true;
    for (size_t i = 0; i < 3; i++)
        if (strcmp(k->what, keys[i]) == 0) {
            value[i] = k->to;
            whole = false;
        }
    snprintf(text, sizeof(text), "{\"a\":{\"dtype\":%s,\"shape\":%s,\"data_offsets\":%s}}",
             value[0], value[1], value[2]);
    write_safetensors("a.safetensors", whole ? k->to : text, 4);
}

static void test_folder(void)
{
    static const struct malformed_kind none = { .what = "" };
    write_config(&none);
    write_tensors(&none);
    malformed_opens("the folder itself", folder, MALFORMED_MODEL);
    MALFORMED_EACH(configs, write_config, folder, MALFORMED_MODEL);
    write_config(&none);
    MALFORMED_EACH(shapes, write_tensors, folder, MALFORMED_MODEL);
    for (size_t i = 0; i < TENSORS; i++)
        malformed_each(&(struct malformed_kind){ tensors[i].name, "-", NULL }, 1, write_tensors,
                       folder, MALFORMED_MODEL);
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
    MALFORMED_EACH(texts, write_text, folder, MALFORMED_WEIGHTS);
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
    malformed_count(250);
    return 0;
}
