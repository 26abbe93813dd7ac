#include "tools/paper_table.h"

#include <math.h>

const struct paper_row paper_rows[PAPER_ROWS] = {
    { 0.40, 0, 28.19, 0.67, 0.28, 0, 28.14 },      { 0.50, 0, 28.10, 0.50, 0.28, 0, 28.15 },
    { 0.60, 1, 28.40, 0.45, 0.28, 0.94, 28.40 },   { 0.70, 14, 28.04, 0.34, 0.33, 11.97, 40.06 },
    { 0.72, 17, 27.58, 0.46, 0.33, 13.43, 41.30 }, { 0.76, 38, 27.59, 0.41, 0.45, 34.00, 61.65 },
    { 0.80, 65, 28.02, 0.47, 0.80, 58.23, 86.32 }, { 0.90, 76, 28.20, 0.49, 1.18, 72.76, 101.05 },
};

struct paper_row paper_row_make(double threshold, size_t tokens, size_t cloud, double edge_ms,
                                double ttft_ms, double ms)
{
    double all = tokens ? (double)tokens : 1, own = (double)(tokens - cloud);
    double seconds = 0.1 / all; /* a ms of these tokens, in seconds of 100 tokens */
    return (struct paper_row){ .threshold = threshold,
                               .routed = 100 * (double)cloud / all,
                               .edge_s = edge_ms * seconds,
                               .ttft_s = ttft_ms / 1000,
                               .tbt_s = tokens > cloud ? edge_ms / 1000 / own : (double)NAN,
                               .cloud_s = (ms - edge_ms) * seconds,
                               .overall_s = ms * seconds };
}
