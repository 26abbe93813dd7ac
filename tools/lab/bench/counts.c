/* counts.c - see perf_event_open(2). The feature macro is for syscall(). */
#define _GNU_SOURCE
#include "tools/lab/bench/counts.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#if defined(__linux__) && !defined(PORTABLE)
#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { READ_MISSES = PERF_COUNT_HW_CACHE_OP_READ << 8 | PERF_COUNT_HW_CACHE_RESULT_MISS << 16 };

/* Indexed by enum count_event. */
static const struct {
    uint32_t type, event;
} events[COUNT_EVENTS] = {
    { PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES },
    { PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS },
    { PERF_TYPE_HW_CACHE, PERF_COUNT_HW_CACHE_L1D | READ_MISSES },
    { PERF_TYPE_HW_CACHE, PERF_COUNT_HW_CACHE_LL | READ_MISSES },
    { PERF_TYPE_HW_CACHE, PERF_COUNT_HW_CACHE_DTLB | READ_MISSES },
    { PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK },
    { PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS },
};

static int perf_open(enum count_event event, int *error)
{
    struct perf_event_attr a = {
        .type = events[event].type,
        .size = sizeof(a),
        .config = events[event].event,
        .read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING,
        .inherit = 1,
        .exclude_kernel = 1,
        .exclude_hv = 1,
    };
    int fd = (int)syscall(SYS_perf_event_open, &a, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
    *error = errno;
    return fd;
}

static bool perf_read(int handle, uint64_t now[3])
{
    return read(handle, now, 3 * sizeof(*now)) == 3 * sizeof(*now);
}

static void perf_close(int handle)
{
    close(handle);
}

static const struct count_source perf_source = { perf_open, perf_read, perf_close };
const struct count_source *count_source = &perf_source;

#else
const struct count_source *count_source;
#endif

/* Say in a few words why the processor's counters are not available. */
static void explain(char why[COUNT_WHY], int error)
{
    char level[16] = "unknown";
    if (error == EACCES || error == EPERM) {
        FILE *f = fopen("/proc/sys/kernel/perf_event_paranoid", "re");
        if (f && fgets(level, sizeof(level), f))
            level[strcspn(level, "\n")] = 0;
        if (f)
            fclose(f);
        snprintf(why, COUNT_WHY,
                 "not permitted (kernel.perf_event_paranoid is %s, needed: 2 or less)", level);
    } else if (error == ENOENT || error == ENODEV || error == EOPNOTSUPP) {
        snprintf(why, COUNT_WHY, "the processor offers none, as in most virtual machines");
    } else {
        snprintf(why, COUNT_WHY, "perf_event_open: %s", strerror(error));
    }
}

void counts_open(struct counts *c, char why[COUNT_WHY])
{
    const struct count_source *from = count_source;
    snprintf(why, COUNT_WHY, "%s", from ? "" : "only Linux is asked for them");
    for (size_t i = 0; i < COUNT_EVENTS; i++) {
        int error = 0;
        c->handle[i] = from ? from->open((enum count_event)i, &error) : -1;
        if (from && c->handle[i] < 0 && i == COUNT_CYCLES)
            explain(why, error);
    }
}

void counts_read(const struct counts *c, double count[COUNT_EVENTS])
{
    for (size_t i = 0; i < COUNT_EVENTS; i++) {
        uint64_t now[3]; /* count, time enabled, time running */
        count[i] = -1;
        if (c->handle[i] >= 0 && count_source->read(c->handle[i], now) && now[2])
            count[i] = (double)now[0] * ((double)now[1] / (double)now[2]);
    }
}

void counts_close(struct counts *c)
{
    for (size_t i = 0; i < COUNT_EVENTS; i++) {
        if (c->handle[i] >= 0)
            count_source->close(c->handle[i]);
        c->handle[i] = -1;
    }
}

const struct count_column count_columns[COUNT_COLUMNS] = {
    { COUNT_CYCLES, "cycles", "cycles" },
    { COUNT_INSTRUCTIONS, "instructions", "instructions" },
    { COUNT_L1D_MISSES, "l1d_misses", "L1d misses" },
    { COUNT_LLC_MISSES, "llc_misses", "LLC misses" },
    { COUNT_TLB_MISSES, "tlb_misses", "TLB misses" },
};

void counts_each(double out[COUNT_EVENTS], const double before[COUNT_EVENTS],
                 const double after[COUNT_EVENTS], double n)
{
    for (size_t i = 0; i < COUNT_EVENTS; i++)
        out[i] = before[i] < 0 || after[i] < before[i] ? -1 : (after[i] - before[i]) / n;
}

double counts_ipc(const double count[COUNT_EVENTS])
{
    double cycles = count[COUNT_CYCLES], n = count[COUNT_INSTRUCTIONS];
    return cycles > 0 && n >= 0 ? n / cycles : -1;
}
