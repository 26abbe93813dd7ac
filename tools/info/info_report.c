#include <inttypes.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/kv.h"
#include "tools/cli/json_report.h"
#include "tools/info/info.h"

/* Types are listed in the order of ggml's numbers, then those that only safetensors has. */
enum { TYPES_GGML = 64, TYPES = TYPES_GGML + 16 };

/* Every fact becomes a member of an object and, for people, a line that is printed at once. */
struct report {
    const struct weights *w;
    bool lines;
    json_t *root;
};

/* Return an integer if a double of this size is exact, else a real. */
static json_t *json_size(double v)
{
    return v < 9e15 ? json_integer((json_int_t)v) : json_report_real(v);
}

/* Print a part of a line. */
__attribute__((format(printf, 2, 3))) static void say(const struct report *r, const char *format,
                                                      ...)
{
    va_list args;
    va_start(args, format);
    if (r->lines)
        vprintf(format, args);
    va_end(args);
}

/* Print text of the file within a line. */
static void say_text(const struct report *r, struct str s)
{
    if (r->lines)
        escaped_put(s.p, s.n);
}

/* Report a text. If it is empty, it is null and has no line. */
static void put_text(const struct report *r, json_t **object, const char *key, const char *label,
                     struct str s)
{
    json_report_set(object, key, s.n ? escaped_json(s.p, s.n) : json_null());
    if (!s.n)
        return;
    say(r, "%-14s", label);
    say_text(r, s);
    say(r, "\n");
}

static struct str str_of(const char *s)
{
    return (struct str){ s, s ? strlen(s) : 0 };
}

/* Report bytes, for people in a binary unit with one decimal. */
static void put_bytes(const struct report *r, json_t **object, const char *key, double n)
{
    static const char *const units[] = { "KiB", "MiB", "GiB", "TiB" };
    json_report_set(object, key, json_size(n));
    if (n < 1024)
        say(r, "%.0f bytes", n);
    for (size_t u = 0; u < 4 && n >= 1024; u++) {
        n /= 1024;
        if (n < 1024 || u == 3)
            say(r, "%.1f %s", n, units[u]);
    }
}

/* Report the hyperparameters: the numbers whose keys begin with the name of the architecture. */
static void put_shape(struct report *r, struct str arch)
{
    json_t *shape = json_object();
    for (size_t i = 0; i < weights_nkv(r->w); i++) {
        const struct kv *kv = weights_kv(r->w, i);
        bool flag, real = kv->type == KV_F32 || kv->type == KV_F64;
        double number;
        if (!arch.n || kv->key.n < arch.n + 2 || memcmp(kv->key.p, arch.p, arch.n) != 0 ||
            kv->key.p[arch.n] != '.' || kv->type == KV_ARR || kv->type == KV_STR)
            continue;
        char *name = escaped_text(kv->key.p + arch.n + 1, strlen(kv->key.p + arch.n + 1));
        if (weights_bool(r->w, kv->key.p, &flag)) {
            json_report_set(&shape, name, json_boolean(flag));
            say(r, "  %s = %s\n", name ? name : "?", flag ? "true" : "false");
        } else if (weights_f64(r->w, kv->key.p, &number)) {
            json_report_set(&shape, name, real ? json_report_real(number) : json_size(number));
            say(r, "  %s = %.7g\n", name ? name : "?", number);
        }
        free(name);
    }
    json_report_set(&r->root, "shape", shape);
}

/* Return a number of 0 to 1, what is none as text, what is absent as null. */
static json_t *json_share(struct str s)
{
    char text[32] = "", *end = text;
    memcpy(text, s.p, s.n < sizeof(text) ? s.n : 0);
    double number = strtod(text, &end);
    bool sane = end > text && !*end && number >= 0 && number <= 1;
    return sane ? json_real(number) : s.n ? escaped_json(s.p, s.n) : json_null();
}

