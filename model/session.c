#include <stdlib.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "kernels/math.h"
#include "kernels/sys/os.h"
#include "kernels/sys/pool.h"
#include "model/session_internal.h"

#define NO_MEMORY "session: no memory for a context of %zu positions"

static size_t session_round16(size_t n)
{
    return (n + PANEL - 1) / PANEL * PANEL;
}

/* The layout of the arena. session_lay_out runs twice: to count bytes (base NULL), then to
 * place. */
struct layout {
    unsigned char *base;
    size_t at;
    bool overflow;
};

/* Take n elements from the arena; NULL while only counting. */
static void *session_take(struct layout *l, size_t n, size_t each)
{
    size_t bytes, at = l->at;
    if (!size_mul(&bytes, n, each) || !size_add(&l->at, l->at, bytes) ||
        !size_align(&l->at, l->at, 64))
        l->overflow = true;
    return l->base && !l->overflow ? l->base + at : NULL;
}

/* Take every array of the session from the arena; the KV cache comes last. */
static void session_lay_out(struct session *s, struct layout *l, const struct model_config *c,
                            size_t threads)
{
    size_t n = SESSION_CHUNK, f = sizeof(float);
    size_t half = c->head_dim / 2, blocks = s->context / ATTN_BLOCK + 1;
    size_t wide = c->ffn > s->ld_q ? c->ffn : s->ld_q;
    wide = wide > s->ld_h ? wide : s->ld_h;
    s->ids = session_take(l, s->context, sizeof(*s->ids));
    s->inv_freq = session_take(l, half, sizeof(*s->inv_freq));
    s->cos = session_take(l, n * half, f);
    s->sin = session_take(l, n * half, f);
    s->x = session_take(l, n * s->ld_h, f);
    s->xn = session_take(l, n * s->ld_h, f);
    s->q = session_take(l, n * s->ld_q, f);
    s->k = session_take(l, n * s->ld_kv, f);
    s->v = session_take(l, n * s->ld_kv, f);
    s->heads = session_take(l, c->heads * n * s->hd16, f);
    s->att = session_take(l, n * s->ld_q, f);
    s->gate = session_take(l, n * s->ld_f, f);
    s->up = session_take(l, n * s->ld_f, f);
    s->out = session_take(l, n * s->ld_h, f);
    s->final = session_take(l, n * s->ld_h, f);
    s->post = session_take(l, n * s->ld_h, f);
    s->logits = session_take(l, session_round16(c->vocab), f);
    s->act.q = session_take(l, n * wide, 1);
    s->act.scale = session_take(l, n * (wide / GROUP + 1), f);
    s->act.bias = session_take(l, n * (wide / GROUP + 1), sizeof(int32_t));
    /* Tiles need two parts per thread; one token split by block needs one per KV head and block. */
    size_t tiles = 2 * threads * TILE * s->per, split = c->heads * blocks;
    s->part_rows = TILE * s->per;
    size_t rows = tiles > split ? tiles : split;
    s->part_max = session_take(l, rows, f);
    s->part_sum = session_take(l, rows, f);
    s->part_out = session_take(l, rows * s->hd16, f);
    s->row = session_take(l, threads * s->hd16, f);
    size_t heads = c->layers * c->kv_heads, half_cache;
    if (!size_mul(&half_cache, heads * s->value_bytes, s->context16))
        l->overflow = true;
    s->cache_half = l->overflow ? 0 : half_cache;
    s->cache = session_take(l, 2, s->cache_half);
}

/* Set the sizes that follow from the model's shape, and count the bytes of the arena. */
static int session_measure(struct session *s, struct layout *count, const struct model_config *c,
                           size_t threads, size_t context, enum kvcache kv, struct err *err)
{
    if (context == 0 || context > UINT32_MAX)
        return err_set(err, ERR_ARG, "context: expected 1 to %lu positions, found %zu",
                       (unsigned long)UINT32_MAX, context);
    s->context = context;
    s->kv = kv;
    s->hd16 = session_round16(c->head_dim);
    s->context16 = session_round16(context);
    s->keys_bytes = kvcache_keys_bytes(kv, s->hd16);
    s->value_bytes = kvcache_value_bytes(kv, s->hd16);
    s->per = c->heads / c->kv_heads;
    s->ld_h = session_round16(c->hidden);
    s->ld_q = session_round16(c->heads * c->head_dim);
    s->ld_kv = session_round16(c->kv_heads * c->head_dim);
    s->ld_f = session_round16(c->ffn);
    session_lay_out(s, count, c, threads);
    return count->overflow ? err_set(err, ERR_NOMEM, NO_MEMORY, context) : OK;
}

