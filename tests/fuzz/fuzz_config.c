/* fuzz_config.c - config.json of a Hugging Face folder. */
#include "tests/fuzz/fuzz.h"
#include "weights/hf_config.h"
#include "weights/table.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    struct err err = { "" };
    struct hf_config c;
    fuzz_write("config.json", p, n);
    fuzz_begin();
    struct weights *w = table_new(fuzz_folder(), "folder");
    CHECK(w);
    int code = hf_config_read(w, &c, &err);
    weights_close(w);
    fuzz_end(code, &err);
    return 0;
}

#define QWEN                                                                 \
    "\"hidden_size\":16,\"intermediate_size\":32,\"num_hidden_layers\":1,"   \
    "\"num_attention_heads\":4,\"num_key_value_heads\":2,\"vocab_size\":24," \
    "\"max_position_embeddings\":64,\"rms_norm_eps\":1e-06,\"tie_word_embeddings\":false,"

static const char *const texts[] = {
    "{\"architectures\":[\"Qwen2ForCausalLM\"],\"model_type\":\"qwen2\"," QWEN
    "\"rope_theta\":10000.0,\"hidden_act\":\"silu\",\"eos_token_id\":[7,8],\"bos_token_id\":1}",
    "{\"architectures\":[\"Qwen2ForCausalLM\"],\"model_type\":\"qwen2\"," QWEN
    "\"rope_parameters\":{\"rope_type\":\"default\",\"rope_theta\":5.0},\"layer_types\":"
    "[\"full_attention\"],\"use_sliding_window\":false,\"sliding_window\":null,"
    "\"max_window_layers\":28,\"partial_rotary_factor\":1.0,\"head_dim\":4}",
    "{\"architectures\":[\"Qwen2ForCausalLM\"],\"model_type\":\"qwen2\"," QWEN
    "\"rope_theta\":1000000,\"use_sliding_window\":true,\"sliding_window\":4096,"
    "\"max_window_layers\":1,\"rope_scaling\":null,\"quantization_config\":null}",
};

size_t fuzz_seed(size_t i, uint8_t *out, size_t room)
{
    return i < sizeof(texts) / sizeof(*texts) ? fuzz_join(out, 0, room, texts[i], strlen(texts[i]))
                                              : 0;
}