/* Report what a router says about itself. */
static void put_router(struct report *r)
{
    static const char *const more[][2] = {
        { "model_name", "  model" }, { "model", "  fingerprint" }, { "weights", "  weights" },
        { "task", "  learnt" },      { "share", "  share" },
    };
    struct info_router f;
    struct str threshold = info_text(r->w, "threshold"), share = info_text(r->w, "share");
    bool is = info_is_router(&f, r->w);
    json_t *o = is ? json_pack("{s:s}", "name", f.name) : json_null();
    if (is && f.contexts) {
        json_report_set(&o, "contexts", json_size((double)f.contexts));
        say(r, "%-14s%s, a table of %zu contexts", "router", f.name, f.contexts);
    } else if (is) {
        json_report_set(&o, "hidden", json_size((double)f.hidden));
        json_report_set(&o, "features", json_size((double)f.features));
        json_report_set(&o, "width", json_size((double)f.width));
        json_report_set(&o, "members", json_size((double)f.members));
        json_report_set(&o, "tap", escaped_json(f.tap.p, f.tap.n));
        say(r, "%-14s%s, %zu wide, ", "router", f.name, f.width);
        if (f.members > 1)
            say(r, "mean of %zu members, ", f.members);
        say(r, "reads %zu values of tap ", f.hidden);
        say_text(r, f.tap);
        if (f.hidden && !(f.tap.n == 5 && !memcmp(f.tap.p, "final", 5)))
            say(r, ", which `mizzle run` refuses,");
        if (f.features)
            say(r, " and %zu features", f.features);
    }
    if (is) {
        json_report_set(&o, "threshold", json_share(threshold));
        say(r, threshold.n ? ", threshold " : ", no threshold");
        say_text(r, threshold);
        say(r, "\n");
        for (size_t i = 0; i < sizeof(more) / sizeof(*more); i++)
            put_text(r, &o, more[i][0], more[i][1], info_text(r->w, more[i][0]));
        json_report_set(&o, "share", json_share(share));
    }
    json_report_set(&r->root, "router", o);
}

/* Report the totals of all tensors, and those of each type. */
static void put_types(struct report *r)
{
    double bytes[TYPES] = { 0 }, values[TYPES] = { 0 }, all_bytes = 0, all_values = 0;
    size_t tensors[TYPES] = { 0 };
    json_t *types = json_object();
    for (size_t i = 0; i < weights_ntensors(r->w); i++) {
        const struct tensor *t = weights_tensor(r->w, i);
        size_t at = (size_t)(t->type < TYPES_GGML ? t->type : TYPES_GGML + t->type - W_U8);
        size_t block, size;
        double n = wtype_block(t->type, &block, &size) ? (double)(t->bytes / size * block) : 0;
        all_bytes += (double)t->bytes;
        all_values += n;
        if (at >= TYPES)
            continue;
        tensors[at]++;
        bytes[at] += (double)t->bytes;
        values[at] += n;
    }
    double bits = all_values > 0 ? all_bytes * 8 / all_values : 0;
    json_report_set(&r->root, "parameters", json_size(all_values));
    json_report_set(&r->root, "bits", json_report_real(bits));
    say(r, "%-14s%.0f\n%-14s", "parameters", all_values, "bytes");
    put_bytes(r, &r->root, "bytes", all_bytes);
    say(r, ", %.2f bits a weight%s\n", bits,
        info_without_data(r->w) ? ", and the data is not in the file" : "");
    for (int i = 0; i < TYPES; i++) {
        if (!tensors[i])
            continue;
        const char *name = wtype_name(i < TYPES_GGML ? i : W_U8 + i - TYPES_GGML);
        json_t *one = json_pack("{s:I}", "tensors", (json_int_t)tensors[i]);
        say(r, "  %-8s ", name);
        put_bytes(r, &one, "bytes", bytes[i]);
        say(r, " in %zu tensor%s, %.2f bits a weight\n", tensors[i], tensors[i] == 1 ? "" : "s",
            values[i] > 0 ? bytes[i] * 8 / values[i] : 0);
        json_report_set(&types, name, one);
    }
    json_report_set(&r->root, "types", types);
}

/* Report what running the model takes. */
static void put_memory(struct report *r, const struct info_model *m)
{
    json_t *o = m->runs ? json_object() : json_null(), *caches = json_object();
    if (m->runs) {
        json_report_set(&o, "context", json_size((double)m->context));
        json_report_set(&o, "threads", json_size((double)m->threads));
        say(r, "%-14sat -c %zu with %zu thread%s: weights ", "memory", m->context, m->threads,
            m->threads == 1 ? "" : "s");
        put_bytes(r, &o, "weights", (double)m->weights);
        say(r, ", work ");
        put_bytes(r, &o, "work", (double)m->work);
        say(r, ", KV cache ");
        for (int i = 0; i < INFO_CACHES; i++) {
            put_bytes(r, &caches, kvcache_name((enum kvcache)i), (double)m->cache[i]);
            say(r, " in %s%s", kvcache_name((enum kvcache)i), i + 1 < INFO_CACHES ? " or " : "\n");
        }
        json_report_set(&o, "kv_cache", caches);
    } else {
        json_decref(caches);
    }
    json_report_set(&r->root, "memory", o);
}

