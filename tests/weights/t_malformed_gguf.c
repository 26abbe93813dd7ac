/* t_malformed_gguf.c - GGUF files that are wrong in one way each: bytes that are no GGUF, then a
 * whole small model in which one key or one tensor is wrong. */
#include <stdint.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "tests/support/files.h"
#include "tests/support/malformed.h"
#include "weights/weights.h"

enum { ROOM = 1 << 16 };

static const char *path;
static enum { QWEN2, QWEN3, YARN } form; /* what is written; the last one is a Qwen3, too */

/* Header: version 3, so many tensors, so many keys. */
#define HEAD(tensors, keys) "'GGUF' 4:3 8:" tensors " 8:" keys " "
#define STR(key, value)     "s'" key "' 4:8 s'" value "' "
#define U32(key, value)     "s'" key "' 4:4 4:" value " "
/* A vector of four F32 at this offset, and one with these dimensions and type. */
#define VEC(name, at)         "s'" name "' 4:1 8:4 4:0 8:" at " "
#define ROW(name, dims, type) "s'" name "' " dims " 4:" type " 8:0 "

static const struct malformed_kind raw[] = {
    { "empty file", "", NULL, "the file is empty" },
    { "three bytes", "'GGU'", NULL, "magic" },
    { "pointer of Git LFS", "'version' 1:32 'https://git-lfs.github.com/spec/v1' 1:10", NULL,
      "expected the file itself, found a Git LFS pointer; to fetch it: git lfs pull" },
    { "magic of an older format", "'GGML' 4:3 8:0 8:0", NULL, "magic" },
    { "magic in big-endian order", "'FUGG' 4:3 8:0 8:0", NULL, "magic" },
    { "magic in small letters", "'gguf' 4:3 8:0 8:0", NULL, "magic" },
    { "no version", "'GGUF'", NULL, "inside the header" },
    { "half a version", "'GGUF' 2:3", NULL, "inside the header" },
    { "no count of keys", "'GGUF' 4:3 8:0", NULL, "inside the header" },
    { "version 0", "'GGUF' 4:0 8:0 8:0", NULL, "version 2 or 3, found 0" },
    { "version 1", "'GGUF' 4:1 8:0 8:0", NULL, "version 2 or 3, found 1" },
    { "version 4", "'GGUF' 4:4 8:0 8:0", NULL, "version 2 or 3, found 4" },
    { "big-endian version", "'GGUF' 4:0x03000000 8:0 8:0", NULL, "big-endian" },
    { "one key, and no room for it", HEAD("0", "1"), NULL, "1 keys and 0 tensors do not fit" },
    { "more keys than bytes", HEAD("0", "0x7fffffff") "z:99", NULL, "do not fit" },
    { "most keys", HEAD("0", "-1") "z:99", NULL, "do not fit" },
    { "more tensors than bytes", HEAD("0x7fffffff", "0") "z:99", NULL, "do not fit" },
    { "most tensors", HEAD("-1", "0") "z:99", NULL, "do not fit" },
    { "key longer than the file", HEAD("0", "1") "8:100 'abc' z:20", NULL, "a key longer" },
    { "key of most bytes", HEAD("0", "1") "8:-1 'abc' z:20", NULL, "a key longer" },
    { "key without a name", HEAD("0", "1") "8:0 4:4 4:1 z:20", NULL, "a key without a name" },
    { "zero byte in a key", HEAD("0", "1") "8:3 'a' 1:0 'b' 4:4 4:1", NULL, "zero byte" },
    { "key without a type", HEAD("0", "1") "s'abcdefgh' 1:4", NULL, "inside a key" },
    { "type 13 of a key", HEAD("0", "1") "s'key' 4:13 4:1", NULL, "from 0 to 12, found 13" },
    { "type -1 of a key", HEAD("0", "1") "s'key' 4:-1 4:1", NULL, "from 0 to 12, found 42949" },
    { "half a number", HEAD("0", "1") "s'keyed' 4:4 2:1", NULL, "a value longer" },
    { "half a long number", HEAD("0", "1") "s'key' 4:10 4:1", NULL, "a value longer" },
    { "string longer than the file", HEAD("0", "1") "s'key' 4:8 8:9 'ab'", NULL,
      "a string longer" },
    { "string of most bytes", HEAD("0", "1") "s'key' 4:8 8:-1 'ab'", NULL, "longer" },
    { "array of arrays", HEAD("0", "1") "s'key' 4:9 4:9 8:1 z:9", NULL, "array of type 9" },
    { "array of type 13", HEAD("0", "1") "s'key' 4:9 4:13 8:1 z:9", NULL, "array of type 13" },
    { "array without a count", HEAD("0", "1") "s'key' 4:9 4:4 4:1", NULL, "inside a key" },
    { "array longer than the file", HEAD("0", "1") "s'key' 4:9 4:4 8:9 z:9", NULL, "longer" },
    { "array of most values", HEAD("0", "1") "s'key' 4:9 4:0 8:-1 z:9", NULL, "do not fit" },
    { "array whose bytes overflow", HEAD("0", "1") "s'key' 4:9 4:10 8:0x2000000000000001 z:99",
      NULL, "do not fit" },
    { "array of strings, too many", HEAD("0", "1") "s'key' 4:9 4:8 8:9 z:9", NULL, "strings" },
    { "array with a long string", HEAD("0", "1") "s'key' 4:9 4:8 8:1 8:99 'ab'", NULL, "a string" },
    { "key twice", HEAD("0", "2") U32("key", "1") U32("key", "2"), NULL, "two keys are named key" },
    { "alignment 0", HEAD("0", "1") U32("general.alignment", "0"), NULL, "power of two" },
    { "alignment 3", HEAD("0", "1") U32("general.alignment", "3"), NULL, "power of two" },
    { "alignment as text", HEAD("0", "1") STR("general.alignment", "32"), NULL, "power of two" },
    { "alignment in 8 bytes", HEAD("0", "1") "s'general.alignment' 4:10 8:32", NULL, "type 10" },
    { "tensor name longer than the file", HEAD("1", "0") "8:99 'abc' z:30", NULL, "a tensor name" },
    { "tensor name of 64 bytes",
      HEAD("1", "0") "s'0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef' z:30",
      NULL, "at most 63 bytes, found 64" },
    { "zero byte in a tensor name", HEAD("1", "0") "8:3 'a' 1:0 'b' z:30", NULL, "zero byte" },
    { "tensor of 5 dimensions", HEAD("1", "0") "s't' 4:5 z:60", NULL, "at most 4 dimensions" },
    { "tensor without a shape", HEAD("1", "0") "s'tensor' 4:2 8:1 4:1", NULL, "tensor's shape" },
    { "tensor without an offset", HEAD("1", "0") "s'ten' 4:1 8:1 4:0 1:0", NULL, "description" },
    { "negative dimension", HEAD("1", "0") ROW("t", "4:1 8:-4", "0"), NULL, "a dimension of" },
    { "shape that overflows", HEAD("1", "0") ROW("t", "4:2 8:0x100000000 8:0x100000000", "0"), NULL,
      "too large" },
    { "bytes that overflow", HEAD("1", "0") ROW("t", "4:1 8:0x4000000000000000", "0"), NULL,
      "too large" },
    { "type that was removed", HEAD("1", "0") ROW("t", "4:1 8:32", "4"), NULL, "type 4 is not" },
    { "type 9999", HEAD("1", "0") ROW("t", "4:1 8:32", "9999"), NULL, "type 9999 is not known" },
    { "type of safetensors", HEAD("1", "0") ROW("t", "4:1 8:32", "1000"), NULL,
      "type 1000 is not" },
    { "type -1", HEAD("1", "0") ROW("t", "4:1 8:32", "-1"), NULL, "is not known" },
    { "row of half a block", HEAD("1", "0") ROW("t", "4:2 8:48 8:2", "8") "a:32 z:200", NULL,
      "no whole number of Q8_0 blocks" },
    { "row of half a superblock", HEAD("1", "0") ROW("t", "4:2 8:128 8:2", "12") "a:32 z:200", NULL,
      "no whole number of Q4_K blocks" },
    { "block without dimensions", HEAD("1", "0") ROW("t", "4:0", "8") "a:32 z:200", NULL,
      "blocks" },
    { "first tensor not at 0", HEAD("1", "0") VEC("t", "32") "a:32 z:64", NULL, "data at 0" },
    { "offset that is not aligned", HEAD("2", "0") VEC("t", "0") VEC("u", "16") "a:32 z:64", NULL,
      "data at 32, found 16" },
    { "hole between tensors", HEAD("2", "0") VEC("t", "0") VEC("u", "64") "a:32 z:96", NULL,
      "data at 32, found 64" },
    { "overlapping tensors", HEAD("2", "0") VEC("t", "0") VEC("u", "0") "a:32 z:64", NULL,
      "data at 32, found 0" },
    { "offset of most bytes", HEAD("2", "0") VEC("t", "0") VEC("u", "-1") "a:32 z:64", NULL,
      "data at 32" },
    { "tensor twice", HEAD("2", "0") VEC("t", "0") VEC("t", "32") "a:32 z:64", NULL,
      "two tensors are named t" },
    { "no data", HEAD("1", "0") VEC("t", "0"), NULL, "expected 32 bytes of tensor data" },
    { "data cut by a byte", HEAD("1", "0") VEC("t", "0") "a:32 z:15", NULL, "tensor data" },
    { "padding cut inside", HEAD("1", "0") VEC("t", "0") "a:32 z:31", NULL, "tensor data" },
    { "second tensor cut", HEAD("2", "0") VEC("t", "0") VEC("u", "32") "a:32 z:47", NULL, "64" },
    { "checksum that is wrong", HEAD("0", "2") "s'mizzle.bytes' 4:10 8:84 s'mizzle.crc32' 4:4 4:5",
      NULL, "the file is damaged" },
    { "checksum of another type",
      HEAD("0", "2") "s'mizzle.bytes' 4:10 8:88 s'mizzle.crc32' 4:10 8:5", NULL, "no U32" },
    { "one part under a plain name", HEAD("0", "1") "s'split.count' 4:2 2:3", NULL,
      "STEM-00001-of-00003.gguf" },
};

