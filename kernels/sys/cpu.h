/* cpu.h - what this processor can do. */
#ifndef KERNELS_SYS_CPU_H
#define KERNELS_SYS_CPU_H

#include <stddef.h>

enum {
    CPU_AVX2 = 1u << 0,       /* AVX2, FMA, F16C */
    CPU_AVXVNNI = 1u << 1,    /* AVX-VNNI: dot products of bytes in 256 bits, VEX encoded */
    CPU_AVX512 = 1u << 2,     /* AVX-512 F, BW, VL, DQ */
    CPU_AVX512VNNI = 1u << 3, /* AVX-512 VNNI */
    CPU_NEON = 1u << 4,       /* aarch64 baseline */
    CPU_DOTPROD = 1u << 5,    /* ARMv8.2 FEAT_DotProd */
    CPU_I8MM = 1u << 6,       /* ARMv8.6 FEAT_I8MM */
    CPU_BLAS = 1u << 7,       /* built with OpenBLAS */
    CPU_AVX512BF16 = 1u << 8, /* AVX-512 BF16 */
    CPU_AMD = 1u << 9,        /* made by AMD; what its kernels want is in tune.h */
    CPU_INEXACT = CPU_BLAS | CPU_AVX512BF16, /* sets that are compared by tolerance */
};

/* Return the CPU_* bits of this machine. The processor and the operating system are asked once. */
unsigned cpu_detect(void);

/* Return the name that the processor gives itself, e.g. "Intel(R) Xeon(R) Processor"; never NULL.
 * The string is static, or lives as long as the calling thread. */
const char *cpu_name(void);

#endif
