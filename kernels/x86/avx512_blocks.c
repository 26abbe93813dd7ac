/* avx512_blocks.c - the products of GGUF's other types with AVX-512, but without VNNI. */
#include <immintrin.h>
#include <string.h>

#include "kernels/sys/cpu.h"
#include "kernels/x86/pairs.h"

#define vec       __m512
#define vec_set1  _mm512_set1_ps
#define vec_mul   _mm512_mul_ps
#define vec_fma   _mm512_fmadd_ps
#define CODE_LANE uint16_t
#define EACH(x)   (uint16_t)((x)*0x0101u)
#define MOST      8
enum { VEC = 16, LOADED = 1 };

/* As in avx2_blocks.c, twice as wide. */
struct part {
    __m512i sum;
};

INLINE __m512i code_table_512(__m512i v)
{
    return _mm512_shuffle_epi8(_mm512_broadcast_i32x4(_mm_setr_epi8(IQ4_VALUES)), v);
}
#define code_table(v) ((codes)code_table_512((__m512i)(v)))

INLINE __m512 widen_halves(const unsigned char *p)
{
    return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(const void *)p));
}

#define part_open(s) ((void)(s), (struct part){ _mm512_setzero_si512() })
#define part_close(s, p) \
    ((sums)_mm512_add_epi32((__m512i)(s), _mm512_madd_epi16((p).sum, _mm512_set1_epi16(1))))
#define part_step(type, p, v, x, line) part_step_512(type, p, (__m512i)(v), (x) + (line)*4)

INLINE struct part part_step_512(enum ptype type, struct part p, __m512i v, const int8_t *x)
{
    int32_t four;
    memcpy(&four, x, sizeof(four));
    __m512i x4 = _mm512_set1_epi32(four);
    if (type == P_IQ4_NL || type == P_IQ4_XS) {
        x4 = _mm512_mask_sub_epi8(x4, _mm512_movepi8_mask(v), _mm512_setzero_si512(), x4);
        v = _mm512_abs_epi8(v);
    }
    p.sum = _mm512_add_epi16(p.sum, _mm512_maddubs_epi16(v, x4));
    __asm__("" : "+v"(p.sum)); /* else gcc turns the chain into a tree, and spills */
    return p;
}

#include "kernels/codes_tiles.h"

PRODUCTS(avx512)

const struct kernels kernels_avx512_blocks = {
    .isa = "avx512",
    .needs = CPU_AVX2 | CPU_AVX512,
    PRODUCTS_OF(avx512),
};
