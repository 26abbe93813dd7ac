#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/kv.h"
#include "tools/cli/escaped.h"
#include "tools/cli/json_report.h"
#include "tools/info/info.h"

/* Return an integer if a double of this size is exact, else a real. */
static json_t *json_size(double v)
{
    return v < 9e15 ? json_integer((json_int_t)v) : json_report_real(v);
}

/* Return the list of all tensors. */
static json_t *json_tensors(const struct info_source *s)
{
    json_t *list = json_array();
    for (size_t i = 0; i < weights_ntensors(s->w); i++) {
        const struct tensor *t = weights_tensor(s->w, i);
        json_t *shape = json_array();
        for (unsigned k = 0; k < t->ndim; k++)
            json_report_add(&shape, json_size((double)t->shape[k]));
        json_report_add(&list, json_pack("{s:o, s:s, s:o, s:o}", "name",
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
    for (size_t i = 0; i < weights_nkv(s->w); i++) {
        const struct kv *kv = weights_kv(s->w, i);
        const char *key = info_shape_key(kv, arch);
        double number;
        bool flag;
        bool real = kv->type == KV_F32 || kv->type == KV_F64;
        if (!key)
            continue;
        char *name = escaped_text(key, strlen(key));
        json_report_set(&shape, name,
                        weights_bool(s->w, kv->key.p, &flag)     ? json_boolean(flag)
                        : !weights_f64(s->w, kv->key.p, &number) ? json_null()
                        : real                                   ? json_report_real(number)
                                                                 : json_size(number));
        free(name);
    }
    return shape;
}

/* Return a text, or null if it is absent. */
static json_t *json_maybe(struct str s)
{
    return s.n ? escaped_json(s.p, s.n) : json_null();
}

/* Return a number of 0 to 1; what is none is shown as text, what is absent as null. */
static json_t *json_share(struct str s)
{
    char text[32] = "", *end = text;
    memcpy(text, s.p, s.n < sizeof(text) ? s.n : 0);
    double number = strtod(text, &end);
    bool sane = end > text && !*end && number >= 0 && number <= 1;
    return sane ? json_real(number) : json_maybe(s);
}

/* Return what the router says about itself, or null. */
static json_t *json_router(const struct info_source *s)
{
    struct info_router f;
    if (!info_is_router(&f, s))
        return json_null();
    json_t *root = json_pack("{s:s}", "name", f.name);
    if (f.contexts) {
        json_report_set(&root, "contexts", json_size((double)f.contexts));
    } else {
        json_report_set(&root, "hidden", json_size((double)f.hidden));
        json_report_set(&root, "features", json_size((double)f.features));
        json_report_set(&root, "width", json_size((double)f.width));
        json_report_set(&root, "members", json_size((double)f.members));
        json_report_set(&root, "tap", escaped_json(f.tap.p, f.tap.n));
    }
    json_report_set(&root, "threshold", json_share(info_text(s, "threshold")));
    for (size_t i = 0; i < INFO_ROUTER_ENTRIES; i++) {
        const char *key = info_router_entries[i][0];
        struct str v = info_text(s, key);
        json_report_set(&root, key, !strcmp(key, "share") ? json_share(v) : json_maybe(v));
    }
    return root;
}

/* Return the bytes that running the model takes, or null. */
static json_t *json_memory(const struct info_model *m)
{
    json_t *caches = json_object();
    for (int i = 0; i < INFO_CACHES; i++)
        json_report_set(&caches, kvcache_name((enum kvcache)i), json_size((double)m->cache[i]));
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
static void json_model(json_t **root, const struct info_model *m)
{
    char sign[20];
    snprintf(sign, sizeof(sign), "%016" PRIx64, m->fingerprint);
    json_report_set(root, "type", json_string(m->type));
    json_report_set(root, "template", m->template ? json_size((double)m->template) : json_null());
    json_report_set(root, "chat", m->chat ? json_string(m->chat) : json_null());
    json_report_set(root, "fingerprint", m->has_sign ? json_string(sign) : json_null());
    json_report_set(root, "router",
                    m->router[0] ? escaped_json(m->router, strlen(m->router)) : json_null());
    json_report_set(root, "memory", json_memory(m));
    json_report_set(root, "refused",
                    json_pack("{s:o, s:o, s:o}", "model", json_line(&m->no_model), "text",
                              json_line(&m->no_text), "chat", json_line(&m->no_chat)));
}

int info_print_json(const struct info_source *s, const struct info_model *m, bool list,
                    struct err *err)
{
    struct str arch = info_text(s, "general.architecture"), name = info_text(s, "general.name");
    struct str vocab = info_tokenizer(s, m);
    struct info_sum all = info_sum_type(s, -1);
    json_t *types = json_object(), *root = json_object();
    for (int i = 0; i < INFO_TYPES; i++) {
        struct info_sum sum = info_sum_type(s, info_type_at(i));
        if (sum.tensors)
            json_report_set(&types, wtype_name(info_type_at(i)),
                            json_pack("{s:I, s:o}", "tensors", (json_int_t)sum.tensors, "bytes",
                                      json_size(sum.bytes)));
    }
    json_report_set(&root, "file", escaped_json(s->path, strlen(s->path)));
    json_report_set(&root, "format", json_string(weights_format(s->w)));
    json_report_set(&root, "architecture", json_maybe(arch));
    json_report_set(&root, "name", json_maybe(name));
    json_report_set(&root, "parameters", json_size(all.values));
    json_report_set(&root, "bytes", json_size(all.bytes));
    json_report_set(&root, "bits", json_report_real(info_bits(&all)));
    json_report_set(&root, "shards", json_integer((json_int_t)weights_shards(s->w)));
    json_report_set(&root, "tensors", json_integer((json_int_t)all.tensors));
    json_report_set(&root, "keys", json_integer((json_int_t)weights_nkv(s->w)));
    json_report_set(&root, "types", types);
    json_report_set(&root, "shape", json_shape(s, arch));
    json_report_set(&root, "router", json_router(s));
    json_report_set(&root, "tokenizer", json_maybe(vocab));
    json_report_set(&root, "tokens",
                    json_integer((json_int_t)(info_tokens(s) ? info_tokens(s) : m->ids)));
    json_report_set(&root, "has_data", json_boolean(!info_without_data(s)));
    if (m->is)
        json_model(&root, m);
    if (list)
        json_report_set(&root, "tensor_list", json_tensors(s));
    return json_report_print(s->path, root, JSON_COMPACT, "", "", err);
}
