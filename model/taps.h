/* taps.h - which hidden states of a token are meant: "final", or several, as in "12,16,final". */
#ifndef MODEL_TAPS_H
#define MODEL_TAPS_H

#include <stdbool.h>
#include <stddef.h>

/* A tap is one of these, or L from 1 on: the residual stream behind the first L layers, as the next
 * layer finds it, before any norm. */
enum tap {
    TAP_POST_ATTN = -1, /* the output of the last layer's post-attention RMSNorm */
    TAP_FINAL           /* after the last RMSNorm */
};

enum { TAPS = 4, TAPS_TEXT = 32 }; /* most taps of a list; bytes of its text, with the final zero */

/* Different taps, in the order in which their states follow one another. All zero: final alone. */
struct taps {
    int at[TAPS];
    size_t more; /* how many there are after the first */
    char text[TAPS_TEXT];
};

#define TAPS_EXPECTED \
    "expected up to 4 of final, post_attn and layers from 1 on, each once, as 12,16,final"

/* Parse a list. False: it is none, and *out is as it was. */
bool taps_parse(struct taps *out, const char *text);

/* Return the text that taps_parse takes. */
static inline const char *taps_text(const struct taps *t)
{
    return t->text[0] ? t->text : "final";
}

#endif
