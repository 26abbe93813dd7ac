/* attention.c - the attention of one layer, for all rows of a pass.
 *
 * Keys are processed in blocks of 64 absolute positions. Each block is computed on its own and
 * merged into those before it, in ascending order; so the bits do not depend on which rows are
 * evaluated together, or on how the work is divided. It is divided by tiles of rows and KV heads.
 * Where these are too few for the threads, one thread takes the first blocks of a tile, the lead,
 * and the others are spread over all threads and merged at the end. */
#include <math.h>
#include <string.h>

#include "kernels/math.h"
#include "kernels/sys/pool.h"
#include "model/batch_internal.h"

struct attention {
    struct batch *b;
    size_t layer;
};

/* Return the group of 16 keys that contains position pos, for one KV head; cache_value returns the
 * value at pos. */
static void *cache_keys(const struct attention *a, const struct session *s, size_t g, size_t pos)
{
    size_t head = a->layer * a->b->m->config.kv_heads + g;
    return s->cache + (head * s->context16 + pos) / PANEL * s->keys_bytes;
}

static void *cache_value(const struct attention *a, const struct session *s, size_t g, size_t pos)
{
    size_t head = a->layer * a->b->m->config.kv_heads + g;
    return s->cache + s->cache_half + (head * s->context16 + pos) * s->value_bytes;
}

/* Copy one head of a query or key, normed if the model has a norm for it, and rotate it. */
static void attention_rotate(const struct batch *b, float *to, const float *from, const float *norm,
                             size_t row)
{
    const struct model_config *c = &b->m->config;
    size_t half = c->head_dim / 2;
    if (norm)
        b->m->kernels->rmsnorm_f32(to, from, norm, c->head_dim, c->eps);
    else
        memcpy(to, from, c->head_dim * sizeof(*to));
    b->m->kernels->rope_f32(to, b->cos + row * half, b->sin + row * half, half);
}

/* Thread function: norm and rotate queries and keys of rows [first, last). Queries go to rows of
 * hd16 floats, padding zero; keys and values go to the row's cache. */
static void attention_spread(void *arg, size_t thread, size_t first, size_t last)
{
    const struct attention *a = arg;
    const struct batch *b = a->b;
    const struct model_config *c = &b->m->config;
    const struct model_layer *l = &b->m->layers[a->layer];
    size_t hd = c->head_dim;
    float *row = b->row + thread * b->hd16; /* the padding at its end stays zero */
    for (size_t t = first; t < last; t++) {
        const struct session *s = b->of[t];
        size_t pos = b->pos[t];
        for (size_t h = 0; h < c->heads; h++) {
            size_t g = h / b->per, i = t * b->per + h % b->per;
            float *q = b->heads + (g * BATCH_ROWS * b->per + i) * b->hd16;
            attention_rotate(b, q, b->q + t * b->ld_q + h * hd, l->q_norm, t);
            memset(q + hd, 0, (b->hd16 - hd) * sizeof(*q));
        }
        for (size_t g = 0; g < c->kv_heads; g++) {
            attention_rotate(b, row, b->k + t * b->ld_kv + g * hd, l->k_norm, t);
            kvcache_put_key(s->kv, cache_keys(a, s, g, pos), pos % PANEL, row, b->hd16);
            memcpy(row, b->v + t * b->ld_kv + g * hd, hd * sizeof(*row));
            kvcache_put_value(s->kv, cache_value(a, s, g, pos), row, b->hd16);
        }
    }
}

/* Return the partial attention that begins at this row of the batch's buffers. */
static struct attn_part part_at(const struct batch *b, size_t row)
{
    return (struct attn_part){ b->part_max + row, b->part_sum + row, b->part_out + row * b->hd16 };
}

/* Return the first row of the tile that sees key block `block`. */
static size_t first_seeing(const struct segment *segment, const struct tile *tile, size_t block)
{
    size_t from = block * ATTN_BLOCK, all = segment->start + tile->t0;
    return from > all ? from - segment->start : tile->t0;
}

