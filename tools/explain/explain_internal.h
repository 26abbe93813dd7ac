/* explain_internal.h - the parts of explain_open. */
#ifndef TOOLS_EXPLAIN_EXPLAIN_INTERNAL_H
#define TOOLS_EXPLAIN_EXPLAIN_INTERNAL_H

#include "tools/explain/explain.h"

/* Write the text: tokens, passes, stats. x->ids[prompt] is the prompt; fills in the rest. */
int explain_write(struct explain *x, struct err *err);
/* Evaluate the text once more and keep what is seen. */
int explain_look(struct explain *x, struct err *err);

/* Return where the whole row of (pos, layer, head) begins in x->rows; for pos = positions and the
 * first layer and head of the choice, how many floats there are. */
size_t explain_row_at(const struct explain *x, size_t pos, size_t layer, size_t head);
#endif
