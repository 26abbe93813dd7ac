#include <stdlib.h>
#include <string.h>

#include "kernels/sys/os.h"
#include "model/batch_internal.h"

#define NO_MEMORY "session: no memory for a context of %zu positions"

/* Set the sizes that follow from the model's shape, and take the arrays from the arena. */
static int session_lay_out(struct session *s, struct layout *l, const struct model_config *c,
                           size_t context, enum kvcache kv, struct err *err)
{
    if (context == 0 || context > UINT32_MAX)
        return err_set(err, ERR_ARG, "context: expected 1 to %lu positions, found %zu",
                       (unsigned long)UINT32_MAX, context);
    s->context = context;
    s->kv = kv;
    s->context16 = round16(context);
    s->keys_bytes = kvcache_keys_bytes(kv, round16(c->head_dim));
    s->value_bytes = kvcache_value_bytes(kv, round16(c->head_dim));
    s->ids = layout_take(l, context, sizeof(*s->ids));
    if (!size_mul(&s->cache_half, c->layers * c->kv_heads * s->value_bytes, s->context16))
        l->overflow = true;
    s->cache = layout_take(l, 2, s->cache_half);
    return l->overflow ? err_set(err, ERR_NOMEM, NO_MEMORY, context) : OK;
}

int session_size(size_t *bytes, size_t *cache, const struct model_config *config, size_t context,
                 enum kvcache kv, struct err *err)
{
    struct session s = { .batch = NULL };
    struct layout count = { 0 };
    int rc = session_lay_out(&s, &count, config, context, kv, err);
    *bytes = count.at;
    *cache = 2 * s.cache_half;
    return rc;
}

int session_open(struct session **out, struct batch *b, size_t context, enum kvcache kv,
                 struct err *err)
{
    const struct model_config *c = &b->m->config;
    *out = NULL;
    struct session *s = calloc(1, sizeof(*s));
    if (!s)
        return err_set(err, ERR_NOMEM, "session: out of memory");
    struct layout count = { 0 };
    int rc = session_lay_out(s, &count, c, context, kv, err);
    if (rc == OK)
        rc = model_check_context(c, context, err);
    if (rc == OK)
        rc = batch_reserve(b, context, err);
    if (rc == OK && !(s->arena = os_alloc(count.at)))
        rc = err_set(err, ERR_NOMEM, NO_MEMORY, context);
    if (rc != OK) {
        free(s);
        return rc;
    }
    s->batch = b;
    s->bytes = count.at;
    os_sparse(s->arena, s->bytes); /* a short text needs a little of every layer's cache */
    struct layout place = { .base = s->arena };
    session_lay_out(s, &place, c, context, kv, NULL);
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

int session_check(const struct session *s, const uint32_t *ids, size_t n, struct err *err)
{
    size_t vocab = s->batch->m->config.vocab;
    if (n == 0 || n > s->context - s->length)
        return err_set(err, ERR_ARG, "context: %zu tokens after %zu do not fit in %zu positions", n,
                       s->length, s->context);
    for (size_t i = 0; i < n; i++)
        if (ids[i] >= vocab)
            return err_set(err, ERR_ARG, "token id %lu: expected below %zu", (unsigned long)ids[i],
                           vocab);
    return OK;
}

int session_eval(struct session *s, const uint32_t *ids, size_t n, const _Atomic int *stop,
                 struct err *err)
{
    size_t start = s->length;
    int rc = session_check(s, ids, n, err);
    /* The short chunk comes first, so that the last one keeps BATCH_ROWS hidden states. */
    size_t size = n % BATCH_ROWS ? n % BATCH_ROWS : BATCH_ROWS;
    for (size_t done = 0; rc == OK && done < n; done += size, size = BATCH_ROWS) {
        struct batch_part part = { .session = s, .ids = ids + done, .n = size };
        rc = batch_eval(s->batch, &part, 1, stop, err);
    }
    if (rc != OK)
        session_rewind(s, start);
    return rc;
}

void session_rewind(struct session *s, size_t n)
{
    size_t gone = n < s->length ? s->length - n : 0;
    s->length -= gone;
    s->kept -= gone < s->kept ? gone : s->kept;
}

size_t session_sync(struct session *s, const uint32_t *ids, size_t n)
{
    size_t same = 0;
    while (same < s->length && same < n && s->ids[same] == ids[same])
        same++;
    session_rewind(s, same);
    return same;
}

/* Copy the keys and values of positions [from, n) of one KV head of one layer; keys in whole groups
 * of 16. */
static void session_copy_head(struct session *dst, const struct session *src, size_t head,
                              size_t from, size_t n)
{
    size_t first = from / PANEL, groups = (n + PANEL - 1) / PANEL - first;
    size_t to = head * dst->context16, at = head * src->context16;
    memcpy(dst->cache + (to / PANEL + first) * dst->keys_bytes,
           src->cache + (at / PANEL + first) * src->keys_bytes, groups * src->keys_bytes);
    memcpy(dst->cache + dst->cache_half + (to + from) * dst->value_bytes,
           src->cache + src->cache_half + (at + from) * src->value_bytes,
           (n - from) * src->value_bytes);
}

int session_copy(struct session *dst, const struct session *src, size_t n, struct err *err)
{
    const struct model_config *c = &src->batch->m->config;
    if (dst->batch->m != src->batch->m || dst->kv != src->kv)
        return err_set(err, ERR_ARG, "session: expected one of the same model and KV type");
    if (n > src->length || n > dst->context)
        return err_set(err, ERR_ARG, "session: expected at most %zu tokens to copy, found %zu",
                       src->length < dst->context ? src->length : dst->context, n);
    if (dst == src) {
        session_rewind(dst, n);
        return OK;
    }
    size_t same = session_sync(dst, src->ids, n); /* what equal tokens left is equal */
    for (size_t head = 0; same < n && head < c->layers * c->kv_heads; head++)
        session_copy_head(dst, src, head, same, n);
    memcpy(dst->ids, src->ids, n * sizeof(*dst->ids));
    dst->length = n;
    dst->kept = 0;
    return OK;
}

const struct model *session_model(const struct session *s)
{
    return s->batch->m;
}

struct batch *session_batch(const struct session *s)
{
    return s->batch;
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

bool session_row(size_t *row, const struct session *s, size_t n)
{
    size_t back = s->length - n; /* wraps around if n is larger */
    *row = s->row + s->kept - 1 - back;
    return s->pass == s->batch->pass && back < s->kept;
}

const float *session_hidden(const struct session *s, size_t back)
{
    size_t row;
    return session_row(&row, s, s->length - back) ? batch_hidden(s->batch, row) : NULL;
}

const float *session_logits(struct session *s, size_t back)
{
    size_t rows[HEAD_ROWS], n = 0;
    if (!session_row(&rows[0], s, s->length - back))
        return NULL;
    const float *logits = batch_logits_at(s->batch, rows[0]);
    if (logits)
        return logits;
    for (n = 1; n < HEAD_ROWS && n <= back; n++)
        rows[n] = rows[0] + n;
    batch_logits(s->batch, rows, n, NULL); /* so many rows always have memory */
    return batch_logits_at(s->batch, rows[0]);
}
