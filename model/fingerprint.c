#include "model/fingerprint.h"

#include <stdbool.h>
#include <string.h>

#include "kernels/math.h"
#include "kernels/sys/pool.h"
#include "kernels/sys/text.h"
#include "model/model.h"
#include "model/text/tokenizer.h"
#include "weights/weights.h"

/* Add the bits of n floats to a hash, which begins with 0. */
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
    const struct model_config *c = &m->config;
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
        const struct model_layer *l = &m->layers[i];
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
    return fingerprint_floats(h, m->final_norm, c->hidden);
}

/* The weights while they are hashed in pieces. The sum over the pieces does not depend on the order
 * in which threads add to it. */
struct fingerprint {
    const unsigned char *arena;
    size_t bytes;
    _Atomic uint64_t sum;
};

enum { PIECE = 1 << 20 }; /* bytes of a piece */

/* Add the next 8 bytes to a hash: a bijection of the hash for each value of theirs, and of their
 * value for each hash, so one changed word always changes the result. */
static uint64_t fingerprint_word(uint64_t h, const unsigned char *p)
{
    uint64_t word;
    memcpy(&word, p, sizeof(word));
    h = (h ^ word) * UINT64_C(0x9e3779b97f4a7c15);
    return h << 29 | h >> 35;
}

/* Hash a piece of n bytes, a multiple of 32. There are four hashes, which do not wait for each
 * other, so that memory is the limit. */
static uint64_t fingerprint_piece(const unsigned char *p, size_t n)
{
    uint64_t a = 0, b = 0, c = 0, d = 0;
    for (const unsigned char *end = p + n; p < end; p += 32) {
        a = fingerprint_word(a, p);
        b = fingerprint_word(b, p + 8);
        c = fingerprint_word(c, p + 16);
        d = fingerprint_word(d, p + 24);
    }
    return rand_u64(rand_u64(rand_u64(rand_u64(n, a), b), c), d);
}

static void fingerprint_pieces(void *arg, size_t thread, size_t first, size_t last)
{
    (void)thread;
    struct fingerprint *f = arg;
    for (size_t i = first; i < last; i++) {
        size_t at = i * PIECE, n = f->bytes - at < PIECE ? f->bytes - at : PIECE;
        f->sum += rand_u64(fingerprint_piece(f->arena + at, n), i);
    }
}

uint64_t model_exact_fingerprint(const struct model *m, struct pool *pool)
{
    struct fingerprint f = { .arena = m->arena, .bytes = m->bytes };
    pool_for(pool, f.bytes / PIECE + (f.bytes % PIECE != 0), 1, fingerprint_pieces, &f);
    uint64_t h = rand_u64(f.sum, m->embedding.type);
    h = rand_u64(h, m->head.type);
    for (size_t i = 0; i < m->config.layers; i++) {
        const struct model_layer *l = &m->layers[i];
        const enum ptype types[] = { l->q.type,    l->k.type,  l->v.type,   l->o.type,
                                     l->gate.type, l->up.type, l->down.type };
        for (size_t j = 0; j < sizeof(types) / sizeof(types[0]); j++)
            h = rand_u64(h, types[j]);
    }
    return h;
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

/* Return the type in which most bytes of the matrices are stored. */
static const char *fingerprint_main_type(const struct weights *w)
{
    enum { TYPES = W_F8_E5M2 + 1 };
    double bytes[TYPES] = { 0 };
    int most = 0;
    for (size_t i = 0; i < weights_ntensors(w); i++) {
        const struct tensor *t = weights_tensor(w, i);
        if (t->ndim > 1 && t->type >= 0 && t->type < TYPES)
            bytes[t->type] += (double)t->bytes;
    }
    for (int type = 1; type < TYPES; type++)
        most = bytes[type] > bytes[most] ? type : most;
    return bytes[most] > 0 && wtype_name(most) ? wtype_name(most) : "";
}

const char *model_file_type(const struct weights *w)
{
    static const char *const names[] = {
        [0] = "F32",     [1] = "F16",     [2] = "Q4_0",    [3] = "Q4_1",    [7] = "Q8_0",
        [8] = "Q5_0",    [9] = "Q5_1",    [10] = "Q2_K",   [11] = "Q3_K_S", [12] = "Q3_K_M",
        [13] = "Q3_K_L", [14] = "Q4_K_S", [15] = "Q4_K_M", [16] = "Q5_K_S", [17] = "Q5_K_M",
        [18] = "Q6_K",   [21] = "Q2_K_S", [25] = "IQ4_NL", [30] = "IQ4_XS", [32] = "BF16",
    };
    uint64_t type;
    if (weights_u64(w, "general.file_type", &type) && type < sizeof(names) / sizeof(*names) &&
        names[type])
        return names[type];
    return fingerprint_main_type(w);
}
