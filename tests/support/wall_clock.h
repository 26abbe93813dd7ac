/* wall_clock.h - replaces the C library's functions, on Linux: the wall clock is up to a day off,
 * back and forth, and no wait may notice. It comes first, since it asks for what is not of the
 * standard. */
#ifdef __linux__
#define _GNU_SOURCE
#include <stdatomic.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static atomic_size_t jumps;

int clock_gettime(clockid_t clock, struct timespec *t)
{
    int rc = (int)syscall(SYS_clock_gettime, clock, t);
    if (rc == 0 && clock == CLOCK_REALTIME)
        t->tv_sec += (time_t)(atomic_fetch_add(&jumps, 1) * 40503 % 172800) - 86400;
    return rc;
}

int gettimeofday(struct timeval *restrict t, void *restrict zone)
{
    struct timespec now;
    (void)zone;
    int rc = clock_gettime(CLOCK_REALTIME, &now);
    *t = (struct timeval){ now.tv_sec, now.tv_nsec / 1000 };
    return rc;
}

time_t time(time_t *t)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (t)
        *t = now.tv_sec;
    return now.tv_sec;
}
#endif
