#include "kernels/kv.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "kernels/math.h"
#include "kernels/panels.h"

static const char *const names[] = { "f32", "f16", "q8" };

const char *kvcache_name(enum kvcache type)
{
    return names[type];
}

bool kvcache_parse(enum kvcache *out, const char *name)
{
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (!strcmp(name, names[i])) {
            *out = (enum kvcache)i;
            return true;
        }
    return false;
}

size_t kvcache_value_bytes(enum kvcache type, size_t hd16)
{
    if (type == KVCACHE_Q8)
        return (hd16 + GROUP - 1) / GROUP * sizeof(float) + hd16;
    return hd16 * (type == KVCACHE_F32 ? sizeof(float) : sizeof(uint16_t));
}

size_t kvcache_keys_bytes(enum kvcache type, size_t hd16)
{
    return PANEL * kvcache_value_bytes(type, hd16);
}

/* Quantize x by the rule in kv.h. Element d goes to q[d * step], the scale of a group to
 * scale[group * step]. */
static void put_q8(float *scale, int8_t *q, size_t step, const float *x, size_t hd16)
{
    for (size_t d = 0; d < hd16; d += GROUP, scale += step) {
        size_t n = hd16 - d < GROUP ? hd16 - d : GROUP;
        float amax = 0.0f;
        for (size_t i = 0; i < n; i++)
            amax = fabsf(x[d + i]) > amax ? fabsf(x[d + i]) : amax;
        bool live = amax > 0x1p-100f;
        float inv = 127.0f / amax;
        *scale = live ? amax / 127.0f : 0.0f;
        for (size_t i = 0; i < n; i++) {
            float v = x[d + i] * inv;
            v = v > -127.0f ? v : -127.0f; /* sends NaN to -127, too */
            v = v < 127.0f ? v : 127.0f;
            q[(d + i) * step] = live ? (int8_t)rintf(v) : 0;
        }
    }
}

/* Store x in lane `lane` of an array whose rows have `step` lanes: 16 for keys, 1 for a value. */
static void kv_put(enum kvcache type, void *base, size_t lane, size_t step, const float *x,
                   size_t hd16)
{
    float *f = base;
    uint16_t *h = base;
    size_t scales = (hd16 + GROUP - 1) / GROUP * step;
    switch (type) {
    case KVCACHE_F32:
        for (size_t d = 0; d < hd16; d++)
            f[d * step + lane] = x[d];
        break;
    case KVCACHE_F16:
        for (size_t d = 0; d < hd16; d++)
            h[d * step + lane] = f16_from_f32(x[d]);
        break;
    case KVCACHE_Q8:
        put_q8(f + lane, (int8_t *)(f + scales) + lane, step, x, hd16);
        break;
    }
}

void kvcache_put_key(enum kvcache type, void *group, size_t lane, const float *x, size_t hd16)
{
    kv_put(type, group, lane, PANEL, x, hd16);
}

void kvcache_put_value(enum kvcache type, void *row, const float *x, size_t hd16)
{
    kv_put(type, row, 0, 1, x, hd16);
}

void kvcache_key_column(float out[16], enum kvcache type, const void *group, size_t d, size_t hd16)
{
    const float *f = group;
    const uint16_t *h = group;
    const int8_t *q = (const int8_t *)(f + (hd16 + GROUP - 1) / GROUP * PANEL);
    for (size_t i = 0; i < PANEL; i++)
        switch (type) {
        case KVCACHE_F32:
            out[i] = f[d * PANEL + i];
            break;
        case KVCACHE_F16:
            out[i] = f32_from_f16(h[d * PANEL + i]);
            break;
        case KVCACHE_Q8:
            out[i] = (float)q[d * PANEL + i] * f[d / GROUP * PANEL + i];
            break;
        }
}
