/* avx2_blocks.c - the products of GGUF's other types with AVX2. */
#include <immintrin.h>
#include <string.h>

#include "kernels/sys/cpu.h"
#include "kernels/x86/pairs.h"

#define vec       __m256
#define vec_set1  _mm256_set1_ps
#define vec_mul   _mm256_mul_ps
#define vec_fma   _mm256_fmadd_ps
#define CODE_LANE uint16_t
#define EACH(x)   (uint16_t)((x)*0x0101u)
#define MOST      4
enum { VEC = 8, LOADED = 1 };

/* Sums of pairs of products, in 16 bits. */
struct part {
    __m256i sum;
};

INLINE __m256i code_table_256(__m256i v)
{
    return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(_mm_setr_epi8(IQ4_VALUES)), v);
}
#define code_table(v) ((codes)code_table_256((__m256i)(v)))

INLINE __m256 widen_halves(const unsigned char *p)
{
    return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)p));
}

#define part_open(s) ((void)(s), (struct part){ _mm256_setzero_si256() })
#define part_close(s, p) \
    ((sums)_mm256_add_epi32((__m256i)(s), _mm256_madd_epi16((p).sum, _mm256_set1_epi16(1))))
#define part_step(type, p, v, x, line) part_step_256(type, p, (__m256i)(v), (x) + (line)*4)

INLINE struct part part_step_256(enum ptype type, struct part p, __m256i v, const int8_t *x)
{
    int32_t four;
    memcpy(&four, x, sizeof(four));
    __m256i x4 = _mm256_set1_epi32(four);
    if (type == P_IQ4_NL || type == P_IQ4_XS) {
        x4 = _mm256_sign_epi8(x4, v);
        v = _mm256_abs_epi8(v);
    }
    p.sum = _mm256_add_epi16(p.sum, _mm256_maddubs_epi16(v, x4));
    __asm__("" : "+x"(p.sum)); /* else gcc turns the chain into a tree, and spills */
    return p;
}

#include "kernels/codes_tiles.h"

PRODUCTS(avx2)

const struct kernels kernels_avx2_blocks = {
    .isa = "avx2",
    .needs = CPU_AVX2,
    PRODUCTS_OF(avx2),
};
