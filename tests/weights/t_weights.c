/* t_weights.c - Hugging Face folders: names, keys, shards, links. t_malformed_folder.c has
 * what is refused. */
#include <sys/stat.h>

#include "tests/weights/opening.h"
#include "router/learn/safetensors_write.h"

enum { LAYERS = 2, PER_LAYER = 12, ALL = LAYERS * PER_LAYER + 3 };

static struct err err;
static const char *folder;
static float value[1] = { 1 };

static const char *const in_layer[PER_LAYER] = {
    "input_layernorm.weight",  "post_attention_layernorm.weight",
    "self_attn.q_proj.weight", "self_attn.q_proj.bias",
    "self_attn.k_proj.weight", "self_attn.k_proj.bias",
    "self_attn.v_proj.weight", "self_attn.v_proj.bias",
    "self_attn.o_proj.weight", "mlp.gate_proj.weight",
    "mlp.up_proj.weight",      "mlp.down_proj.weight"
};

static const char plain[] =
    "{\"architectures\":[\"Qwen2ForCausalLM\"],\"model_type\":\"qwen2\",\"hidden_act\":\"silu\","
    "\"hidden_size\":64,\"intermediate_size\":160,\"num_hidden_layers\":2,"
    "\"num_attention_heads\":4,\"num_key_value_heads\":2,\"vocab_size\":300,"
    "\"max_position_embeddings\":1024,\"rms_norm_eps\":1e-06,\"rope_theta\":1000000.0,"
    "\"tie_word_embeddings\":true,\"eos_token_id\":[7,8]}";

/* Return the name of tensor i, in static storage. */
static const char *name_of(size_t i)
{
    static char names[ALL][80];
    if (i < LAYERS * PER_LAYER)
        snprintf(names[i], sizeof(names[i]), "model.layers.%zu.%s", i / PER_LAYER,
                 in_layer[i % PER_LAYER]);
    return i < LAYERS * PER_LAYER ? names[i]
           : i == ALL - 1         ? "lm_head.weight"
           : i == ALL - 2         ? "model.norm.weight"
                                  : "model.embed_tokens.weight";
}

static void write_text(const char *file, const char *text)
{
    spill(in_scratch(file), text, strlen(text));
}

/* Write tensors number first to last - 1 of a whole model; the last one of all is the head. */
static void write_tensors(const char *file, size_t first, size_t last, const char *extra)
{
    struct tensor t[ALL + 1];
    size_t n = 0;
    for (size_t i = first; i < last + (extra != NULL); i++)
        t[n++] = (struct tensor){ .name = i < last ? name_of(i) : extra,
                                  .type = W_F32,
                                  .ndim = 1,
                                  .shape = { 1 },
                                  .data = value,
                                  .bytes = sizeof(value) };
    CHECK(safetensors_write(in_scratch(file), t, n, NULL, &err) == OK);
}

static int open_folder(struct weights **out)
{
    int code = weights_open(out, folder, &err);
    CHECK((code == OK) == (*out != NULL) && (code == OK || !strchr(err.msg, '\n')));
    return code;
}

/* The folder must be refused with a message that contains `says`. */
static void refused(const char *says)
{
    struct weights *w;
    CHECK(open_folder(&w) == ERR_FORMAT);
    CHECK_MSG(strstr(err.msg, says), "expected \"%s\" in: %s", says, err.msg);
}

static void test_plain(void)
{
    struct weights *w;
    uint64_t u;
    double d;
    struct str s;
    write_text("config.json", plain);
    write_tensors("model.safetensors", 0, ALL - 1, "model.layers.0.self_attn.rotary_emb.inv_freq");
    CHECK(open_folder(&w) == OK && strcmp(weights_format(w), "folder") == 0);
    CHECK(weights_ntensors(w) == ALL - 1);
    CHECK(weights_find(w, "token_embd.weight") && weights_find(w, "output_norm.weight"));
    CHECK(weights_find(w, "blk.1.attn_q.bias") && weights_find(w, "blk.0.ffn_down.weight"));
    CHECK(!weights_find(w, "output.weight") && !weights_find(w, "model.norm.weight"));
    CHECK(weights_str(w, "general.architecture", &s) && s.n == 5 && !memcmp(s.p, "qwen2", 5));
    CHECK(weights_u64(w, "qwen2.block_count", &u) && u == 2);
    CHECK(weights_u64(w, "qwen2.embedding_length", &u) && u == 64);
    CHECK(weights_u64(w, "qwen2.feed_forward_length", &u) && u == 160);
    CHECK(weights_u64(w, "qwen2.attention.head_count", &u) && u == 4);
    CHECK(weights_u64(w, "qwen2.attention.head_count_kv", &u) && u == 2);
    CHECK(weights_u64(w, "qwen2.context_length", &u) && u == 1024);
    CHECK(weights_u64(w, "qwen2.vocab_size", &u) && u == 300);
    CHECK(weights_u64(w, "tokenizer.ggml.eos_token_id", &u) && u == 7);
    CHECK(weights_f64(w, "qwen2.rope.freq_base", &d) && d == 1e6);
    CHECK(weights_f64(w, "qwen2.attention.layer_norm_rms_epsilon", &d) && (float)d == 1e-6f);
    weights_close(w);
    write_tensors("model.safetensors", 0, ALL, NULL); /* a tied model may store its head as well */
    CHECK(open_folder(&w) == OK && weights_ntensors(w) == ALL - 1);
    weights_close(w);
}

