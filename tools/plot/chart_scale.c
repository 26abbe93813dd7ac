/* chart_scale.c - round values for axes, and how numbers are written. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tools/plot/chart.h"

enum { STEPS = 10, MOST_POWER = 300 };

/* Return m * 10^power, as near as a double can be to it, so that it prints without a tail of
 * digits. */
static double chart_power(double m, int power)
{
    double tens = 1;
    for (int i = power < 0 ? -power : power; i > 0; i--)
        tens *= 10;
    return power < 0 ? m / tens : m * tens;
}

/* Return the largest power of ten that is at most v > 0. */
static int chart_power_below(double v)
{
    int power = 0;
    while (power < MOST_POWER && chart_power(1, power + 1) <= v)
        power++;
    while (power > -MOST_POWER && chart_power(1, power) > v)
        power--;
    return power;
}

/* Values of a linear axis: the smallest step of 1, 2 or 5 that needs at most STEPS of them. */
static size_t chart_ticks_linear(double out[CHART_TICKS], double *low, double *high, bool fixed)
{
    static const double steps[] = { 1, 2, 5 };
    double span = *high - *low;
    int power = chart_power_below(span / STEPS), i = 0;
    while (span > STEPS * chart_power(steps[i], power)) {
        i = (i + 1) % 3;
        power += i == 0;
    }
    double m = steps[i], step = chart_power(m, power);
    /* The ends may be an ulp away from the multiple that they mean. */
    double first = fixed ? ceil(*low / step - 1e-9) : floor(*low / step + 1e-9);
    double last = fixed ? floor(*high / step + 1e-9) : ceil(*high / step - 1e-9);
    size_t n = 0;
    for (double k = first; k <= last && n < CHART_TICKS; k++)
        out[n++] = chart_power(k * m + 0.0, power); /* no -0 */
    if (!fixed && n) {
        *low = out[0];
        *high = out[n - 1];
    }
    return n;
}

/* Return value i of a logarithmic axis: 1, 2, 5, 10, ...; i = 0 is 1. */
static double chart_log_value(int i)
{
    static const double steps[] = { 1, 2, 5 };
    int power = i >= 0 ? i / 3 : -((2 - i) / 3);
    return chart_power(steps[i - 3 * power], power);
}

/* Values of a logarithmic axis: 1, 2 and 5 times powers of ten as long as these are few, else the
 * powers alone, or each second, third... of them. */
static size_t chart_ticks_log(double out[CHART_TICKS], double *low, double *high, bool fixed)
{
    int first = 3 * chart_power_below(*low), last = 3 * chart_power_below(*high), stride = 1;
    while (chart_log_value(first + 1) <= *low)
        first++;
    while (chart_log_value(last) < *high)
        last++;
    if (last - first >= STEPS) {
        first = first >= 0 ? first / 3 * 3 : -((2 - first) / 3 * 3);
        for (stride = 3; last - first >= STEPS * stride;)
            stride += 3;
    }
    size_t n = 0;
    for (int i = first; n < CHART_TICKS && (n < 2 || chart_log_value(i - stride) < *high);
         i += stride)
        out[n++] = chart_log_value(i);
    if (!fixed) {
        *low = out[0];
        *high = out[n - 1];
        return n;
    }
    size_t kept = 0;
    for (size_t i = 0; i < n; i++)
        if (out[i] >= *low && out[i] <= *high)
            out[kept++] = out[i];
    return kept;
}

size_t chart_ticks(double out[CHART_TICKS], double *low, double *high, bool log, bool fixed)
{
    if (log)
        return chart_ticks_log(out, low, high, fixed);
    if (*low >= *high) { /* a single value */
        double pad = *low > 0 ? *low / 2 : *low < 0 ? -*low / 2 : 1;
        *high += pad;
        *low -= *low > 0 || *low < 0 ? pad : 0;
    }
    return chart_ticks_linear(out, low, high, fixed);
}

void chart_number(char out[32], double v)
{
    char plain[32];
    size_t digits, n = 0;
    if (fabs(v) >= 9999.5 && fabs(v) < 1e15)
        snprintf(plain, sizeof(plain), "%.0f", v);
    else
        snprintf(plain, sizeof(plain), "%.6g", v);
    size_t sign = plain[0] == '-', all = strlen(plain);
    digits = strspn(plain + sign, "0123456789");
    bool commas = digits > 4 && sign + digits == all;
    for (size_t i = 0; i < all && n < 30; i++) {
        if (commas && i > sign && (all - i) % 3 == 0)
            out[n++] = ',';
        out[n++] = plain[i];
    }
    out[n] = '\0';
}
