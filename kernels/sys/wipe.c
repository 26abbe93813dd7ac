#include "kernels/sys/wipe.h"

#include <stdlib.h>
#include <string.h>

/* Never inlined, not even by the linker, so that each caller keeps a call that a test can find. */
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
