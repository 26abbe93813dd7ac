#include "kernels/sys/limits.h"

#include "kernels/sys/cpu.h"

enum { UNROLL = 12, STREAMS = 4, AHEAD = 4096 }; /* AHEAD has the value of tiles.h */

#if defined(__x86_64__)
#include <immintrin.h>

/* Twelve instructions, none of which waits for another. They are inline assembly, so that neither
 * gcc nor clang can fold or reorder them. */
#define TWELVE(i, r)                                                                          \
    i(r "0") i(r "1") i(r "2") i(r "3") i(r "4") i(r "5") i(r "6") i(r "7") i(r "8") i(r "9") \
        i(r "10") i(r "11")
#define ZERO(r) "vpxor %%xmm" r ", %%xmm" r ", %%xmm" r "\n\t"
#define CLOBBERS                                                                             \
    "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", \
        "xmm11", "xmm12", "xmm13", "xmm14", "xmm15"
#define LOOP(name, one)                                                                           \
    static void name(size_t turns)                                                                \
    {                                                                                             \
        __asm__ volatile(TWELVE(ZERO, "") ZERO("12") ZERO("13") ZERO("14")                        \
                             ZERO("15") "1:\n\t" TWELVE(one, "") "dec %0\n\tjnz 1b\n\tvzeroupper" \
                         : "+r"(turns)                                                            \
                         :                                                                        \
                         : "cc", CLOBBERS);                                                       \
    }

#define FMA_YMM(r)  "vfmadd231ps %%ymm14, %%ymm15, %%ymm" r "\n\t"
#define FMA_ZMM(r)  "vfmadd231ps %%zmm14, %%zmm15, %%zmm" r "\n\t"
#define DOT_ZMM(r)  "vpdpbusd %%zmm14, %%zmm15, %%zmm" r "\n\t"
#define BF16_ZMM(r) "vdpbf16ps %%zmm14, %%zmm15, %%zmm" r "\n\t"
#define DOT_YMM(r)  "%{vex%} vpdpbusd %%ymm14, %%ymm15, %%ymm" r "\n\t"
#define MADD_YMM(r)                                                                  \
    "vpmaddubsw %%ymm14, %%ymm15, %%ymm12\n\tvpmaddwd %%ymm12, %%ymm15, %%ymm13\n\t" \
    "vpaddd %%ymm13, %%ymm" r ", %%ymm" r "\n\t"
LOOP(fma_ymm, FMA_YMM)
LOOP(fma_zmm, FMA_ZMM)
LOOP(dot_zmm, DOT_ZMM)
LOOP(madd_ymm, MADD_YMM)
LOOP(dot_ymm, DOT_YMM)
LOOP(bf16_zmm, BF16_ZMM)

const struct limit limits[] = {
    { "f32 ymm (vfmadd231ps)", "f32", CPU_AVX2, UNROLL * 16, fma_ymm },
    { "f32 zmm (vfmadd231ps)", "f32", CPU_AVX512, UNROLL * 32, fma_zmm },
    { "int8 ymm (vpmaddubsw, vpmaddwd, vpaddd)", "int8", CPU_AVX2, UNROLL * 64, madd_ymm },
    { "int8 ymm (vpdpbusd)", "int8", CPU_AVXVNNI, UNROLL * 64, dot_ymm },
    { "int8 zmm (vpdpbusd)", "int8", CPU_AVX512VNNI, UNROLL * 128, dot_zmm },
    { "bf16 zmm (vdpbf16ps)", "bf16", CPU_AVX512BF16, UNROLL * 64, bf16_zmm },
};

__attribute__((target("avx512f"))) static uint64_t read_zmm(const uint64_t *p, size_t quarter)
{
    __m512i x[STREAMS] = { _mm512_setzero_si512(), _mm512_setzero_si512(), _mm512_setzero_si512(),
                           _mm512_setzero_si512() };
    uint64_t word[8], sum = 0;
    for (size_t i = 0; i < quarter; i += 8)
        for (size_t s = 0; s < STREAMS; s++) {
            __builtin_prefetch((const char *)(p + s * quarter + i) + AHEAD, 0, 3);
            x[s] = _mm512_xor_si512(x[s], _mm512_load_si512(p + s * quarter + i));
        }
    _mm512_storeu_si512(
        word, _mm512_xor_si512(_mm512_xor_si512(x[0], x[1]), _mm512_xor_si512(x[2], x[3])));
    for (size_t i = 0; i < 8; i++)
        sum ^= word[i];
    return sum;
}

