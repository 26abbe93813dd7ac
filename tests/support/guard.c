#define _DEFAULT_SOURCE /* MAP_ANONYMOUS, on macOS with the other name */
#define _DARWIN_C_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/support/guard.h"

static struct {
    char *base, *at;
    size_t len, size;
    const char *name;
} maps[32];
static size_t nmaps;

void *guard_alloc(size_t size, int high)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t body = (size + page - 1) / page * page, len = body + 2 * page;
    char *p = mmap(NULL, len, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED || nmaps == sizeof(maps) / sizeof(maps[0]) ||
        mprotect(p + page, body, PROT_READ | PROT_WRITE))
        abort();
    maps[nmaps].base = p;
    maps[nmaps].at = high ? p + page + body - size : p + page;
    maps[nmaps].size = size;
    maps[nmaps].name = NULL;
    maps[nmaps].len = len;
    return maps[nmaps++].at;
}

void guard_name(const void *p, const char *name)
{
    for (size_t i = 0; i < nmaps; i++)
        if (maps[i].at == p)
            maps[i].name = name;
}

void guard_where(char *out, size_t size, const void *address)
{
    uintptr_t a = (uintptr_t)address;
    *out = '\0';
    for (size_t i = 0; i < nmaps; i++) {
        uintptr_t base = (uintptr_t)maps[i].base, at = (uintptr_t)maps[i].at;
        if (maps[i].name && a >= base && a < base + maps[i].len)
            snprintf(out, size, " %s %s, at its byte %s%zu of %zu", a < at ? "before" : "behind",
                     maps[i].name, a < at ? "-" : "", a < at ? at - a : a - at, maps[i].size);
    }
}

void guard_reset(void)
{
    while (nmaps > 0) {
        nmaps--;
        munmap(maps[nmaps].base, maps[nmaps].len);
    }
}