/* Report what the engine would make of a model. */
static void put_model(struct report *r, const struct info_model *m)
{
    char sign[20] = "";
    json_t *refused = json_object();
    json_report_set(&r->root, "template",
                    m->template ? json_size((double)m->template) : json_null());
    json_report_set(&r->root, "chat", m->chat ? json_string(m->chat) : json_null());
    if (m->template)
        say(r, "%-14s%zu bytes\n", "template", m->template);
    if (m->chat)
        say(r, "%-14s%s%s\n", "chat", m->chat,
            m->template ? "" : ", a guess from its vocabulary: there is no template");
    if (m->has_sign)
        snprintf(sign, sizeof(sign), "%016" PRIx64, m->fingerprint);
    put_text(r, &r->root, "fingerprint", "fingerprint", str_of(sign));
    put_text(r, &r->root, "router", "router", str_of(m->router));
    put_memory(r, m);
    put_text(r, &refused, "model", "no model", str_of(m->no_model.msg));
    put_text(r, &refused, "text", "no text", str_of(m->no_text.msg));
    put_text(r, &refused, "chat", "no chat", str_of(m->no_chat.msg));
    json_report_set(&r->root, "refused", refused);
}

static void put_tensors(struct report *r)
{
    json_t *list = json_array();
    for (size_t i = 0; i < weights_ntensors(r->w); i++) {
        const struct tensor *t = weights_tensor(r->w, i);
        json_t *shape = json_array();
        say(r, "  %12zu  %-8s [", t->bytes, wtype_name(t->type));
        for (unsigned k = 0; k < t->ndim; k++) {
            json_report_add(&shape, json_size((double)t->shape[k]));
            say(r, "%s%zu", k ? "," : "", t->shape[k]);
        }
        say(r, "]  ");
        say_text(r, str_of(t->name));
        say(r, "\n");
        json_report_add(&list, json_pack("{s:o, s:s, s:o, s:o}", "name",
                                         escaped_json(t->name, strlen(t->name)), "type",
                                         wtype_name(t->type), "shape", shape, "bytes",
                                         json_size((double)t->bytes)));
    }
    json_report_set(&r->root, "tensor_list", list);
}

int info_print(const struct weights *w, const struct info_model *m, bool json, bool list,
               struct err *err)
{
    struct report r = { w, !json, json_object() };
    struct str arch = info_text(w, "general.architecture");
    struct str vocab = info_text(w, "tokenizer.ggml.model");
    const struct kv *kv = weights_key(w, "tokenizer.ggml.tokens");
    size_t tensors = weights_ntensors(w), keys = weights_nkv(w), shards = weights_shards(w);
    size_t tokens = kv && kv->count ? kv->count : m->ids;
    put_text(&r, &r.root, "file", "file", str_of(weights_path(w)));
    json_report_set(&r.root, "format", json_string(weights_format(w)));
    json_report_set(&r.root, "tensors", json_integer((json_int_t)tensors));
    json_report_set(&r.root, "keys", json_integer((json_int_t)keys));
    json_report_set(&r.root, "shards", json_integer((json_int_t)shards));
    say(&r, "%-14s%s, %zu tensors, %zu keys", "format", weights_format(w), tensors, keys);
    if (shards > 1)
        say(&r, ", in %zu files", shards);
    say(&r, "\n");
    put_text(&r, &r.root, "name", "name", info_text(w, "general.name"));
    put_text(&r, &r.root, "architecture", "architecture", arch);
    if (m->is)
        put_text(&r, &r.root, "type", "type", str_of(m->type));
    put_shape(&r, arch);
    put_router(&r);
    put_types(&r);
    json_report_set(&r.root, "has_data", json_boolean(!info_without_data(w)));
    /* A folder does not name its tokenizer; what can be used of it is GPT-2's byte-level BPE. */
    put_text(&r, &r.root, "tokenizer", "tokenizer", vocab.n || !m->ids ? vocab : str_of("gpt2"));
    json_report_set(&r.root, "tokens", json_integer((json_int_t)tokens));
    if (tokens)
        say(&r, "%-14s%zu\n", "tokens", tokens);
    if (m->is)
        put_model(&r, m);
    if (list)
        put_tensors(&r);
    if (json)
        return json_report_print(weights_path(w), r.root, JSON_COMPACT, "", "", err);
    json_decref(r.root);
    return OK;
}
