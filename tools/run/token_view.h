/* token_view.h - shows an answer token by token, and marks what came from the cloud.
 *
 * A character that several tokens share is shown once it is complete. Text that may become a stop
 * string is held back until that is decided; stop strings are not shown. Only harmless text reaches
 * the terminal: control characters and those that change the writing direction are shown as \x1b or
 * \u202e. */
#ifndef TOOLS_RUN_TOKEN_VIEW_H
#define TOOLS_RUN_TOKEN_VIEW_H

#include <stdbool.h>
#include <stdio.h>

#include "router/decode/stops.h"
#include "router/mizzle.h"

enum token_view_style {
    TOKEN_VIEW_PLAIN,
    TOKEN_VIEW_MARKS, /* [cloud: word], [fallback: word] */
    TOKEN_VIEW_COLOUR /* cloud underlined in cyan, fallback reversed in yellow */
};

/* Return TOKEN_VIEW_COLOUR if f is a terminal with colours and the user does not object (NO_COLOR,
 * TERM=dumb), else TOKEN_VIEW_MARKS. */
enum token_view_style token_view_style(FILE *f);

struct token_view {
    FILE *to;
    enum token_view_style style;
    struct stops stops;
    struct token_view_byte {
        char c;
        unsigned char source; /* enum mizzle_source */
        size_t token;         /* position of its token in the answer */
    } held[640];              /* bytes that are not shown yet, [n] */
    size_t n;
    int open_source;   /* enum mizzle_source of the open mark; MIZZLE_EDGE: none is open */
    size_t open_token; /* the token that the open mark belongs to */
    bool line_open;    /* the last character shown was not a newline */
};

/* Begin an answer. stops is borrowed and must be valid, as mizzle_generate checks. */
void token_view_begin(struct token_view *s, FILE *to, enum token_view_style style,
                      const char *const *stops);
/* Show the next token. False if the output can no longer be written. */
bool token_view_token(struct token_view *s, const struct mizzle_token *t);
/* Show what was held back and end the line. */
void token_view_end(struct token_view *s);

#endif
