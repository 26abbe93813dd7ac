/* t_session.c - what a session takes, keeps and refuses, and failing allocations. What it computes
 * is tested in t_session_exact.c, bit by bit. */
#include <string.h>

#include "kernels/sys/base.h"
#include "kernels/sys/cpu.h"
#include "kernels/kernels.h"
#include "kernels/math.h"
#include "model/model.h"
#include "model/train/random.h"
#include "model/batch_internal.h"
#include "tests/support/test.h"
#include "tests/support/torture.h"

enum { N = 150 };

static const struct shape {
    struct model_config config;
    enum ptype type;
    enum kvcache kv;
} shapes[] = {
    { { 2, 40, 5, 1, 8, 100, 333, 512, 1e-6f, 1e6f, true, false, { 0 } }, P_F32, KVCACHE_F32 },
    { { 2, 48, 4, 2, 12, 84, 200, 512, 1e-6f, 1e4f, false, false, { 0 } }, P_BF16, KVCACHE_F16 },
    { { 2, 64, 4, 2, 16, 96, 160, 512, 1e-6f, 1e4f, true, false, { 0 } }, P_Q8, KVCACHE_F16 },
    { { 3, 96, 2, 2, 48, 160, 333, 512, 1e-6f, 1e6f, false, false, { 0 } }, P_Q4, KVCACHE_F32 },
};

/* A model and a session take what is said beforehand; of the latest tokens, those that a rewind
 * leaves keep their hidden states; and a full session says so. */
static void check_shape(const struct shape *sh, const struct kernels *k)
{
    struct err err;
    struct model *m;
    struct batch *b;
    struct session *s;
    uint32_t ids[N];
    size_t bytes, cache;
    for (size_t i = 0; i < N; i++)
        ids[i] = (uint32_t)rand_below(5, i, sh->config.vocab);
    CHECK(model_random(&m, &sh->config, sh->type, k, NULL, 7, &err) == OK);
    CHECK(batch_open(&b, m, NULL, &err) == OK);
    CHECK(session_open(&s, b, N, sh->kv, &err) == OK);
    CHECK(model_random_size(&bytes, &sh->config, sh->type, &err) == OK);
    CHECK(bytes == model_bytes(m));
    CHECK(session_size(&bytes, &cache, &sh->config, N, sh->kv, &err) == OK);
    CHECK(bytes == s->bytes && cache >= 2 * N * sh->config.layers && cache < bytes);
    for (size_t at = 0, n; at < N; at += n) {
        n = N - at < 64 ? N - at : 64;
        CHECK(session_eval(s, ids + at, n, NULL, &err) == OK);
        const float *stands = session_hidden(s, TAP_FINAL, 3);
        session_rewind(s, session_length(s) - 3);
        CHECK(stands && session_hidden(s, TAP_FINAL, 0) == stands);
        CHECK(session_hidden(s, TAP_FINAL, n - 3) == NULL);
        CHECK(session_eval(s, ids + at + n - 3, 3, NULL, &err) == OK);
    }
    CHECK(session_eval(s, ids, 1, NULL, &err) == ERR_ARG && strstr(err.msg, "150 positions"));
    session_close(s);
    batch_close(b);
    model_close(m);
}

static void check_errors(const struct kernels *k)
{
    struct err err;
    struct model *m;
    struct batch *b;
    struct session *s;
    _Atomic int stop = 1;
    uint32_t ids[3] = { 1, 2, 9999 };
    CHECK(model_random(&m, &shapes[0].config, P_F32, k, NULL, 7, &err) == OK);
    CHECK(batch_open(&b, m, NULL, &err) == OK);
    CHECK(session_open(&s, b, 8, KVCACHE_F32, &err) == OK);
    CHECK(session_eval(s, ids, 3, NULL, &err) == ERR_ARG && strstr(err.msg, "9999"));
    CHECK(session_length(s) == 0);
    CHECK(session_eval(s, ids, 2, NULL, &err) == OK);
    CHECK(session_eval(s, ids, 2, &stop, &err) == ERR_STOP && session_length(s) == 2);
    CHECK(session_eval(s, ids, 0, NULL, &err) == ERR_ARG);
    session_close(s);
    CHECK(session_open(&s, b, 0, KVCACHE_F32, &err) == ERR_ARG && !s);
    batch_close(b);
    model_close(m);
    CHECK(model_random(&m, &shapes[0].config, P_Q8, k, NULL, 7, &err) == ERR_FORMAT);
    CHECK(!m && strstr(err.msg, "40 columns"));
    size_t bytes, cache;
    CHECK(model_random_size(&bytes, &shapes[0].config, P_Q8, &err) == ERR_FORMAT);
    CHECK(session_size(&bytes, &cache, &shapes[0].config, 0, KVCACHE_F32, &err) == ERR_ARG);
}

static int open_once(const void *k)
{
    struct model *m = NULL;
    struct batch *b = NULL;
    struct session *s = NULL;
    int rc = model_random(&m, &shapes[2].config, P_Q8, k, NULL, 7, NULL);
    if (!rc)
        rc = batch_open(&b, m, NULL, NULL);
    if (!rc)
        rc = session_open(&s, b, 16, KVCACHE_F32, NULL);
    session_close(s);
    batch_close(b);
    model_close(m);
    return rc;
}

int main(void)
{
    struct kernels k;
    CHECK(kernels_pick(&k, NULL, cpu_detect(), NULL) == OK);
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++)
        check_shape(&shapes[i], &k);
    check_errors(&k);
    torture_each(open_once, &k);
    return 0;
}
