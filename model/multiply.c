/* multiply.c - one product of a pass: the kernel of its type, and how it walks the weights. */
#include "model/batch_internal.h"

void batch_multiply(struct batch *b, float *y, size_t ldy, const struct panels *w, const float *x,
                    size_t ldx, size_t n, size_t p0, size_t p1)
{
    const struct kernels *k = b->m->kernels;
    size_t slot = w == &b->m->head ? TUNING_HEAD : w->type;
    uint64_t began = tuning_begins(&b->tuning, slot, n);
    struct panels walk = *w;
    walk.tune = &b->tuning.slot[slot].now;
    switch (w->type) {
    case P_F32:
        k->matmul_f32(y, ldy, &walk, x, ldx, n, p0, p1);
        break;
    case P_BF16:
        k->matmul_bf16(y, ldy, &walk, x, ldx, n, p0, p1);
        break;
    default:
        kernels_product(k, w->type)(y, ldy, &walk, &b->act, n, p0, p1);
        break;
    }
    tuning_ends(&b->tuning, slot, began);
}
