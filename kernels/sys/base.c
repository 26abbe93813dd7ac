#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "kernels/sys/base.h"
#include "kernels/sys/text.h"

int err_set(struct err *err, int code, const char *fmt, ...)
{
    if (!err)
        return code;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(err->msg, sizeof(err->msg), fmt, ap);
    va_end(ap);
    text_line(err->msg);
    return code;
}

bool size_add(size_t *out, size_t a, size_t b)
{
    if (b > SIZE_MAX - a)
        return false;
    *out = a + b;
    return true;
}

bool size_mul(size_t *out, size_t a, size_t b)
{
    if (b && a > SIZE_MAX / b)
        return false;
    *out = a * b;
    return true;
}

/* Adding align - 1 may overflow; clearing the low bits cannot. */
bool size_align(size_t *out, size_t n, size_t align)
{
    if (!size_add(&n, n, align - 1))
        return false;
    *out = n & ~(align - 1);
    return true;
}

bool size_within(size_t at, size_t len, size_t total)
{
    return at <= total && len <= total - at;
}

void *array_grow(void *array, size_t *cap, size_t n, size_t each)
{
    if (n < *cap)
        return array;
    size_t want = *cap ? *cap * 2 : 16, bytes;
    void *p = size_mul(&bytes, want, each) ? realloc(array, bytes) : NULL;
    if (p)
        *cap = want;
    return p;
}
