/* t_mini_shapes.c - tools/lab/mini/mini.c gives the engine's bits for random models of Qwen2.5's
 * and Qwen3's architecture. It is built with $CC, writes a text behind a prompt of more than one
 * block of keys, and the logits of each of its tokens are those of a session, as are the ids. */
#include <math.h>
#include <string.h>

#include "kernels/kernels.h"
#include "kernels/math.h"
#include "kernels/sys/base.h"
#include "model/session.h"
#include "model/text/tokenizer.h"
#include "router/engine.h"
#include "router/mizzle.h"
#include "tests/support/files.h"
#include "weights/gguf_write.h"

enum { BYTES = 256, MERGES = 4, VOCAB = BYTES + MERGES + 1, PROMPT = 150, TOKENS = 12, SHAPES = 6 };

static const struct shape {
    size_t layers, hidden, heads, kv_heads, head_dim, ffn;
    bool three, tied, quantised;
} shapes[SHAPES] = {
    { 2, 64, 4, 2, 16, 96, false, true, true },   { 1, 50, 5, 1, 10, 77, false, false, false },
    { 3, 96, 3, 3, 32, 160, false, false, true }, { 2, 64, 4, 2, 24, 96, true, true, true },
    { 1, 14, 6, 2, 6, 33, true, false, false },   { 2, 96, 2, 1, 128, 64, true, true, true },
};

/* A model file in progress; the second pass over the same calls writes the data. */
struct form {
    struct ggufw *g;
    const struct shape *sh;
    uint64_t drawn;
    bool data;
};

static float draw(struct form *f)
{
    return (float)(rand_unit(f->sh->hidden + f->sh->heads, f->drawn++) - 0.5);
}

/* Write a row of random blocks, -128 included, or of floats around a mean. */
static void write_row(struct form *f, int type, size_t cols, float around)
{
    uint16_t scale = f16_from_f32(0.02f);
    for (size_t k = 0; k < cols; k++) {
        float v = around + draw(f) * (around > 0 ? 0.4f : 3.4f / sqrtf((float)cols));
        signed char q = (signed char)(rand_u64(7, f->drawn++) >> 56);
        if (type == W_Q8_0 && k % 32 == 0)
            ggufw_data(f->g, &scale, sizeof(scale));
        ggufw_data(f->g, type == W_Q8_0 ? (const void *)&q : &v, type == W_Q8_0 ? 1 : sizeof(v));
    }
}

/* cols 0: a vector. */
static void add(struct form *f, const char *name, size_t rows, size_t cols, float around)
{
    int type = f->sh->quantised && cols && cols % 32 == 0 ? W_Q8_0 : W_F32;
    if (!f->data)
        ggufw_tensor(f->g, name, type, cols ? 2 : 1, (const size_t[]){ rows, cols });
    for (size_t r = 0; f->data && r < (cols ? rows : 1); r++)
        write_row(f, type, cols ? cols : rows, around);
}

static void add_layer(struct form *f, size_t i)
{
    const struct shape *c = f->sh;
    size_t h = c->hidden, q = c->heads * c->head_dim, kv = c->kv_heads * c->head_dim;
    enum { BOTH, TWO, THREE };
    const struct {
        const char *name;
        size_t rows, cols;
        float around;
        int of;
    } list[] = {
        { "attn_norm.weight", h, 0, 1, BOTH },
        { "ffn_norm.weight", h, 0, 1, BOTH },
        { "attn_q.weight", q, h, 0, BOTH },
        { "attn_q.bias", q, 0, 0, TWO },
        { "attn_k.weight", kv, h, 0, BOTH },
        { "attn_k.bias", kv, 0, 0, TWO },
        { "attn_v.weight", kv, h, 0, BOTH },
        { "attn_v.bias", kv, 0, 0, TWO },
        { "attn_output.weight", h, q, 0, BOTH },
        { "ffn_gate.weight", c->ffn, h, 0, BOTH },
        { "ffn_up.weight", c->ffn, h, 0, BOTH },
        { "ffn_down.weight", h, c->ffn, 0, BOTH },
        { "attn_q_norm.weight", c->head_dim, 0, 1, THREE },
        { "attn_k_norm.weight", c->head_dim, 0, 1, THREE },
    };
    for (size_t j = 0; j < sizeof(list) / sizeof(list[0]); j++) {
        char name[64];
        snprintf(name, sizeof(name), "blk.%zu.%s", i, list[j].name);
        if (list[j].of != (c->three ? TWO : THREE))
            add(f, name, list[j].rows, list[j].cols, list[j].around);
    }
}

