/* opening.h - weights that are opened and closed again, for torture_each. */
#ifndef TESTS_WEIGHTS_OPENING_H
#define TESTS_WEIGHTS_OPENING_H

#include "tests/support/test.h"
#include "weights/weights.h"

static inline int open_weights(const void *path)
{
    struct err err;
    struct weights *w;
    int code = weights_open(&w, path, &err);
    CHECK((code == OK) == (w != NULL));
    weights_close(w);
    return code;
}

#endif
