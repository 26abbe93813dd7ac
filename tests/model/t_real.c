/* t_real.c - the official Q4_K_M files of Qwen2.5-Coder-0.5B-Instruct and -1.5B-Instruct (Qwen's
 * repositories of these names with -GGUF at the end) write the same ids on every machine. Twenty
 * questions are answered greedily, in the models' chat template and all together; the
 * first of them once more alone and, by the small model, with the kernels for AVX2. SKIP without
 * the files, which are looked for in $MIZZLE_MODELS, by default ~/.cache/mizzle, and in the hub's
 * cache. */
#include <inttypes.h>
#include <zlib.h>

#include "model/text/chat.h"
#include "router/engine.h"
#include "router/mizzle.h"
#include "router/texts/texts.h"
#include "tests/support/test.h"
#include "weights/find.h"

enum { QUESTIONS = 20, TOKENS = 24, CONTEXT = 128 };

static const char *const questions[QUESTIONS] = {
    "Where would you keep milk so that it stays fresh?",
    "What is 17 times 6?",
    "Name three colours of a traffic light.",
    "Write a C function that returns the larger of two integers.",
    "Which planet is closest to the sun?",
    "Translate \"good morning\" into French.",
    "A train leaves at 9:40 and arrives at 11:05. How long does it travel?",
    "What does HTTP stand for?",
    "If all cats are animals, are all animals cats?",
    "What is the capital of Australia?",
    "Sort these numbers: 9, 2, 7, 4.",
    "Why is the sky blue?",
    "Which is heavier, a kilogram of iron or a kilogram of feathers?",
    "Give an example of a prime number above 50.",
    "What is the opposite of \"generous\"?",
    "Who wrote \"Romeo and Juliet\"?",
    "Reverse the string \"mizzle\".",
    "How many minutes are in three and a half hours?",
    "Grüße: which language is this word from?",
    "Name an animal that lives in water but breathes air.",
};

struct file {
    const char *size;
    uint32_t crc[QUESTIONS]; /* of the ids of each answer, little-endian */
};

static const struct file files[] = {
    { "0.5", { 0x57d43250, 0x5cbc3566, 0xf3a4cf49, 0x13e26905, 0x041ac027, 0x9a13ffc5, 0x42858ca8,
               0x2fc99973, 0xeeba4779, 0xf40913cd, 0xe0646058, 0xc0306729, 0x909a2c96, 0xcb0f2802,
               0x307255ba, 0xa36e3905, 0xc304ee03, 0x239b08a8, 0x35985a05, 0x4855e661 } },
    { "1.5", { 0xdef4bf8a, 0x4efc5eda, 0x8eda60e4, 0x39a145bb, 0x94f6cff4, 0xd24eb088, 0xe34394ec,
               0x2fc99973, 0xafc7806f, 0xf40913cd, 0x4b735b15, 0x070a9893, 0x5a1a3a90, 0xd443977e,
               0xe273a127, 0xbad683b6, 0xd48e8bb3, 0xb36cd338, 0x3408de44, 0xc3be9a80 } },
};

static struct err err;

static struct text *ask(struct texts *t, const struct engine *e, size_t i)
{
    const struct chat_message message = { "user", questions[i], strlen(questions[i]) };
    struct text *text = NULL;
    uint32_t *ids = NULL;
    struct text_wish wish = {
        .max = TOKENS, .sample = { .top_p = 1, .repeat_penalty = 1 }, .model = TEXT_EDGE, .slot = -1
    };
    CHECK(chat_encode(e->chat, &ids, &wish.n, &message, 1, CHAT_THINK_AUTO, &err) == OK);
    wish.prompt = ids;
    CHECK(texts_ask(t, &text, &wish, &err) == OK);
    free(ids);
    return text;
}

static uint32_t answer(struct text *text)
{
    struct text_view v = text_wait(text, TOKENS);
    uint32_t crc = 0;
    CHECK(v.finished && v.rc == OK && v.n > 0);
    for (size_t i = 0; i < v.n; i++) {
        uint32_t id = v.ids[v.prompt_n + i];
        const unsigned char bytes[4] = { (unsigned char)id, (unsigned char)(id >> 8),
                                         (unsigned char)(id >> 16), (unsigned char)(id >> 24) };
        crc = (uint32_t)crc32_z(crc, bytes, sizeof(bytes));
    }
    text_drop(text);
    return crc;
}

/* Answer the first n questions with this kernel set (NULL: the best), and the first once more. */
static bool check_file(const struct file *f, const char *path, const char *isa, size_t n)
{
    struct engine_options o = { 0 };
    struct engine e;
    struct texts *t;
    struct text *asked[QUESTIONS];
    bool same = true;
    o.model = path;
    o.isa = isa;
    CHECK(engine_open(&e, &o, true, &err) == OK);
    const struct texts_options how = { .engine = &e,
                                       .slots = QUESTIONS,
                                       .queue = QUESTIONS,
                                       .context = CONTEXT,
                                       .kv = engine_best_kv(&e) };
    CHECK(texts_open(&t, &how, &err) == OK);
    for (size_t i = 0; i < n; i++)
        asked[i] = ask(t, &e, i);
    for (size_t i = 0; i < n; i++) {
        uint32_t crc = answer(asked[i]);
        if (crc != f->crc[i])
            printf("%sB: question %zu: expected %08" PRIx32 ", found %08" PRIx32 "\n", f->size, i,
                   f->crc[i], crc);
        same = same && crc == f->crc[i];
    }
    same = same && answer(ask(t, &e, 0)) == f->crc[0];
    texts_close(t);
    engine_close(&e);
    return same;
}

int main(void)
{
    const char *folder = getenv("MIZZLE_MODELS"), *home = getenv("HOME");
    struct kernels k;
    bool same = true;
    if (SANITIZED || (getenv("RUN") && *getenv("RUN")))
        SKIP("sanitizers and emulators slow real models down by ten");
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        char path[FIND_PATH], name[64];
        snprintf(path, sizeof(path), "%s%s/qwen2.5-coder-%sb-instruct-q4_k_m.gguf",
                 folder ? folder
                 : home ? home
                        : "",
                 folder ? "" : "/.cache/mizzle", files[i].size);
        snprintf(name, sizeof(name), "Qwen/Qwen2.5-Coder-%sB-Instruct-GGUF:Q4_K_M", files[i].size);
        if (access(path, R_OK) != 0 && find_model(path, name, &err) != OK)
            SKIP("%s", err.msg);
        same = check_file(&files[i], path, NULL, QUESTIONS) && same;
        if (!i && engine_kernels(&k, "avx2", &err) == OK)
            same = check_file(&files[i], path, "avx2", 1) && same;
    }
    return same ? 0 : 1;
}
