/* Prices of a cloud as a person types them. */
#include "tools/lab/eval/price.h"

#include <stdio.h>

#include "tests/support/test.h"

/* A number must be read as this, beside two others. */
static void reads(const char *number, uint64_t value)
{
    char text[80];
    struct price p;
    snprintf(text, sizeof(text), "0,%s,1", number);
    CHECK_MSG(price_parse(&p, text) && p.up == 0 && p.cached == value && p.down == 1000000, "%s",
              text);
}

int main(void)
{
    struct price p;
    CHECK(price_parse(&p, "1.5,0.75,6"));
    CHECK(p.up == 1500000 && p.cached == 750000 && p.down == 6000000);
    reads("1.50", 1500000);
    reads("0", 0);
    reads(".5", 500000);
    reads("12.", 12000000);
    reads("0.000001", 1);
    reads("18446744073709.551615", UINT64_MAX);
    static const char *const bad[] = { "",
                                       ".",
                                       "-1",
                                       "+1",
                                       "1e3",
                                       "0x10",
                                       "1.2.3",
                                       " 1",
                                       "1 ",
                                       "nan",
                                       "inf",
                                       "1.0000001",
                                       "18446744073709.551616" };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        char text[80];
        snprintf(text, sizeof(text), "1,%s,1", bad[i]);
        CHECK_MSG(!price_parse(&p, text), "%s", text);
    }
    static const char *const wrong[] = { "1,2",   "1,2,3,4", "1,2,x", "1,-1,1",
                                         "1 1 1", "",        "1,,3",  "1,2,3," };
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        CHECK(!price_parse(&p, wrong[i]));
    return 0;
}
