#include <stddef.h>
#include <strings.h>

#include "kernels/cpu.h"
#include "kernels/openblas.h"

#if defined(HAVE_BLAS)
#include <cblas.h>

void openblas_alone(void)
{
    openblas_set_num_threads(1);
}

const char *openblas_hint(unsigned cpu)
{
    static const char *const avx512[] = { "SkylakeX", "Cooperlake", "SapphireRapids" };
    static const char *const avx2[] = { "Haswell", "Zen", "Excavator" };
    const char *core = openblas_get_corename();
    for (size_t i = 0; i < sizeof(avx512) / sizeof(avx512[0]); i++)
        if (!strcasecmp(core, avx512[i]))
            return NULL;
    if (cpu & CPU_AVX512)
        return avx512[0];
    for (size_t i = 0; i < sizeof(avx2) / sizeof(avx2[0]); i++)
        if (!strcasecmp(core, avx2[i]))
            return NULL;
    return cpu & CPU_AVX2 ? avx2[0] : NULL;
}

#else

void openblas_alone(void)
{
}

const char *openblas_hint(unsigned cpu)
{
    (void)cpu;
    return NULL;
}

#endif
