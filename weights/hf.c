/* hf.c - a Hugging Face folder: config.json becomes GGUF keys, tensors get GGUF names. Source:
 * transformers' Qwen2Config and Qwen3Config, and the names of the state dicts of Qwen2ForCausalLM
 * and Qwen3ForCausalLM. */
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "kernels/sys/base.h"
#include "kernels/sys/text.h"
#include "weights/find.h"
#include "weights/hf_config.h"
#include "weights/table.h"

static const struct name_row {
    const char *hf, *gguf;
    const char *only; /* the one architecture that has it; NULL: both do */
} in_layer[] = {
    { "input_layernorm.weight", "attn_norm.weight", NULL },
    { "self_attn.q_proj.weight", "attn_q.weight", NULL },
    { "self_attn.q_proj.bias", "attn_q.bias", "qwen2" },
    { "self_attn.k_proj.weight", "attn_k.weight", NULL },
    { "self_attn.k_proj.bias", "attn_k.bias", "qwen2" },
    { "self_attn.v_proj.weight", "attn_v.weight", NULL },
    { "self_attn.v_proj.bias", "attn_v.bias", "qwen2" },
    { "self_attn.q_norm.weight", "attn_q_norm.weight", "qwen3" },
    { "self_attn.k_norm.weight", "attn_k_norm.weight", "qwen3" },
    { "self_attn.o_proj.weight", "attn_output.weight", NULL },
    { "post_attention_layernorm.weight", "ffn_norm.weight", NULL },
    { "mlp.gate_proj.weight", "ffn_gate.weight", NULL },
    { "mlp.up_proj.weight", "ffn_up.weight", NULL },
    { "mlp.down_proj.weight", "ffn_down.weight", NULL },
}, outside[] = {
    { "model.embed_tokens.weight", "token_embd.weight", NULL },
    { "model.norm.weight", "output_norm.weight", NULL },
    { "lm_head.weight", "output.weight", NULL },
};

enum { NLAYER = sizeof(in_layer) / sizeof(*in_layer), NOUTSIDE = 3, NAME_ROOM = 64 };

/* True for a tensor that layers of this architecture have. */
static bool hf_has(const struct hf_config *c, const struct name_row *row)
{
    return !row->only || strcmp(row->only, c->arch) == 0;
}

/* Write the GGUF name of a tensor; false for a name that the architecture does not have, or a layer
 * beyond the last. */
static bool rename_to(char out[NAME_ROOM], const char *name, const struct hf_config *c)
{
    static const char prefix[] = "model.layers.";
    for (size_t i = 0; i < NOUTSIDE; i++)
        if (strcmp(name, outside[i].hf) == 0)
            return snprintf(out, NAME_ROOM, "%s", outside[i].gguf) > 0;
    if (strncmp(name, prefix, sizeof(prefix) - 1) != 0)
        return false;
    const char *p = name + sizeof(prefix) - 1, *digits = p;
    uint32_t layer = 0;
    while (*p >= '0' && *p <= '9' && p - digits < 7)
        layer = layer * 10 + (uint32_t)(*p++ - '0');
    if (p == digits || (*digits == '0' && p - digits > 1) || *p++ != '.' || layer >= c->layers)
        return false;
    for (size_t i = 0; i < NLAYER; i++)
        if (strcmp(p, in_layer[i].hf) == 0 && hf_has(c, &in_layer[i]))
            return snprintf(out, NAME_ROOM, "blk.%u.%s", (unsigned)layer, in_layer[i].gguf) > 0;
    return false;
}

/* Rename all tensors. Like Hugging Face, drop the head of a tied model and the rotary tables that
 * old versions stored. */