/* Compute the partial attention with one key block, for KV head g and those rows of the tile that
 * see the block's first key. */
static void attend(const struct attention *a, const struct attn_part *y, const struct tile *tile,
                   size_t g, size_t block)
{
    const struct batch *b = a->b;
    const struct segment *segment = &b->segment[tile->segment];
    const struct session *s = segment->session;
    const struct kernels *k = b->m->kernels;
    size_t from = block * ATTN_BLOCK, t0 = first_seeing(segment, tile, block);
    size_t nk = segment->start + tile->t1 - from, first = segment->start + t0 + 1 - from;
    size_t nq = (tile->t1 - t0) * b->per;
    const float *q = b->heads + (g * BATCH_ROWS + segment->row + t0) * b->per * b->hd16;
    const void *key = cache_keys(a, s, g, from), *value = cache_value(a, s, g, from);
    float scale = 1.0f / sqrtf((float)b->m->config.head_dim);
    nk = nk < ATTN_BLOCK ? nk : ATTN_BLOCK;
    switch (s->kv) {
    case KVCACHE_F32:
        k->attn_f32(y, q, key, value, nq, b->per, first, nk, b->hd16, scale);
        break;
    case KVCACHE_F16:
        k->attn_f16(y, q, key, value, nq, b->per, first, nk, b->hd16, scale);
        break;
    case KVCACHE_Q8:
        k->attn_q8(y, q, key, value, nq, b->per, first, nk, b->hd16, scale);
        break;
    }
}

/* Merge block `block` of a tile, in `next`, into the blocks before it, in `sum`. */
static void merge(const struct batch *b, const struct tile *tile, size_t block,
                  const struct attn_part *sum, const struct attn_part *next)
{
    size_t t0 = first_seeing(&b->segment[tile->segment], tile, block), hd16 = b->hd16;
    size_t skip = (t0 - tile->t0) * b->per;
    for (size_t j = 0; j < (tile->t1 - t0) * b->per; j++) {
        size_t i = skip + j;
        b->m->kernels->attn_merge(&sum->max[i], &sum->sum[i], sum->out + i * hd16, next->max[j],
                                  next->sum[j], next->out + j * hd16, hd16);
    }
}

/* Normalise the rows of a tile and write them as the query heads of KV head g. */
static void finish(const struct batch *b, const struct tile *tile, size_t g,
                   const struct attn_part *sum)
{
    size_t hd = b->m->config.head_dim, row = b->segment[tile->segment].row;
    for (size_t i = 0; i < (tile->t1 - tile->t0) * b->per; i++) {
        size_t t = row + tile->t0 + i / b->per, h = g * b->per + i % b->per;
        float *out = b->att + t * b->ld_q + h * hd, inv = 1.0f / sum->sum[i];
        for (size_t d = 0; d < hd; d++)
            out[d] = sum->out[i * b->hd16 + d] * inv;
    }
}

/* Return the partial attention of a split tile: i 0 is that of its lead, then one for each block
 * after it. */
static struct attn_part split_part(const struct batch *b, const struct tile *tile, size_t g,
                                   size_t i)
{
    size_t rows = (tile->t1 - tile->t0) * b->per;
    return part_at(b, tile->part + (g * (tile->blocks - tile->lead + 1) + i) * rows);
}

/* Attend a tile to the blocks of its lead, one after the other: to all blocks of a whole tile. */
static void attend_lead(const struct attention *a, size_t thread, const struct tile *tile, size_t g)
{
    const struct batch *b = a->b;
    bool whole = tile->lead == tile->blocks;
    struct attn_part next = part_at(b, 2 * thread * TILE * b->per);
    struct attn_part sum =
        whole ? part_at(b, (2 * thread + 1) * TILE * b->per) : split_part(b, tile, g, 0);
    attend(a, &sum, tile, g, 0);
    for (size_t block = 1; block < tile->lead; block++) {
        attend(a, &next, tile, g, block);
        merge(b, tile, block, &sum, &next);
    }
    if (whole)
        finish(b, tile, g, &sum);
}

