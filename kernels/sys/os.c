/* os.c - the system calls behind os.h. The feature macros come first: few files need more than
 * POSIX. */
#define _GNU_SOURCE
#define _DARWIN_C_SOURCE
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "kernels/sys/os.h"

enum { ALIGN = 64 };

#if defined(__linux__) && !defined(PORTABLE)
#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdio.h>
#include <sys/syscall.h>
#if defined(__aarch64__)
#include <sys/auxv.h>
#endif

/* Requests of at least this size get pages of their own, aligned so that the kernel can use big
 * pages. */
#define BIG_PAGE ((size_t)2 << 20)

void os_wait(_Atomic uint32_t *word, uint32_t seen)
{
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
}

void os_wake(_Atomic uint32_t *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

enum { CGROUP_PATH = 4096, CGROUP_LIST = 16384 };

/* Read a small file, without memory of the C library. Return false, and an empty text, if it cannot
 * be read. */
static bool os_text(char *to, size_t size, const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, to, size - 1);
    if (fd >= 0)
        close(fd);
    to[n > 0 ? n : 0] = '\0';
    return n > 0;
}

/* Read at most two numbers from a file of a control group; return how many it has. */
static int os_numbers(long long n[2], const char *folder, const char *file)
{
    char path[3 * CGROUP_PATH], text[100];
    snprintf(path, sizeof(path), "%s/%s", folder, file);
    return os_text(text, sizeof(text), path) ? sscanf(text, "%lld %lld", &n[0], &n[1]) : 0;
}

/* Return the smaller of `least` and the quota of one control group; 0 stands for none. */
static size_t os_quota_least(size_t least, const char *folder)
{
    long long n[2], period[2];
    int have = os_numbers(n, folder, "cpu.max"); /* "max" stands for no quota */
    if (have < 2) {
        have = os_numbers(n, folder, "cpu.cfs_quota_us") +
               os_numbers(period, folder, "cpu.cfs_period_us");
        n[1] = period[0];
    }
    if (have < 2 || n[0] <= 0 || n[1] <= 0)
        return least;
    size_t cpus = (size_t)(n[0] / n[1] + (n[0] % n[1] != 0));
    return least && least < cpus ? least : cpus;
}

size_t os_quota(const char *root)
{
    char groups[CGROUP_LIST], list[CGROUP_PATH], folder[2 * CGROUP_PATH], *rest = NULL;
    size_t least = 0;
    snprintf(folder, sizeof(folder), "%s/proc/self/cgroup", root);
    os_text(groups, sizeof(groups), folder);
    for (char *line = strtok_r(groups, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        char *names = strchr(line, ':'), *path = names ? strchr(names + 1, ':') : NULL;
        if (!path) /* number:controllers:path */
            continue;
        snprintf(list, sizeof(list), ",%.*s,", (int)(path - names) - 1, names + 1);
        bool first = strstr(list, ",cpu,");
        if (!first && strcmp(list, ",,") != 0)
            continue;
        int top = snprintf(folder, sizeof(folder), "%s/sys/fs/cgroup%s", root, first ? "/cpu" : "");
        if (first && access(folder, F_OK) != 0) /* there is no link of that name */
            top = snprintf(folder, sizeof(folder), "%s/sys/fs/cgroup/%.*s", root,
                           (int)(path - names) - 1, names + 1);
        snprintf(folder + top, sizeof(folder) - (size_t)top, "%s", path + 1);
        for (char *end = folder; end; end = strrchr(folder + top, '/')) { /* and those above it */
            *end = end > folder ? '\0' : *end;
            least = os_quota_least(least, folder);
        }
    }
    return least;
}

size_t os_cpus(void)
{
    cpu_set_t set;
    size_t quota = os_quota("");
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    if (sched_getaffinity(0, sizeof(set), &set) == 0 && CPU_COUNT(&set) > 0)
        n = CPU_COUNT(&set);
    size_t cpus = n > 0 ? (size_t)n : 1;
    return quota && quota < cpus ? quota : cpus;
}

/* Map more than requested, then unmap both ends, so that the block starts on a big page. */
static void *alloc_pages(size_t size)
{
    size_t slack = BIG_PAGE;
    char *p = mmap(NULL, size + slack, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED)
        return NULL;
    size_t before = (BIG_PAGE - (uintptr_t)p % BIG_PAGE) % BIG_PAGE;
    if (before)
        munmap(p, before);
    if (slack > before)
        munmap(p + before + size, slack - before);
    madvise(p + before, size, MADV_HUGEPAGE);
    return p + before;
}

/* Round up to whole pages, as munmap needs them. */
static size_t page_round(size_t size)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    return (size + page - 1) / page * page;
}

