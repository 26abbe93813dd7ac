/* audit_line.h - what an audit has found, in numbers and as a line for a person. */
#ifndef TOOLS_RUN_AUDIT_LINE_H
#define TOOLS_RUN_AUDIT_LINE_H

#include <stddef.h>
#include <stdio.h>

#include "router/mizzle.h"

struct audit_share {
    double share;     /* NaN: nothing was asked */
    double low, high; /* its exact 95 % interval */
};

/* Return the share k/n. */
struct audit_share audit_share(size_t k, size_t n);
/* Print a line that begins with `label`. */
void audit_line(FILE *to, const char *label, const struct mizzle_audit *a);

#endif