/* Attend split tiles to the blocks [first, last) after their leads, counted through. */
static void attend_blocks(const struct attention *a, size_t first, size_t last)
{
    const struct batch *b = a->b;
    size_t base = 0;
    for (size_t i = 0; i < b->ntiles; i++) {
        const struct tile *tile = &b->tile[i];
        size_t blocks = tile->blocks - tile->lead;
        size_t end = base + b->m->config.kv_heads * blocks;
        for (size_t u = first > base ? first : base; u < last && u < end; u++) {
            size_t g = (u - base) / blocks, block = (u - base) % blocks;
            struct attn_part y = split_part(b, tile, g, 1 + block);
            attend(a, &y, tile, g, tile->lead + block);
        }
        base = end;
    }
}

/* Thread function: units are the leads, (tile, KV head), then runs of the other blocks. */
static void attention_units(void *arg, size_t thread, size_t first, size_t last)
{
    const struct attention *a = arg;
    const struct batch *b = a->b;
    size_t kv_heads = b->m->config.kv_heads, leads = kv_heads * b->ntiles;
    for (size_t u = first; u < last && u < leads; u++)
        attend_lead(a, thread, &b->tile[u / kv_heads], u % kv_heads);
    if (last > leads)
        attend_blocks(a, first > leads ? (first - leads) * b->attn_run : 0,
                      (last - leads) * b->attn_run);
}

/* Thread function: merge the blocks of split tiles; units are (tile, KV head), whole ones too. */
static void attention_merge(void *arg, size_t thread, size_t first, size_t last)
{
    (void)thread;
    const struct attention *a = arg;
    const struct batch *b = a->b;
    size_t kv_heads = b->m->config.kv_heads;
    for (size_t u = first; u < last; u++) {
        const struct tile *tile = &b->tile[u / kv_heads];
        size_t g = u % kv_heads;
        if (tile->lead == tile->blocks)
            continue;
        struct attn_part sum = split_part(b, tile, g, 0);
        for (size_t i = 1; i <= tile->blocks - tile->lead; i++) {
            struct attn_part next = split_part(b, tile, g, i);
            merge(b, tile, tile->lead + i - 1, &sum, &next);
        }
        finish(b, tile, g, &sum);
    }
}

void attention_layer(struct batch *b, size_t layer)
{
    size_t leads = b->m->config.kv_heads * b->ntiles;
    struct attention a = { b, layer };
    pool_for(b->pool, b->n, 4, attention_spread, &a);
    pool_for(b->pool, leads + b->attn_runs, b->attn_grain, attention_units, &a);
    if (b->attn_runs)
        pool_for(b->pool, leads, b->merge_grain, attention_merge, &a);
}

/* Set weights[0..n) to the softmax of the scores in it. */
static void attention_softmax(double *weights, size_t n)
{
    double most = weights[0], sum = 0;
    for (size_t i = 1; i < n; i++)
        most = weights[i] > most ? weights[i] : most;
    for (size_t i = 0; i < n; i++)
        sum += weights[i] = exp_f64(weights[i] - most);
    for (size_t i = 0; i < n; i++)
        weights[i] /= sum;
}

void batch_attention(const struct batch *b, size_t layer, size_t head, size_t row, double *weights)
{
    size_t hd = b->m->config.head_dim, g = head / b->per, n = b->pos[row] + 1;
    const struct attention a = { (struct batch *)(uintptr_t)b, layer };
    const float *q = b->heads + ((g * BATCH_ROWS + row) * b->per + head % b->per) * b->hd16;
    for (size_t at = 0; at < n; at += PANEL) {
        const void *keys = cache_keys(&a, b->of[row], g, at);
        double score[PANEL] = { 0 };
        float key[PANEL];
        for (size_t d = 0; d < hd; d++) {
            kvcache_key_column(key, b->of[row]->kv, keys, d, b->hd16);
            for (size_t i = 0; i < PANEL; i++)
                score[i] += (double)q[d] * (double)key[i];
        }
        for (size_t i = 0; i < PANEL && at + i < n; i++)
            weights[at + i] = score[i] / sqrt((double)hd);
    }
    attention_softmax(weights, n);
}

