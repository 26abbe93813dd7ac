#include <stdio.h>
#include <string.h>

#include "kernels/math.h"
#include "kernels/sys/base.h"
#include "weights/find.h"
#include "weights/hf_config.h"
#include "weights/table.h"

struct config {
    struct weights *w;
    json_t *root;
    struct err *err;
    int code; /* the first error */
};

/* Keep the first refusal as the error; found may be NULL. */
static void hf_config_refuse(struct config *c, const char *key, const char *expected, json_t *found)
{
    if (c->code != OK)
        return;
    char *text = found ? json_dumps(found, JSON_ENCODE_ANY | JSON_COMPACT) : NULL;
    c->code = err_set(c->err, ERR_FORMAT, "%s/config.json: %s: expected %s, found %.100s",
                      c->w->path, key, expected, text ? text : "nothing");
    /* jansson may use its own allocator, so its strings are freed with its own free */
    json_malloc_t get;
    json_free_t put;
    json_get_alloc_funcs(&get, &put);
    if (text)
        put(text);
}

/* True when a key is absent or null, which config.json treats alike. */
static bool is_null(json_t *v)
{
    return !v || json_is_null(v);
}

/* Return a key's whole number from `least` on, or 0 after a refusal. */
static uint32_t hf_config_whole(struct config *c, const char *key, uint32_t least)
{
    json_t *v = json_object_get(c->root, key);
    if (!json_is_integer(v) || json_integer_value(v) < (json_int_t)least ||
        json_integer_value(v) > INT32_MAX) {
        hf_config_refuse(c, key, least ? "a positive whole number" : "a whole number", v);
        return 0;
    }
    return (uint32_t)json_integer_value(v);
}

/* Return a key's boolean, or `missing` when it is absent. */
static bool hf_config_flag(struct config *c, const char *key, bool missing)
{
    json_t *v = json_object_get(c->root, key);
    if (is_null(v))
        return missing;
    if (!json_is_boolean(v))
        hf_config_refuse(c, key, "true or false", v);
    return json_is_true(v);
}

/* Return a key's positive number, or 0 after a refusal. */
static float positive(struct config *c, json_t *object, const char *key)
{
    json_t *v = json_object_get(object, key);
    double d = json_number_value(v);
    if (!json_is_number(v) || !(d > 0 && d < 1e30)) {
        hf_config_refuse(c, key, "a positive number", v);
        return 0;
    }
    return (float)d;
}

/* Refuse unless the key is exactly this string. */
static void must_be(struct config *c, const char *key, const char *want)
{
    json_t *v = json_object_get(c->root, key);
    const char *s = json_string_value(v);
    if (!s || strcmp(s, want) != 0)
        hf_config_refuse(c, key, want, v);
}

/* Return the architecture's name in GGUF. Every architecture, activation and quantisation that the
 * engine would compute wrongly is refused. */
static const char *hf_config_kind(struct config *c)
{
    json_t *type = json_object_get(c->root, "model_type");
    json_t *list = json_object_get(c->root, "architectures");
    const char *name = json_string_value(type);
    const char *first = json_string_value(json_array_get(list, 0));
    bool three = name && strcmp(name, "qwen3") == 0;
    if (!name || (!three && strcmp(name, "qwen2") != 0))
        hf_config_refuse(c, "model_type", "qwen2 or qwen3", type);
    const char *want = three ? "Qwen3ForCausalLM" : "Qwen2ForCausalLM";
    if (json_array_size(list) != 1 || !first || strcmp(first, want) != 0)
        hf_config_refuse(c, "architectures",
                         three ? "[\"Qwen3ForCausalLM\"]" : "[\"Qwen2ForCausalLM\"]", list);
    if (!is_null(json_object_get(c->root, "hidden_act")))
        must_be(c, "hidden_act", "silu");
    json_t *quantised = json_object_get(c->root, "quantization_config");
    if (!is_null(quantised))
        hf_config_refuse(c, "quantization_config", "plain weights", quantised);
    if (three && hf_config_flag(c, "attention_bias", false))
        hf_config_refuse(c, "attention_bias", "false", json_true());
    return three ? "qwen3" : "qwen2";
}

/* RoPE, with its scaling as GGUF has it. */
struct hf_rope {
    const char *type; /* NULL: plain */
    float theta, factor, attn, beta_fast, beta_slow;
    uint32_t original;
};

/* Return a positive number of a scaling, or `missing` when the key is absent. */
static float hf_config_scale(struct config *c, json_t *v, const char *key, float missing)
{
    return is_null(json_object_get(v, key)) ? missing : positive(c, v, key);
}

/* Read YaRN's numbers. transformers' attention_factor is the magnitude of cosine and sine, GGUF's
 * multiplies the one that follows from the factor. */
