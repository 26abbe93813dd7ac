/* t_tuning.c - each type of weights and the head find their fastest way by themselves, among passes
 * that others disturb; only passes of one row count; nothing is tried where the way is fixed. */
#include "kernels/kernels.h"
#include "kernels/sys/cpu.h"
#include "model/model.h"
#include "model/train/random.h"
#include "model/tuning.h"
#include "tests/support/test.h"
#include "tools/lab/bench/bench_model.h"

/* Run passes in which slot i takes ns(i, way, turn), until the choices are made. */
static void passes(struct tuning *t, uint64_t (*ns)(size_t slot, size_t way, size_t turn))
{
    for (size_t pass = 0; pass < TUNING_PASSES; pass++) {
        CHECK(!model_tuned(t));
        for (size_t i = P_Q8; i <= TUNING_HEAD; i += TUNING_HEAD - P_Q8)
            t->slot[i].ns = ns(i, pass % TUNING_WAYS, pass / TUNING_WAYS);
        tuning_pass(t, 0, TUNING_SLOTS, 1);
    }
    CHECK(model_tuned(t) && t->slot[P_F32].passes == 0);
}

/* The fifth way is best for Q8_0, the third for the head; others run beside half of the passes. */
static uint64_t two_best(size_t slot, size_t way, size_t turn)
{
    uint64_t ns = way == (slot == P_Q8 ? 4 : 2) ? 900000 : 1000000 + way;
    return (way + turn) % 2 ? ns : 3 * ns;
}

/* Two percent may be chance. */
static uint64_t apart(size_t slot, size_t way, size_t turn)
{
    (void)slot;
    (void)turn;
    return way == 3 ? 980000 : 1000000;
}

static bool same(const struct tune *a, const struct tune *b)
{
    return a->panels == b->panels && a->run == b->run && a->ahead == b->ahead;
}

static void choices(const struct kernels *k)
{
    struct tuning t;
    tuning_open(&t, k, P_Q4_K);
    for (size_t i = 0; i < TUNING_SLOTS; i++)
        for (size_t w = 0; w < TUNING_WAYS; w++)
            for (size_t v = 0; v < w; v++)
                CHECK(!same(&t.slot[i].way[v], &t.slot[i].way[w]));
    CHECK(same(&t.slot[P_Q8].now, &k->tune[P_Q8]));
    CHECK(same(&t.slot[TUNING_HEAD].now, &k->tune[P_Q4_K]));
    passes(&t, two_best);
    CHECK(same(&t.slot[P_Q8].now, &t.slot[P_Q8].way[4]) && t.slot[P_Q8].least[4] == 900000);
    CHECK(same(&t.slot[TUNING_HEAD].now, &t.slot[TUNING_HEAD].way[2]));
    tuning_open(&t, k, P_Q8);
    passes(&t, apart);
    CHECK(same(&t.slot[P_Q8].now, &k->tune[P_Q8]));
}

/* Evaluate n ids, and read the head `heads` times. */
static void step(struct session *s, size_t n, size_t heads)
{
    static const uint32_t ids[] = { 1, 2, 3 };
    session_rewind(s, 0);
    CHECK(session_eval(s, ids, n, NULL, NULL) == OK);
    CHECK(!heads || session_logits(s, 0));
}

static void in_a_model(const struct kernels *k)
{
    static const struct model_config config = { 1,  64,    4,    2,    16,    64,   512,
                                                64, 1e-6f, 1e4f, true, false, { 0 } };
    struct err err;
    struct model *m;
    struct batch *b;
    struct session *s;
    CHECK(model_random(&m, &config, P_Q8, k, NULL, 7, &err) == OK);
    CHECK(batch_open(&b, m, NULL, &err) == OK && session_open(&s, b, 8, KVCACHE_F16, &err) == OK);
    const struct tuning *t = batch_tuning(b);
    const struct tuning_slot *q8 = &t->slot[P_Q8], *head = &t->slot[TUNING_HEAD];
    step(s, 3, 1); /* one row of the head is a pass of the head */
    CHECK(q8->passes == 0 && head->passes == !k->tune_fixed);
    step(s, 1, 0);
    batch_logit(b, session_hidden(s, 0), 3); /* one panel of it is not */
    CHECK(q8->passes == !k->tune_fixed && head->passes == !k->tune_fixed && !head->ns);
    static const _Atomic int stop = 1;
    size_t before = q8->passes;
    session_rewind(s, 0);
    CHECK(session_eval(s, (const uint32_t[]){ 1 }, 1, &stop, &err) == ERR_STOP);
    step(s, 3, 0); /* what an interrupted pass took belongs to none */
    CHECK(q8->passes == before && !q8->ns);
    for (size_t i = 0; i < 2 * TUNING_PASSES; i++)
        step(s, 1, i % 2);
    CHECK(model_tuned(t) && q8->passes == (k->tune_fixed ? 0 : TUNING_PASSES));
    CHECK(k->tune_fixed || (tuning_chosen(head) && head->least[0] && q8->least[TUNING_WAYS - 1]));
    session_close(s);
    batch_close(b);
    model_close(m);
}

int main(void)
{
    struct kernels k;
    CHECK(kernels_pick(&k, NULL, cpu_detect(), NULL) == OK && !k.tune_fixed);
    choices(&k);
    in_a_model(&k);
    CHECK(kernels_pick(&k, ",ahead=4096", cpu_detect(), NULL) == OK && k.tune_fixed);
    in_a_model(&k);
    return 0;
}
