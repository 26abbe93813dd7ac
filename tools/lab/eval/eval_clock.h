/* eval_clock.h - the options of `mizzle eval` that say how time passes. */
#ifndef TOOLS_LAB_EVAL_EVAL_CLOCK_H
#define TOOLS_LAB_EVAL_EVAL_CLOCK_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "tools/cli/options.h"
#include "tools/lab/clock/virtual_clock.h"

struct err;

extern const struct option_group eval_clock_rows; /* --clock --edge-ms --cloud-ms */

struct eval_clock {
    bool is_virtual;
    uint64_t step_ns;           /* real: least time of a step; 0: none */
    struct virtual_clock clock; /* virtual; without ahead */
};

/* Read the options, network_options and the deadline of shared_options. With a virtual clock
 * these describe its network, and are reset, so that the stand-in server of this process answers at
 * once, and a real call has time. ERR_ARG. */
int eval_clock_read(struct eval_clock *out, struct err *err);
/* Return an object with the settings, to tell runs apart; NULL: out of memory. */
json_t *eval_clock_json(const struct eval_clock *c);

#endif