__attribute__((target("avx2"))) static uint64_t read_ymm(const uint64_t *p, size_t quarter)
{
    __m256i x[STREAMS] = { _mm256_setzero_si256(), _mm256_setzero_si256(), _mm256_setzero_si256(),
                           _mm256_setzero_si256() };
    uint64_t word[4], sum = 0;
    for (size_t i = 0; i < quarter; i += 4)
        for (size_t s = 0; s < STREAMS; s++)
            x[s] = _mm256_xor_si256(
                x[s], _mm256_load_si256((const __m256i *)(const void *)(p + s * quarter + i)));
    _mm256_storeu_si256((__m256i *)(void *)word, _mm256_xor_si256(_mm256_xor_si256(x[0], x[1]),
                                                                  _mm256_xor_si256(x[2], x[3])));
    for (size_t i = 0; i < 4; i++)
        sum ^= word[i];
    return sum;
}

#elif defined(__aarch64__)

#define TWELVE(i) \
    i("0") i("1") i("2") i("3") i("4") i("5") i("6") i("7") i("16") i("17") i("18") i("19")
#define CLOBBERS \
    "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v16", "v17", "v18", "v19", "v30", "v31"
#define ZERO(r) "movi v" r ".4s, #0\n\t"
#define LOOP(name, one)                                                                   \
    static void name(size_t turns)                                                        \
    {                                                                                     \
        __asm__ volatile(".arch armv8.2-a+dotprod+i8mm\n\t" TWELVE(ZERO) ZERO("30")       \
                             ZERO("31") "1:\n\t" TWELVE(one) "subs %0, %0, #1\n\tb.ne 1b" \
                         : "+r"(turns)                                                    \
                         :                                                                \
                         : "cc", CLOBBERS);                                               \
    }

#define FMLA(r)  "fmla v" r ".4s, v30.4s, v31.4s\n\t"
#define SDOT(r)  "sdot v" r ".4s, v30.16b, v31.16b\n\t"
#define SMMLA(r) "smmla v" r ".4s, v30.16b, v31.16b\n\t"
#define SMLAL(r) "smull v30.8h, v31.8b, v31.8b\n\tsadalp v" r ".4s, v30.8h\n\t"
LOOP(fmla, FMLA)
LOOP(sdot, SDOT)
LOOP(smmla, SMMLA)
LOOP(smull, SMLAL)

const struct limit limits[] = {
    { "f32 (fmla)", "f32", CPU_NEON, UNROLL * 8, fmla },
    { "int8 (smull, sadalp)", "int8", CPU_NEON, UNROLL * 16, smull },
    { "int8 (sdot)", "int8", CPU_DOTPROD, UNROLL * 32, sdot },
    { "int8 (smmla)", "int8", CPU_I8MM, UNROLL * 64, smmla },
};

#else

static void fma_plain(size_t turns)
{
    volatile float a = 0;
    for (; turns; turns--)
        for (int i = 0; i < UNROLL; i++)
            a = a * 0.5f + 1;
}

const struct limit limits[] = { { "f32", "f32", 0, UNROLL * 2, fma_plain } };

#endif

const size_t limits_count = sizeof(limits) / sizeof(limits[0]);

/* The fallback, in plain C. */
static uint64_t read_plain(const uint64_t *p, size_t quarter)
{
    uint64_t x[STREAMS] = { 0 };
    for (size_t i = 0; i < quarter; i++)
        for (size_t s = 0; s < STREAMS; s++)
            x[s] ^= p[s * quarter + i];
    return x[0] ^ x[1] ^ x[2] ^ x[3];
}

uint64_t limits_read(const uint64_t *p, size_t n, unsigned cpu)
{
    size_t quarter = n / STREAMS / 8 * 8;
    uint64_t sum = 0;
    for (size_t i = quarter * STREAMS; i < n; i++)
        sum ^= p[i];
    (void)cpu;
#if defined(__x86_64__)
    if (cpu & CPU_AVX512)
        return sum ^ read_zmm(p, quarter);
    if (cpu & CPU_AVX2)
        return sum ^ read_ymm(p, quarter);
#endif
    return sum ^ read_plain(p, quarter);
}
