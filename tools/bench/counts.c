#include "tools/bench/counts.h"

const struct count_column count_columns[COUNT_COLUMNS] = {
    { OS_CYCLES, "cycles", "cycles" },
    { OS_INSTRUCTIONS, "instructions", "instructions" },
    { OS_L1D_MISSES, "l1d_misses", "L1d misses" },
    { OS_LLC_MISSES, "llc_misses", "LLC misses" },
    { OS_TLB_MISSES, "tlb_misses", "TLB misses" },
};

void counts_each(double out[OS_EVENTS], const double before[OS_EVENTS],
                 const double after[OS_EVENTS], double n)
{
    for (size_t i = 0; i < OS_EVENTS; i++)
        out[i] = before[i] < 0 || after[i] < before[i] ? -1 : (after[i] - before[i]) / n;
}

double counts_ipc(const double count[OS_EVENTS])
{
    double cycles = count[OS_CYCLES], n = count[OS_INSTRUCTIONS];
    return cycles > 0 && n >= 0 ? n / cycles : -1;
}