static int rename_all(struct weights *w, const struct hf_config *c, struct err *err)
{
    size_t kept = 0;
    for (size_t i = 0; i < w->ntensors; i++) {
        struct tensor t = w->tensors[i];
        char name[NAME_ROOM];
        if (find_ends(t.name, ".rotary_emb.inv_freq"))
            continue;
        if (!rename_to(name, t.name, c))
            return err_set(err, ERR_FORMAT,
                           "%s: tensor %.120s: not part of a %s model of %u layers", w->path,
                           t.name, c->arch, (unsigned)c->layers);
        if (c->tied && strcmp(name, "output.weight") == 0)
            continue;
        t.name = table_copy(w, name, strlen(name));
        if (!t.name)
            return err_set(err, ERR_NOMEM, "%s: out of memory", w->path);
        w->tensors[kept++] = t;
    }
    w->ntensors = kept;
    return OK;
}

/* All names are known and distinct, so the count shows whether one is missing; the loops find
 * which. */
static int check_complete(const struct weights *w, const struct hf_config *c, struct err *err)
{
    size_t each = 0;
    for (size_t i = 0; i < NLAYER; i++)
        each += hf_has(c, &in_layer[i]);
    uint64_t want = (uint64_t)c->layers * each + (c->tied ? 2 : 3);
    if (w->ntensors == want)
        return OK;
    for (size_t i = 0; i < (c->tied ? 2 : 3); i++)
        if (!weights_find(w, outside[i].gguf))
            return err_set(err, ERR_FORMAT, "%s: tensor %s is missing", w->path, outside[i].hf);
    for (uint32_t layer = 0; layer < c->layers; layer++)
        for (size_t i = 0; i < NLAYER; i++) {
            char name[NAME_ROOM];
            snprintf(name, sizeof(name), "blk.%u.%s", (unsigned)layer, in_layer[i].gguf);
            if (hf_has(c, &in_layer[i]) && !weights_find(w, name))
                return err_set(err, ERR_FORMAT, "%s: tensor model.layers.%u.%s is missing", w->path,
                               (unsigned)layer, in_layer[i].hf);
        }
    return err_set(err, ERR_FORMAT, "%s: expected %llu tensors, found %zu", w->path,
                   (unsigned long long)want, w->ntensors);
}

/* Return the path of a file of the folder in memory of w, or NULL. */
static char *hf_join(struct weights *w, const char *file)
{
    size_t a = strlen(w->path), b = strlen(file);
    char *s = table_alloc(w, a + b + 2);
    if (s)
        snprintf(s, a + b + 2, "%s/%s", w->path, file);
    return s;
}

int hf_json(struct weights *w, json_t **out, const char *file, struct err *err)
{
    *out = NULL;
    char *path = hf_join(w, file);
    if (!path)
        return err_set(err, ERR_NOMEM, "%s: out of memory", w->path);
    struct mapping m;
    int code = table_map(w, &m, path, err);
    if (code != OK)
        return code;
    if (m.n > HF_JSON_MAX)
        return err_set(err, ERR_FORMAT, "%s: expected at most %d bytes, found %zu", path,
                       HF_JSON_MAX, m.n);
    json_error_t e;
    size_t mark = text_mark((const char *)m.p, m.n);
    *out = json_loadb(m.n ? (const char *)m.p + mark : "", m.n - mark, JSON_REJECT_DUPLICATES, &e);
    if (!*out && e.line < 0) /* jansson has no words for it */
        return err_set(err, ERR_NOMEM, "%s: out of memory", path);
    if (!*out)
        return err_set(err, ERR_FORMAT, "%s: line %d: %s", path, e.line, e.text);
    if (json_is_object(*out))
        return OK;
    json_decref(*out);
    *out = NULL;
    return err_set(err, ERR_FORMAT, "%s: expected a JSON object", path);
}

/* Map one safetensors file of the folder and append its tensors. */
static int read_shard(struct weights *w, const char *file, struct err *err)
{
    char *path = hf_join(w, file);
    struct mapping m;
    if (!path)
        return err_set(err, ERR_NOMEM, "%s: out of memory", w->path);
    int code = table_map(w, &m, path, err);
    w->shards++;
    return code == OK ? safetensors_read(w, &m, path, err) : code;
}

