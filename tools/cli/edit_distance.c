#include "tools/cli/edit_distance.h"

#include <stdint.h>
#include <string.h>

size_t edit_distance(const char *a, const char *b)
{
    size_t row[33], nb = strlen(b);
    if (nb > 32 || strlen(a) > 32)
        return SIZE_MAX;
    for (size_t j = 0; j <= nb; j++)
        row[j] = j;
    for (size_t i = 0; a[i]; i++) {
        size_t diagonal = row[0];
        row[0] = i + 1;
        for (size_t j = 0; j < nb; j++) {
            size_t best = diagonal + (a[i] != b[j]);
            diagonal = row[j + 1];
            if (row[j] + 1 < best)
                best = row[j] + 1;
            if (row[j + 1] + 1 < best)
                best = row[j + 1] + 1;
            row[j + 1] = best;
        }
    }
    return row[nb];
}
