/* fuzz_model_shards.c - a GGUF file in two parts. */
#include "tests/fuzz/fuzz.h"
#include "tests/support/malformed.h"

static const char *const files[] = { "a-00001-of-00002.gguf", "a-00002-of-00002.gguf" };

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    fuzz_files(files, 2, p, n);
    fuzz_open(fuzz_path(files[0]));
    return 0;
}

#define SPLIT(no)                    "s'split.no' 4:2 2:" no " s'split.count' 4:2 2:2 s'split.tensors.count' 4:5 4:14 "
#define U32(key, v)                  "s'qwen2." key "' 4:4 4:" v " "
#define VECTOR(name, n, at)          "s'" name "' 4:1 8:" n " 4:0 8:" at " "
#define MATRIX(name, cols, rows, at) "s'" name "' 4:2 8:" cols " 8:" rows " 4:0 8:" at " "

/* A model of hidden size 8: the first part has the layer's matrices, the second one the rest. */
static const char *const parts[] = {
    "'GGUF' 4:3 8:7 8:12 s'general.architecture' 4:8 s'qwen2' " SPLIT("0") U32("block_count", "1")
        U32("context_length", "16") U32("embedding_length", "8") U32("feed_forward_length", "8")
            U32("attention.head_count", "2")
                U32("attention.head_count_kv",
                    "2") "s'qwen2.rope.freq_base' 4:6 4:0x461c4000 "
                         "s'qwen2.attention.layer_norm_rms_epsilon' 4:6 4:0x358637bd " MATRIX(
                             "blk.0.attn_q.weight", "8", "8", "0")
                             MATRIX("blk.0.attn_k.weight", "8", "8", "256")
                                 MATRIX("blk.0.attn_v.weight", "8", "8", "512")
                                     MATRIX("blk.0.attn_output.weight", "8", "8", "768")
                                         MATRIX("blk.0.ffn_gate.weight", "8", "8", "1024")
                                             MATRIX("blk.0.ffn_up.weight", "8", "8", "1280")
                                                 MATRIX("blk.0.ffn_down.weight", "8", "8",
                                                        "1536") "a:32 z:1792",
    "'GGUF' 4:3 8:7 8:3 " SPLIT("1") MATRIX("token_embd.weight", "8", "4", "0")
        VECTOR("blk.0.attn_norm.weight", "8", "128") VECTOR("blk.0.ffn_norm.weight", "8", "160")
            VECTOR("output_norm.weight", "8", "192") VECTOR("blk.0.attn_q.bias", "8", "224")
                VECTOR("blk.0.attn_k.bias", "8", "256")
                    VECTOR("blk.0.attn_v.bias", "8", "288") "a:32 z:320",
};

size_t fuzz_seed(size_t i, uint8_t *out, size_t room)
{
    static uint8_t part[FUZZ_ROOM];
    size_t n = 0;
    for (size_t k = 0; i == 0 && k < 2; k++)
        n = fuzz_join(out, n, room, part, malformed_assemble(part, sizeof(part), parts[k]));
    return n;
}
