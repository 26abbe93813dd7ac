/* deadline.h - ends what does not end, such as a loop in a learner's exercise: SIGVTALRM comes once
 * the process has computed for a minute, however busy others keep the machine. */
#ifndef TESTS_KERNELS_DEADLINE_H
#define TESTS_KERNELS_DEADLINE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/time.h>

#define DEADLINE_MISSED "it has not ended after 60 seconds of computing"

static inline void deadline_set(bool on)
{
    const struct itimerval at = { .it_value = { .tv_sec = on ? 60 : 0 } };
    setitimer(ITIMER_VIRTUAL, &at, NULL);
}

#endif