static void write_raw(const struct malformed_kind *k)
{
    static unsigned char p[ROOM];
    spill(path, p, malformed_assemble(p, ROOM, k->what));
}

/* A model of one layer: each key with its type and value, and those of a Qwen3 if it has others. */
static const char *const keys[][3] = {
    { "general.architecture", "4:8 s'qwen2'", "4:8 s'qwen3'" },
    { "qwen2.block_count", "4:4 4:1" },
    { "qwen2.context_length", "4:4 4:64" },
    { "qwen2.embedding_length", "4:4 4:32" },
    { "qwen2.feed_forward_length", "4:4 4:64" },
    { "qwen2.attention.head_count", "4:4 4:4" },
    { "qwen2.attention.head_count_kv", "4:4 4:2" },
    { "qwen2.attention.layer_norm_rms_epsilon", "4:6 4:0x358637bd" },
    { "qwen2.rope.freq_base", "4:6 4:0x461c4000" },
    { "qwen2.vocab_size", "4:4 4:48" },
    { "qwen2.attention.key_length", NULL, "4:4 4:8" },
    { "qwen2.attention.value_length", NULL, "4:4 4:8" },
    { "qwen2.rope.dimension_count", NULL },
};

static const char *const yarn[][2] = { { "qwen3.rope.scaling.type", "4:8 s'yarn'" },
                                       { "qwen3.rope.scaling.factor", "4:6 4:0x40800000" } };

