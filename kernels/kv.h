/* kv.h - the one layout of cached keys and values, the same for all instruction sets.
 *
 * Keys are stored transposed, in groups of 16 positions, so that the lanes of a vector are keys and
 * a score needs no sum across lanes; a value is a row. hd16 is the head size rounded up to 16. A
 * group of keys and a row of values:
 *
 *   F32  [hd16][16] float                                    [hd16] float
 *   F16  [hd16][16] u16                                      [hd16] u16
 *   Q8   { float scale[ceil(hd16 / 32)][16];                 { float scale[ceil(hd16 / 32)];
 *          i8 q[hd16][16] }                                    i8 q[hd16] }
 *
 * Q8: value = (float)q * scale, rounded once; each key and each value has one scale for every 32
 * columns. */
#ifndef KERNELS_KV_H
#define KERNELS_KV_H

#include <stdbool.h>
#include <stddef.h>

enum kvcache { KVCACHE_F32, KVCACHE_F16, KVCACHE_Q8 };

/* Return the name of a type: "f32", "f16" or "q8". */
const char *kvcache_name(enum kvcache type);
/* Set *out to the type called name; false when no type has this name. */
bool kvcache_parse(enum kvcache *out, const char *name);

/* Return the bytes of a group of 16 keys, and of one row of values. */
size_t kvcache_keys_bytes(enum kvcache type, size_t hd16);
size_t kvcache_value_bytes(enum kvcache type, size_t hd16);

/* Store x[hd16] as key `lane` of a group, or as a row of values. Both are aligned as their
 * elements. F16 rounds to nearest even. Q8, for each 32 columns: amax = largest |x| (NaN is
 * ignored); if amax is not above 2^-100, scale and q are 0; else scale = amax / 127 and
 * q = x * (127 / amax) clamped to [-127, 127] (NaN to -127), rounded to nearest even. */
void kvcache_put_key(enum kvcache type, void *group, size_t lane, const float *x, size_t hd16);
void kvcache_put_value(enum kvcache type, void *row, const float *x, size_t hd16);

/* Set out to column d of the 16 keys of a group, as floats. For who looks at a cache; kernels read
 * it in their own ways. */
void kvcache_key_column(float out[16], enum kvcache type, const void *group, size_t d, size_t hd16);

#endif
