#include "kernels/sys/wipe.h"

#include <stdlib.h>
#include <string.h>

/* Not inlined, also where the linker optimises: each caller keeps a call that can be looked for. */
__attribute__((noinline)) void wipe(void *p, size_t n)
{
    volatile unsigned char *at = p;
    while (n--)
        *at++ = 0;
}

__attribute__((noinline)) void wipe_text(char *text)
{
    if (text)
        wipe(text, strlen(text));
    free(text);
}
