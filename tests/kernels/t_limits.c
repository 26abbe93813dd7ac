/* t_limits.c - the loops behind `mizzle bench limits` run, and the reading loop reads every
 * word. */
#include "kernels/sys/base.h"
#include "kernels/sys/cpu.h"
#include "kernels/sys/limits.h"
#include "kernels/math.h"
#include "kernels/sys/os.h"
#include "tests/support/test.h"

enum { WORDS = 8 * 40 + 5 };

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
                CHECK(limits_read(p, n, sets[s]) == want);
    }
    os_free(p, WORDS * sizeof(*p));
    CHECK(limits_count > 0);
    for (size_t i = 0; i < limits_count; i++)
        if ((cpu_detect() & limits[i].needs) == limits[i].needs)
            limits[i].run(1000);
    return 0;
}