/* A tile that is not split leaves gaps at the end of a job that split ones fill: as long as it is,
 * on all threads but one. */
bool attention_rows(size_t *rows, const struct model_config *c, size_t threads, size_t context)
{
    size_t per = c->heads / c->kv_heads, split = (threads + c->kv_heads - 2) / c->kv_heads;
    split = split < SPLIT_TILES ? split : (size_t)SPLIT_TILES;
    return size_mul(&split, split * c->heads * TILE, context / ATTN_BLOCK + 1) &&
           size_add(rows, 2 * threads * TILE * per, split);
}

/* Return the work of a tile's lead: rows times blocks. */
static size_t lead_work(const struct tile *tile)
{
    return (tile->t1 - tile->t0) * tile->lead;
}

/* Sort the tiles by their leads, the longest first, so that the end of the job is even. */
static void attention_sort(struct batch *b)
{
    for (size_t i = 1, j; i < b->ntiles; i++) {
        struct tile tile = b->tile[i];
        for (j = i; j > 0 && lead_work(&b->tile[j - 1]) < lead_work(&tile); j--)
            b->tile[j] = b->tile[j - 1];
        b->tile[j] = tile;
    }
}

/* Split tiles, the longest first, as many as there is room for. A lead is half of its tile, or half
 * of what a thread has to do if that is less. `work` is that of all tiles, for one KV head. */
static void attention_split(struct batch *b, size_t work)
{
    const struct model_config *c = &b->m->config;
    size_t threads = b->threads, at = 2 * threads * TILE * b->per, blocks = 0;
    for (size_t i = 0; i < b->ntiles; i++) {
        struct tile *tile = &b->tile[i];
        size_t n = tile->t1 - tile->t0, share = work * c->kv_heads / threads / n;
        size_t lead = (share < tile->blocks ? share : tile->blocks) / 2;
        lead = lead ? lead : 1;
        size_t parts = tile->blocks - lead + 1, rows = c->heads * parts * n;
        if (tile->blocks < SPLIT_BLOCKS || rows > b->part_rows - at)
            continue;
        tile->lead = lead;
        tile->part = at;
        at += rows;
        blocks += c->kv_heads * (parts - 1);
    }
    if (!blocks)
        return;
    attention_sort(b);
    b->attn_run = blocks / (RUNS * threads) + 1;
    b->attn_runs = (blocks + b->attn_run - 1) / b->attn_run;
    b->attn_grain = 1;
}

void attention_plan(struct batch *b)
{
    size_t kv_heads = b->m->config.kv_heads, threads = b->threads, work = 0;
    b->ntiles = b->attn_runs = 0;
    for (size_t i = 0; i < b->nsegments; i++) {
        const struct segment *segment = &b->segment[i];
        for (size_t t = 0, end; t < segment->n; t = end) {
            end = t + TILE < segment->n ? t + TILE : segment->n;
            size_t blocks = (segment->start + end - 1) / ATTN_BLOCK + 1;
            struct tile *tile = &b->tile[b->ntiles++];
            *tile = (struct tile){ i, t, end, blocks, blocks, 0 };
            work += lead_work(tile);
        }
    }
    size_t each = ATTN_BLOCK * b->hd16 * b->per * work / b->ntiles; /* multiply-adds, halved */
    b->attn_grain = each * 2 >= CHUNK_WORK ? 1 : CHUNK_WORK / each;
    b->merge_grain = 1 + CHUNK_WORK / (each / ATTN_BLOCK * 4);
    attention_sort(b);
    if (threads > 1 && b->ntiles * kv_heads < 4 * threads)
        attention_split(b, work);
}
