/* t_session.c - threads, chunks, rewinds and instruction sets give the same bits; one hash per type
 * is equal on every machine. */
#include <stdio.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "kernels/sys/cpu.h"
#include "kernels/kernels.h"
#include "kernels/math.h"
#include "kernels/sys/pool.h"
#include "model/model.h"
#include "model/session.h"
#include "tests/support/test.h"
#include "tests/support/torture.h"

enum { N = 150, MAX_VOCAB = 400 };

struct shape {
    const char *name;
    struct model_config config;
    enum ptype type;
    enum kvcache kv;
    uint64_t hash; /* over logits and both taps of all N tokens */
};

static const struct shape shapes[] = {
    { "f32",
      { 2, 40, 5, 1, 8, 100, 333, 512, 1e-6f, 1e6f, true, false, { 0 } },
      P_F32,
      KVCACHE_F32,
      0x7fcd0488c89f9d66u },
    { "bf16",
      { 2, 48, 4, 2, 12, 84, 200, 512, 1e-6f, 1e4f, false, false, { 0 } },
      P_BF16,
      KVCACHE_F16,
      0x12e1dae1aded5756u },
    { "q8",
      { 2, 64, 4, 2, 16, 96, 160, 512, 1e-6f, 1e4f, true, false, { 0 } },
      P_Q8,
      KVCACHE_F16,
      0xbb6c42874e374dceu },
    { "q4",
      { 3, 96, 2, 2, 48, 160, 333, 512, 1e-6f, 1e6f, false, false, { 0 } },
      P_Q4,
      KVCACHE_F32,
      0x833d967f7f192294u },
};

/* What a run produced for each token; rows that it did not record are zero. */
struct trace {
    float logits[N][MAX_VOCAB], final[N][128], post[N][128];
};

static uint64_t fnv(uint64_t h, const void *p, size_t n)
{
    const unsigned char *b = p;
    for (size_t i = 0; i < n; i++)
        h = (h ^ b[i]) * 0x100000001b3u;
    return h;
}

/* Record the last n tokens. */
static void note(struct trace *t, struct session *s, size_t n, const struct model_config *c)
{
    for (size_t back = n; back-- > 0;) {
        size_t i = session_length(s) - 1 - back;
        memcpy(t->logits[i], session_logits(s, back), c->vocab * sizeof(float));
        memcpy(t->final[i], session_hidden(s, TAP_FINAL, back), c->hidden * sizeof(float));
        memcpy(t->post[i], session_hidden(s, TAP_POST_ATTN, back), c->hidden * sizeof(float));
    }
}

static uint32_t id_at(size_t i, size_t vocab)
{
    return (uint32_t)rand_below(5, i, vocab);
}

/* Evaluate the whole text in chunks of `chunk`; with `rewind`, go back 3 tokens after each. */
static void run(struct trace *t, const struct shape *sh, const struct kernels *k, size_t threads,
                size_t chunk, bool rewind)
{
    struct err err;
    struct pool *pool;
    struct model *m;
    struct batch *b;
    struct session *s;
    uint32_t ids[N];
    memset(t, 0, sizeof(*t));
    for (size_t i = 0; i < N; i++)
        ids[i] = id_at(i, sh->config.vocab);
    CHECK(pool_open(&pool, threads, &err) == OK);
    CHECK(model_random(&m, &sh->config, sh->type, k, pool, 7, &err) == OK);
    CHECK(batch_open(&b, m, pool, &err) == OK);
    CHECK(session_open(&s, b, N, sh->kv, &err) == OK);
    size_t bytes, cache;
    CHECK(model_random_size(&bytes, &sh->config, sh->type, &err) == OK);
    CHECK(bytes == model_bytes(m));
    CHECK(session_size(&bytes, &cache, &sh->config, N, sh->kv, &err) == OK);
    CHECK(bytes == session_bytes(s) && cache >= 2 * N * sh->config.layers && cache < bytes);
    for (size_t at = 0; at < N;) {
        size_t n = chunk < N - at ? chunk : N - at;
        CHECK(session_eval(s, ids + at, n, NULL, &err) == OK);
        if (rewind && n > 3) {
            const float *stands = session_hidden(s, TAP_FINAL, 3);
            session_rewind(s, session_length(s) - 3);
            CHECK(session_hidden(s, TAP_FINAL, 0) == stands && (stands || n == 3));
            CHECK(session_hidden(s, TAP_FINAL, n - 3) == NULL);
            CHECK(session_eval(s, ids + at + n - 3, 3, NULL, &err) == OK);
            note(t, s, 3, &sh->config);
        } else {
            note(t, s, n < BATCH_ROWS ? n : BATCH_ROWS, &sh->config);
        }
        at += n;
    }
    CHECK(session_eval(s, ids, 1, NULL, &err) == ERR_ARG && strstr(err.msg, "150 positions"));
    session_close(s);
    batch_close(b);
    model_close(m);
    pool_close(pool);
}

