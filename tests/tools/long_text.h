/* long_text.h - the event model of decoding ahead over a text whose calls all take as long, and
 * over a long one with random marks, which gives the expected time of a token. */
#ifndef TESTS_TOOLS_LONG_TEXT_H
#define TESTS_TOOLS_LONG_TEXT_H

#include "kernels/math.h"
#include "tools/lab/clock/ahead_model.h"

enum { LONG_TEXT = 1 << 20 };

/* The time from the first decision to the last. */
static inline double even_text(const unsigned char *marks, size_t n, double t, double latency,
                               bool ahead)
{
    static double calls[LONG_TEXT], at[LONG_TEXT];
    for (size_t i = 0; i < n; i++)
        calls[i] = latency;
    ahead_model_decisions(at, marks, calls, n, t, ahead);
    return at[n - 1] - at[0];
}

static inline double long_text(double t, double routed, double agree, double latency, bool ahead)
{
    static unsigned char marks[LONG_TEXT];
    for (size_t i = 0; i < LONG_TEXT; i++)
        marks[i] = (unsigned char)((rand_unit(1, i) < routed ? AHEAD_MODEL_ROUTED : 0) |
                                   (rand_unit(2, i) < agree ? AHEAD_MODEL_AGREES : 0));
    return even_text(marks, LONG_TEXT, t, latency, ahead) / (LONG_TEXT - 1);
}

#endif
