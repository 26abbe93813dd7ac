/* avxvnni_blocks.c - the products of GGUF's other types with the byte dot product in 256 bits. */
#include <immintrin.h>
#include <string.h>

#include "kernels/sys/cpu.h"
#include "kernels/blocks.h"

#define vec       __m256
#define vec_set1  _mm256_set1_ps
#define vec_mul   _mm256_mul_ps
#define vec_fma   _mm256_fmadd_ps
#define CODE_LANE uint16_t
#define EACH(x)   (uint16_t)((x)*0x0101u)
#define MOST      5
enum { VEC = 8, LOADED = 1 };

/* The instruction adds to 32 bits. */
struct part {
    __m256i sum;
};

/* It takes unsigned codes, so IQ4's values are looked up 128 too large. */
INLINE int32_t code_zero(enum ptype type)
{
    return type == P_IQ4_NL || type == P_IQ4_XS ? 128 : block_forms[type].zero;
}

INLINE __m256i code_table_256(__m256i v)
{
    __m128i table = _mm_xor_si128(_mm_setr_epi8(IQ4_VALUES), _mm_set1_epi8((char)0x80));
    return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(table), v);
}
#define code_table(v) ((codes)code_table_256((__m256i)(v)))

INLINE __m256 widen_halves(const unsigned char *p)
{
    return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)p));
}

INLINE size_t part_lines(enum ptype type)
{
    (void)type;
    return 8;
}

#define part_open(s)                   ((struct part){ (__m256i)(s) })
#define part_close(s, p)               ((sums)(p).sum)
#define part_step(type, p, v, x, line) part_step_256(p, (__m256i)(v), (x) + (line)*4)

INLINE struct part part_step_256(struct part p, __m256i v, const int8_t *x)
{
    int32_t four;
    memcpy(&four, x, sizeof(four));
    p.sum = _mm256_dpbusd_avx_epi32(p.sum, v, _mm256_set1_epi32(four));
    return p;
}

#include "kernels/codes_tiles.h"

PRODUCTS(avxvnni)

const struct kernels kernels_avxvnni_blocks = {
    .isa = "avxvnni",
    .needs = CPU_AVX2 | CPU_AVXVNNI,
    PRODUCTS_OF(avxvnni),
};
