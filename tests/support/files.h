/* files.h - whole files, those of the test data, open descriptors, and what is printed on stdout.
 */
#ifndef TESTS_SUPPORT_FILES_H
#define TESTS_SUPPORT_FILES_H

#include <dirent.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <unistd.h>

#include "tests/support/test.h"

/* Read at most cap bytes of a file, and return how many there are. */
static inline size_t slurp(const char *name, void *to, size_t cap)
{
    FILE *f = fopen(name, "rb");
    CHECK(f);
    size_t n = fread(to, 1, cap, f);
    fclose(f);
    return n;
}

/* Write a file. */
static inline void spill(const char *name, const void *from, size_t n)
{
    FILE *f = fopen(name, "wb");
    CHECK(f && fwrite(from, 1, n, f) == n);
    CHECK(fclose(f) == 0);
}

/* Return the path of a file of the test data, in static storage, from a format. */
static inline const char *test_data(const char *format, ...)
{
    static char full[1024];
    const char *data = getenv("MIZZLE_TESTDATA");
    va_list list;
    int n = snprintf(full, sizeof(full), "%s/", data ? data : "../shared/data");
    va_start(list, format);
    vsnprintf(full + n, sizeof(full) - (size_t)n, format, list);
    va_end(list);
    return full;
}

/* Return a file, terminated, and its length; NULL if it is absent. The caller frees it. */
static inline char *slurp_all(const char *name, size_t *n)
{
    FILE *f = fopen(name, "rb");
    if (!f)
        return NULL;
    CHECK(fseek(f, 0, SEEK_END) == 0);
    long size = ftell(f);
    char *text = size < 0 ? NULL : malloc((size_t)size + 1);
    CHECK(text && fseek(f, 0, SEEK_SET) == 0);
    *n = fread(text, 1, (size_t)size, f);
    text[*n] = '\0';
    fclose(f);
    return text;
}

/* Return how many descriptors this process has open; 0 where that cannot be known. */
static inline size_t descriptors(void)
{
    size_t n = 0;
    DIR *d = opendir("/proc/self/fd");
    while (d && readdir(d))
        n++;
    if (d)
        closedir(d);
    return n;
}

/* Call print and return what it printed on stdout, at most a MiB - 1, in static storage. */
static inline const char *printed(void (*print)(void))
{
    static char text[1 << 20];
    FILE *f = tmpfile();
    int kept = dup(STDOUT_FILENO);
    CHECK(f && kept >= 0 && fflush(stdout) == 0 && dup2(fileno(f), STDOUT_FILENO) >= 0);
    print();
    CHECK(fflush(stdout) == 0 && dup2(kept, STDOUT_FILENO) >= 0 && close(kept) == 0);
    rewind(f);
    text[fread(text, 1, sizeof(text) - 1, f)] = 0;
    fclose(f);
    return text;
}

#endif
