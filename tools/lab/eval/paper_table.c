#include "tools/lab/eval/paper_table.h"

#include <math.h>

const double paper_thresholds[PAPER_ROWS] = { 0.4, 0.5, 0.6, 0.7, 0.72, 0.76, 0.8, 0.9 };

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
