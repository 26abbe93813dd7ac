#define _DARWIN_C_SOURCE /* ru_maxrss */
#include "tools/lab/machine/limits.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "kernels/sys/cpu.h"
#include "kernels/sys/os.h"
#include "kernels/sys/pool.h"

enum { UNROLL = 12, PLACES = 4 };

#if defined(__x86_64__)
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
#define MADD_YMM(r) \
    "vpmaddubsw %%ymm14, %%ymm15, %%ymm12\n\tvpaddw %%ymm12, %%ymm" r ", %%ymm" r "\n\t"
#define MADD_ZMM(r) \
    "vpmaddubsw %%zmm14, %%zmm15, %%zmm12\n\tvpaddw %%zmm12, %%zmm" r ", %%zmm" r "\n\t"
LOOP(fma_ymm, FMA_YMM)
LOOP(fma_zmm, FMA_ZMM)
LOOP(dot_zmm, DOT_ZMM)
LOOP(madd_ymm, MADD_YMM)
LOOP(madd_zmm, MADD_ZMM)
LOOP(dot_ymm, DOT_YMM)
LOOP(bf16_zmm, BF16_ZMM)

static void count_down(size_t turns)
{
    __asm__ volatile("1:\n\tdec %0\n\tjnz 1b" : "+r"(turns) : : "cc");
}

const struct limit limits[] = {
    { "clock in GHz (dec jnz)", "clock", 0, 1, count_down },
    { "f32 ymm (vfmadd231ps)", "f32", CPU_AVX2, UNROLL * 16, fma_ymm },
    { "f32 zmm (vfmadd231ps)", "f32", CPU_AVX512, UNROLL * 32, fma_zmm },
    { "int8 ymm (vpmaddubsw, vpaddw)", "int8", CPU_AVX2, UNROLL * 64, madd_ymm },
    { "int8 zmm (vpmaddubsw, vpaddw)", "int8", CPU_AVX512, UNROLL * 128, madd_zmm },
    { "int8 ymm (vpdpbusd)", "int8", CPU_AVXVNNI, UNROLL * 64, dot_ymm },
    { "int8 zmm (vpdpbusd)", "int8", CPU_AVX512VNNI, UNROLL * 128, dot_zmm },
    { "bf16 zmm (vdpbf16ps)", "bf16", CPU_AVX512BF16, UNROLL * 64, bf16_zmm },
};

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

static void count_down(size_t turns)
{
    __asm__ volatile("1:\n\tsubs %0, %0, #1\n\tb.ne 1b" : "+r"(turns) : : "cc");
}

