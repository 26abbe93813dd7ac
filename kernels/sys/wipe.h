/* wipe.h - overwrites secrets. Just before memory is freed or left, a compiler takes a memset out,
 * for nobody reads what it writes; these stay, and t_wipe.sh finds their calls in the objects. */
#ifndef KERNELS_SYS_WIPE_H
#define KERNELS_SYS_WIPE_H

#include <stddef.h>

void wipe(void *p, size_t n);
/* Wipes a malloc'ed text and frees it. NULL is fine. */
void wipe_text(char *text);

#endif
