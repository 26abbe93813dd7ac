#include <stdarg.h>
#include <stdio.h>

#include "kernels/base.h"

int err_set(struct err *err, int code, const char *fmt, ...)
{
    if (!err)
        return code;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(err->msg, sizeof(err->msg), fmt, ap);
    va_end(ap);
    for (char *c = err->msg; *c; c++) {
        unsigned char u = (unsigned char)c[0], next = (unsigned char)c[1];
        if (u < 0x20 || u == 0x7f)
            *c = '?';
        else if (u == 0xc2 && next >= 0x80 && next < 0xa0) /* U+0080 to U+009F in UTF-8 */
            c[0] = c[1] = '?';
    }
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
