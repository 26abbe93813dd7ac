/* t_products.c - the products of a few tokens are cut for all threads, whatever length of runs the
 * processor's family likes: no call may take more panels than its share of the job, or than are
 * worth waking a thread for. */
#include <stdatomic.h>

#include "kernels/kernels.h"
#include "kernels/sys/cpu.h"
#include "kernels/sys/pool.h"
#include "model/batch_internal.h"
#include "model/model.h"
#include "model/train/random.h"
#include "model/session.h"
#include "tests/support/test.h"

enum { HIDDEN = 896, HEADS = 12, FFN = 4864, VOCAB = 4096, THREADS = 8, TOKENS = 8 };

static const struct model_config config = { 1,  HIDDEN, HEADS, 2,    64,    FFN,  VOCAB,
                                            64, 1e-6f,  1e4f,  true, false, { 0 } };
static struct kernels plain;
static size_t threads;
static _Atomic size_t calls, over;

/* A product that counts the calls that take too much. The panels of q, k and v are one job; only o
 * has as many columns as q has rows. */
static void counted_q8(float *y, size_t ldy, const struct panels *w, const struct qact *x, size_t n,
                       size_t p0, size_t p1)
{
    size_t job = panels_count(w->rows), worth = CHUNK_WORK / (PANEL * w->cols * n);
    if (w->rows <= HEADS * 64)
        job = panels_count(HEADS * 64 + 2 * 128);
    size_t share = (job - 1) / threads + 1;
    calls++;
    over += p1 - p0 > (share > worth ? share : worth);
    plain.matmul_q8(y, ldy, w, x, n, p0, p1);
}

/* Return how many calls of a pass of n rows, and of its head, took more than their share. */
static size_t count_over(size_t n, struct tune tune)
{
    struct err err;
    struct kernels k = plain;
    struct pool *pool;
    struct model *m;
    struct batch *b;
    struct session *s;
    uint32_t ids[TOKENS] = { 1, 2, 3 };
    k.matmul_q8 = counted_q8;
    for (size_t i = 0; i < P_TYPES; i++)
        k.tune[i] = tune;
    calls = over = 0;
    CHECK(pool_open(&pool, threads, &err) == OK);
    CHECK(model_random(&m, &config, P_Q8, &k, NULL, 7, &err) == OK);
    CHECK(batch_open(&b, m, pool, &err) == OK);
    CHECK(session_open(&s, b, TOKENS, KVCACHE_F16, &err) == OK);
    CHECK(session_eval(s, ids, n, NULL, &err) == OK && session_logits(s, 0));
    CHECK(calls >= 8);
    session_close(s);
    batch_close(b);
    model_close(m);
    pool_close(pool);
    return over;
}

int main(void)
{
    struct err err;
    CHECK(kernels_pick(&plain, NULL, cpu_detect(), &err) == OK);
    for (threads = 1; threads <= THREADS; threads *= 2)
        for (size_t n = 1; n <= TOKENS; n *= 2) {
            CHECK(count_over(n, (struct tune)TUNE_AMD(0)) == 0);
            CHECK(count_over(n, (struct tune)TUNE_DEFAULT) == 0);
        }
    return 0;
}
