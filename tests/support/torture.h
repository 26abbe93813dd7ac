/* torture.h - make the n-th allocation fail. Link with WRAP (Makefile). */
#ifndef TESTS_SUPPORT_TORTURE_H
#define TESTS_SUPPORT_TORTURE_H

void torture_begin(long n);                    /* make the n-th allocation from now return NULL */
void torture_call(long n, void (*then)(void)); /* call this before the n-th allocation from now */
int torture_end(void);                         /* stop; 1 if that allocation was reached */
long torture_live(void); /* blocks allocated since torture_begin and not freed */
/* Call f, which opens what it is about and closes it, with the n-th allocation failing, for each n
 * until none does. It must return ERR_NOMEM as long as one does, then OK, and leave no memory.
 * Returns how many calls that took. */
long torture_each(int (*f)(const void *arg), const void *arg);
/* The same of what may do without some memory: as long as one fails, OK is fine, too. */
long torture_some(int (*f)(const void *arg), const void *arg);

/* Search every block that is freed from now on for the secret, which is borrowed (NULL: stop).
 * torture_left returns how many blocks contained it. */
void torture_watch(const char *secret);
long torture_left(void);

#endif
