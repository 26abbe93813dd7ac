#include <stdlib.h>
#include <string.h>

#include "kernels/sys/os.h"
#include "kernels/sys/pool.h"
#include "model/batch_internal.h"

void *layout_take(struct layout *l, size_t n, size_t each)
{
    size_t bytes, at = l->at;
    if (!size_mul(&bytes, n, each) || !size_add(&l->at, l->at, bytes) ||
        !size_align(&l->at, l->at, 64))
        l->overflow = true;
    return l->base && !l->overflow ? l->base + at : NULL;
}

/* Set the row lengths, and take every array of a pass from the arena. */
static void batch_lay_out(struct batch *b, struct layout *l, const struct model_config *c)
{
    size_t n = BATCH_ROWS, f = sizeof(float), half = c->head_dim / 2;
    b->hd16 = round16(c->head_dim);
    b->per = c->heads / c->kv_heads;
    b->ld_h = round16(c->hidden);
    b->ld_q = round16(c->heads * c->head_dim);
    b->ld_kv = round16(c->kv_heads * c->head_dim);
    b->ld_f = round16(c->ffn);
    b->ld_v = round16(c->vocab);
    size_t wide = c->ffn > b->ld_q ? c->ffn : b->ld_q;
    wide = wide > b->ld_h ? wide : b->ld_h;
    b->inv_freq = layout_take(l, half, sizeof(*b->inv_freq));
    b->cos = layout_take(l, n * half, f);
    b->sin = layout_take(l, n * half, f);
    b->x = layout_take(l, n * b->ld_h, f);
    b->xn = layout_take(l, n * b->ld_h, f);
    b->q = layout_take(l, n * b->ld_q, f);
    b->k = layout_take(l, n * b->ld_kv, f);
    b->v = layout_take(l, n * b->ld_kv, f);
    b->heads = layout_take(l, c->heads * n * b->hd16, f);
    b->att = layout_take(l, n * b->ld_q, f);
    b->gate = layout_take(l, n * b->ld_f, f);
    b->up = layout_take(l, n * b->ld_f, f);
    b->out = layout_take(l, n * b->ld_h, f);
    b->final = layout_take(l, n * b->ld_h, f);
    b->act.q = layout_take(l, n * wide, 1);
    b->act.scale = layout_take(l, n * (wide / GROUP + 1), f);
    b->act.bias = layout_take(l, n * (wide / GROUP + 1), sizeof(int32_t));
    b->act.half = layout_take(l, n * (wide / GROUP + 1), 2 * sizeof(int32_t));
    b->act.sum = layout_take(l, n * (wide / GROUP + 1), f);
    b->row = layout_take(l, b->threads * b->hd16, f);
}

/* Take `rows` rows of partial attention. */
static void batch_lay_out_parts(struct batch *b, struct layout *l, size_t rows)
{
    b->part_max = layout_take(l, rows, sizeof(float));
    b->part_sum = layout_take(l, rows, sizeof(float));
    b->part_out = layout_take(l, rows, b->hd16 * sizeof(float));
}

int batch_size(size_t *bytes, const struct model_config *config, size_t threads, size_t context,
               struct err *err)
{
    struct batch b = { .threads = threads };
    struct layout count = { 0 };
    size_t rows = 0;
    batch_lay_out(&b, &count, config);
    bool fits = attention_rows(&rows, config, threads, context);
    batch_lay_out_parts(&b, &count, rows);
    *bytes = count.at + HEAD_ROWS * b.ld_v * sizeof(float);
    return fits && !count.overflow
               ? OK
               : err_set(err, ERR_NOMEM, "batch: no memory for a context of %zu positions",
                         context);
}

/* Replace the logits' memory by one for more rows, doubling it, because drafts grow a row at a
 * time. */
static int batch_reserve_logits(struct batch *b, size_t n, struct err *err)
{
    size_t rows = HEAD_ROWS, bytes = b->ld_v * sizeof(float);
    if (n <= b->logits_room)
        return OK;
    while (rows < n)
        rows *= 2;
    rows = rows < BATCH_ROWS ? rows : (size_t)BATCH_ROWS;
    float *logits = os_alloc(rows * bytes);
    if (!logits)
        return err_set(err, ERR_NOMEM, "logits: no memory for %zu rows of %zu", rows,
                       b->m->config.vocab);
    os_free(b->logits, b->logits_room * bytes);
    b->logits = logits;
    b->logits_room = rows;
    b->nlogits = 0;
    return OK;
}

int batch_reserve(struct batch *b, size_t context, struct err *err)
{
    struct layout count = { 0 };
    size_t rows;
    bool fits = attention_rows(&rows, &b->m->config, b->threads, context);
    if (fits && rows <= b->part_rows)
        return OK;
    struct batch more = *b;
    if (fits)
        batch_lay_out_parts(&more, &count, rows);
    struct layout place = { .base = fits && !count.overflow ? os_alloc(count.at) : NULL };
    if (!place.base)
        return err_set(err, ERR_NOMEM, "batch: no memory for a context of %zu positions", context);
    os_free(b->parts, b->parts_bytes);
    b->parts = place.base;
    b->parts_bytes = count.at;
    b->part_rows = rows;
    batch_lay_out_parts(b, &place, rows);
    return OK;
}

