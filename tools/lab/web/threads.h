/* threads.h - POSIX threads in a build for WebAssembly, where there is one thread: included first
 * in every file of it. Locks have nobody to keep out. What runs as a thread elsewhere takes its
 * turns while the only one waits, and ends its turn where it would wait itself (web.c). */
#ifndef TOOLS_LAB_WEB_THREADS_H
#define TOOLS_LAB_WEB_THREADS_H

#ifdef __wasm__

#define __NEED_pthread_t
#define __NEED_pthread_attr_t
#define __NEED_pthread_once_t
#define __NEED_pthread_mutex_t
#define __NEED_pthread_cond_t
#define __NEED_pthread_condattr_t
#define __NEED_sigset_t
#define __NEED_struct_timespec
#include <bits/alltypes.h>

#define PTHREAD_ONCE_INIT 0
#define PTHREAD_MUTEX_INITIALIZER \
    {                             \
        0                         \
    }
#define PTHREAD_COND_INITIALIZER \
    {                            \
        0                        \
    }

static inline int threads_nothing(const void *p, ...)
{
    (void)p;
    return 0;
}

#define pthread_mutex_init               threads_nothing
#define pthread_mutex_destroy            threads_nothing
#define pthread_mutex_lock               threads_nothing
#define pthread_mutex_unlock             threads_nothing
#define pthread_cond_init                threads_nothing
#define pthread_cond_destroy             threads_nothing
#define pthread_cond_signal              threads_nothing
#define pthread_cond_broadcast           threads_nothing
#define pthread_condattr_init            threads_nothing
#define pthread_condattr_destroy         threads_nothing
#define pthread_condattr_setclock        threads_nothing
#define pthread_attr_init                threads_nothing
#define pthread_attr_destroy             threads_nothing
#define pthread_attr_setstacksize        threads_nothing
#define pthread_sigmask(how, set, old)   threads_nothing(set, old)
#define pthread_cond_timedwait(c, m, at) pthread_cond_wait(c, m)
#define sigfillset                       threads_nothing
#define sigdelset                        threads_nothing

int pthread_create(pthread_t *t, const pthread_attr_t *a, void *(*run)(void *arg), void *arg);
int pthread_join(pthread_t t, void **result);         /* never called, */
int pthread_once(pthread_once_t *o, void (*f)(void)); /* nor this */
/* Let the others take a turn each; of a thread: end its turn, and do not return. */
int pthread_cond_wait(pthread_cond_t *c, pthread_mutex_t *m);

#endif
#endif
