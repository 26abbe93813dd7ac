/* guard.h - buffers that fault one byte past (or before) their ends. */
#ifndef TESTS_SUPPORT_GUARD_H
#define TESTS_SUPPORT_GUARD_H

#include <stddef.h>

/* Return size bytes between two unreadable pages: against the upper one if high, else against the
 * lower one. Aborts when out of memory. guard_reset releases everything at once. */
void *guard_alloc(size_t size, int high);
void guard_reset(void);

/* Give the buffer at p a name. guard_where then writes where an address of a fault lies, as
 * " behind y, at its byte 40 of 40"; "" if it is beside no buffer with a name. */
void guard_name(const void *p, const char *name);
void guard_where(char *out, size_t size, const void *address);

#endif
