/* t_stories.c - real trained weights against the logits of another engine, at 220 positions. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "kernels/sys/cpu.h"
#include "kernels/kernels.h"
#include "kernels/sys/pool.h"
#include "model/model.h"
#include "model/session.h"
#include "tests/support/files.h"
#include "weights/weights.h"

enum { IDS = 220, VOCAB = 512 };

static size_t argmax(const float *x)
{
    size_t best = 0;
    for (size_t i = 1; i < VOCAB; i++)
        best = x[i] > x[best] ? i : best;
    return best;
}

int main(void)
{
    static uint32_t ids[IDS];
    static float want[IDS][VOCAB];
    FILE *f = fopen(test_data("weights/stories260K/golden_ids.txt"), "r");
    if (!f)
        SKIP("no stories260K data");
    for (size_t i = 0; i < IDS; i++) {
        unsigned long id;
        CHECK(fscanf(f, "%lu", &id) == 1 && id < VOCAB);
        ids[i] = (uint32_t)id;
    }
    fclose(f);
    CHECK(slurp(test_data("weights/stories260K/golden_logits_f32.bin"), want, sizeof(want)) ==
          sizeof(want));
    struct err err;
    struct kernels k;
    struct pool *pool;
    struct weights *w;
    struct model *m;
    struct batch *b;
    struct session *s;
    CHECK(kernels_pick(&k, NULL, cpu_detect(), &err) == OK);
    CHECK(pool_open(&pool, 2, &err) == OK);
    CHECK(weights_open(&w, test_data("weights/stories260K_qwen2"), &err) == OK);
    CHECK(model_open(&m, w, &k, pool, NULL, NULL, &err) == OK);
    CHECK(batch_open(&b, m, pool, &err) == OK);
    CHECK(session_open(&s, b, IDS, KVCACHE_F32, &err) == OK);
    double worst = 0;
    size_t same = 0, greedy = 0;
    for (size_t i = 0; i < IDS; i++) {
        CHECK(session_eval(s, &ids[i], 1, NULL, &err) == OK);
        const float *got = session_logits(s, 0);
        for (size_t j = 0; j < VOCAB; j++) {
            double difference = fabs((double)got[j] - (double)want[i][j]);
            if (!(difference <= worst)) /* also true for NaN */
                worst = difference;
        }
        same += argmax(got) == argmax(want[i]);
        greedy += i + 1 < IDS && argmax(got) == ids[i + 1];
    }
    printf("stories260K: worst logit difference %.2g, argmax equal at %zu of %d, "
           "greedy ids equal at %zu of %d\n",
           worst, same, IDS, greedy, IDS - 1);
    CHECK(worst < 1e-3);
    CHECK(same == IDS);
    CHECK(greedy == IDS - 1);
    session_close(s);
    batch_close(b);
    model_close(m);
    weights_close(w);
    pool_close(pool);
    return 0;
}
