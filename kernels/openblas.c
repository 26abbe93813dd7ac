#include "kernels/openblas.h"

#include <stddef.h>
#include <strings.h>

#include "kernels/sys/cpu.h"

#if defined(HAVE_BLAS)
#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

/* Values of cblas.h. */
enum { ROW_MAJOR = 101, NO_TRANSPOSE = 111 };

static struct {
    void (*sgemm)(int order, int trans_a, int trans_b, int m, int n, int k, float alpha,
                  const float *a, int lda, const float *b, int ldb, float beta, float *c, int ldc);
    void (*set_num_threads)(int n);
    char *(*get_corename)(void);
    const char *why; /* reason why it could not be loaded; NULL when it was */
} lib;

static pthread_once_t once = PTHREAD_ONCE_INIT;

/* Store the address of the library's symbol `name` in the function pointer at `pointer`; false when
 * the library lacks it. */
static bool openblas_find(void *library, void *pointer, const char *name)
{
    void *symbol = dlsym(library, name);
    memcpy(pointer, &symbol, sizeof(symbol)); /* C has no cast from object to function pointer */
    return symbol != NULL;
}

/* Try the library of the build first, then the usual names. */
static void openblas_load_once(void)
{
    static const char *const names[] = { OPENBLAS, "libopenblas.so.0", "libopenblas.so",
                                         "libopenblas.dylib" };
    void *library = NULL;
    for (size_t i = 0; !library && i < sizeof(names) / sizeof(names[0]); i++)
        library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    if (!library)
        lib.why = "libopenblas is not installed";
    else if (!openblas_find(library, &lib.sgemm, "cblas_sgemm") ||
             !openblas_find(library, &lib.set_num_threads, "openblas_set_num_threads") ||
             !openblas_find(library, &lib.get_corename, "openblas_get_corename"))
        lib.why = "libopenblas lacks functions that are needed";
    else
        lib.set_num_threads(1);
}

bool openblas_load(const char **why)
{
    pthread_once(&once, openblas_load_once);
    if (why)
        *why = lib.why;
    return !lib.why;
}

void openblas_sgemm(int m, int n, int k, const float *a, int lda, const float *b, int ldb, bool add,
                    float *c, int ldc)
{
    lib.sgemm(ROW_MAJOR, NO_TRANSPOSE, NO_TRANSPOSE, m, n, k, 1, a, lda, b, ldb, add ? 1 : 0, c,
              ldc);
}

const char *openblas_hint(unsigned cpu)
{
    static const char *const avx512[] = { "SkylakeX", "Cooperlake", "SapphireRapids" };
    static const char *const avx2[] = { "Haswell", "Zen", "Excavator" };
    if (!openblas_load(NULL))
        return NULL;
    const char *core = lib.get_corename();
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

bool openblas_load(const char **why)
{
    if (why)
        *why = "built without OpenBLAS";
    return false;
}

const char *openblas_hint(unsigned cpu)
{
    (void)cpu;
    return NULL;
}

#endif
