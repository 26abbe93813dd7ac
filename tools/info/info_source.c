#include "tools/info/info.h"

#include <string.h>

#include "router/features.h"
#include "router/router.h"

/* Return the number of values in t, 0 for an unknown type. */
static size_t info_values(const struct tensor *t)
{
    size_t values, bytes;
    return wtype_block(t->type, &values, &bytes) ? t->bytes / bytes * values : 0;
}

struct info_sum info_sum_type(const struct info_source *s, int type)
{
    struct info_sum sum = { 0, 0, 0 };
    for (size_t i = 0; i < weights_ntensors(s->w); i++) {
        const struct tensor *t = weights_tensor(s->w, i);
        if (type >= 0 && t->type != type)
            continue;
        sum.tensors++;
        sum.bytes += (double)t->bytes;
        sum.values += (double)info_values(t);
    }
    return sum;
}

double info_bits(const struct info_sum *sum)
{
    return sum->values > 0 ? sum->bytes * 8 / sum->values : 0;
}

int info_type_at(int i)
{
    return i < INFO_TYPES_GGML ? i : W_U8 + i - INFO_TYPES_GGML;
}

const char *info_shape_key(const struct kv *kv, struct str arch)
{
    if (!arch.n || kv->key.n < arch.n + 2 || memcmp(kv->key.p, arch.p, arch.n) != 0 ||
        kv->key.p[arch.n] != '.' || kv->type == KV_ARR || kv->type == KV_STR)
        return NULL;
    return kv->key.p + arch.n + 1;
}

struct str info_text(const struct info_source *s, const char *key)
{
    struct str v = { "", 0 };
    weights_str(s->w, key, &v);
    return v;
}

struct str info_tokenizer(const struct info_source *s, const struct info_model *m)
{
    struct str v = info_text(s, "tokenizer.ggml.model");
    return v.n || !m->ids ? v : (struct str){ "gpt2", 4 };
}

size_t info_tokens(const struct info_source *s)
{
    const struct kv *kv = weights_key(s->w, "tokenizer.ggml.tokens");
    return kv ? kv->count : 0;
}

const char *const info_router_entries[INFO_ROUTER_ENTRIES][2] = {
    { "model_name", "  model" }, { "model", "  fingerprint" }, { "weights", "  weights" },
    { "task", "  learnt" },      { "share", "  share" },
};

bool info_is_router(struct info_router *f, const struct info_source *s)
{
    const struct tensor *t = weights_find(s->w, "router.w1");
    const struct tensor *table = weights_find(s->w, "context.table");
    const struct tensor *last = weights_find(s->w, "router.w2");
    struct router_form form = { .members = 1 };
    *f = (struct info_router){ .tap = info_text(s, "tap") };
    if (!f->tap.n)
        f->tap = (struct str){ "final", 5 };
    if (t && t->ndim == 2) {
        f->features = table && t->shape[1] >= FEATURES ? FEATURES : 0;
        f->hidden = t->shape[1] - f->features;
        if (last && (last->ndim != 2 ||
                     !router_form_shape(&form, t->shape[0], last->shape[0], last->shape[1])))
            form = (struct router_form){ .members = 1 };
        f->members = form.members;
        f->width = t->shape[0] / form.members;
    } else {
        f->contexts = table && table->ndim == 2 ? table->shape[0] : 0;
    }
    f->name = router_head(f->hidden, f->features, form.gain);
    return f->width || f->contexts;
}

bool info_without_data(const struct info_source *s)
{
    for (size_t i = 0; i < weights_ntensors(s->w); i++)
        if (weights_tensor(s->w, i)->bytes && !weights_tensor(s->w, i)->data)
            return true;
    return false;
}
