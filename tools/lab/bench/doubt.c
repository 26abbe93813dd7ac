#include "tools/lab/bench/doubt.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "kernels/sys/os.h"

static const double GAIN = 1.05;  /* the least that more threads should bring */
static const double ALONE = 0.9;  /* the least that threads run if nothing else does */
static const double STEADY = 0.8; /* the least that a steady machine repeats */
static const double OTHERS =
    0.25; /* the most processors that others keep busy on an idle machine */
enum { LOOK_NS = 250000000 };
const char *doubt_stat = "/proc/stat";

void doubt_text(char out[DOUBT_TEXT], double of_limit, size_t threads, double one, double all)
{
    int used = snprintf(out, DOUBT_TEXT, "%s", of_limit > 1 ? "over 100 % of the limit" : "");
    if (threads > 1 && one > 0 && all > 0 && all < GAIN * one)
        snprintf(out + used, DOUBT_TEXT - (size_t)used, "%s%zu threads get what one gets",
                 used ? "; " : "", threads);
}

void doubt_changed(char out[DOUBT_TEXT], double before, double after)
{
    double low = before < after ? before : after, high = before < after ? after : before;
    size_t used = strlen(out);
    if (low < STEADY * high)
        snprintf(out + used, DOUBT_TEXT - used, "%sprobes differ: %.1f and %.1f GB/s",
                 used ? "; " : "", before, after);
}

bool doubt_busy(char out[DOUBT_TEXT], double on_cpu, double others)
{
    size_t used = strlen(out);
    const char *before = used ? "; " : "";
    char ran[32] = "";
    if (on_cpu < ALONE)
        snprintf(ran, sizeof(ran), "ran %.0f %% of the time", 100 * on_cpu);
    if (others > OTHERS)
        snprintf(out + used, DOUBT_TEXT - used, "%sothers kept %.1f processors busy%s%s", before,
                 others, *ran ? ", " : "", ran);
    else if (*ran)
        snprintf(out + used, DOUBT_TEXT - used, "%s%s: processors busy elsewhere?", before, ran);
    return others > OTHERS || *ran;
}

void doubt_best(char out[DOUBT_TEXT], double best, double by_cpu, const char *unit)
{
    size_t used = strlen(out);
    int digits = best < 10 ? 2 : best < 1000 ? 1 : 0;
    snprintf(out + used, DOUBT_TEXT - used, "; best %.*f %s, by processor time %.*f", digits, best,
             unit, digits, by_cpu);
}

double doubt_ran(void)
{
    struct timespec t = { 0 };
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Return the seconds that all processors were busy since the machine began, -1 if it is not told:
 * user, nice, system, irq, softirq and steal of the first line, without idle and iowait, in ticks.
 * Source: proc(5), /proc/stat. */
static double doubt_all(void)
{
    unsigned long long t[8] = { 0 };
    FILE *f = fopen(doubt_stat, "re");
    int n = f ? fscanf(f, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &t[0], &t[1], &t[2], &t[3],
                       &t[4], &t[5], &t[6], &t[7])
              : 0;
    if (f)
        fclose(f);
    unsigned long long busy = t[0] + t[1] + t[2] + t[5] + t[6] + t[7];
    return n == 8 && busy ? (double)busy / (double)sysconf(_SC_CLK_TCK) : -1;
}

void doubt_look(struct doubt_others *o)
{
    uint64_t now = os_now_ns();
    if (o->at && now - o->at < LOOK_NS)
        return;
    struct doubt_others last = *o;
    *o = (struct doubt_others){ .took = -1, .ran = doubt_ran(), .all = doubt_all(), .at = now };
    if (!last.at || last.all < 0 || o->all < 0)
        return;
    double took = (o->all - last.all - (o->ran - last.ran)) * 1e9 / (double)(now - last.at);
    o->took = took > 0 ? took : 0;
}