static void hf_config_yarn(struct config *c, json_t *v, struct hf_rope *rope)
{
    json_t *original = json_object_get(v, "original_max_position_embeddings");
    json_t *all = json_object_get(v, "mscale_all_dim"), *cut = json_object_get(v, "truncate");
    float attention = hf_config_scale(c, v, "attention_factor", 0);
    rope->beta_fast = hf_config_scale(c, v, "beta_fast", 32);
    rope->beta_slow = hf_config_scale(c, v, "beta_slow", 1);
    if (attention > 0)
        rope->attn = (float)((double)attention / (0.1 * log_f64((double)rope->factor) + 1));
    if (!is_null(all))
        hf_config_refuse(c, "mscale_all_dim", "none", all);
    if (!is_null(cut) && !json_is_true(cut))
        hf_config_refuse(c, "truncate", "true", cut);
    if (is_null(original))
        return;
    if (!json_is_integer(original) || json_integer_value(original) < 1 ||
        json_integer_value(original) > INT32_MAX)
        hf_config_refuse(c, "original_max_position_embeddings", "a positive whole number",
                         original);
    rope->original = (uint32_t)json_integer_value(original);
}

/* Read one object that may scale RoPE. */
static void hf_config_scaling(struct config *c, json_t *v, struct hf_rope *rope)
{
    const char *key = json_object_get(v, "rope_type") ? "rope_type" : "type";
    json_t *kind = json_object_get(v, key);
    const char *name = json_string_value(kind);
    if (name && strcmp(name, "default") == 0)
        return;
    if (!name || (strcmp(name, "linear") != 0 && strcmp(name, "yarn") != 0)) {
        hf_config_refuse(c, key, "default, linear or yarn", kind);
        return;
    }
    rope->type = *name == 'y' ? "yarn" : "linear";
    rope->factor = positive(c, v, "factor");
    if (rope->factor < 1)
        hf_config_refuse(c, "factor", "at least 1", json_object_get(v, "factor"));
    else if (*name == 'y')
        hf_config_yarn(c, v, rope);
}

/* Read RoPE. Newer files keep its base and its scaling in rope_parameters. */
static struct hf_rope hf_config_rope(struct config *c, uint32_t context)
{
    static const char *const keys[] = { "rope_scaling", "rope_parameters" };
    struct hf_rope rope = { .attn = 1, .original = context };
    json_t *base = c->root;
    for (size_t i = 0; i < 2; i++) {
        json_t *v = json_object_get(c->root, keys[i]);
        if (is_null(v))
            continue;
        if (json_is_object(v))
            hf_config_scaling(c, v, &rope);
        else
            hf_config_refuse(c, keys[i], "an object or null", v);
        if (json_object_get(v, "rope_theta"))
            base = v;
    }
    json_t *partial = json_object_get(c->root, "partial_rotary_factor");
    if (!is_null(partial) && !(json_number_value(partial) == 1.0))
        hf_config_refuse(c, "partial_rotary_factor", "1", partial);
    rope.theta = positive(c, base, "rope_theta");
    return rope;
}

/* A sliding window is harmless when no layer uses it or it is at least as long as the context,
 * which YaRN stretches. The defaults are those of Qwen2Config. */
static void check_window(struct config *c, uint32_t layers, uint32_t trained,
                         const struct hf_rope *rope)
{
    bool yarn = rope->type && *rope->type == 'y';
    double context = yarn ? (double)rope->original * (double)rope->factor : trained;
    json_t *size = json_object_get(c->root, "sliding_window");
    json_t *from = json_object_get(c->root, "max_window_layers");
    json_t *types = json_object_get(c->root, "layer_types"), *v;
    json_int_t window = json_is_integer(size) ? json_integer_value(size) : 4096;
    json_int_t first = json_is_integer(from) ? json_integer_value(from) : 28;
    size_t i;
    bool longer = (size && json_is_null(size)) || (double)window >= context;
    if (hf_config_flag(c, "use_sliding_window", false) && first < (json_int_t)layers && !longer)
        hf_config_refuse(c, "use_sliding_window", "false", json_true());
    json_array_foreach(types, i, v) if (!json_is_string(v) ||
                                        strcmp(json_string_value(v), "full_attention") != 0)
        hf_config_refuse(c, "layer_types", "\"full_attention\"", v);
}

/* Name the model after its folder, "/models/Qwen2.5-0.5B/" gives "Qwen2.5-0.5B", or after its
 * repository: in the cache, the folder is a hash. */
static bool add_name(struct weights *w, const char *folder, const char *arch)
{
    char repository[FIND_PATH];
    const char *part = repository;
    if (find_repository(repository, folder)) {
        folder = repository;
        for (const char *p = repository; (p = strstr(p, "--")) != NULL; part = p)
            p += 2;
        folder = part;
    }
    size_t end = strlen(folder);
    while (end && folder[end - 1] == '/')
        end--;
    size_t start = end;
    while (start && folder[start - 1] != '/')
        start--;
    const char *name = table_copy(w, folder + start, end - start);
    if (name && (!*name || strcmp(name, ".") == 0 || strcmp(name, "..") == 0))
        name = arch;
    return name && table_add_str(w, "general.name", name);
}

