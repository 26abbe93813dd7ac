/* guard.h - buffers that fault one byte past (or before) their ends. */
#ifndef TESTS_SUPPORT_GUARD_H
#define TESTS_SUPPORT_GUARD_H

#include <stddef.h>

/* size bytes between two unreadable pages, against the upper one if high, else the
 * lower. Aborts when memory is out. Release everything at once with guard_reset. */
void *guard_alloc(size_t size, int high);
void guard_reset(void);

#endif
