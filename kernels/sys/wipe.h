/* wipe.h - overwrite secrets. A compiler may remove a memset just before memory is freed or goes
 * out of scope, because nothing reads what it wrote. These calls stay; t_wipe.sh looks for them in
 * the objects. */
#ifndef KERNELS_SYS_WIPE_H
#define KERNELS_SYS_WIPE_H

#include <stddef.h>

/* Overwrite n bytes with zeros. */
void wipe(void *p, size_t n);
/* Wipe a malloc'ed string and free it; NULL is fine. */
void wipe_text(char *text);

#endif
