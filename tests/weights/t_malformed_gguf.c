/* t_malformed_gguf.c - GGUF files that are wrong in one way each: bytes that are no GGUF, then a
 * whole small model in which one key or one tensor is wrong. */
#include "tests/support/test.h"
#include "tests/support/malformed.h"
#include "weights/weights.h"

enum { ROOM = 1 << 16 };

static const char *path;
static enum { QWEN2, QWEN3, YARN } form; /* what is written; the last one is a Qwen3, too */

/* Header: version 3, so many tensors, so many keys. */
#define HEAD(tensors, keys) "'GGUF' 4:3 8:" tensors " 8:" keys " "
#define U32(key, value)     "s'" key "' 4:4 4:" value " "
/* A vector of four F32 at this offset, and one with these dimensions and type. */
#define VEC(name, at)         "s'" name "' 4:1 8:4 4:0 8:" at " "
#define ROW(name, dims, type) "s'" name "' " dims " 4:" type " 8:0 "

#define KEY  HEAD("0", "1")
#define ONE  HEAD("1", "0")
#define TWO  HEAD("2", "0") VEC("t", "0")
#define LONG "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

/* What follows the words in front. */
static const struct malformed_kind raw[] = {
    { "", "", "the file is empty" },
    { "", "'GGU'~'GGML' 4:3 8:0 8:0~'FUGG' 4:3 8:0 8:0~'gguf' 4:3 8:0 8:0", "magic" },
    { "'version' 1:32 'https://git-lfs.github.com/spec/v1' 1:10", "",
      "expected the file itself, found a Git LFS pointer; to fetch it: git lfs pull" },
    { "'GGUF'", "~ 2:3~ 4:3 8:0", "inside the header" },
    { "'GGUF' ", "4:0 8:0 8:0", "version 2 or 3, found 0" },
    { "'GGUF' ", "4:1 8:0 8:0", "version 2 or 3, found 1" },
    { "'GGUF' ", "4:4 8:0 8:0", "version 2 or 3, found 4" },
    { "'GGUF' ", "4:0x03000000 8:0 8:0", "big-endian" },
    { KEY, "", "1 keys and 0 tensors do not fit" },
    { "'GGUF' 4:3 ", "8:0 8:0x7fffffff z:99~8:0 8:-1 z:99~8:0x7fffffff 8:0 z:99~8:-1 8:0 z:99",
      "do not fit" },
    { KEY, "8:100 'abc' z:20~8:-1 'abc' z:20", "a key longer" },
    { KEY, "8:0 4:4 4:1 z:20", "a key without a name" },
    { KEY, "8:3 'a' 1:0 'b' 4:4 4:1", "zero byte" },
    { KEY, "s'abcdefgh' 1:4~s'key' 4:9 4:4 4:1", "inside a key" },
    { KEY, "s'key' 4:13 4:1", "from 0 to 12, found 13" },
    { KEY, "s'key' 4:-1 4:1", "from 0 to 12, found 42949" },
    { KEY, "s'keyed' 4:4 2:1~s'key' 4:10 4:1", "a value longer" },
    { KEY, "s'key' 4:8 8:9 'ab'~s'key' 4:9 4:8 8:1 8:99 'ab'", "a string" },
    { KEY, "s'key' 4:8 8:-1 'ab'~s'key' 4:9 4:4 8:9 z:9", "longer" },
    { KEY, "s'key' 4:9 4:9 8:1 z:9", "array of type 9" },
    { KEY, "s'key' 4:9 4:13 8:1 z:9", "array of type 13" },
    { KEY, "s'key' 4:9 4:0 8:-1 z:9~s'key' 4:9 4:10 8:0x2000000000000001 z:99", "do not fit" },
    { KEY, "s'key' 4:9 4:8 8:9 z:9", "strings" },
    { HEAD("0", "2") U32("key", "1"), U32("key", "2"), "two keys are named key" },
    { KEY "s'general.alignment' ", "4:4 4:0~4:4 4:3~4:8 s'32'", "power of two" },
    { KEY "s'general.alignment' ", "4:10 8:32", "type 10" },
    { ONE, "8:99 'abc' z:30", "a tensor name" },
    { ONE, "s'" LONG "' z:30", "at most 63 bytes, found 64" },
    { ONE, "8:3 'a' 1:0 'b' z:30", "zero byte" },
    { ONE, "s't' 4:5 z:60", "at most 4 dimensions" },
    { ONE, "s'tensor' 4:2 8:1 4:1", "tensor's shape" },
    { ONE, "s'ten' 4:1 8:1 4:0 1:0", "description" },
    { ONE, ROW("t", "4:1 8:-4", "0"), "a dimension of" },
    { ONE,
      ROW("t", "4:2 8:0x100000000 8:0x100000000", "0") "~" ROW("t", "4:1 8:0x4000000000000000",
                                                               "0"),
      "too large" },
    { ONE, ROW("t", "4:1 8:32", "4"), "type 4 is not" },
    { ONE, ROW("t", "4:1 8:32", "9999"), "type 9999 is not known" },
    { ONE, ROW("t", "4:1 8:32", "1000"), "type 1000 is not" },
    { ONE, ROW("t", "4:1 8:32", "-1"), "is not known" },
    { ONE, ROW("t", "4:2 8:48 8:2", "8") "a:32 z:200", "no whole number of Q8_0 blocks" },
    { ONE, ROW("t", "4:2 8:128 8:2", "12") "a:32 z:200", "no whole number of Q4_K blocks" },
    { ONE, ROW("t", "4:0", "8") "a:32 z:200", "blocks" },
    { ONE, VEC("t", "32") "a:32 z:64", "data at 0" },
    { TWO, VEC("u", "16") "a:32 z:64", "data at 32, found 16" },
    { TWO, VEC("u", "64") "a:32 z:96", "data at 32, found 64" },
    { TWO, VEC("u", "0") "a:32 z:64", "data at 32, found 0" },
    { TWO, VEC("u", "-1") "a:32 z:64", "data at 32" },
    { TWO, VEC("t", "32") "a:32 z:64", "two tensors are named t" },
    { TWO, VEC("u", "32") "a:32 z:47", "64" },
    { ONE VEC("t", "0"), "~a:32 z:15~a:32 z:31", "tensor data" },
    { HEAD("0", "2"), "s'mizzle.bytes' 4:10 8:84 s'mizzle.crc32' 4:4 4:5", "the file is damaged" },
    { HEAD("0", "2"), "s'mizzle.bytes' 4:10 8:88 s'mizzle.crc32' 4:10 8:5", "no U32" },
    { KEY, "s'split.count' 4:2 2:3", "STEM-00001-of-00003.gguf" }, /* under a plain name */
};

