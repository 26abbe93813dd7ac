/* t_engine.c - opening an engine: the tokenizer is built while the model is packed, and every error
 * is the one that comes first when both are read in turn. */
#include "model/text/chat.h"
#include "model/text/tokenizer.h"
#include "router/engine.h"
#include "router/mizzle.h"
#include "tests/support/test.h"
#include "tests/support/tiny.h"

static const char *folder;
static const char demo[] = "weights/milli/edge-0.1.gguf";

/* The tiny model with another size of its feed-forward part than its tensors have. */
static const char other_shape[] =
    "{\"architectures\":[\"Qwen2ForCausalLM\"],\"model_type\":\"qwen2\","
    "\"hidden_size\":32,\"intermediate_size\":64,\"num_hidden_layers\":1,"
    "\"num_attention_heads\":2,\"num_key_value_heads\":1,\"vocab_size\":272,"
    "\"max_position_embeddings\":256,\"rms_norm_eps\":1e-6,\"rope_theta\":10000.0,"
    "\"hidden_act\":\"silu\",\"tie_word_embeddings\":true}";

static void overwrite(const char *name, const char *text)
{
    char path[128];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    spill(path, text, strlen(text));
}

/* Open the folder; on an error, expect `want` in its message and an engine that is all zero. */
static void opens(size_t threads, bool need_tokenizer, int rc, const char *want)
{
    static const struct engine zero;
    struct engine_options o = { .model = folder, .threads = threads };
    struct engine e;
    struct err err = { "" };
    CHECK(engine_open(&e, &o, need_tokenizer, &err) == rc);
    if (rc == OK)
        CHECK(e.model && (e.tokenizer != NULL) == !want);
    else
        CHECK(strstr(err.msg, want) && memcmp(&e, &zero, sizeof(e)) == 0);
    engine_close(&e);
    CHECK(rc == OK || engine_open(&e, &o, need_tokenizer, NULL) == rc);
}

/* Each allocation fails in turn. Readers of files may do without some; what was opened is usable,
 * and what was not leaves no memory behind. */
static void allocations(const char *model, size_t threads, bool need_tokenizer)
{
    struct engine_options o = { .model = model, .threads = threads };
    int hit = 1, refused = 0;
    for (long n = 1; hit; n++) {
        struct engine e;
        struct err err;
        torture_begin(n);
        int rc = engine_open(&e, &o, need_tokenizer, &err);
        hit = torture_end();
        refused += rc == ERR_NOMEM;
        CHECK(hit || rc == OK);
        CHECK(rc == OK ? e.model && (e.tokenizer || !need_tokenizer) : !e.model && !e.tokenizer);
        engine_close(&e);
        CHECK(torture_live() == 0 && n < 3000);
    }
    CHECK(refused > 10);
}

/* The options decide on the form of conversations where the model's template is not known. */
static void chats(void)
{
    struct engine_options o = { .model = folder, .threads = 1 };
    const struct chat_message m = { "user", "x", 1 };
    struct engine e;
    struct err err;
    uint32_t *ids;
    size_t n;
    overwrite("tokenizer_config.json", "{\"chat_template\":\"{{ bos }}\",\"added_tokens_decoder\":{"
                                       "\"256\":{\"content\":\"<|im_end|>\",\"special\":true},"
                                       "\"258\":{\"content\":\"<|im_start|>\",\"special\":true}}}");
    CHECK(engine_open(&e, &o, true, &err) == OK && !chat_form(e.chat));
    CHECK(chat_encode(e.chat, &ids, &n, &m, 1, CHAT_THINK_AUTO, &err) == ERR_FORMAT);
    CHECK(strstr(err.msg, "found another, nearest to chatml; set chat_template (--chat"));
    engine_close(&e);
    o.chat_template = "chatml";
    CHECK(engine_open(&e, &o, true, &err) == OK && !strcmp(chat_form(e.chat), "chatml"));
    CHECK(chat_encode(e.chat, &ids, &n, &m, 1, CHAT_THINK_AUTO, &err) == OK && n == 20);
    free(ids);
    engine_close(&e);
    o.think = "x";
    CHECK(engine_open(&e, &o, true, &err) == ERR_ARG && !e.chat);
}

int main(void)
{
    static const size_t threads[] = { 1, 2, 5 };
    folder = tiny_make();
    allocations(folder, 1, true);
    allocations(folder, 3, false);
    if (access(demo, R_OK) == 0)
        allocations(demo, 2, true);
    else
        puts("SKIP: no demo pair in weights/milli");
    for (size_t i = 0; i < 3; i++) {
        opens(threads[i], true, OK, NULL);
        opens(threads[i], false, OK, NULL);
    }
    chats();
    overwrite("merges.txt", "#version: 0.2\na b\n");
    for (size_t i = 0; i < 3; i++) {
        opens(threads[i], true, ERR_FORMAT, "merge 0: expected pieces of the vocabulary");
        opens(threads[i], false, OK, "no tokenizer");
    }
    overwrite("config.json", other_shape); /* a bad model is reported first */
    opens(2, true, ERR_FORMAT, "ffn_gate");
    opens(2, false, ERR_FORMAT, "ffn_gate");
    overwrite("merges.txt", "#version: 0.2\n");
    opens(2, true, ERR_FORMAT, "ffn_gate");
    return 0;
}
