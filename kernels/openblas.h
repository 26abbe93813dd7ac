/* openblas.h - the library behind the set `blas`, as a whole. */
#ifndef KERNELS_OPENBLAS_H
#define KERNELS_OPENBLAS_H

/* One thread a call: the pool cuts the work up. kernels_pick does this when it lays `blas`. */
void openblas_alone(void);

/* OpenBLAS chooses its kernels by the processor's model number and takes one it does not know for
 * an old one. The value that OPENBLAS_CORETYPE should have in the environment then, e.g.
 * "SkylakeX"; NULL where its choice suits a processor with these CPU_* bits, or without OpenBLAS.
 */
const char *openblas_hint(unsigned cpu);

#endif