/* Its tensors: dimensions, fastest first, and type; the norm that a Qwen3 has in its place, if any.
 */
static const char *const tensors[][3] = {
    { "token_embd.weight", "4:2 8:32 8:48 4:0" },
    { "blk.0.attn_norm.weight", "4:1 8:32 4:0" },
    { "blk.0.attn_q.weight", "4:2 8:32 8:32 4:0" },
    { "blk.0.attn_q.bias", "4:1 8:32 4:0", "blk.0.attn_q_norm.weight" },
    { "blk.0.attn_k.weight", "4:2 8:32 8:16 4:0" },
    { "blk.0.attn_k.bias", "4:1 8:16 4:0", "blk.0.attn_k_norm.weight" },
    { "blk.0.attn_v.weight", "4:2 8:32 8:16 4:0" },
    { "blk.0.attn_v.bias", "4:1 8:16 4:0", "" },
    { "blk.0.attn_output.weight", "4:2 8:32 8:32 4:0" },
    { "blk.0.ffn_norm.weight", "4:1 8:32 4:0" },
    { "blk.0.ffn_gate.weight", "4:2 8:32 8:64 4:0" },
    { "blk.0.ffn_up.weight", "4:2 8:32 8:64 4:0" },
    { "blk.0.ffn_down.weight", "4:2 8:64 8:32 4:0" },
    { "output_norm.weight", "4:1 8:32 4:0" },
    { "output.weight", "4:2 8:32 8:48 4:0" },
};

