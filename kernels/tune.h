/* tune.h - what a family of processors wants of the products of a type. None of it changes a bit. A
 * model begins with it and tries others (model/tuning.h). SPEED.md has the figures behind it. */
#ifndef KERNELS_TUNE_H
#define KERNELS_TUNE_H

#include <stddef.h>

struct tune {
    size_t panels; /* of quantised weights walked at once, 1 or 2: with one token, and with two
                      and three where the registers of a set suffice (avx512vnni) */
    size_t run;    /* multiply-adds of a product that a thread computes at a time; it gets fewer
                      where another thread, worth waking, would be left without work */
    size_t ahead;  /* bytes between a weight's prefetch and its use, up to three tokens; 0: none */
};

/* What won on Intel; other families, which were not measured, use it too. Nor was any ARM
 * processor: its sets walk one panel, and prefetch for one token only if told to (tools/m1.sh tries
 * both). */
#if defined(__aarch64__)
#define TUNE_DEFAULT                            \
    {                                           \
        .panels = 1, .run = 1 << 17, .ahead = 0 \
    }
#else
#define TUNE_DEFAULT                               \
    {                                              \
        .panels = 2, .run = 1 << 20, .ahead = 4096 \
    }
#endif

/* AMD's hardware prefetchers follow one plain stream at full speed. A prefetch by the program takes
 * the place of theirs, and a second panel is a second stream. Types that are decoded between the
 * products (all but F32, BF16, Q8_0 and Q4_0) compute for too long for that: from Zen 3 to Zen 5
 * they are up to 3.7 times faster with a prefetch. */
#define TUNE_AMD(distance)                             \
    {                                                  \
        .panels = 1, .run = 1 << 20, .ahead = distance \
    }

#endif
