/* t_mini_shapes.c - tools/lab/mini/mini.c gives the engine's bits for random models of Qwen2.5's
 * and Qwen3's architecture. It is built with $CC, writes a text behind a prompt of more than one
 * block of keys, and the logits of each of its tokens are those of a session, as are the ids. */
#include "model/session.h"
#include "model/text/tokenizer.h"
#include "router/engine.h"
#include "router/mizzle.h"
#include "tests/support/test.h"
#include "tests/support/gguf_model.h"
#include "tests/support/letters.h"
#include "weights/gguf_write.h"

enum { BYTES = 256, MERGES = 4, VOCAB = BYTES + MERGES + 1, PROMPT = 150, TOKENS = 12, SHAPES = 6 };

static const struct {
    struct gguf_shape is;
    int type;
} shapes[SHAPES] = {
    { { 2, 64, 4, 2, 16, 96, VOCAB, false, true, false, 512, 1e4f }, W_Q8_0 },
    { { 1, 50, 5, 1, 10, 77, VOCAB, false, false, false, 512, 1e4f }, W_F32 },
    { { 3, 96, 3, 3, 32, 160, VOCAB, false, false, false, 512, 1e4f }, W_Q8_0 },
    { { 2, 64, 4, 2, 24, 96, VOCAB, true, true, false, 512, 1e6f }, W_Q8_0 },
    { { 1, 14, 6, 2, 6, 33, VOCAB, true, false, false, 512, 1e6f }, W_F32 },
    { { 2, 96, 2, 1, 128, 64, VOCAB, true, true, false, 512, 1e6f }, W_Q8_0 },
};

/* A vocabulary of GPT-2's letters for all bytes, a few merges and one added token. */
static void write_vocabulary(struct ggufw *g)
{
    static char letter[BYTES][5];
    static const char blank[] = "\xc4\xa0"
                                "ab"; /* apart: an escape takes all digits behind it */
    static const char *const merges[MERGES] = { "a b", "b a", "ab ab", "\xc4\xa0 ab" };
    static const char *const added[] = { "ab", "ba", "abab", blank, "<|x|>" };
    struct str pieces[VOCAB], pairs[MERGES];
    int32_t types[VOCAB];
    for (unsigned i = 0; i < VOCAB; i++) {
        const char *text = i < BYTES ? letter[i] : added[i - BYTES];
        pieces[i] = (struct str){ text, i < BYTES ? letter_of(letter[i], i) : strlen(text) };
        types[i] = i + 1 < VOCAB ? 1 : 3;
    }
    for (size_t i = 0; i < MERGES; i++)
        pairs[i] = (struct str){ merges[i], strlen(merges[i]) };
    ggufw_str(g, "tokenizer.ggml.model", "gpt2");
    ggufw_str(g, "tokenizer.ggml.pre", "qwen2");
    ggufw_strs(g, "tokenizer.ggml.tokens", pieces, VOCAB);
    ggufw_i32s(g, "tokenizer.ggml.token_type", types, VOCAB);
    ggufw_strs(g, "tokenizer.ggml.merges", pairs, MERGES);
    ggufw_u32(g, "tokenizer.ggml.eos_token_id", VOCAB - 1);
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
    struct engine_options o = { 0 };
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

static void try(size_t number, const char *mini)
{
    static float rows[(TOKENS + 1) * VOCAB];
    char prompt[PROMPT + 2], command[1024], *lines;
    const char *model = in_scratch("%zu.gguf", number), *logits = in_scratch("logits");
    const char *out = in_scratch("out");
    size_t n;
    gguf_model_write(model, &shapes[number].is, shapes[number].type, write_vocabulary);
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
        try(i, mini);
    return 0;
}