enum { KEYS = sizeof(keys) / sizeof(*keys), TENSORS = sizeof(tensors) / sizeof(*tensors) };

/* Return the bytes of a tensor's data, from its assembled dimensions and type. */
static size_t data_bytes(const unsigned char *row)
{
    size_t n = 1, values = 1, bytes = 1, dims = row[0];
    for (size_t i = 0; i < dims; i++)
        n *= row[4 + 8 * i];
    CHECK(wtype_block(row[4 + 8 * dims], &values, &bytes));
    return n / values * bytes;
}

static unsigned char bytes[ROOM];
static size_t at, offset, nkeys, ntensors;

static void add_key(const char *name, const char *value)
{
    char words[200];
    snprintf(words, sizeof(words), "s'%s' %s", name, value);
    at += malformed_assemble(bytes + at, ROOM - at, words);
    nkeys++;
}

/* Add a tensor of these dimensions and type. */
static void add_tensor(const char *name, const char *row)
{
    char words[200];
    snprintf(words, sizeof(words), "s'%s'", name);
    at += malformed_assemble(bytes + at, ROOM - at, words);
    size_t n = malformed_assemble(bytes + at, ROOM - at, row), size = data_bytes(bytes + at);
    snprintf(words, sizeof(words), "8:%zu", offset);
    at += n;
    at += malformed_assemble(bytes + at, ROOM - at, words);
    offset += (size + 31) / 32 * 32;
    ntensors++;
}

/* Write the model with one change: of a key, of a tensor, or one more of either. */
static void write_model(const struct malformed_kind *k)
{
    char name[64], words[200];
    bool tensor = strncmp(k->what, "blk.", 4) == 0, found = !*k->what;
    at = 24;
    offset = nkeys = ntensors = 0;
    for (size_t i = 0; i < KEYS; i++) {
        const char *usual = form && keys[i][2] ? keys[i][2] : keys[i][1];
        snprintf(name, sizeof(name), "%s", keys[i][0]);
        if (form && name[0] == 'q')
            name[4] = '3';
        bool changed = strcmp(name, k->what) == 0;
        if (changed ? k->to : usual)
            add_key(name, changed ? k->to : usual);
        found = found || changed;
    }
    for (size_t i = 0; form == YARN && i < 2; i++)
        add_key(yarn[i][0], yarn[i][1]);
    if (!found && !tensor && strncmp(k->what, "qwen", 4) == 0)
        add_key(k->what, k->to);
    for (size_t i = 0; i < TENSORS; i++) {
        const char *own = form && tensors[i][2] ? tensors[i][2] : tensors[i][0];
        bool changed = strcmp(own, k->what) == 0;
        found = found || changed;
        if (*own && (!changed || k->to))
            add_tensor(own, changed                 ? k->to
                            : form && tensors[i][2] ? "4:1 8:8 4:0"
                                                    : tensors[i][1]);
    }
    if (!found && tensor)
        add_tensor(k->what, k->to);
    snprintf(words, sizeof(words), "'GGUF' 4:3 8:%zu 8:%zu", ntensors, nkeys);
    CHECK(malformed_assemble(bytes, 24, words) == 24);
    size_t start = (at + 31) / 32 * 32;
    CHECK(start + offset <= ROOM);
    memset(bytes + at, 0, start + offset - at);
    spill(path, bytes, start + offset);
}

#define A "qwen2.attention."

