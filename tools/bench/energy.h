/* energy.h - the joules that processor and memory use, as the processor's own counters tell (RAPL,
 * of Intel and AMD). They count all processes of the machine, and what it uses when idle.
 *
 * Source: Linux, Documentation/power/powercap/powercap.rst. Zones are folders such as
 * intel-rapl:0 (a processor; AMD's have this name, too) and intel-rapl:0:1 (a part of it), with the
 * files name, energy_uj and max_energy_range_uj, where energy_uj starts at 0 again. Since 2020
 * kernels let only root read energy_uj. */
#ifndef TOOLS_BENCH_ENERGY_H
#define TOOLS_BENCH_ENERGY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ENERGY_ROOT "/sys/class/powercap"
enum { ENERGY_ZONES = 64, ENERGY_PATH = 512, ENERGY_WHY = ENERGY_PATH + 80 };

struct energy {
    size_t n; /* 0: nothing can be read */
    struct {
        char path[ENERGY_PATH]; /* of energy_uj */
        uint64_t range, last;   /* microjoules */
    } zone[ENERGY_ZONES];
};

/* Find the counters of processors (zones "package-N") and memory ("dram") in the folder root. False
 * if there are none or one cannot be read; why then says which. */
bool energy_open(struct energy *e, const char *root, char why[ENERGY_WHY]);
/* Return the joules since energy_open or the last call; NaN if a counter cannot be read. */
double energy_joules(struct energy *e);

#endif