static void write_raw(const struct malformed_kind *k)
{
    static unsigned char p[ROOM];
    char words[512];
    snprintf(words, sizeof(words), "%s%s", k->what, k->to);
    spill(path, p, malformed_assemble(p, ROOM, words));
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

/* Its tensors: dimensions, fastest first, and type; the norm in its place in a Qwen3, if any. */
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
#define B "qwen3.attention."
#define C "qwen3.rope.scaling."

#define SIZES                                                                                    \
    "qwen2.block_count~qwen2.context_length~qwen2.embedding_length~qwen2.feed_forward_length~" A \
    "head_count~" A "head_count_kv"

static const struct malformed_kind wrong[] = {
    { "general.architecture",
      "4:8 s'llama'~4:8 s'gemma3'~4:8 s'Qwen2'~4:8 s'qwen2vl'~4:8 s'qwen'~4:8 s'qwen3moe'",
      "expected qwen2 or qwen3, found \"" },
    { "general.architecture", "-~4:8 s''~4:4 4:2", "architecture" },
    { "qwen2.block_count", "-", "block_count: expected a number" },
    { "qwen2.block_count", "4:4 4:0", "block_count: expected an integer from 1" },
    { SIZES, "-~4:4 4:0~4:5 4:-1~4:6 4:0x3f800000~4:8 s'1'~4:9 4:4 8:1 4:1~4:10 8:-1~4:4 4:-4",
      NULL },
    { "qwen2.block_count", "4:4 4:2", "tensor blk.1.attn_" },
    { "qwen2.block_count", "4:4 4:2000000000", "block_count" },
    { "qwen2.embedding_length", "4:4 4:64", "expected [48,64]" },
    { "qwen2.feed_forward_length", "4:4 4:96", "expected [96,32]" },
    { A "head_count", "4:4 4:5", "head_count" },
    { A "head_count", "4:4 4:32", "" }, /* a head of odd length */
    { A "head_count", "4:4 4:65537", "from 1 to 65536" },
    { A "head_count_kv", "4:4 4:3~4:4 4:8", "head_count_kv" },
    { A "layer_norm_rms_epsilon", "4:6 4:0xb58637bd~4:6 4:0x7fc00000~4:6 4:0x7f800000~4:8 s'1e-6'",
      "epsilon" },
    { "qwen2.rope.freq_base", "4:6 4:0~4:6 4:0x7fc00000~4:7 1:1", "freq_base" },
    { "qwen2.rope.freq_base", "4:6 4:0x7f800000", "expected 1 to 1e+12" },
    { "qwen2.rope.dimension_count", "4:4 4:4", "dimension_count" },
    { "qwen2.rope.scaling.type", "4:8 s''~4:4 4:1~4:8 s'longrope'", "none, linear or yarn" },
    { "qwen2.rope.scaling.factor", "4:6 4:0xbf800000~4:6 4:0x7fc00000", "expected 1 to 1024" },
    { "qwen2.rope.scaling.factor", "4:8 s'4'", "factor: expected a number" },
    { "qwen2.rope.scale_linear", "4:6 4:0x3f000000", "scale_linear" },
    { A "value_length", "4:4 4:16", "value_length" },
    { "qwen2.vocab_size", "4:4 4:47", "vocab_size" },
    { "token_embd.weight", "4:1 8:32 4:0~4:2 8:32 8:0 4:0", NULL },
    { "token_embd.weight", "4:2 8:32 8:48 4:26", "found I32" },
    { "token_embd.weight", "4:2 8:32 8:48 4:28", "found F64" },
    { "blk.0.attn_norm.weight", "4:1 8:31 4:0", "expected [32], found [31]" },
    { "blk.0.attn_norm.weight", "4:2 8:32 8:1 4:0", "found [1,32]" },
    { "blk.0.attn_norm.weight", "4:1 8:32 4:24", NULL },
    { "blk.0.attn_k.weight", "4:2 8:16 8:32 4:0", "expected [16,32]" },
    { "blk.0.attn_q.weight", "4:3 8:32 8:32 8:1 4:0", "[1,32,32]" },
    { "blk.0.attn_v.bias", "4:1 8:32 4:0", "expected [16], found [32]" },
    { "blk.0.attn_v.bias", "-", "attn_v.bias: expected [16]" },
    { "blk.0.attn_q_norm.weight", "4:1 8:8 4:0",
      "attn_q_norm.weight: expected none in a qwen2 model, found one" },
    { "blk.0.attn_k_norm.weight", "4:1 8:8 4:0", "attn_k_norm.weight: expected" },
    { "blk.0.ffn_down.weight", "4:2 8:32 8:32 4:0", "expected [32,64]" },
    { "output.weight", "4:2 8:32 8:47 4:0", "expected [48,32]" },
    { "output.weight", "4:2 8:32 8:48 4:27", NULL },
};

static const struct malformed_kind threes[] = {
    { B "key_length", "4:4 4:0~4:6 4:0x41000000", NULL },
    { B "key_length", "4:4 4:65536", "an integer from 1 to 16384" },
    { B "key_length", "4:4 4:6", "value_length: expected 6" },
    { B "value_length", "4:4 4:2~4:8 s'8'", "value_length: expected 8" },
    { B "head_count", "4:4 4:0", "head_count: expected" },
    { B "head_count", "4:4 4:8", "attn_q.weight: expected [64,32]" },
    { B "head_count_kv", "4:4 4:3", "head_count_kv: expected a" },
    { "qwen3.context_length", "-", "context_length: expected a number" },
    { "qwen3.vocab_size", "4:4 4:49", "vocab_size: expected 48" },
    { "blk.0.attn_q_norm.weight", "-", "expected [8], found none" },
    { "blk.0.attn_k_norm.weight", "-", "attn_k_norm.weight: exp" },
    { "blk.0.attn_q_norm.weight", "4:1 8:16 4:0", "expected [8], found [16]" },
    { "blk.0.attn_k_norm.weight", "4:2 8:1 8:8 4:0", "expected [8], found [8,1]" },
    { "blk.0.attn_k_norm.weight", "4:1 8:0 4:0", "expected [8], found [0]" },
    { "blk.0.attn_output.weight", "4:2 8:16 8:32 4:0", "expected [32,32], found [32,16]" },
    { "blk.0.attn_q.bias", "4:1 8:32 4:0",
      "attn_q.bias: expected none in a qwen3 model, found one" },
    { "blk.0.attn_v.bias", "4:1 8:16 4:0", "attn_v.bias: expected none" },
    { "qwen3.rope.scaling.type", "4:8 s'longrope'",
      "qwen3.rope.scaling.type: expected none, linear or yarn, found \"longrope\"" },
};

static const struct malformed_kind yarns[] = {
    { C "original_context_length", "4:4 4:0~4:8 s'64'", NULL },
    { C "attn_factor", "4:6 4:0", "scaling.attn_factor: expected 0.001" },
    { C "yarn_attn_factor", "4:6 4:0x7fc00000", "yarn_attn_factor: expec" },
    { C "yarn_ext_factor", "4:6 4:0", "yarn_ext_factor: expected 1 to 1" },
    { C "yarn_beta_slow", "4:6 4:0", "yarn_beta_slow: expected" },
    { C "yarn_beta_fast", "4:6 4:0x3f000000", "yarn_beta_fast: expected 1 to" },
    { "qwen3.rope.freq_base", "4:6 4:0x3f800000", "freq_base: expected above 1" },
};

/* Each tensor is missing, but those that a model may lack: the bias of queries, and the head. */
static void check_missing(void)
{
    for (size_t i = 0; i + 1 < TENSORS; i++)
        if (strcmp(tensors[i][0], "blk.0.attn_q.bias") != 0)
            malformed_each(&(struct malformed_kind){ tensors[i][0], "-", NULL }, 1, write_model,
                           path, MALFORMED_MODEL);
}

int main(void)
{
    static const struct malformed_kind none = { .what = "" };
    path = in_scratch("a.gguf");
    MALFORMED_EACH(raw, write_raw, path, MALFORMED_WEIGHTS);
    for (form = QWEN2; form <= YARN; form++) {
        write_model(&none);
        malformed_opens("the model itself", path, MALFORMED_MODEL);
        if (form == QWEN2) {
            MALFORMED_EACH(wrong, write_model, path, MALFORMED_MODEL);
            check_missing();
        } else if (form == QWEN3) {
            MALFORMED_EACH(threes, write_model, path, MALFORMED_MODEL);
        } else {
            MALFORMED_EACH(yarns, write_model, path, MALFORMED_MODEL);
        }
    }
    malformed_count(200);
    return 0;
}