static void add_all(struct form *f)
{
    add(f, "token_embd.weight", VOCAB, f->sh->hidden, 0);
    for (size_t i = 0; i < f->sh->layers; i++)
        add_layer(f, i);
    add(f, "output_norm.weight", f->sh->hidden, 0, 1);
    if (!f->sh->tied)
        add(f, "output.weight", VOCAB, f->sh->hidden, 0);
}

/* A vocabulary of GPT-2's letters for all bytes, a few merges and one added token. */
static void write_vocabulary(struct ggufw *g)
{
    static char letter[BYTES][3];
    static const char *const merges[MERGES] = { "a b", "b a", "ab ab", "\xc4\xa0 ab" };
    static const char blank[] = "\xc4\xa0"
                                "ab"; /* apart: an escape takes all digits behind it */
    static const char *const merged[MERGES] = { "ab", "ba", "abab", blank };
    struct str pieces[VOCAB], pairs[MERGES];
    int32_t types[VOCAB];
    unsigned next = 256;
    for (unsigned b = 0; b < BYTES; b++) {
        bool self = (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174;
        unsigned c = self ? b : next++;
        letter[b][0] = (char)(c < 128 ? c : 0xc0 | c >> 6);
        letter[b][1] = (char)(c < 128 ? 0 : 0x80 | (c & 63));
        pieces[b] = (struct str){ letter[b], strlen(letter[b]) };
    }
    for (size_t i = 0; i < MERGES; i++) {
        pieces[BYTES + i] = (struct str){ merged[i], strlen(merged[i]) };
        pairs[i] = (struct str){ merges[i], strlen(merges[i]) };
    }
    pieces[VOCAB - 1] = (struct str){ "<|x|>", 5 };
    for (size_t i = 0; i < VOCAB; i++)
        types[i] = i + 1 < VOCAB ? 1 : 3;
    ggufw_str(g, "tokenizer.ggml.model", "gpt2");
    ggufw_str(g, "tokenizer.ggml.pre", "qwen2");
    ggufw_strs(g, "tokenizer.ggml.tokens", pieces, VOCAB);
    ggufw_i32s(g, "tokenizer.ggml.token_type", types, VOCAB);
    ggufw_strs(g, "tokenizer.ggml.merges", pairs, MERGES);
    ggufw_u32(g, "tokenizer.ggml.eos_token_id", VOCAB - 1);
}

static void write_model(const char *path, const struct shape *sh)
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
        { "context_length", 512 },
    };
    struct err err;
    char key[64];
    struct form f = { .sh = sh };
    CHECK(ggufw_open(&f.g, path, &err) == OK);
    ggufw_str(f.g, "general.architecture", arch);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        snprintf(key, sizeof(key), "%s.%s", arch, sizes[i].name);
        ggufw_u32(f.g, key, (uint32_t)sizes[i].value);
    }
    snprintf(key, sizeof(key), "%s.attention.layer_norm_rms_epsilon", arch);
    ggufw_f32(f.g, key, 1e-6f);
    snprintf(key, sizeof(key), "%s.rope.freq_base", arch);
    ggufw_f32(f.g, key, sh->three ? 1e6f : 1e4f);
    write_vocabulary(f.g);
    add_all(&f);
    f.data = true;
    add_all(&f);
    CHECK(ggufw_close(f.g, true, &err) == OK);
}

