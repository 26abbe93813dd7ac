/* openblas.h - the library behind the set `blas`. It is loaded at the first need, for its own start
 * (a thread for each processor) costs 25 ms that most runs have no use for. */
#ifndef KERNELS_OPENBLAS_H
#define KERNELS_OPENBLAS_H

#include <stdbool.h>

/* Load it, once; any thread. From then on it uses one thread a call: the pool cuts the work up.
 * *why, where not NULL, says why not: borrowed, for ever. */
bool openblas_load(const char **why);

/* C = A B, or C += A B; all row-major: C[m][ldc], A[m][lda] with k columns, B[k][ldb] with n. After
 * openblas_load. */
void openblas_sgemm(int m, int n, int k, const float *a, int lda, const float *b, int ldb, bool add,
                    float *c, int ldc);

/* OpenBLAS chooses its kernels by the processor's model number and takes one it does not know for
 * an old one. The value that OPENBLAS_CORETYPE should have in the environment then, e.g.
 * "SkylakeX"; NULL where its choice suits a processor with these CPU_* bits, or without OpenBLAS.
 */
const char *openblas_hint(unsigned cpu);

#endif
