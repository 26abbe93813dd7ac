/* attention.c - the attention of one layer, for all rows of a pass.
 *
 * Keys are processed in blocks of 64 absolute positions. Each block is computed on its own and
 * merged into those before it, in ascending order; so the bits do not depend on which rows are
 * evaluated together, or on how the work is divided. It is divided by tiles of rows; where there
 * are too few tiles for the threads, those with a long past are also split by block. */
#include <math.h>
#include <string.h>

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
    size_t head = a->layer * model_config(a->b->m)->kv_heads + g;
    return s->cache + (head * s->context16 + pos) / PANEL * s->keys_bytes;
}

static void *cache_value(const struct attention *a, const struct session *s, size_t g, size_t pos)
{
    size_t head = a->layer * model_config(a->b->m)->kv_heads + g;
    return s->cache + s->cache_half + (head * s->context16 + pos) * s->value_bytes;
}

/* Thread function: rotate queries and keys of rows [first, last). Queries go to rows of hd16
 * floats, padding zero; keys and values go to the row's cache. */
static void attention_spread(void *arg, size_t thread, size_t first, size_t last)
{
    const struct attention *a = arg;
    const struct batch *b = a->b;
    const struct model_config *c = model_config(b->m);
    const struct kernels *k = model_kernels(b->m);
    size_t hd = c->head_dim, half = hd / 2;
    float *row = b->row + thread * b->hd16; /* the padding at its end stays zero */
    for (size_t t = first; t < last; t++) {
        const float *cosine = b->cos + t * half, *sine = b->sin + t * half;
        const struct session *s = b->of[t];
        size_t pos = b->pos[t];
        for (size_t h = 0; h < c->heads; h++) {
            size_t g = h / b->per, i = t * b->per + h % b->per;
            float *q = b->heads + (g * BATCH_ROWS * b->per + i) * b->hd16;
            memcpy(q, b->q + t * b->ld_q + h * hd, hd * sizeof(*q));
            memset(q + hd, 0, (b->hd16 - hd) * sizeof(*q));
            k->rope_f32(q, cosine, sine, half);
        }
        for (size_t g = 0; g < c->kv_heads; g++) {
            memcpy(row, b->k + t * b->ld_kv + g * hd, hd * sizeof(*row));
            k->rope_f32(row, cosine, sine, half);
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
static size_t first_seeing(const struct span *span, const struct tile *tile, size_t block)
{
    size_t from = block * ATTN_BLOCK, all = span->start + tile->t0;
    return from > all ? from - span->start : tile->t0;
}

/* Compute the partial attention with one key block, for KV head g and those rows of the tile that
 * see the block's first key. */
static void attend(const struct attention *a, const struct attn_part *y, const struct tile *tile,
                   size_t g, size_t block)
{
    const struct batch *b = a->b;
    const struct span *span = &b->span[tile->span];
    const struct session *s = span->session;
    const struct kernels *k = model_kernels(b->m);
    size_t from = block * ATTN_BLOCK, t0 = first_seeing(span, tile, block);
    size_t nk = span->start + tile->t1 - from, first = span->start + t0 + 1 - from;
    size_t nq = (tile->t1 - t0) * b->per;
    const float *q = b->heads + (g * BATCH_ROWS + span->row + t0) * b->per * b->hd16;
    const void *key = cache_keys(a, s, g, from), *value = cache_value(a, s, g, from);
    float scale = 1.0f / sqrtf((float)model_config(b->m)->head_dim);
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
    size_t t0 = first_seeing(&b->span[tile->span], tile, block), hd16 = b->hd16;
    size_t skip = (t0 - tile->t0) * b->per;
    for (size_t j = 0; j < (tile->t1 - t0) * b->per; j++) {
        size_t i = skip + j;
        model_kernels(b->m)->attn_merge(&sum->max[i], &sum->sum[i], sum->out + i * hd16,
                                        next->max[j], next->sum[j], next->out + j * hd16, hd16);
    }
}

/* Normalise the rows of a tile and write them as the query heads of KV head g. */
static void finish(const struct batch *b, const struct tile *tile, size_t g,
                   const struct attn_part *sum)
{
    size_t hd = model_config(b->m)->head_dim, row = b->span[tile->span].row;
    for (size_t i = 0; i < (tile->t1 - tile->t0) * b->per; i++) {
        size_t t = row + tile->t0 + i / b->per, h = g * b->per + i % b->per;
        float *out = b->att + t * b->ld_q + h * hd, inv = 1.0f / sum->sum[i];
        for (size_t d = 0; d < hd; d++)
            out[d] = sum->out[i * b->hd16 + d] * inv;
    }
}

/* Attend one tile to all of its blocks. */
static void attend_tile(const struct attention *a, size_t thread, const struct tile *tile, size_t g)
{
    const struct batch *b = a->b;
    struct attn_part sum = part_at(b, 2 * thread * TILE * b->per);
    struct attn_part next = part_at(b, (2 * thread + 1) * TILE * b->per);
    attend(a, &sum, tile, g, 0);
    for (size_t block = 1; block < tile->blocks; block++) {
        attend(a, &next, tile, g, block);
        merge(b, tile, block, &sum, &next);
    }
    finish(b, tile, g, &sum);
}

/* Return the partial attention of one block of a split tile. */
static struct attn_part split_part(const struct batch *b, const struct tile *tile, size_t g,
                                   size_t block)
{
    size_t rows = (tile->t1 - tile->t0) * b->per;
    return part_at(b, tile->part + (g * tile->blocks + block) * rows);
}

/* Thread function: units are (split tile, KV head, block), then (KV head, tile) of the others. */
static void attention_units(void *arg, size_t thread, size_t first, size_t last)
{
    const struct attention *a = arg;
    const struct batch *b = a->b;
    size_t kv_heads = model_config(b->m)->kv_heads, whole = b->ntiles - b->nsplit, base = 0;
    for (size_t i = 0; i < b->nsplit; i++) {
        const struct tile *tile = &b->tile[i];
        size_t end = base + kv_heads * tile->blocks;
        for (size_t u = first > base ? first : base; u < last && u < end; u++) {
            size_t g = (u - base) / tile->blocks, block = (u - base) % tile->blocks;
            struct attn_part y = split_part(b, tile, g, block);
            attend(a, &y, tile, g, block);
        }
        base = end;
    }
    for (size_t u = first > base ? first : base; u < last; u++)
        attend_tile(a, thread, &b->tile[b->nsplit + (u - base) % whole], (u - base) / whole);
}

void attention_layer(struct batch *b, size_t layer)
{
    size_t kv_heads = model_config(b->m)->kv_heads, units = kv_heads * (b->ntiles - b->nsplit);
    struct attention a = { b, layer };
    for (size_t i = 0; i < b->nsplit; i++)
        units += kv_heads * b->tile[i].blocks;
    pool_for(b->pool, b->n, 4, attention_spread, &a);
    pool_for(b->pool, units, b->attn_grain, attention_units, &a);
    for (size_t i = 0; i < b->nsplit; i++)
        for (size_t g = 0; g < kv_heads; g++) {
            const struct tile *tile = &b->tile[i];
            struct attn_part sum = split_part(b, tile, g, 0);
            for (size_t block = 1; block < tile->blocks; block++) {
                struct attn_part next = split_part(b, tile, g, block);
                merge(b, tile, block, &sum, &next);
            }
            finish(b, tile, g, &sum);
        }
}

bool attention_rows(size_t *rows, const struct model_config *c, size_t threads, size_t context)
{
    size_t tiles = 2 * threads * TILE * (c->heads / c->kv_heads), split;
    return size_mul(&split, c->heads * TILE, context / ATTN_BLOCK + 1) &&
           size_add(rows, tiles, split);
}

/* Move the tiles that are split to the front, as many as there is room for. */
static void attention_split(struct batch *b)
{
    const struct model_config *c = model_config(b->m);
    size_t at = 2 * pool_threads(b->pool) * TILE * b->per;
    for (size_t i = 0; i < b->ntiles && b->nsplit < SPLIT_TILES; i++) {
        struct tile tile = b->tile[i];
        size_t rows = c->heads * tile.blocks * (tile.t1 - tile.t0);
        if (tile.blocks < SPLIT_BLOCKS || rows > b->part_rows - at)
            continue;
        tile.part = at;
        at += rows;
        b->tile[i] = b->tile[b->nsplit];
        b->tile[b->nsplit++] = tile;
    }
}

void attention_plan(struct batch *b)
{
    size_t kv_heads = model_config(b->m)->kv_heads, threads = pool_threads(b->pool), blocks = 0;
    b->ntiles = b->nsplit = 0;
    for (size_t i = 0; i < b->nspans; i++) {
        const struct span *span = &b->span[i];
        for (size_t t = 0, end; t < span->n; t = end) {
            end = t + TILE < span->n ? t + TILE : span->n;
            struct tile *tile = &b->tile[b->ntiles++];
            *tile = (struct tile){ i, t, end, (span->start + end - 1) / ATTN_BLOCK + 1, 0 };
            blocks += tile->blocks;
        }
    }
    if (b->ntiles * kv_heads < 4 * threads)
        attention_split(b);
    /* A unit is a block of a split tile, or all blocks of a whole one. */
    size_t work = ATTN_BLOCK * b->hd16 * b->per * (b->n / b->ntiles) * (blocks / b->ntiles);
    if (b->nsplit)
        b->attn_grain = kv_heads * blocks / (8 * threads) + 1;
    else
        b->attn_grain = work * 2 >= CHUNK_WORK ? 1 : CHUNK_WORK / work;
}
