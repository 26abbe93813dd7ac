#include "tools/run/likeliest.h"

#include "kernels/math.h"

void likeliest_ids(struct likeliest *out, size_t count, const float *logits, size_t size)
{
    size_t n = 0;
    double sum = 0;
    for (size_t id = 0; id < size; id++) {
        size_t i = n;
        for (; i > 0 && !(logits[id] <= out[i - 1].p); i--)
            if (i < count)
                out[i] = out[i - 1];
        if (i < count) {
            out[i] = (struct likeliest){ (uint32_t)id, logits[id] };
            n += n < count;
        }
    }
    double most = (double)out[0].p;
    for (size_t id = 0; id < size; id++)
        sum += exp_f64((double)logits[id] - most);
    for (size_t i = 0; i < n; i++)
        out[i].p = (float)(exp_f64((double)out[i].p - most) / sum);
}
