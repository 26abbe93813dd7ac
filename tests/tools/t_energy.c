/* Energy counters of a made-up /sys/class/powercap: which zones count, a counter that starts again,
 * and what is said if there is nothing to read. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/test.h"
#include "tools/bench/energy.h"

static char root[] = "/tmp/t_energy.XXXXXX";

/* Write a file of a zone. */
static void put(const char *zone, const char *file, const char *text)
{
    char path[256];
    snprintf(path, sizeof(path), "%s/%s", root, zone);
    mkdir(path, 0700);
    snprintf(path, sizeof(path), "%s/%s/%s", root, zone, file);
    FILE *f = fopen(path, "w");
    CHECK(f && fputs(text, f) >= 0 && fclose(f) == 0);
}

static void zone(const char *zone, const char *name, const char *uj, const char *range)
{
    put(zone, "name", name);
    put(zone, "energy_uj", uj);
    put(zone, "max_energy_range_uj", range);
}

static bool near(double a, double b)
{
    return fabs(a - b) < 1e-9;
}

static void test_nothing(void)
{
    struct energy e;
    char why[ENERGY_WHY] = "";
    CHECK(!energy_open(&e, root, why) && strstr(why, "no energy counters") && strstr(why, root));
    CHECK(isnan(energy_joules(&e)));
    zone("intel-rapl:0", "psys\n", "5\n", "9\n"); /* the whole machine, with the processor in it */
    zone("intel-rapl-mmio:0", "package-0\n", "5\n", "9\n"); /* the same counter another way */
    CHECK(!energy_open(&e, root, why) && strstr(why, "no energy counters"));
    put("intel-rapl:2", "name", "package-1\n"); /* as if energy_uj may not be read */
    CHECK(!energy_open(&e, root, why) && strstr(why, "intel-rapl:2/energy_uj: No such file"));
    put("intel-rapl:2", "energy_uj", "much\n");
    CHECK(!energy_open(&e, root, why) && strstr(why, "intel-rapl:2/energy_uj: expected a number"));
}

static void test_joules(void)
{
    struct energy e;
    char why[ENERGY_WHY] = "";
    zone("intel-rapl:1", "package-0\n", "1000000\n", "10000000\n");
    zone("intel-rapl:1:0", "core\n", "900000\n", "10000000\n");
    zone("intel-rapl:1:1", "dram\n", "500000\n", "10000000\n");
    zone("intel-rapl:2", "package-1\n", "9000000\n", "10000000\n");
    CHECK(energy_open(&e, root, why) && e.n == 3 && !why[0]);
    CHECK(near(energy_joules(&e), 0));
    put("intel-rapl:1", "energy_uj", "3500000\n");
    put("intel-rapl:1:0", "energy_uj", "9999999\n"); /* a part of the package: not counted twice */
    put("intel-rapl:1:1", "energy_uj", "750000\n");
    CHECK(near(energy_joules(&e), 2.5 + 0.25));
    put("intel-rapl:2", "energy_uj", "250000\n"); /* it has started again */
    CHECK(near(energy_joules(&e), 1.25));
    put("intel-rapl:2", "energy_uj", "");
    CHECK(isnan(energy_joules(&e)));
}

int main(void)
{
    char command[64];
    CHECK(mkdtemp(root));
    test_nothing();
    test_joules();
    snprintf(command, sizeof(command), "rm -rf %s", root);
    CHECK(system(command) == 0);
    return 0;
}
