/* t_bench_limits.c - the loops behind `mizzle bench limits` run, and the reading loop reads every
 * word. */
#include "kernels/sys/base.h"
#include "kernels/sys/cpu.h"
#include "kernels/math.h"
#include "kernels/sys/os.h"
#include "tests/support/test.h"
#include "tools/lab/machine/limits.h"

enum { WORDS = 8 * 150 + 5 };

int main(void)
{
    static const unsigned sets[] = { 0, CPU_AVX2, CPU_AVX2 | CPU_AVX512 };
    uint64_t *p = os_alloc(WORDS * sizeof(*p));
    CHECK(p);
    for (size_t n = 0; n <= WORDS; n++) {
        uint64_t want = 0;
        for (size_t i = 0; i < n; i++)
            want ^= p[i] = rand_u64(1, n * WORDS + i);
        for (size_t s = 0; s < sizeof(sets) / sizeof(sets[0]); s++)
            if ((cpu_detect() & sets[s]) == sets[s])
                for (size_t streams = 1; streams <= 4; streams *= 2) {
                    CHECK(limits_read(p, n, streams, 1, sets[s]) == want);
                    CHECK(limits_read(p, n, streams, 2, sets[s]) == 0);
                    CHECK(limits_read(p, n, streams, 3, sets[s]) == want);
                }
    }
    os_free(p, WORDS * sizeof(*p));
    /* Levels of cache have sizes, be they the system's or usual ones. */
    for (unsigned level = 1; level <= 3; level++)
        CHECK(limits_cache(level) >= (size_t)4096 << level && limits_cache(level) < (size_t)1
                                                                                        << 40);
    CHECK(limits_cache(1) < limits_cache(3));
    CHECK(limits_peak_memory() > (size_t)1 << 20);
    CHECK(limits_count > 0);
    for (size_t i = 0; i < limits_count; i++)
        if ((cpu_detect() & limits[i].needs) == limits[i].needs)
            limits[i].run(1000);
    return 0;
}
