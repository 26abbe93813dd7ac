/* span.h - names of several tokens cost one call.
 *
 * A call for N tokens at a prefix of n ids brings those after n to n + N - 1 ids. While the text
 * follows a reply, token after token from the cloud, the tokens that it still holds are in its
 * reach: they cost no call. There a second, higher threshold decides. The reach ends with the reply
 * and with the first token that is not the cloud's, if only because its call has failed.
 *
 * An answer from memo or store counts as the first one of a reply of N tokens, unless it is in
 * reach. So the reach depends on the text alone, and not on what other texts have asked. If such an
 * answer came alone, or the server gave fewer tokens, a token in reach may take a call. */
#ifndef ROUTER_SPAN_H
#define ROUTER_SPAN_H

#include <stddef.h>

struct span {
    float threshold; /* in reach, tokens with a score below it are taken; no effect below the
                        other */
    size_t tokens;   /* N, that calls ask for; with 1 there is no reach */
};

#endif
