/* Which sign of failure is told, and when none is. */
#include <string.h>

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

int main(void)
{
    test_none();
    test_threshold();
    test_weak();
    test_network();
    return 0;
}