int session_size(size_t *bytes, size_t *cache, const struct model_config *config, size_t threads,
                 size_t context, enum kvcache kv, struct err *err)
{
    struct session s = { .m = NULL };
    struct layout count = { 0 };
    int rc = session_measure(&s, &count, config, threads, context, kv, err);
    *bytes = count.at;
    *cache = 2 * s.cache_half;
    return rc;
}

int session_open(struct session **out, const struct model *m, struct pool *pool, size_t context,
                 enum kvcache kv, struct err *err)
{
    const struct model_config *c = model_config(m);
    *out = NULL;
    struct session *s = calloc(1, sizeof(*s));
    if (!s)
        return err_set(err, ERR_NOMEM, "session: out of memory");
    s->m = m;
    s->pool = pool;
    s->logits_of = SIZE_MAX;
    struct layout count = { 0 };
    int rc = session_measure(s, &count, c, pool_threads(pool), context, kv, err);
    if (rc == OK && !(s->arena = os_alloc(count.at)))
        rc = err_set(err, ERR_NOMEM, NO_MEMORY, context);
    if (rc != OK) {
        free(s);
        return rc;
    }
    s->bytes = count.at;
    struct layout place = { .base = s->arena };
    session_lay_out(s, &place, c, pool_threads(pool));
    double log_theta = log_f64((double)c->rope_theta);
    for (size_t i = 0; i < c->head_dim / 2; i++)
        s->inv_freq[i] = exp_f64(-(double)(2 * i) / (double)c->head_dim * log_theta);
    *out = s;
    return OK;
}

void session_close(struct session *s)
{
    if (!s)
        return;
    os_free(s->arena, s->bytes);
    free(s);
}

int session_eval(struct session *s, const uint32_t *ids, size_t n, const _Atomic int *stop,
                 struct err *err)
{
    size_t vocab = model_config(s->m)->vocab, start = s->length;
    if (n == 0 || n > s->context - s->length)
        return err_set(err, ERR_ARG, "context: %zu tokens after %zu do not fit in %zu positions", n,
                       s->length, s->context);
    for (size_t i = 0; i < n; i++)
        if (ids[i] >= vocab)
            return err_set(err, ERR_ARG, "token id %lu: expected below %zu", (unsigned long)ids[i],
                           vocab);
    s->logits_of = SIZE_MAX;
    s->kept = 0;
    /* The short chunk comes first, so that the last one keeps SESSION_CHUNK hidden states. */
    size_t first = n % SESSION_CHUNK ? n % SESSION_CHUNK : SESSION_CHUNK;
    for (size_t done = 0, size = first; done < n; done += size, size = SESSION_CHUNK) {
        size = done ? SESSION_CHUNK : first;
        if (forward_chunk(s, ids + done, size, stop)) {
            s->length = start;
            return err_set(err, ERR_STOP, "interrupted");
        }
        memcpy(s->ids + s->length, ids + done, size * sizeof(*ids));
        s->length += size;
        s->kept = size;
    }
    return OK;
}

void session_rewind(struct session *s, size_t n)
{
    if (n >= s->length)
        return;
    s->length = n;
    s->kept = 0;
    s->logits_of = SIZE_MAX;
}

const struct model *session_model(const struct session *s)
{
    return s->m;
}

size_t session_length(const struct session *s)
{
    return s->length;
}

size_t session_context(const struct session *s)
{
    return s->context;
}

const uint32_t *session_ids(const struct session *s)
{
    return s->ids;
}

size_t session_bytes(const struct session *s)
{
    return s->bytes;
}

const float *session_hidden(const struct session *s, enum tap tap, size_t back)
{
    if (back >= s->kept)
        return NULL;
    return (tap == TAP_FINAL ? s->final : s->post) + (s->kept - 1 - back) * s->ld_h;
}

const float *session_logits(struct session *s, size_t back)
{
    if (back >= s->kept)
        return NULL;
    if (s->logits_of != back) {
        forward_head(s, s->kept - 1 - back);
        s->logits_of = back;
    }
    return s->logits;
}

int session_has_logits(const struct session *s)
{
    return s->logits_of == 0;
}