static const struct malformed_kind wrong[] = {
    { "no architecture", "general.architecture", NULL, "general.architecture" },
    { "architecture llama", "general.architecture", "4:8 s'llama'", "\"llama\"" },
    { "architecture gemma3", "general.architecture", "4:8 s'gemma3'", "\"gemma3\"" },
    { "architecture Qwen2", "general.architecture", "4:8 s'Qwen2'", "\"Qwen2\"" },
    { "architecture qwen3moe", "general.architecture", "4:8 s'qwen3moe'",
      "expected qwen2 or qwen3, found \"qwen3moe\"" },
    { "architecture qwen2vl", "general.architecture", "4:8 s'qwen2vl'", "\"qwen2vl\"" },
    { "architecture qwen", "general.architecture", "4:8 s'qwen'", "\"qwen\"" },
    { "architecture of no letters", "general.architecture", "4:8 s''", "architecture" },
    { "architecture as a number", "general.architecture", "4:4 4:2", "architecture" },
    { "no count of layers", "qwen2.block_count", NULL, "block_count: expected a number" },
    { "no layers", "qwen2.block_count", "4:4 4:0", "block_count: expected an integer from 1" },
    { "two layers, one there", "qwen2.block_count", "4:4 4:2", "tensor blk.1.attn_" },
    { "-1 layers", "qwen2.block_count", "4:5 4:-1", "block_count" },
    { "two billion layers", "qwen2.block_count", "4:4 4:2000000000", "block_count" },
    { "layers as a real", "qwen2.block_count", "4:6 4:0x3f800000", "block_count" },
    { "layers as text", "qwen2.block_count", "4:8 s'1'", "block_count" },
    { "layers as a list", "qwen2.block_count", "4:9 4:4 8:1 4:1", "block_count" },
    { "no context", "qwen2.context_length", NULL, "context_length" },
    { "context 0", "qwen2.context_length", "4:4 4:0", "context_length" },
    { "context of most tokens", "qwen2.context_length", "4:10 8:-1", "context_length" },
    { "no hidden size", "qwen2.embedding_length", NULL, "embedding_length" },
    { "hidden size 0", "qwen2.embedding_length", "4:4 4:0", "embedding_length" },
    { "another hidden size", "qwen2.embedding_length", "4:4 4:64", "expected [48,64]" },
    { "huge hidden size", "qwen2.embedding_length", "4:4 4:-4", "embedding_length" },
    { "no ffn size", "qwen2.feed_forward_length", NULL, "feed_forward_length" },
    { "another ffn size", "qwen2.feed_forward_length", "4:4 4:96", "expected [96,32]" },
    { "ffn sizes as a list", "qwen2.feed_forward_length", "4:9 4:4 8:1 4:64", "feed_forward" },
    { "no heads", A "head_count", NULL, "head_count" },
    { "heads 0", A "head_count", "4:4 4:0", "head_count" },
    { "heads that do not divide", A "head_count", "4:4 4:5", "head_count" },
    { "head size of odd length", A "head_count", "4:4 4:32", "" },
    { "too many heads", A "head_count", "4:4 4:65537", "from 1 to 65536" },
    { "no KV heads", A "head_count_kv", NULL, "head_count_kv" },
    { "KV heads 0", A "head_count_kv", "4:4 4:0", "head_count_kv" },
    { "KV heads that do not divide", A "head_count_kv", "4:4 4:3", "head_count_kv" },
    { "more KV heads than heads", A "head_count_kv", "4:4 4:8", "head_count_kv" },
    { "epsilon below 0", A "layer_norm_rms_epsilon", "4:6 4:0xb58637bd", "epsilon" },
    { "epsilon NaN", A "layer_norm_rms_epsilon", "4:6 4:0x7fc00000", "epsilon" },
    { "epsilon infinite", A "layer_norm_rms_epsilon", "4:6 4:0x7f800000", "epsilon" },
    { "epsilon as text", A "layer_norm_rms_epsilon", "4:8 s'1e-6'", "epsilon" },
    { "RoPE base 0", "qwen2.rope.freq_base", "4:6 4:0", "freq_base" },
    { "RoPE base NaN", "qwen2.rope.freq_base", "4:6 4:0x7fc00000", "freq_base" },
    { "RoPE base infinite", "qwen2.rope.freq_base", "4:6 4:0x7f800000", "expected 1 to 1e+12" },
    { "RoPE base as a flag", "qwen2.rope.freq_base", "4:7 1:1", "freq_base" },
    { "RoPE of half the head", "qwen2.rope.dimension_count", "4:4 4:4", "dimension_count" },
    { "RoPE scaling of no letters", "qwen2.rope.scaling.type", "4:8 s''", "none, linear or yarn" },
    { "RoPE scaling as a number", "qwen2.rope.scaling.type", "4:4 4:1", "none, linear or yarn" },
    { "RoPE factor -1", "qwen2.rope.scaling.factor", "4:6 4:0xbf800000", "expected 1 to 1024" },
    { "RoPE factor NaN", "qwen2.rope.scaling.factor", "4:6 4:0x7fc00000", "expected 1 to 1024" },
    { "RoPE factor as text", "qwen2.rope.scaling.factor", "4:8 s'4'", "factor: expected a number" },
    { "linear RoPE by a half", "qwen2.rope.scale_linear", "4:6 4:0x3f000000", "scale_linear" },
    { "RoPE scaling that is unknown", "qwen2.rope.scaling.type", "4:8 s'longrope'", "scaling" },
    { "values of another length", A "value_length", "4:4 4:16", "value_length" },
    { "another vocabulary", "qwen2.vocab_size", "4:4 4:47", "vocab_size" },
    { "no embedding", "token_embd.weight", NULL, "token_embd.weight" },
    { "embedding of one dimension", "token_embd.weight", "4:1 8:32 4:0", "token_embd.weight" },
    { "embedding of no rows", "token_embd.weight", "4:2 8:32 8:0 4:0", "token_embd.weight" },
    { "embedding in integers", "token_embd.weight", "4:2 8:32 8:48 4:26", "found I32" },
    { "embedding in doubles", "token_embd.weight", "4:2 8:32 8:48 4:28", "found F64" },
    { "no norm", "blk.0.attn_norm.weight", NULL, "blk.0.attn_norm.weight" },
    { "short norm", "blk.0.attn_norm.weight", "4:1 8:31 4:0", "expected [32], found [31]" },
    { "norm as a matrix", "blk.0.attn_norm.weight", "4:2 8:32 8:1 4:0", "found [1,32]" },
    { "norm in integers", "blk.0.attn_norm.weight", "4:1 8:32 4:24", "blk.0.attn_norm.weight" },
    { "no queries", "blk.0.attn_q.weight", NULL, "blk.0.attn_q.weight" },
    { "queries transposed", "blk.0.attn_k.weight", "4:2 8:16 8:32 4:0", "expected [16,32]" },
    { "queries of three dimensions", "blk.0.attn_q.weight", "4:3 8:32 8:32 8:1 4:0", "[1,32,32]" },
    { "bias of keys alone missing", "blk.0.attn_k.bias", NULL, "blk.0.attn_k.bias" },
    { "long bias", "blk.0.attn_v.bias", "4:1 8:32 4:0", "expected [16], found [32]" },
    { "norm of queries", "blk.0.attn_q_norm.weight", "4:1 8:8 4:0",
      "attn_q_norm.weight: expected none in a qwen2 model, found one" },
    { "norm of keys", "blk.0.attn_k_norm.weight", "4:1 8:8 4:0", "attn_k_norm.weight: expected" },
    { "bias of values missing", "blk.0.attn_v.bias", NULL, "attn_v.bias: expected [16]" },
    { "no values", "blk.0.attn_v.weight", NULL, "blk.0.attn_v.weight" },
    { "no output of attention", "blk.0.attn_output.weight", NULL, "blk.0.attn_output.weight" },
    { "no second norm", "blk.0.ffn_norm.weight", NULL, "blk.0.ffn_norm.weight" },
    { "no gate", "blk.0.ffn_gate.weight", NULL, "blk.0.ffn_gate.weight" },
    { "no up", "blk.0.ffn_up.weight", NULL, "blk.0.ffn_up.weight" },
    { "no down", "blk.0.ffn_down.weight", NULL, "blk.0.ffn_down.weight" },
    { "down of another size", "blk.0.ffn_down.weight", "4:2 8:32 8:32 4:0", "expected [32,64]" },
    { "no last norm", "output_norm.weight", NULL, "output_norm.weight" },
    { "head of another vocabulary", "output.weight", "4:2 8:32 8:47 4:0", "expected [48,32]" },
    { "head in a type that is not run", "output.weight", "4:2 8:32 8:48 4:27", "output.weight" },
};

