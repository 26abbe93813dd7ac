/* test.h - the whole test framework: one file, one main, one exit code; and the headers that most
 * tests need. */
#ifndef TESTS_SUPPORT_TEST_H
#define TESTS_SUPPORT_TEST_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "kernels/math.h"
#include "kernels/sys/base.h"
#include "kernels/sys/os.h"
#include "tests/support/torture.h"

/* 1 in a build with the address or the thread sanitizer. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#define SANITIZED (__has_feature(address_sanitizer) || __has_feature(thread_sanitizer))
#else
#define SANITIZED 0
#endif

/* Unless the condition holds, say where and end the program. CHECK_MSG first says, as printf does,
 * what was found. */
#define CHECK(cond)                                                           \
    do {                                                                      \
        if (!(cond)) {                                                        \
            fprintf(stderr, "%s:%d: CHECK(%s)\n", __FILE__, __LINE__, #cond); \
            exit(1);                                                          \
        }                                                                     \
    } while (0)
#define CHECK_MSG(cond, ...)                                                    \
    do {                                                                        \
        if (!(cond)) {                                                          \
            fprintf(stderr, __VA_ARGS__);                                       \
            fprintf(stderr, "\n%s:%d: CHECK(%s)\n", __FILE__, __LINE__, #cond); \
            exit(1);                                                            \
        }                                                                       \
    } while (0)

/* Say why, as printf does, and end as a test that could not do its work. */
#define SKIP(...)                     \
    do {                              \
        printf("SKIP: " __VA_ARGS__); \
        putchar('\n');                \
        exit(77);                     \
    } while (0)

/* Sleep for at least so long. */
static inline void rest_us(size_t us)
{
    nanosleep(&(struct timespec){ (time_t)(us / 1000000), (long)(us % 1000000) * 1000 }, NULL);
}

#include "tests/support/files.h" /* which uses CHECK */

#endif