static void change(const char *from, const char *to)
{
    char text[2048];
    const char *at = strstr(plain, from);
    CHECK(at);
    snprintf(text, sizeof(text), "%.*s%s%s", (int)(at - plain), plain, to, at + strlen(from));
    write_text("config.json", text);
}

#define YARN "\"rope_type\":\"yarn\",\"factor\":4.0"

static void test_config(void)
{
    static const char *const good[][2] = {
        { "true,", "true,\"rope_scaling\":null," },
        { "true,", "true,\"rope_scaling\":{\"rope_type\":\"default\"}," },
        { "true,", "true,\"rope_scaling\":{\"type\":\"linear\",\"factor\":2}," },
        { "true,", "true,\"rope_scaling\":{" YARN "}," },
        { "true,", "true,\"rope_parameters\":{" YARN ",\"attention_factor\":1.1,\"beta_fast\":30,"
                   "\"beta_slow\":2,\"truncate\":true,\"mscale\":null}," },
        { "\"rope_theta\":1000000.0", "\"rope_parameters\":{\"rope_type\":\"default\","
                                      "\"rope_theta\":5.0}" },
        { "true,", "true,\"use_sliding_window\":true,\"max_window_layers\":2," },
        { "true,", "true,\"use_sliding_window\":true,\"max_window_layers\":1,"
                   "\"sliding_window\":1024," },
        { "true,", "true,\"use_sliding_window\":true,\"max_window_layers\":1,"
                   "\"sliding_window\":4096,\"rope_scaling\":{" YARN "}," },
        { "{", "\xef\xbb\xbf{" },
        { "true,", "true,\"use_sliding_window\":false,\"max_window_layers\":1,"
                   "\"sliding_window\":5," },
    };
    write_tensors("model.safetensors", 0, ALL - 1, NULL);
    for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++) {
        struct weights *w;
        change(good[i][0], good[i][1]);
        CHECK(open_folder(&w) == OK);
        weights_close(w);
    }
    write_text("config.json", plain);
}

/* Write an index that places tensors below 10 in file a and the others in file b. */
static void write_index(const char *a, const char *b, size_t last)
{
    FILE *f = fopen(in_scratch("model.safetensors.index.json"), "w");
    CHECK(f);
    fprintf(f, "{\"metadata\":{},\"weight_map\":{");
    for (size_t i = 0; i < last; i++)
        fprintf(f, "%s\"%s\":\"%s\"", i ? "," : "", name_of(i), i < 10 ? a : b);
    CHECK(fputs("}}", f) >= 0 && fclose(f) == 0);
}

static void test_shards(void)
{
    struct weights *w;
    write_tensors("a.safetensors", 0, 10, NULL);
    write_tensors("b.safetensors", 9, ALL - 1,
                  NULL); /* tensor 9 is in both, so the index decides */
    write_index("a.safetensors", "b.safetensors", ALL - 1);
    CHECK(open_folder(&w) == OK && weights_ntensors(w) == ALL - 1);
    weights_close(w);
    write_index("a.safetensors", "b.safetensors", ALL - 2);
    refused("model.norm.weight is missing");
    write_index("b.safetensors", "a.safetensors", ALL - 1);
    refused("the index expects");
    write_index("c.safetensors", "b.safetensors", ALL - 1);
    CHECK(open_folder(&w) == ERR_IO && strstr(err.msg, "c.safetensors"));
    write_index("a.safetensors", "b.safetensors", ALL - 1);
}

/* Shards that are links, as in Hugging Face's cache: the model's name is that of its repository,
 * and what is missing is said with the command that fetches it. */
static void test_links(void)
{
    static const char *const files[] = { "config.json", "model.safetensors.index.json",
                                         "a.safetensors", "b.safetensors" };
    static const char *const folders[] = { "models--Org--Name", "models--Org--Name/snapshots",
                                           "models--Org--Name/snapshots/0a" };
    const char *snapshot = in_scratch(folders[2]), *link;
    char target[64];
    struct weights *w;
    struct str name;
    for (size_t i = 0; i < 3; i++)
        CHECK(mkdir(in_scratch(folders[i]), 0700) == 0);
    for (size_t i = 0; i < 4; i++) {
        link = in_scratch("%s/%s", folders[2], files[i]);
        snprintf(target, sizeof(target), "../../../%s", files[i]);
        CHECK(symlink(target, link) == 0);
    }
    CHECK(weights_open(&w, snapshot, &err) == OK && weights_ntensors(w) == ALL - 1);
    CHECK(weights_shards(w) == 2);
    CHECK(weights_str(w, "general.name", &name) && name.n == 4 && !memcmp(name.p, "Name", 4));
    weights_close(w);
    for (size_t i = 4; i-- > 0;) {
        link = in_scratch("%s/%s", folders[2], files[i]);
        CHECK(unlink(link) == 0 && weights_open(&w, snapshot, &err) != OK);
        CHECK(strstr(err.msg, "; to fetch it in Mizzle's sources: sh tools/download.sh Org/Name"));
        CHECK(i == 1 || strstr(err.msg, files[i]));
    }
    for (size_t i = 3; i-- > 0;)
        CHECK(rmdir(in_scratch(folders[i])) == 0);
}

int main(void)
{
    folder = scratch_folder();
    test_plain();
    test_config();
    CHECK(unlink(in_scratch("model.safetensors")) == 0);
    test_shards();
    test_links();
    torture_each(open_weights, folder);
    return 0;
}
