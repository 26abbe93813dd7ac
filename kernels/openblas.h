/* openblas.h - the library that the set `blas` calls. It is loaded on first use, because its
 * start-up (it starts a thread for each processor) costs 25 ms that most runs do not need. */
#ifndef KERNELS_OPENBLAS_H
#define KERNELS_OPENBLAS_H

#include <stdbool.h>

/* Load the library, once; any thread may call this. Returns false when it cannot be loaded, and
 * *why (if why is not NULL) then gives the reason as a string that lives for ever. A loaded library
 * uses one thread per call, because the pool divides the work. */
bool openblas_load(const char **why);

/* Compute C = A B, or C += A B when add is true. All are row-major: C[m][ldc], A[m][lda] with k
 * columns, B[k][ldb] with n. Call only after openblas_load returned true. */
void openblas_sgemm(int m, int n, int k, const float *a, int lda, const float *b, int ldb, bool add,
                    float *c, int ldc);

/* Return the value that OPENBLAS_CORETYPE should have in the environment, e.g. "SkylakeX", or NULL
 * when OpenBLAS's choice suits a processor with these CPU_* bits, or without OpenBLAS. OpenBLAS
 * chooses its kernels by the processor's model number and takes a model that it does not know for
 * an old one. */
const char *openblas_hint(unsigned cpu);

#endif