/* Copy a token id, or the first of a list; a key that is absent or unusable is left out. */
static void token_id(struct config *c, const char *key, const char *gguf)
{
    json_t *v = json_object_get(c->root, key);
    if (json_is_array(v))
        v = json_array_get(v, 0);
    uint32_t id = json_is_integer(v) ? (uint32_t)json_integer_value(v) : 0;
    if (json_is_integer(v) && json_integer_value(v) >= 0 && json_integer_value(v) <= INT32_MAX &&
        !table_add_num(c->w, gguf, KV_U32, &id))
        c->code = err_set(c->err, ERR_NOMEM, "%s: out of memory", c->w->path);
}

/* Add a number under "ARCH.name". */
static bool hf_config_add(struct config *c, const char *arch, const char *name, enum kvtype type,
                          const void *value)
{
    char key[80];
    snprintf(key, sizeof(key), "%s.%s", arch, name);
    return table_add_num(c->w, key, type, value);
}

/* Add RoPE's keys. */
static bool hf_config_add_rope(struct config *c, const char *arch, const struct hf_rope *rope)
{
    char key[80];
    snprintf(key, sizeof(key), "%s.rope.scaling.type", arch);
    if (!hf_config_add(c, arch, "rope.freq_base", KV_F32, &rope->theta))
        return false;
    if (!rope->type)
        return true;
    bool fine = table_add_str(c->w, key, rope->type) &&
                hf_config_add(c, arch, "rope.scaling.factor", KV_F32, &rope->factor);
    if (!fine || *rope->type != 'y')
        return fine;
    return hf_config_add(c, arch, "rope.scaling.original_context_length", KV_U32,
                         &rope->original) &&
           hf_config_add(c, arch, "rope.scaling.attn_factor", KV_F32, &rope->attn) &&
           hf_config_add(c, arch, "rope.scaling.yarn_beta_fast", KV_F32, &rope->beta_fast) &&
           hf_config_add(c, arch, "rope.scaling.yarn_beta_slow", KV_F32, &rope->beta_slow);
}

/* Check all keys before any is added, so that the first refusal is the error. */
static void hf_config_read_all(struct config *c, struct hf_config *out)
{
    const char *arch = hf_config_kind(c);
    const struct {
        const char *name;
        uint32_t v;
    } counts[] = {
        { "block_count", hf_config_whole(c, "num_hidden_layers", 1) },
        { "context_length", hf_config_whole(c, "max_position_embeddings", 1) },
        { "embedding_length", hf_config_whole(c, "hidden_size", 1) },
        { "feed_forward_length", hf_config_whole(c, "intermediate_size", 1) },
        { "attention.head_count", hf_config_whole(c, "num_attention_heads", 1) },
        { "attention.head_count_kv", hf_config_whole(c, "num_key_value_heads", 1) },
        { "vocab_size", hf_config_whole(c, "vocab_size", 1) },
    };
    struct hf_rope rope = hf_config_rope(c, counts[1].v);
    float eps = positive(c, c->root, "rms_norm_eps");
    /* Without head_dim, Qwen3Config has 128, Qwen2Config a share of the hidden size. */
    uint32_t head = strcmp(arch, "qwen3") == 0 ? 128 : 0;
    if (!is_null(json_object_get(c->root, "head_dim")))
        head = hf_config_whole(c, "head_dim", 1);
    check_window(c, counts[0].v, counts[1].v, &rope);
    *out = (struct hf_config){ arch, counts[0].v, hf_config_flag(c, "tie_word_embeddings", false) };
    if (c->code != OK)
        return;
    struct weights *w = c->w;
    bool fine = table_add_str(w, "general.architecture", arch) &&
                table_add_str(w, "general.type", "model") && add_name(w, c->w->path, arch);
    for (size_t i = 0; i < sizeof(counts) / sizeof(*counts); i++)
        fine = fine && hf_config_add(c, arch, counts[i].name, KV_U32, &counts[i].v);
    fine = fine && hf_config_add_rope(c, arch, &rope) &&
           hf_config_add(c, arch, "attention.layer_norm_rms_epsilon", KV_F32, &eps);
    if (head)
        fine = fine && hf_config_add(c, arch, "attention.key_length", KV_U32, &head) &&
               hf_config_add(c, arch, "attention.value_length", KV_U32, &head);
    if (!fine)
        c->code = err_set(c->err, ERR_NOMEM, "%s: out of memory", c->w->path);
    else {
        token_id(c, "bos_token_id", "tokenizer.ggml.bos_token_id");
        token_id(c, "eos_token_id", "tokenizer.ggml.eos_token_id");
    }
}

int hf_config_read(struct weights *w, struct hf_config *out, struct err *err)
{
    struct config c = { w, NULL, err, OK };
    int code = hf_json(w, &c.root, "config.json", err);
    if (code != OK)
        return code;
    hf_config_read_all(&c, out);
    json_decref(c.root);
    return c.code;
}
