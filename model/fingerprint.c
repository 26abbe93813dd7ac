#include "model/fingerprint.h"

#include <stdbool.h>
#include <string.h>

#include "kernels/math.h"
#include "kernels/sys/text.h"
#include "model/model.h"
#include "model/text/tokenizer.h"
#include "weights/weights.h"

/* Add n floats to a fingerprint. */
static uint64_t fingerprint_floats(uint64_t h, const float *v, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, v + i, sizeof(bits));
        h = rand_u64(h, bits);
    }
    return h;
}

uint64_t model_fingerprint(const struct model *m, const struct tokenizer *t)
{
    const struct model_config *c = model_config(m);
    const uint64_t shape[] = { c->layers,   c->hidden, c->heads, c->kv_heads,
                               c->head_dim, c->ffn,    c->vocab };
    uint64_t h = t ? tokenizer_fingerprint(t) : 0;
    for (size_t i = 0; i < sizeof(shape) / sizeof(shape[0]); i++)
        h = rand_u64(h, shape[i]);
    if (c->rope.kind != ROPE_PLAIN) { /* it changes the hidden states, even of short texts */
        const struct rope_scaling *r = &c->rope;
        const float scaling[] = { r->factor, r->magnitude, r->beta_fast, r->beta_slow };
        h = rand_u64(h, (uint64_t)r->kind ^ (uint64_t)r->original << 8);
        h = fingerprint_floats(h, scaling, sizeof(scaling) / sizeof(scaling[0]));
    }
    for (size_t i = 0; i < c->layers; i++) {
        const struct model_layer *l = model_layer(m, i);
        h = fingerprint_floats(h, l->attn_norm, c->hidden);
        if (c->qk_norm) {
            h = fingerprint_floats(h, l->q_norm, c->head_dim);
            h = fingerprint_floats(h, l->k_norm, c->head_dim);
        } else {
            h = fingerprint_floats(h, l->bq, c->heads * c->head_dim);
            h = fingerprint_floats(h, l->bk, c->kv_heads * c->head_dim);
            h = fingerprint_floats(h, l->bv, c->kv_heads * c->head_dim);
        }
        h = fingerprint_floats(h, l->ffn_norm, c->hidden);
    }
    return fingerprint_floats(h, model_final_norm(m), c->hidden);
}

/* Return the last part of a path, without .gguf. */
static struct str fingerprint_base(const char *path)
{
    size_t end = strlen(path);
    while (end > 1 && path[end - 1] == '/')
        end--;
    size_t first = end;
    while (first && path[first - 1] != '/')
        first--;
    if (end - first > 5 && !memcmp(path + end - 5, ".gguf", 5))
        end -= 5;
    return (struct str){ path + first, end - first };
}

void model_file_name(char out[MODEL_NAME], const struct weights *w)
{
    struct str name;
    size_t n = 0, some;
    if (!weights_str(w, "general.name", &name) || !name.n)
        name = fingerprint_base(weights_path(w));
    for (size_t at = 0; at < name.n; at += some ? some : 1) {
        some = text_shown(name.p + at, name.n - at);
        if (n + (some ? some : 1) >= MODEL_NAME)
            break;
        memcpy(out + n, some ? name.p + at : "?", some ? some : 1);
        n += some ? some : 1;
    }
    out[n] = 0;
}

const char *model_file_type(const struct weights *w)
{
    const struct tensor *t = weights_find(w, "blk.0.ffn_down.weight");
    const char *name = t ? wtype_name(t->type) : NULL;
    return name ? name : "";
}
