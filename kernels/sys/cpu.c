#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "kernels/sys/cpu.h"
#include "kernels/sys/os.h"

#if defined(HAVE_BLAS)
enum { BUILT_IN = CPU_BLAS };
#else
enum { BUILT_IN = 0 };
#endif

#if defined(__x86_64__)
#include <cpuid.h>

struct regs {
    unsigned a, b, c, d;
};

static struct regs cpu_cpuid(unsigned leaf, unsigned sub)
{
    struct regs r = { 0, 0, 0, 0 };
    __get_cpuid_count(leaf, sub, &r.a, &r.b, &r.c, &r.d);
    return r;
}

static int cpu_has(unsigned reg, unsigned bits)
{
    return (reg & bits) == bits;
}

/* Return which registers the operating system saves on a context switch (XCR0). */
static unsigned saved_state(void)
{
    unsigned low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return low;
}

/* True when the processor names AMD as its maker: "AuthenticAMD". */
static bool cpu_is_amd(void)
{
    struct regs r = cpu_cpuid(0, 0);
    const unsigned name[] = { r.b, r.d, r.c };
    return !memcmp(name, "AuthenticAMD", sizeof(name));
}

/* An instruction set counts only when the operating system also saves its registers. */
static unsigned cpu_ask(void)
{
    enum { FMA = 1 << 12, OSXSAVE = 1 << 27, AVX = 1 << 28, F16C = 1 << 29 }; /* leaf 1 ecx */
    enum { AVX2 = 1 << 5, AVX512F = 1 << 16, AVX512DQ = 1 << 17, AVX512BW = 1 << 30 };
    enum { AVXVNNI = 1 << 4, AVX512BF16 = 1 << 5 };            /* leaf 7.1 eax */
    const unsigned avx512vl = 1u << 31, avx512vnni = 1u << 11; /* leaf 7 ebx, ecx */
    const unsigned ymm = 0x06, zmm = 0xe6;
    struct regs l1 = cpu_cpuid(1, 0), l7 = cpu_cpuid(7, 0), l71 = cpu_cpuid(7, 1);
    unsigned bits = BUILT_IN | (cpu_is_amd() ? CPU_AMD : 0);
    if (!cpu_has(l1.c, FMA | OSXSAVE | AVX | F16C) || !cpu_has(l7.b, AVX2) ||
        !cpu_has(saved_state(), ymm))
        return bits;
    bits |= CPU_AVX2;
    if (l7.a >= 1 && cpu_has(l71.a, AVXVNNI))
        bits |= CPU_AVXVNNI;
    if (cpu_has(l7.b, AVX512F | AVX512DQ | AVX512BW | avx512vl) && cpu_has(saved_state(), zmm))
        bits |= CPU_AVX512 | (cpu_has(l7.c, avx512vnni) ? CPU_AVX512VNNI : 0) |
                (l7.a >= 1 && cpu_has(l71.a, AVX512BF16) ? CPU_AVX512BF16 : 0);
    return bits;
}

/* The brand string has three leaves of 16 bytes, padded with blanks or zeros on either side. */
const char *cpu_name(void)
{
    static _Thread_local char name[49];
    for (unsigned i = 0; i < 3; i++) {
        struct regs r = cpu_cpuid(0x80000002 + i, 0);
        memcpy(name + 16 * i, &r, sizeof(r));
    }
    size_t len = strlen(name);
    while (len > 0 && name[len - 1] == ' ')
        name[--len] = 0;
    const char *p = name + strspn(name, " ");
    return *p ? p : "x86-64";
}

#elif defined(__aarch64__)

static unsigned cpu_ask(void)
{
    return BUILT_IN | CPU_NEON | (os_has_dotprod() ? CPU_DOTPROD : 0) |
           (os_has_i8mm() ? CPU_I8MM : 0);
}

const char *cpu_name(void)
{
    return os_has_dotprod() ? "aarch64 with dot product" : "aarch64";
}

#else

static unsigned cpu_ask(void)
{
    return BUILT_IN;
}

const char *cpu_name(void)
{
    return "unknown processor";
}

#endif

/* Ask once: in a virtual machine each CPUID costs a trap. The answer never changes, so two threads
 * may both ask at the same time. */
unsigned cpu_detect(void)
{
    static _Atomic unsigned known;
    const unsigned asked = 1u << 31;
    unsigned bits = known;
    if (!bits)
        known = bits = cpu_ask() | asked;
    return bits & ~asked;
}