#define B "qwen3.attention."

static const struct malformed_kind threes[] = {
    { "Qwen3: key length 0", B "key_length", "4:4 4:0", "qwen3.attention.key_length" },
    { "Qwen3: long keys", B "key_length", "4:4 4:65536", "an integer from 1 to 16384" },
    { "Qwen3: key length 6", B "key_length", "4:4 4:6", "value_length: expected 6" },
    { "Qwen3: key length as a real", B "key_length", "4:6 4:0x41000000",
      "qwen3.attention.key_length" },
    { "Qwen3: value length 2", B "value_length", "4:4 4:2", "value_length: expected 8" },
    { "Qwen3: value length as text", B "value_length", "4:8 s'8'", "value_length: expected 8" },
    { "Qwen3: no heads", B "head_count", "4:4 4:0", "head_count: expected" },
    { "Qwen3: other heads", B "head_count", "4:4 4:8", "attn_q.weight: expected [64,32]" },
    { "Qwen3: other KV heads", B "head_count_kv", "4:4 4:3", "head_count_kv: expected a" },
    { "Qwen3: no context", "qwen3.context_length", NULL, "context_length: expected a number" },
    { "Qwen3: another vocabulary", "qwen3.vocab_size", "4:4 4:49", "vocab_size: expected 48" },
    { "Qwen3: no norm of queries", "blk.0.attn_q_norm.weight", NULL, "expected [8], found none" },
    { "Qwen3: no norm of keys", "blk.0.attn_k_norm.weight", NULL, "attn_k_norm.weight: exp" },
    { "Qwen3: long norm", "blk.0.attn_q_norm.weight", "4:1 8:16 4:0", "expected [8], found [16]" },
    { "Qwen3: norm as a matrix", "blk.0.attn_k_norm.weight", "4:2 8:1 8:8 4:0",
      "expected [8], found [8,1]" },
    { "Qwen3: empty norm", "blk.0.attn_k_norm.weight", "4:1 8:0 4:0", "expected [8], found [0]" },
    { "Qwen3: narrow output", "blk.0.attn_output.weight", "4:2 8:16 8:32 4:0",
      "expected [32,32], found [32,16]" },
    { "Qwen3: bias of queries", "blk.0.attn_q.bias", "4:1 8:32 4:0",
      "attn_q.bias: expected none in a qwen3 model, found one" },
    { "Qwen3: bias of values", "blk.0.attn_v.bias", "4:1 8:16 4:0", "attn_v.bias: expected none" },
    { "Qwen3: RoPE scaling that is unknown", "qwen3.rope.scaling.type", "4:8 s'longrope'",
      "qwen3.rope.scaling.type: expected none, linear or yarn, found \"longrope\"" },
};

