/* chart_scale.c - round values for axes, and how numbers are written. */
#include <math.h>
#include <string.h>

#include "kernels/math.h"
#include "tools/lab/plot/chart_internal.h"

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

/* Set the round values that cover a linear axis: multiples of the smallest step of 1, 2 or 5 that
 * needs at most STEPS of them. */
static void chart_ticks_linear(struct chart_scale *s)
{
    static const double steps[] = { 1, 2, 5 };
    double span = s->high - s->low;
    int power = chart_power_below(span / STEPS), i = 0;
    while (span > STEPS * chart_power(steps[i], power)) {
        i = (i + 1) % 3;
        power += i == 0;
    }
    double m = steps[i], step = chart_power(m, power);
    /* The ends may be an ulp away from the multiple that they mean. */
    double last = ceil(s->high / step - 1e-9);
    for (double k = floor(s->low / step + 1e-9); k <= last && s->n < CHART_TICKS; k++)
        s->ticks[s->n++] = chart_power(k * m + 0.0, power); /* no -0 */
    s->low = s->ticks[0];
    s->high = s->ticks[s->n - 1];
}

/* Set the powers of ten that cover a logarithmic axis. */
static void chart_ticks_log(struct chart_scale *s)
{
    int power = chart_power_below(s->low);
    do
        s->ticks[s->n++] = chart_power(1, power++);
    while (s->n < 2 || (s->n < CHART_TICKS && s->ticks[s->n - 1] < s->high));
    s->low = s->ticks[0];
    s->high = s->ticks[s->n - 1] > s->high ? s->ticks[s->n - 1] : s->high;
}

void chart_scale_open(struct chart_scale *s, bool log, double low, double high)
{
    if (low > high) {
        low = log ? 1 : 0;
        high = log ? 10 : 1;
    }
    if (!log && low >= high) { /* a single value */
        double pad = low > 0 ? low / 2 : low < 0 ? -low / 2 : 1;
        high += pad;
        low -= low > 0 || low < 0 ? pad : 0;
    }
    *s = (struct chart_scale){ .log = log, .low = low, .high = high };
    if (log)
        chart_ticks_log(s);
    else
        chart_ticks_linear(s);
}

double chart_at(const struct chart_scale *s, double v)
{
    double part = s->log ? log_f64(v / s->low) / log_f64(s->high / s->low)
                         : (v - s->low) / (s->high - s->low);
    return s->start + s->size * part;
}

void chart_number(char out[32], double v)
{
    char plain[32];
    size_t n = 0;
    snprintf(plain, sizeof(plain), fabs(v) >= 9999.5 && fabs(v) < 1e15 ? "%.0f" : "%.6g", v);
    size_t sign = plain[0] == '-', all = strlen(plain);
    size_t digits = strspn(plain + sign, "0123456789");
    bool commas = digits > 4 && sign + digits == all;
    for (size_t i = 0; i < all && n < 30; i++) {
        if (commas && i > sign && (all - i) % 3 == 0)
            out[n++] = ',';
        out[n++] = plain[i];
    }
    out[n] = '\0';
}

void chart_tick(char out[32], double v)
{
    static const struct {
        double of;
        const char *prefix;
    } large[] = { { 1e12, "T" }, { 1e9, "G" }, { 1e6, "M" } };
    for (size_t i = 0; i < sizeof(large) / sizeof(*large); i++)
        if (fabs(v) >= large[i].of && fabs(v) < 1e15) {
            char number[32];
            chart_number(number, v / large[i].of);
            snprintf(out, 32, "%.29s%s", number, large[i].prefix);
            return;
        }
    chart_number(out, v);
}
