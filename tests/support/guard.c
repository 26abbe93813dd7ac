#define _DEFAULT_SOURCE /* MAP_ANONYMOUS, on macOS with the other name */
#define _DARWIN_C_SOURCE
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/support/guard.h"

static struct {
    char *base;
    size_t len;
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
    maps[nmaps++].len = len;
    return high ? p + page + body - size : p + page;
}

void guard_reset(void)
{
    while (nmaps > 0) {
        nmaps--;
        munmap(maps[nmaps].base, maps[nmaps].len);
    }
}
