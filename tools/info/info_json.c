#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/kv.h"
#include "tools/cli/escaped.h"
#include "tools/info/info.h"

/* Return an integer if a double of this size is exact, else a real. */
static json_t *json_size(double v)
{
    return v < 9e15 ? json_integer((json_int_t)v) : json_real(v);
}

/* Return the list of all tensors. */
static json_t *json_tensors(const struct info_source *s)
{
    json_t *list = json_array();
    for (size_t i = 0; i < info_count(s); i++) {
        const struct tensor *t = info_tensor(s, i);
        json_t *shape = json_array();
        for (unsigned k = 0; k < t->ndim; k++)
            json_array_append_new(shape, json_size((double)t->shape[k]));
        json_array_append_new(list, json_pack("{s:o, s:s, s:o, s:o}", "name",
                                              escaped_json(t->name, strlen(t->name)), "type",
                                              wtype_name(t->type), "shape", shape, "bytes",
                                              json_size((double)t->bytes)));
    }
    return list;
}

/* Return the hyperparameters of the architecture as an object. */
static json_t *json_shape(const struct info_source *s, struct str arch)
{
    json_t *shape = json_object();
    for (size_t i = 0; s->w && i < weights_nkv(s->w); i++) {
        const struct kv *kv = weights_kv(s->w, i);
        const char *key = info_shape_key(kv, arch);
        double number;
        bool flag;
        json_t *v = NULL;
        if (!key)
            continue;
        if (weights_bool(s->w, kv->key.p, &flag))
            v = json_boolean(flag);
        else if (weights_f64(s->w, kv->key.p, &number))
            v = kv->type == KV_F32 || kv->type == KV_F64 ? json_real(number) : json_size(number);
        char *name = escaped_text(key, strlen(key));
        json_object_set_new(shape, name ? name : "", v ? v : json_null());
        free(name);
    }
    return shape;
}

/* Return a number from 0 to 1; what is none is shown as text, what is absent as null. */
static json_t *json_share(struct str s)
{
    char text[32] = "", *end = text;
    memcpy(text, s.p, s.n < sizeof(text) ? s.n : 0);
    double number = strtod(text, &end);
    bool sane = end > text && !*end && number >= 0 && number <= 1;
    return !s.n ? json_null() : sane ? json_real(number) : escaped_json(s.p, s.n);
}

/* Return a text, or null if it is absent. */
static json_t *json_maybe(struct str s)
{
    return s.n ? escaped_json(s.p, s.n) : json_null();
}

/* Return what the router says about itself, or null. */
static json_t *json_router(const struct info_source *s)
{
    struct info_router f;
    if (!info_is_router(&f, s))
        return json_null();
    json_t *root = json_object();
    if (f.contexts) {
        json_object_set_new(root, "contexts", json_size((double)f.contexts));
    } else {
        json_object_set_new(root, "hidden", json_size((double)f.hidden));
        json_object_set_new(root, "width", json_size((double)f.width));
        json_object_set_new(root, "tap", escaped_json(f.tap.p, f.tap.n));
    }
    json_object_set_new(root, "threshold", json_share(info_text(s, "threshold")));
    for (size_t i = 0; i < INFO_ROUTER_ENTRIES; i++) {
        const char *key = info_router_entries[i][0];
        struct str v = info_text(s, key);
        json_object_set_new(root, key, strcmp(key, "share") ? json_maybe(v) : json_share(v));
    }
    return root;
}

/* Return the bytes that running the model takes, or null. */
static json_t *json_memory(const struct info_model *m)
{
    json_t *caches = json_object();
    for (int i = 0; i < INFO_CACHES; i++)
        json_object_set_new(caches, kvcache_name((enum kvcache)i), json_size((double)m->cache[i]));
    if (!m->runs) {
        json_decref(caches);
        return json_null();
    }
    return json_pack("{s:o, s:o, s:o, s:o, s:o}", "context", json_size((double)m->context),
                     "threads", json_size((double)m->threads), "weights",
                     json_size((double)m->weights), "work", json_size((double)m->work), "kv_cache",
                     caches);
}

/* Return a line of error, or null. */
static json_t *json_line(const struct err *line)
{
    return line->msg[0] ? escaped_json(line->msg, strlen(line->msg)) : json_null();
}

/* Add what the engine would make of a model. */
static void json_model(json_t *root, const struct info_model *m)
{
    char sign[20];
    snprintf(sign, sizeof(sign), "%016" PRIx64, m->fingerprint);
    json_object_set_new(root, "type", json_string(m->type));
    json_object_set_new(root, "template",
                        m->template ? json_size((double)m->template) : json_null());
    json_object_set_new(root, "chat", m->chat ? json_string(m->chat) : json_null());
    json_object_set_new(root, "fingerprint", m->has_sign ? json_string(sign) : json_null());
    json_object_set_new(root, "memory", json_memory(m));
    json_object_set_new(root, "refused",
                        json_pack("{s:o, s:o, s:o}", "model", json_line(&m->no_model), "text",
                                  json_line(&m->no_text), "chat", json_line(&m->no_chat)));
}

void info_print_json(const struct info_source *s, const struct info_model *m, bool list)
{
    struct str arch = info_text(s, "general.architecture"), name = info_text(s, "general.name");
    struct str vocab = info_tokenizer(s, m);
    struct info_sum all = info_sum_type(s, -1);
    json_t *types = json_object(), *root = json_object();
    for (int i = 0; i < INFO_TYPES; i++) {
        struct info_sum sum = info_sum_type(s, info_type_at(i));
        if (sum.tensors)
            json_object_set_new(types, wtype_name(info_type_at(i)),
                                json_pack("{s:I, s:o}", "tensors", (json_int_t)sum.tensors, "bytes",
                                          json_size(sum.bytes)));
    }
    json_object_set_new(root, "file", escaped_json(s->path, strlen(s->path)));
    json_object_set_new(root, "format", json_string(info_format(s)));
    json_object_set_new(root, "architecture", json_maybe(arch));
    json_object_set_new(root, "name", json_maybe(name));
    json_object_set_new(root, "parameters", json_size(all.values));
    json_object_set_new(root, "bytes", json_size(all.bytes));
    json_object_set_new(root, "bits", json_real(info_bits(&all)));
    json_object_set_new(root, "shards", json_integer(s->w ? (json_int_t)weights_shards(s->w) : 1));
    json_object_set_new(root, "tensors", json_integer((json_int_t)all.tensors));
    json_object_set_new(root, "keys",
                        json_integer(s->w ? (json_int_t)weights_nkv(s->w) : (json_int_t)0));
    json_object_set_new(root, "types", types);
    json_object_set_new(root, "shape", json_shape(s, arch));
    json_object_set_new(root, "router", json_router(s));
    json_object_set_new(root, "tokenizer", json_maybe(vocab));
    json_object_set_new(root, "tokens",
                        json_integer((json_int_t)(info_tokens(s) ? info_tokens(s) : m->ids)));
    json_object_set_new(root, "has_data", json_boolean(!info_without_data(s)));
    if (m->is)
        json_model(root, m);
    if (list)
        json_object_set_new(root, "tensor_list", json_tensors(s));
    json_dumpf(root, stdout, JSON_COMPACT);
    putchar('\n');
    json_decref(root);
}
