/* The paper's Table 1: the rules that its printed rows follow, and a row of our own by hand. */
#include "tests/support/test.h"
#include "tools/lab/eval/paper_table.h"

static bool within(double a, double b, double most)
{
    return fabs(a - b) <= most;
}

/* The columns of each printed row follow from routed, SLM and communication alone. */
static void test_printed(void)
{
    char line[256];
    size_t n = 0;
    FILE *f = fopen("router/results/paper.csv", "r");
    CHECK(f != NULL);
    while (fgets(line, sizeof(line), f)) {
        struct paper_row p;
        if (sscanf(line, "printed,%lf,%lf,%lf,%lf,%lf,%lf,%lf", &p.threshold, &p.routed, &p.edge_s,
                   &p.ttft_s, &p.tbt_s, &p.cloud_s, &p.overall_s) != 7)
            continue;
        struct paper_row r = paper_row_make(p.threshold, 100, (size_t)p.routed, 1000 * p.edge_s,
                                            1000 * p.ttft_s, 1000 * (p.edge_s + p.cloud_s));
        CHECK(n < PAPER_ROWS && within(p.threshold, paper_thresholds[n], 0));
        CHECK(within(r.threshold, p.threshold, 0) && within(r.routed, p.routed, 1e-9));
        CHECK(within(r.edge_s, p.edge_s, 1e-9) && within(r.ttft_s, p.ttft_s, 1e-9));
        CHECK(within(r.tbt_s, p.tbt_s, 0.007)); /* 28.40 s / 99 is 0.287, printed 0.28 */
        CHECK(within(r.cloud_s, p.cloud_s, 1e-9));
        bool sums = p.threshold < 0.59 || p.threshold > 0.61;
        CHECK(within(r.overall_s - (sums ? 0 : p.cloud_s), p.overall_s, 0.3));
        n++;
    }
    CHECK(n == PAPER_ROWS);
    fclose(f);
}

static void test_by_hand(void)
{
    /* 40 tokens, 10 of them routed: 4 s in the small model, 2 s elsewhere. */
    struct paper_row r = paper_row_make(0.5, 40, 10, 4000, 150, 6000);
    CHECK(within(r.routed, 25, 1e-9) && within(r.edge_s, 10, 1e-9));
    CHECK(within(r.ttft_s, 0.15, 1e-9) && within(r.tbt_s, 4.0 / 30, 1e-9));
    CHECK(within(r.cloud_s, 5, 1e-9) && within(r.overall_s, 15, 1e-9));
    CHECK(isnan(paper_row_make(0.5, 10, 10, 1, 1, 1).tbt_s));
    CHECK(within(paper_row_make(0.5, 0, 0, 0, 0, 0).overall_s, 0, 0));
}

int main(void)
{
    test_printed();
    test_by_hand();
    return 0;
}
