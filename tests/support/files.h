/* files.h - whole files, those of the test data and those that a test makes, open descriptors, and
 * what is printed on stdout. */
#ifndef TESTS_SUPPORT_FILES_H
#define TESTS_SUPPORT_FILES_H

#include <dirent.h>
#include <stdarg.h>

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

enum { SCRATCH_FILES = 32, SCRATCH_PATH = 96 };

static struct {
    char folder[32], file[SCRATCH_FILES][SCRATCH_PATH];
    pid_t of; /* the process that made it */
} scratch_made = { .folder = "build/test-XXXXXX" };

static inline void scratch_end(void)
{
    if (scratch_made.of != getpid())
        return;
    for (size_t i = SCRATCH_FILES; i-- > 0;)
        if (*scratch_made.file[i])
            remove(scratch_made.file[i]);
    if (rmdir(scratch_made.folder) == 0)
        return;
    fprintf(stderr, "%s: expected no files but the test's own\n", scratch_made.folder);
    fflush(stdout);
    _exit(1);
}

/* Return a new folder for the files of this test. At the end of the program it is removed with all
 * that in_scratch named; the test fails if anything else is left there. */
static inline const char *scratch_folder(void)
{
    if (scratch_made.of)
        return scratch_made.folder;
    CHECK(mkdtemp(scratch_made.folder) && atexit(scratch_end) == 0);
    scratch_made.of = getpid();
    return scratch_made.folder;
}

/* Return the path of a file in that folder, from a format, in static storage; it stays valid. */
static inline char *in_scratch(const char *format, ...)
{
    char whole[SCRATCH_PATH];
    int n = snprintf(whole, sizeof(whole), "%s/", scratch_folder());
    size_t i = 0;
    va_list list;
    va_start(list, format);
    n += vsnprintf(whole + n, sizeof(whole) - (size_t)n, format, list);
    va_end(list);
    CHECK(n < SCRATCH_PATH);
    while (*scratch_made.file[i] && strcmp(scratch_made.file[i], whole) != 0)
        CHECK(++i < SCRATCH_FILES);
    return strcpy(scratch_made.file[i], whole);
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

/* Return what the file has, from its beginning, at most a MiB - 1, in static storage; close it. */
static inline const char *slurp_closed(FILE *f)
{
    static char text[1 << 20];
    rewind(f);
    text[fread(text, 1, sizeof(text) - 1, f)] = '\0';
    fclose(f);
    return text;
}

/* Call print and return what it printed on stdout, as slurp_closed does. */
static inline const char *printed(void (*print)(void))
{
    FILE *f = tmpfile();
    int kept = dup(STDOUT_FILENO);
    CHECK(f && kept >= 0 && fflush(stdout) == 0 && dup2(fileno(f), STDOUT_FILENO) >= 0);
    print();
    CHECK(fflush(stdout) == 0 && dup2(kept, STDOUT_FILENO) >= 0 && close(kept) == 0);
    return slurp_closed(f);
}

#endif