/* Random letters that need no quoting in the shell but one pair of quotes. */
static void write_prompt(char prompt[PROMPT + 1], uint64_t seed)
{
    static const char letters[] = "aabbab  \n\t.,<-9'sdREve|>x";
    for (size_t i = 0; i < PROMPT; i++)
        prompt[i] = letters[rand_below(seed, i, sizeof(letters) - 1)];
    memcpy(prompt + PROMPT / 2, "<|x|>", 5);
    prompt[0] = 'a'; /* no option */
    prompt[PROMPT] = '\0';
}

/* Compare what mini has written for a prompt with a session. */
static void compare(const char *model, const char *prompt, const char *lines, const float *rows,
                    size_t size)
{
    struct engine e;
    struct err err;
    struct session *s;
    uint32_t *ids;
    size_t n, made = 0;
    struct mizzle_options o;
    mizzle_options_init(&o, sizeof(o));
    o.model = model;
    CHECK_MSG(engine_open(&e, &o, true, &err) == OK, "%s", err.msg);
    CHECK(tokenizer_encode(e.tokenizer, &ids, &n, prompt, strlen(prompt), true, &err) == OK);
    CHECK(session_open(&s, e.batch, n + TOKENS, KVCACHE_F32, &err) == OK);
    CHECK(session_eval(s, ids, n, NULL, &err) == OK);
    for (const char *line = lines; (line = strstr(line, "\"id\":")); line++, made++) {
        const float *logits = session_logits(s, 0);
        uint32_t id = (uint32_t)strtoul(line + 5, NULL, 10);
        CHECK_MSG(made < TOKENS && made < size / VOCAB &&
                      !memcmp(logits, rows + made * VOCAB, VOCAB * sizeof(*rows)),
                  "%s: token %zu: other logits", model, made);
        CHECK_MSG(id == (uint32_t)e.kernels.argmax_f32(logits, VOCAB), "%s: token %zu: another id",
                  model, made);
        CHECK(session_eval(s, &id, 1, NULL, &err) == OK);
    }
    CHECK(made > 0 && size == made * VOCAB && (made == TOKENS || strstr(lines, "\"id\":260")));
    free(ids);
    session_close(s);
    engine_close(&e);
}

static void try(const struct shape *sh, const char *mini, size_t number)
{
    static float rows[(TOKENS + 1) * VOCAB];
    char prompt[PROMPT + 2], command[1024], *lines;
    const char *model = in_scratch("%zu.gguf", number), *logits = in_scratch("logits");
    const char *out = in_scratch("out");
    size_t n;
    write_model(model, sh);
    write_prompt(prompt, number);
    spill(in_scratch("prompt"), prompt, PROMPT);
    snprintf(command, sizeof(command),
             "%s --json --tokens %d --logits %s %s \"$(cat %s; echo .)\" >%s", mini, TOKENS, logits,
             model, in_scratch("prompt"), out);
    CHECK_MSG(system(command) == 0, "%s", command);
    CHECK((lines = slurp_all(out, &n)));
    strcat(prompt, "."); /* which keeps a newline at the end from the shell */
    compare(model, prompt, lines, rows, slurp(logits, rows, sizeof(rows)) / sizeof(*rows));
    free(lines);
}

int main(void)
{
    char command[256];
    const char *mini = in_scratch("mini"), *cc = getenv("CC");
    if (SANITIZED || (getenv("RUN") && *getenv("RUN")))
        SKIP("mini.c is built for this machine alone, and compared with a release build");
    snprintf(command, sizeof(command),
             "%s -O2 -ffp-contract=off tools/lab/mini/mini.c -o %s -lm -lcurl", cc ? cc : "cc",
             mini);
    CHECK_MSG(system(command) == 0, "%s", command);
    for (size_t i = 0; i < SHAPES; i++)
        try(&shapes[i], mini, i);
    return 0;
}