/* True for a plain .safetensors name: a shard must be a file in the folder itself. */
static bool plain_name(const char *s)
{
    return strlen(s) < 200 && s[0] != '.' && !strchr(s, '/') && find_ends(s, ".safetensors");
}

/* Drop the tensors of a shard that the index places elsewhere, and require those that it places
 * here. */
static int keep_mapped(struct weights *w, size_t first, json_t *map, const char *file,
                       struct err *err)
{
    size_t kept = first, want = 0;
    const char *name;
    json_t *v;
    for (size_t i = first; i < w->ntensors; i++) {
        const char *where = json_string_value(json_object_get(map, w->tensors[i].name));
        if (where && strcmp(where, file) == 0)
            w->tensors[kept++] = w->tensors[i];
    }
    w->ntensors = kept;
    json_object_foreach(map, name, v) want += strcmp(json_string_value(v), file) == 0;
    if (want == kept - first)
        return OK;
    return err_set(err, ERR_FORMAT, "%s: %s: the index expects %zu tensors here, found %zu",
                   w->path, file, want, kept - first);
}

/* Read every shard that the index names, each once. */
static int read_sharded(struct weights *w, struct err *err)
{
    json_t *index, *done = json_object(), *v;
    const char *name;
    int code = hf_json(w, &index, "model.safetensors.index.json", err);
    json_t *map = json_object_get(index, "weight_map");
    if (code == OK && (!json_is_object(map) || !done))
        code = err_set(err, ERR_FORMAT, "%s: model.safetensors.index.json: weight_map is missing",
                       w->path);
    if (code == OK)
        json_object_foreach(map, name, v) /* check all names before any file is opened */
            if (code == OK && (!json_is_string(v) || !plain_name(json_string_value(v)))) code =
                err_set(err, ERR_FORMAT,
                        "%s: model.safetensors.index.json: weight_map: expected the name "
                        "of a .safetensors file in the folder, found \"%.80s\"",
                        w->path, json_is_string(v) ? json_string_value(v) : "no string");
    if (code == OK)
        json_object_foreach(map, name, v)
        {
            const char *file = json_string_value(v);
            if (json_object_get(done, file))
                continue;
            if (json_object_size(done) >= HF_SHARDS_MAX) {
                code = err_set(err, ERR_FORMAT, "%s: expected at most %d shards", w->path,
                               HF_SHARDS_MAX);
                break;
            }
            json_object_set_new(done, file, json_true());
            size_t first = w->ntensors;
            code = read_shard(w, file, err);
            if (code == OK)
                code = keep_mapped(w, first, map, file, err);
            if (code != OK)
                break;
        }
    json_decref(done);
    json_decref(index);
    return code;
}

/* When there is no memory for the path, return true: reading the file then reports it. */
static bool hf_exists(struct weights *w, const char *file)
{
    char *path = hf_join(w, file);
    return !path || access(path, F_OK) == 0;
}

int hf_read(struct weights *w, struct err *err)
{
    struct hf_config c;
    char hint[300];
    find_hint(hint, sizeof(hint), w->path);
    if (!hf_exists(w, "config.json"))
        return err_set(err, ERR_IO, "%s: no model here: expected config.json or a .gguf file%s",
                       w->path, hint);
    int code = hf_config_read(w, &c, err);
    if (code != OK)
        return code;
    size_t keys = w->nkvs;
    if (hf_exists(w, "model.safetensors"))
        code = read_shard(w, "model.safetensors", err);
    else if (hf_exists(w, "model.safetensors.index.json"))
        code = read_sharded(w, err);
    else
        code = err_set(err, ERR_FORMAT,
                       "%s: expected model.safetensors or model.safetensors.index.json, found "
                       "neither%s",
                       w->path, hint);
    w->nkvs = keys; /* the shards' own metadata is not the model's */
    if (code == OK)
        code = rename_all(w, &c, err);
    if (code == OK)
        code = table_index(w, err);
    return code == OK ? check_complete(w, &c, err) : code;
}
