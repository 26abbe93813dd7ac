/* t_attention.c - how a pass is divided among threads. The plans are read, not run: every block has
 * one place, partial results never share memory, and threads of equal speed end together. No call
 * of a product of a few tokens takes more than its share, or than is worth waking a thread for. */
#include "kernels/sys/cpu.h"
#include "kernels/sys/pool.h"
#include "model/batch_internal.h"
#include "model/train/random.h"
#include "tests/support/test.h"

enum { HIDDEN = 896, HEADS = 12, FFN = 4864, VOCAB = 4096, TOKENS = 8 };

static const struct model_config config = { 1,  HIDDEN, HEADS, 2,    64,    FFN,  VOCAB,
                                            64, 1e-6f,  1e4f,  true, false, { 0 } };
static struct kernels kernels;
static size_t sharers;
static _Atomic size_t calls, over;

/* A product that counts the calls that take too much. The panels of q, k and v are one job; only o
 * has as many columns as q has rows. */
static void counted_q8(float *y, size_t ldy, const struct panels *w, const struct qact *x, size_t n,
                       size_t p0, size_t p1)
{
    size_t job = panels_count(w->rows), worth = CHUNK_WORK / (PANEL * w->cols * n);
    if (w->rows <= HEADS * 64)
        job = panels_count(HEADS * 64 + 2 * 128);
    size_t share = (job - 1) / sharers + 1;
    calls++;
    over += p1 - p0 > (share > worth ? share : worth);
    kernels.matmul_q8(y, ldy, w, x, n, p0, p1);
}

/* Return how many calls of a pass of n rows, and of its head, took more than their share. */
static size_t count_over(size_t n, struct tune tune)
{
    struct kernels k = kernels;
    struct pool *pool;
    struct model *m;
    struct batch *b;
    struct session *s;
    uint32_t ids[TOKENS] = { 1, 2, 3 };
    k.matmul_q8 = counted_q8;
    for (size_t i = 0; i < P_TYPES; i++)
        k.tune[i] = tune;
    calls = over = 0;
    CHECK(pool_open(&pool, sharers, NULL) == OK);
    CHECK(model_random(&m, &config, P_Q8, &k, NULL, 7, NULL) == OK);
    CHECK(batch_open(&b, m, pool, NULL) == OK);
    CHECK(session_open(&s, b, TOKENS, KVCACHE_F16, NULL) == OK);
    CHECK(session_eval(s, ids, n, NULL, NULL) == OK && session_logits(s, 0));
    CHECK(calls >= 8);
    session_close(s);
    batch_close(b);
    model_close(m);
    pool_close(pool);
    return over;
}

enum { THREADS = 8, CONTEXT = 4096, CASES = 3000 };

static uint64_t draws;

static size_t draw(size_t below)
{
    return (size_t)rand_below(5, draws++, below);
}

/* Give work to the thread that is free first, as the pool does. */
static void hand_out(size_t *busy, size_t threads, size_t work)
{
    size_t first = 0;
    for (size_t t = 1; t < threads; t++)
        if (busy[t] < busy[first])
            first = t;
    busy[first] += work;
}

/* Return the work of all units, in rows times blocks, and set *longest to that of the thread that
 * finishes last. */
static size_t run_plan(size_t *longest, const struct batch *b, size_t kv_heads, size_t threads)
{
    size_t busy[THREADS] = { 0 }, all = 0, run = 0, in_run = 0;
    for (size_t u = 0; u < kv_heads * b->ntiles; u++) {
        const struct tile *tile = &b->tile[u / kv_heads];
        hand_out(busy, threads, (tile->t1 - tile->t0) * tile->lead);
    }
    for (size_t i = 0; i < b->ntiles; i++)
        for (size_t j = 0; j < kv_heads * (b->tile[i].blocks - b->tile[i].lead); j++) {
            run += b->tile[i].t1 - b->tile[i].t0;
            if (++in_run < b->attn_run)
                continue;
            hand_out(busy, threads, run);
            run = in_run = 0;
        }
    hand_out(busy, threads, run);
    *longest = 0;
    for (size_t t = 0; t < threads; t++) {
        all += busy[t];
        *longest = busy[t] > *longest ? busy[t] : *longest;
    }
    return all;
}

