#include "tools/run/audit_line.h"

#include <inttypes.h>
#include <math.h>

#include "router/caps.h"
#include "router/binomial.h"

struct audit_share audit_share(size_t k, size_t n)
{
    struct audit_share s = { .share = n ? (double)k / (double)n : (double)NAN };
    binomial_interval(&s.low, &s.high, k, n, 0.95);
    return s;
}

/* Print "2 of 30 kept tokens (6.7 %, 95 %: 0.8 to 22.1)", without the shares if there are none. */
static void audit_line_share(FILE *to, size_t k, size_t n, const char *which)
{
    struct audit_share s = audit_share(k, n);
    fprintf(to, "%zu of %zu %s tokens", k, n, which);
    if (n)
        fprintf(to, " (%.1f %%, 95 %%: %.1f to %.1f)", 100 * s.share, 100 * s.low, 100 * s.high);
}

void audit_line(FILE *to, const char *label, const struct mizzle_audit *a)
{
    size_t asked = a->kept + a->again + a->failed;
    char cost[CAPS_AMOUNT];
    fprintf(to, "%s: errors missed: ", label);
    audit_line_share(to, a->missed, a->kept, "kept");
    fputs("; flips: ", to);
    audit_line_share(to, a->flipped, a->again, "routed");
    if (a->failed)
        fprintf(to, "; %zu call%s failed", a->failed, a->failed == 1 ? "" : "s");
    if (a->drawn > asked)
        fprintf(to, "; %zu of %zu were not asked about", a->drawn - asked, a->drawn);
    caps_amount(cost, a->cost);
    if (a->cost)
        fprintf(to, "; cost %s", cost);
    putc('\n', to);
}