void *os_alloc(size_t size)
{
    void *p;
    if (size >= BIG_PAGE)
        return size <= SIZE_MAX / 2 ? alloc_pages(page_round(size)) : NULL;
    if (posix_memalign(&p, ALIGN, size ? size : 1))
        return NULL;
    return memset(p, 0, size);
}

void os_free(void *p, size_t size)
{
    if (!p)
        return;
    if (size >= BIG_PAGE)
        munmap(p, page_round(size));
    else
        free(p);
}

void os_sparse(void *p, size_t size)
{
    if (size >= BIG_PAGE)
        madvise(p, page_round(size), MADV_NOHUGEPAGE);
}

void os_dontneed(const void *p, size_t size)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), skip = (page - (uintptr_t)p % page) % page;
    if (size > skip && size - skip >= page)
        madvise((char *)(uintptr_t)p + skip, (size - skip) / page * page, MADV_DONTNEED);
}

bool os_has_dotprod(void)
{
#if defined(__aarch64__)
    return getauxval(AT_HWCAP) & HWCAP_ASIMDDP;
#else
    return false;
#endif
}

bool os_has_i8mm(void)
{
#if defined(__aarch64__)
    const unsigned long i8mm = 1ul << 13; /* HWCAP2_I8MM, which older headers lack */
    return getauxval(AT_HWCAP2) & i8mm;
#else
    return false;
#endif
}

#else /* the portable path */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

/* One condition serves all words: a wake-up may reach threads of other words. os_wait allows it. */
void os_wait(_Atomic uint32_t *word, uint32_t seen)
{
    pthread_mutex_lock(&lock);
    if (atomic_load(word) == seen)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
}

void os_wake(_Atomic uint32_t *word)
{
    (void)word;
    pthread_mutex_lock(&lock);
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

size_t os_quota(const char *root)
{
    (void)root;
    return 0;
}

size_t os_cpus(void)
{
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n > 0 ? (size_t)n : 1;
}

void *os_alloc(size_t size)
{
    void *p;
    if (size > SIZE_MAX / 2 || posix_memalign(&p, ALIGN, size ? size : 1))
        return NULL;
    return memset(p, 0, size);
}

void os_free(void *p, size_t size)
{
    (void)size;
    free(p);
}

void os_sparse(void *p, size_t size)
{
    (void)p;
    (void)size;
}

void os_dontneed(const void *p, size_t size)
{
    (void)p;
    (void)size;
}

bool os_has_dotprod(void)
{
#if defined(__APPLE__) && defined(__aarch64__)
    return true; /* every Apple processor since A12, M1 */
#else
    return false;
#endif
}

bool os_has_i8mm(void)
{
    return false; /* M1 has none; later ones take dotprod here */
}

#endif

uint64_t os_memory(void)
{
    long pages = -1, size = sysconf(_SC_PAGESIZE);
#ifdef _SC_PHYS_PAGES
    pages = sysconf(_SC_PHYS_PAGES);
#endif
    return pages > 0 && size > 0 ? (uint64_t)pages * (uint64_t)size : UINT64_MAX;
}

uint64_t os_now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

uint64_t os_thread_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

void os_nap(uint64_t ns)
{
    const uint64_t second = 1000000000;
    nanosleep(&(struct timespec){ (time_t)(ns / second), (long)(ns % second) }, NULL);
}

bool os_cond_open(pthread_cond_t *c)
{
#if defined(__APPLE__)
    return pthread_cond_init(c, NULL) == 0;
#else
    pthread_condattr_t a;
    if (pthread_condattr_init(&a))
        return false;
    bool fine =
        pthread_condattr_setclock(&a, CLOCK_MONOTONIC) == 0 && pthread_cond_init(c, &a) == 0;
    pthread_condattr_destroy(&a);
    return fine;
#endif
}

void os_cond_wait(pthread_cond_t *c, pthread_mutex_t *m, uint64_t until_ns)
{
    const uint64_t second = 1000000000;
    if (until_ns == UINT64_MAX) {
        pthread_cond_wait(c, m);
        return;
    }
#if defined(__APPLE__) /* conditions have no clock, but this wait is relative */
    uint64_t now = os_now_ns(), left = until_ns > now ? until_ns - now : 0;
    const struct timespec t = { .tv_sec = (time_t)(left / second),
                                .tv_nsec = (long)(left % second) };
    pthread_cond_timedwait_relative_np(c, m, &t);
#else
    const struct timespec t = { .tv_sec = (time_t)(until_ns / second),
                                .tv_nsec = (long)(until_ns % second) };
    pthread_cond_timedwait(c, m, &t);
#endif
}

short os_poll_closed(void)
{
#if defined(POLLRDHUP) && !defined(PORTABLE)
    return POLLRDHUP;
#else
    return 0;
#endif
}