static uint64_t hash_of(const struct trace *t)
{
    return fnv(0xcbf29ce484222325u, t, sizeof(*t));
}

/* Whatever a run recorded must equal the whole trace. */
static void same(const struct trace *whole, const struct trace *part)
{
    for (size_t i = 0; i < N; i++) {
        bool noted = false;
        for (size_t j = 0; j < 128; j++)
            noted = noted || part->final[i][j] != 0;
        if (!noted)
            continue;
        CHECK(!memcmp(whole->logits[i], part->logits[i], sizeof(whole->logits[i])));
        CHECK(!memcmp(whole->final[i], part->final[i], sizeof(whole->final[i])));
        CHECK(!memcmp(whole->post[i], part->post[i], sizeof(whole->post[i])));
    }
}

static void check_errors(void)
{
    struct err err;
    struct model *m;
    struct batch *b;
    struct session *s;
    struct kernels k;
    _Atomic int stop = 1;
    uint32_t ids[3] = { 1, 2, 9999 };
    CHECK(kernels_pick(&k, NULL, cpu_detect(), &err) == OK);
    CHECK(model_random(&m, &shapes[0].config, P_F32, &k, NULL, 7, &err) == OK);
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
    CHECK(model_random(&m, &shapes[0].config, P_Q8, &k, NULL, 7, &err) == ERR_FORMAT);
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
    static struct trace whole, part;
    unsigned cpu = cpu_detect();
    int wrong = 0;
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        const struct shape *sh = &shapes[i];
        struct kernels k;
        struct err err;
        CHECK(kernels_pick(&k, NULL, cpu, &err) == OK);
        run(&whole, sh, &k, 1, 1, false);
        uint64_t hash = hash_of(&whole);
        printf("%s: hash %016llx\n", sh->name, (unsigned long long)hash);
        wrong += hash != sh->hash;
        static const size_t threads[] = { 1, 2, 3, 8 }, chunks[] = { 1, 2, 7, 64, 128, 150 };
        for (size_t t = 0; t < 4; t++)
            for (size_t c = 0; c < 6; c++) {
                run(&part, sh, &k, threads[t], chunks[c], (t + c) % 2);
                same(&whole, &part);
            }
        for (size_t j = 0; j < kernels_nsets; j++)
            if (kernels_runs(kernels_sets[j], cpu) && !(kernels_sets[j]->needs & CPU_INEXACT)) {
                CHECK(kernels_pick(&k, kernels_sets[j]->isa, cpu, &err) == OK);
                run(&part, sh, &k, 2, 33, false);
                CHECK(hash_of(&part) == hash);
            }
    }
    check_errors();
    struct kernels k;
    CHECK(kernels_pick(&k, NULL, cpu, NULL) == OK);
    torture_each(open_once, &k);
    if (wrong)
        printf("%d hashes are not the ones that every machine gives\n", wrong);
    return wrong != 0;
}
