/* long_text.h - the event model of decoding ahead over a long text with random marks, which gives
 * the expected time of a token. */
#ifndef TESTS_TOOLS_LONG_TEXT_H
#define TESTS_TOOLS_LONG_TEXT_H

#include "kernels/math.h"
#include "tools/lab/clock/ahead_model.h"

static inline double long_text(double t, double routed, double agree, double latency, size_t ahead)
{
    static unsigned char marks[1 << 20];
    for (size_t i = 0; i < sizeof(marks); i++)
        marks[i] = (unsigned char)((rand_unit(1, i) < routed ? AHEAD_MODEL_ROUTED : 0) |
                                   (rand_unit(2, i) < agree ? AHEAD_MODEL_AGREES : 0));
    return ahead_model_text(marks, sizeof(marks), t, latency, ahead, NULL);
}

#endif
