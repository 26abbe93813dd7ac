/* signs.h - signs that routing does not do its work, found in what was decided about tokens.
 *
 * At most one is told, because each changes the others. A share is told where its exact
 * 95 % interval lies beyond the limit. Nothing here changes a text. */
#ifndef TOOLS_RUN_SIGNS_H
#define TOOLS_RUN_SIGNS_H

#include <stdbool.h>
#include <stddef.h>

enum { SIGNS_LINE = 256 };

struct signs {
    size_t tokens, cloud;       /* written; of these, by the cloud */
    size_t compared, confirmed; /* cloud tokens where the small model's own is known; the same */
    double ms, waited_ms;       /* over all; of these, waiting for the cloud */
};

/* Add one token that was judged (policy_judges). has_edge: the small model's own token is known;
 * agrees: it is the same. */
void signs_token(struct signs *s, bool cloud, bool has_edge, bool agrees);
/* Write the gravest sign as one sentence. False: there is none. */
bool signs_tell(char out[SIGNS_LINE], const struct signs *s);

#endif