const struct limit limits[] = {
    { "clock in GHz (subs b.ne)", "clock", 0, 1, count_down },
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

/* Define a function that reads from four places, two vectors of this many bytes every `step` bytes
 * of `bytes`. The places have variables of their own, because compilers keep small arrays of
 * vectors in memory. The barrier makes every turn read again. */
#define READ(name, attributes, size)                                                         \
    typedef uint64_t name##_vector __attribute__((vector_size(size), may_alias));            \
    attributes static uint64_t name(const char *const at[PLACES], size_t bytes, size_t step, \
                                    size_t turns)                                            \
    {                                                                                        \
        name##_vector a = { 0 }, b = a, c = a, d = a;                                        \
        for (; turns; turns--) {                                                             \
            for (size_t i = 0; i < bytes; i += step) {                                       \
                const name##_vector *p = (const void *)(at[0] + i);                          \
                const name##_vector *q = (const void *)(at[1] + i);                          \
                const name##_vector *r = (const void *)(at[2] + i);                          \
                const name##_vector *s = (const void *)(at[3] + i);                          \
                a ^= p[0], b ^= q[0], c ^= r[0], d ^= s[0];                                  \
                a ^= p[1], b ^= q[1], c ^= r[1], d ^= s[1];                                  \
            }                                                                                \
            __asm__ volatile("" ::: "memory");                                               \
        }                                                                                    \
        uint64_t sum = 0;                                                                    \
        a ^= b ^ c ^ d;                                                                      \
        for (size_t i = 0; i < (size) / sizeof(sum); i++)                                    \
            sum ^= a[i];                                                                     \
        return sum;                                                                          \
    }
#if defined(__x86_64__)
READ(read_zmm, __attribute__((target("avx512f"))), 64)
READ(read_ymm, __attribute__((target("avx2"))), 32)
#endif
READ(read_plain, , 16)

uint64_t limits_read(const uint64_t *p, size_t n, size_t streams, size_t turns, unsigned cpu)
{
    uint64_t (*loop)(const char *const at[PLACES], size_t bytes, size_t step, size_t turns) =
        read_plain;
    size_t unit = 2 * 16; /* bytes read from a place at once */
    (void)cpu;
#if defined(__x86_64__)
    loop = cpu & CPU_AVX512 ? read_zmm : cpu & CPU_AVX2 ? read_ymm : read_plain;
    unit = cpu & CPU_AVX512 ? 2 * 64 : cpu & CPU_AVX2 ? 2 * 32 : unit;
#endif
    const char *at[PLACES];
    size_t whole = n * sizeof(*p) / (PLACES * unit) * (PLACES * unit), part = whole / streams;
    for (size_t i = 0; i < PLACES; i++)
        at[i] = (const char *)p + i % streams * part + i / streams * unit;
    uint64_t sum = loop(at, part, PLACES / streams * unit, turns);
    for (size_t i = whole / sizeof(*p); i < n; i++)
        sum ^= turns % 2 ? p[i] : 0;
    return sum;
}

#if defined(__linux__) && !defined(PORTABLE)
/* Read the first line of a file of /sys about cache `index` of the first processor; "" if there is
 * none. */
static void limits_line(char out[32], unsigned index, const char *name)
{
    char path[96];
    snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu0/cache/index%u/%s", index, name);
    FILE *f = fopen(path, "re");
    if (!f || !fgets(out, 32, f))
        out[0] = 0;
    if (f)
        fclose(f);
}

static size_t limits_told(unsigned level)
{
    char text[32];
    for (unsigned i = 0; i < 8; i++) {
        limits_line(text, i, "type");
        if (text[0] != 'D' && text[0] != 'U') /* Data, Unified */
            continue;
        limits_line(text, i, "level");
        if (strtoul(text, NULL, 10) != level)
            continue;
        char *unit;
        limits_line(text, i, "size");
        unsigned long n = strtoul(text, &unit, 10);
        if (n)
            return n << (*unit == 'K' ? 10 : *unit == 'M' ? 20 : 0);
    }
#if defined(_SC_LEVEL1_DCACHE_SIZE) /* of glibc */
    static const int names[] = { _SC_LEVEL1_DCACHE_SIZE, _SC_LEVEL2_CACHE_SIZE,
                                 _SC_LEVEL3_CACHE_SIZE };
    long n = sysconf(names[level - 1]);
    return n > 0 ? (size_t)n : 0;
#else
    return 0;
#endif
}
#else
static size_t limits_told(unsigned level)
{
    (void)level;
    return 0;
}
#endif

size_t limits_cache(unsigned level)
{
    static const size_t usual[] = { 32 << 10, 512 << 10, 8 << 20 };
    size_t told = limits_told(level);
    return told ? told : usual[level - 1];
}

size_t limits_peak_memory(void)
{
    struct rusage u;
    if (getrusage(RUSAGE_SELF, &u) || u.ru_maxrss < 0)
        return 0;
#if defined(__APPLE__)
    return (size_t)u.ru_maxrss; /* bytes there, KiB elsewhere */
#else
    return (size_t)u.ru_maxrss * 1024;
#endif
}

static int limits_ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double limits_median(double *samples, size_t n)
{
    qsort(samples, n, sizeof(*samples), limits_ascending);
    return n % 2 ? samples[n / 2] : (samples[n / 2 - 1] + samples[n / 2]) / 2;
}

/* Arguments of limits_turn. */
struct turning {
    const struct limit *limit;
    size_t turns;
};

/* Thread function: run pieces [first, last) of the arithmetic. */
static void limits_turn(void *arg, size_t thread, size_t first, size_t last)
{
    const struct turning *t = arg;
    (void)thread;
    for (size_t i = first; i < last; i++)
        t->limit->run(t->turns);
}

double limits_measure(const struct limit *limit, struct pool *pool)
{
    enum { PIECES = 16, PASSES = 5 };
    struct turning t = { limit, 20000 };
    size_t n = PIECES * pool_threads(pool);
    double best = 0;
    for (size_t i = 0; i < 2 * PASSES; i++) {
        uint64_t begin = os_now_ns();
        pool_for(pool, n, 1, limits_turn, &t);
        double now = limit->ops * (double)(n * t.turns) / (double)(os_now_ns() - begin);
        best = now > best ? now : best;
    }
    return best;
}

double limits_peak(const char *what, unsigned cpu, struct pool *pool)
{
    enum { MOST = 16 };
    static double known[MOST];
    static size_t threads; /* with which they were measured */
    double best = 0;
    if (threads != pool_threads(pool))
        memset(known, 0, sizeof(known));
    threads = pool_threads(pool);
    for (size_t i = 0; i < limits_count && i < MOST; i++) {
        if (strcmp(limits[i].what, what) != 0 || (limits[i].needs & cpu) != limits[i].needs)
            continue;
        if (known[i] <= 0)
            known[i] = limits_measure(&limits[i], pool);
        best = known[i] > best ? known[i] : best;
    }
    return best;
}
