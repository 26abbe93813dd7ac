/* Which sign of failure is told, and when none is; the exact bounds that this rests on. */
#include <string.h>

#include "router/binomial.h"
#include "tests/support/test.h"
#include "tools/run/signs.h"

/* Return counts of n tokens, of which `cloud` came from the cloud, `compared` of these with the
 * small model's own, and `confirmed` with the same. */
static struct signs counts(size_t n, size_t cloud, size_t compared, size_t confirmed)
{
    struct signs s = { 0 };
    for (size_t i = 0; i < n; i++)
        signs_token(&s, i < cloud, i < compared || i >= cloud, i < confirmed || i >= cloud);
    s.ms = (double)n;
    return s;
}

static void test_none(void)
{
    char line[SIGNS_LINE];
    struct signs s = { 0 };
    CHECK(!signs_tell(line, &s));
    s = counts(1000, 50, 50, 10);
    CHECK(s.tokens == 1000 && s.cloud == 50 && s.compared == 50 && s.confirmed == 10);
    CHECK(!signs_tell(line, &s));
    s = counts(1000, 50, 50, 28); /* 56 %, but chance explains that */
    CHECK(!signs_tell(line, &s));
    s = counts(100, 9, 9, 9); /* too few to tell */
    CHECK(!signs_tell(line, &s));
    s = counts(40, 40, 0, 0);
    CHECK(!signs_tell(line, &s));
}

static void test_threshold(void)
{
    char line[SIGNS_LINE];
    struct signs s = counts(1000, 50, 40, 30); /* a share this small is worth its calls */
    CHECK(!signs_tell(line, &s));
    s = counts(1000, 100, 40, 30);
    CHECK(signs_tell(line, &s) && strstr(line, "threshold too high: ") && strstr(line, "30 of 40"));
    s = counts(1000, 500, 40, 30); /* comes before a weak model */
    CHECK(signs_tell(line, &s) && strstr(line, "threshold too high"));
}

static void test_weak(void)
{
    char line[SIGNS_LINE];
    struct signs s = counts(1000, 400, 400, 100);
    CHECK(signs_tell(line, &s) && strstr(line, "small model too weak: 40 % of the tokens"));
    s = counts(60, 20, 0, 0); /* 33 %, but chance explains that */
    CHECK(!signs_tell(line, &s));
}

static void test_network(void)
{
    char line[SIGNS_LINE];
    struct signs s = counts(100, 5, 5, 0);
    s.ms = 20000;
    s.waited_ms = 15000;
    CHECK(signs_tell(line, &s));
    CHECK(!strcmp(line,
                  "cloud slow: 75 % of the time went by waiting for it, 3000 ms for each of its "
                  "tokens"));
    s.waited_ms = 9000; /* the small model is slower */
    CHECK(!signs_tell(line, &s));
    s.ms = 9000;
    s.waited_ms = 8000; /* faster than one reads */
    CHECK(!signs_tell(line, &s));
}

/* Bounds computed in fractions of integers, by bisection to 2^-56. */
static void test_bound(void)
{
    static const struct {
        size_t k, n;
        double confidence, bound;
    } known[] = { { 0, 149, 0.95, 0.019904816220685 },  { 0, 1, 0.95, 0.95 },
                  { 0, 10, 0.95, 0.258865550893052 },   { 1, 10, 0.95, 0.394163302436505 },
                  { 5, 10, 0.95, 0.777558898991871 },   { 9, 10, 0.95, 0.994883803108176 },
                  { 3, 100, 0.95, 0.075710793749830 },  { 12, 300, 0.9, 0.058699365622835 },
                  { 2, 313, 0.95, 0.019976770050001 },  { 7, 50, 0.5, 0.152362690456149 },
                  { 40, 50, 0.99, 0.912996034960491 },  { 1, 20, 0.025, 0.012348527170295 },
                  { 20, 400, 0.999, 0.092966042854262 } };
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        double b = binomial_upper(known[i].k, known[i].n, known[i].confidence);
        CHECK(fabs(b - known[i].bound) < 1e-13);
    }
    CHECK(binomial_upper(10, 10, 0.95) == 1 && binomial_upper(0, 0, 0.95) == 1);
    CHECK(binomial_upper(3, 10, 1) == 1 && binomial_upper(3, 10, (double)NAN) == 1);
    CHECK(binomial_upper(3, 10, 0) == 0);
    double low, high; /* two-sided, of 22 in 88; of nothing; all of ten */
    binomial_interval(&low, &high, 22, 88, 0.95);
    CHECK(fabs(low - 0.16378009388236953) < 1e-12 && fabs(high - 0.3536837117756232) < 1e-12);
    binomial_interval(&low, &high, 0, 0, 0.95);
    CHECK(low == 0 && high == 1);
    binomial_interval(&low, &high, 10, 10, 0.95);
    CHECK(fabs(low - 0.6915028921812392) < 1e-12 && high == 1);
    double p = binomial_upper(0, 100000000, 0.95), q = binomial_upper(500000, 1000000, 0.95);
    CHECK(p > 2.99e-8 && p < 3.0e-8 && q > 0.5008 && q < 0.5009);
}

int main(void)
{
    test_bound();
    test_none();
    test_threshold();
    test_weak();
    test_network();
    return 0;
}