#define ROPE "qwen3.rope.scaling."

static const struct malformed_kind yarns[] = {
    { "YaRN: original 0", ROPE "original_context_length", "4:4 4:0", "original_context_length" },
    { "YaRN: original as text", ROPE "original_context_length", "4:8 s'64'", "original_context_l" },
    { "YaRN: attention 0", ROPE "attn_factor", "4:6 4:0", "scaling.attn_factor: expected 0.001" },
    { "YaRN: attention NaN", ROPE "yarn_attn_factor", "4:6 4:0x7fc00000",
      "yarn_attn_factor: expec" },
    { "YaRN: extrapolation 0", ROPE "yarn_ext_factor", "4:6 4:0",
      "yarn_ext_factor: expected 1 to 1" },
    { "YaRN: slow 0", ROPE "yarn_beta_slow", "4:6 4:0", "yarn_beta_slow: expected" },
    { "YaRN: fast 0.5", ROPE "yarn_beta_fast", "4:6 4:0x3f000000",
      "yarn_beta_fast: expected 1 to" },
    { "YaRN: base 1", "qwen3.rope.freq_base", "4:6 4:0x3f800000", "freq_base: expected above 1" },
};

int main(void)
{
    static const struct malformed_kind none = { .what = "" };
    path = in_scratch("a.gguf");
    MALFORMED_EACH(raw, write_raw, path, MALFORMED_WEIGHTS);
    for (form = QWEN2; form <= YARN; form++) {
        write_model(&none);
        malformed_opens("the model itself", path, MALFORMED_MODEL);
        if (form == QWEN2)
            MALFORMED_EACH(wrong, write_model, path, MALFORMED_MODEL);
        else if (form == QWEN3)
            MALFORMED_EACH(threes, write_model, path, MALFORMED_MODEL);
        else
            MALFORMED_EACH(yarns, write_model, path, MALFORMED_MODEL);
    }
    malformed_count(170);
    return 0;
}