int batch_open(struct batch **out, const struct model *m, struct pool *pool, struct err *err)
{
    const struct model_config *c = &m->config;
    *out = NULL;
    struct batch *b = calloc(1, sizeof(*b));
    if (!b)
        return err_set(err, ERR_NOMEM, "batch: out of memory");
    b->m = m;
    b->pool = pool;
    b->threads = pool_threads(pool);
    tuning_open(&b->tuning, m->kernels, m->head.type);
    struct layout count = { 0 };
    batch_lay_out(b, &count, c);
    b->arena = count.overflow ? NULL : os_alloc(count.at);
    b->bytes = count.at;
    int rc = b->arena ? batch_reserve_logits(b, HEAD_ROWS, err)
                      : err_set(err, ERR_NOMEM, "batch: no memory for its rows");
    if (rc != OK) {
        batch_close(b);
        return rc;
    }
    struct layout place = { .base = b->arena };
    batch_lay_out(b, &place, c);
    rope_frequencies(b->inv_freq, &b->magnitude, c);
    *out = b;
    return OK;
}

void batch_close(struct batch *b)
{
    if (!b)
        return;
    os_free(b->parts, b->parts_bytes);
    os_free(b->logits, b->logits_room * b->ld_v * sizeof(float));
    os_free(b->arena, b->bytes);
    free(b);
}

void batch_watch(struct batch *b, const struct batch_watch *w)
{
    b->watch = w;
}

const struct tuning *batch_tuning(const struct batch *b)
{
    return &b->tuning;
}

size_t batch_rows(const struct batch *b)
{
    return b->n;
}

/* Say whether this part can run in pass `pass`. */
static int batch_check(const struct batch *b, const struct batch_part *p, uint64_t pass,
                       struct err *err)
{
    const struct session *s = p->session;
    if (s->batch != b)
        return err_set(err, ERR_ARG, "session: expected one of this batch");
    if (s->claimed == pass)
        return err_set(err, ERR_ARG, "session: expected one part in a pass, found a second one");
    return session_check(s, p->ids, p->n, err);
}

/* Append the rows of a part. */
static void batch_add(struct batch *b, struct batch_part *p)
{
    struct session *s = p->session;
    p->row = b->n;
    b->segment[b->nsegments++] = (struct segment){ s, b->n, p->n, s->length };
    for (size_t i = 0; i < p->n; i++, b->n++) {
        b->ids[b->n] = p->ids[i];
        b->pos[b->n] = s->length + i;
        b->of[b->n] = s;
    }
}

int batch_eval(struct batch *b, struct batch_part *parts, size_t count, const _Atomic int *stop,
               struct err *err)
{
    size_t rows = 0;
    for (size_t i = 0; i < count; rows += parts[i++].n)
        if (parts[i].n > BATCH_ROWS - rows)
            return err_set(err, ERR_ARG, "batch: expected at most %d rows in a pass", BATCH_ROWS);
    b->pass++;
    b->n = b->nsegments = b->nlogits = 0;
    for (size_t i = 0; i < count; i++) {
        struct batch_part *p = &parts[i];
        p->rc = batch_check(b, p, b->pass, &p->err);
        if (p->rc == OK) {
            p->session->claimed = b->pass;
            batch_add(b, p);
        }
    }
    if (b->n && forward_pass(b, stop)) {
        b->n = 0;
        return err_set(err, ERR_STOP, "interrupted");
    }
    for (size_t i = 0; i < b->nsegments; i++) {
        const struct segment *segment = &b->segment[i];
        struct session *s = segment->session;
        memcpy(s->ids + s->length, b->ids + segment->row, segment->n * sizeof(*s->ids));
        s->length += segment->n;
        s->pass = b->pass;
        s->row = segment->row;
        s->kept = segment->n;
    }
    return OK;
}

const float *batch_hidden(const struct batch *b, size_t row)
{
    return b->final + row * b->ld_h;
}

const float *batch_logits_at(const struct batch *b, size_t row)
{
    for (size_t i = 0; i < b->nlogits; i++)
        if (b->logits_row[i] == row)
            return b->logits + i * b->ld_v;
    return NULL;
}

float batch_logit(struct batch *b, const float *hidden, uint32_t id)
{
    b->nlogits = 0;
    return forward_head_row(b, hidden, id);
}

int batch_logits(struct batch *b, const size_t *rows, size_t n, struct err *err)
{
    size_t have = 0;
    while (have < n && batch_logits_at(b, rows[have]))
        have++;
    if (have == n)
        return OK;
    int rc = batch_reserve_logits(b, n, err);
    if (rc != OK)
        return rc;
    memcpy(b->logits_row, rows, n * sizeof(*rows));
    b->nlogits = n;
    forward_head(b);
    return OK;
}

int batch_lens(struct batch *b, const float *x, size_t ld, size_t n, struct err *err)
{
    int rc = batch_reserve_logits(b, n, err);
    if (rc != OK)
        return rc;
    b->nlogits = 0;
    forward_lens(b, x, ld, n);
    return OK;
}

const float *batch_lens_at(const struct batch *b, size_t i)
{
    return b->logits + i * b->ld_v;
}