/* Check that the tiles are the segments, cut, and that no two partial results share memory. */
static void check_tiles(const struct batch *b, const struct model_config *c, size_t threads)
{
    size_t rows = 0, at = 2 * threads * TILE * b->per, end = 0;
    for (size_t i = 0; i < b->ntiles; i++) {
        const struct tile *t = &b->tile[i];
        const struct segment *segment = &b->segment[t->segment];
        CHECK(t->t0 < t->t1 && t->t1 <= segment->n && t->lead >= 1 && t->lead <= t->blocks);
        CHECK(t->blocks == (segment->start + t->t1 - 1) / ATTN_BLOCK + 1);
        rows += t->t1 - t->t0;
        if (t->lead == t->blocks)
            continue;
        size_t room = c->heads * (t->blocks - t->lead + 1) * (t->t1 - t->t0);
        CHECK(t->part >= at && t->part + room <= b->part_rows);
        for (size_t j = 0; j < i; j++) {
            const struct tile *o = &b->tile[j];
            end = o->part + c->heads * (o->blocks - o->lead + 1) * (o->t1 - o->t0);
            CHECK(o->lead == o->blocks || o->part >= t->part + room || t->part >= end);
        }
    }
    CHECK(rows == b->n);
}

/* Plan a pass of these segments; return the time of the last thread, 1 where all are equal. */
static double plan(struct batch *b, const struct model_config *c, size_t threads,
                   const struct segment *segments, size_t n)
{
    size_t longest;
    b->n = 0;
    b->nsegments = n;
    memcpy(b->segment, segments, n * sizeof(*segments));
    for (size_t i = 0; i < n; i++) {
        b->segment[i].row = b->n;
        b->n += segments[i].n;
    }
    attention_plan(b);
    check_tiles(b, c, threads);
    size_t all = run_plan(&longest, b, c->kv_heads, threads), work = 0;
    for (size_t i = 0; i < b->ntiles; i++)
        work += c->kv_heads * (b->tile[i].t1 - b->tile[i].t0) * b->tile[i].blocks;
    CHECK(all == work);
    return (double)(longest * threads) / (double)all;
}

/* One to four texts with drafts of up to 16 tokens, all at some depth. */
static double random_plan(struct batch *b, const struct model_config *c, size_t threads)
{
    struct segment segments[4] = { { 0 } };
    size_t n = 1 + draw(4);
    for (size_t i = 0; i < n; i++)
        segments[i] = (struct segment){ .n = 1 + draw(16), .start = 1000 + draw(3000) };
    return plan(b, c, threads, segments, n);
}

static void check_shape(size_t heads, size_t kv_heads, size_t threads)
{
    const struct model_config c = { 1,   64,    heads, kv_heads, 16,    64,   32,
                                    512, 1e-6f, 1e4f,  true,     false, { 0 } };
    const struct segment draft = { .n = 16, .start = 4000 }, row = { .n = 1, .start = 4000 },
                         first = { .n = 1, .start = 10 };
    const struct segment three[] = { draft, { .n = 16, .start = 700 }, draft };
    const struct segment prompt = { .n = BATCH_ROWS, .start = 3800 };
    struct model *m;
    struct batch *b;
    struct pool *pool;
    double worst = 0;
    CHECK(pool_open(&pool, threads, NULL) == OK);
    CHECK(model_random(&m, &c, P_F32, &kernels, NULL, 7, NULL) == OK);
    CHECK(batch_open(&b, m, pool, NULL) == OK && batch_reserve(b, CONTEXT, NULL) == OK);
    CHECK(plan(b, &c, threads, &draft, 1) < 1.2);
    CHECK(plan(b, &c, threads, &row, 1) < 1.2);
    CHECK(plan(b, &c, threads, three, 3) < 1.2);
    CHECK(plan(b, &c, threads, &prompt, 1) < 1.35);
    plan(b, &c, threads, &first, 1); /* too little for another thread */
    CHECK(b->attn_runs == 0 && b->attn_grain >= b->ntiles * kv_heads);
    for (size_t i = 0; i < CASES; i++) {
        double slowest = random_plan(b, &c, threads);
        worst = slowest > worst ? slowest : worst;
    }
    printf("%zu KV heads, %zu threads: at worst %.2f of an even end\n", kv_heads, threads, worst);
    CHECK(threads == 1 ? b->attn_runs == 0 : worst < 1.5);
    batch_close(b);
    model_close(m);
    pool_close(pool);
}

int main(void)
{
    CHECK(kernels_pick(&kernels, NULL, cpu_detect(), NULL) == OK);
    for (size_t n = 1; n <= THREADS; n++) {
        check_shape(14, 2, n);
        check_shape(3, 1, n);
        check_shape(4, 4, n);
    }
    for (sharers = 1; sharers <= THREADS; sharers *= 2)
        for (size_t n = 1; n <= TOKENS; n *= 2) {
            CHECK(count_over(n, (struct tune)TUNE_AMD(0)) == 0);
            CHECK(count_over(n, (struct tune)TUNE_DEFAULT) == 0);
        }
    return 0;
}
