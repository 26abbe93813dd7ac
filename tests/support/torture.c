#include <errno.h>
#include <malloc.h>

#include "tests/support/test.h"

/* Atomic, because programs with threads are linked with this file, too. */
static _Atomic long countdown, live;
static _Atomic int hit;
static void (*_Atomic calls)(void);
static const char *_Atomic watched;
static _Atomic long left;

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t size);
void __real_free(void *p);
int __real_posix_memalign(void **p, size_t align, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t size);
char *__wrap_strdup(const char *s);
void __wrap_free(void *p);
int __wrap_posix_memalign(void **p, size_t align, size_t size);

void torture_begin(long n)
{
    calls = NULL;
    countdown = n;
    hit = 0;
    live = 0;
}

void torture_call(long n, void (*then)(void))
{
    torture_begin(n);
    calls = then;
}

int torture_end(void)
{
    countdown = 0;
    return hit;
}

long torture_live(void)
{
    return live;
}

static long each(int (*f)(const void *arg), const void *arg, bool some)
{
    long n = 0;
    for (int failed = 1; failed;) {
        torture_begin(++n);
        int code = f(arg);
        failed = torture_end();
        bool fine = code == (failed ? ERR_NOMEM : OK) || (some && code == OK);
        CHECK_MSG(fine && !live && n < 10000, "allocation %ld: code %d, %ld live", n, code,
                  (long)live);
    }
    return n;
}

long torture_each(int (*f)(const void *arg), const void *arg)
{
    return each(f, arg, false);
}

long torture_some(int (*f)(const void *arg), const void *arg)
{
    return each(f, arg, true);
}

void torture_watch(const char *secret)
{
    left = 0;
    watched = secret;
}

long torture_left(void)
{
    return left;
}

static bool torture_holds(const char *p, size_t n, const char *secret)
{
    size_t k = strlen(secret);
    for (size_t i = 0; i + k <= n; i++)
        if (memcmp(p + i, secret, k) == 0)
            return true;
    return false;
}

/* Count one allocation; true when it is the one that must fail. */
static int fail_now(void)
{
    if (countdown <= 0 || --countdown != 0)
        return 0;
    hit = 1;
    void (*then)(void) = calls;
    if (then) {
        then();
        return 0;
    }
    errno = ENOMEM; /* as malloc does: callers in the C library check it */
    return 1;
}

static void *count(void *p)
{
    live += p != NULL;
    return p;
}

void *__wrap_malloc(size_t size)
{
    return fail_now() ? NULL : count(__real_malloc(size));
}

void *__wrap_calloc(size_t n, size_t size)
{
    return fail_now() ? NULL : count(__real_calloc(n, size));
}

void *__wrap_realloc(void *p, size_t size)
{
    if (fail_now())
        return NULL;
    return p ? __real_realloc(p, size) : count(__real_realloc(p, size));
}

char *__wrap_strdup(const char *s)
{
    size_t n = strlen(s) + 1;
    char *copy = __wrap_malloc(n);
    return copy ? memcpy(copy, s, n) : NULL;
}

void __wrap_free(void *p)
{
    const char *secret = watched;
    if (secret && p)
        left += torture_holds(p, malloc_usable_size(p), secret);
    live -= p != NULL;
    __real_free(p);
}

int __wrap_posix_memalign(void **p, size_t align, size_t size)
{
    if (fail_now())
        return ENOMEM;
    int rc = __real_posix_memalign(p, align, size);
    live += rc == 0;
    return rc;
}
