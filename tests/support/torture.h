/* torture.h - make the n-th allocation fail. Link with TORTURE_LDFLAGS (Makefile). */
#ifndef TESTS_SUPPORT_TORTURE_H
#define TESTS_SUPPORT_TORTURE_H

void torture_begin(long n); /* the n-th allocation from now returns NULL */
int torture_end(void);      /* stop; 1 if that allocation was reached */
long torture_live(void);    /* blocks allocated since torture_begin and not freed */

/* From now on every block that is freed is searched for the secret, which is borrowed (NULL: stop);
 * torture_left: so many held it. */
void torture_watch(const char *secret);
long torture_left(void);

#endif
