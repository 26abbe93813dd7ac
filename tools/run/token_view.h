/* token_view.h - the answer on the screen, token by token, with who wrote what.
 *
 * Characters cut across tokens are shown once whole; what may become a stop string is held back
 * until that is decided, and a stop string itself is not shown. Nothing that a model says reaches
 * the terminal but harmless text: control characters and those that turn the writing direction
 * are shown as \x1b or \u202e. */
#ifndef TOOLS_RUN_TOKEN_VIEW_H
#define TOOLS_RUN_TOKEN_VIEW_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "router/mizzle.h"
#include "router/stops.h"

enum token_view_style {
    TOKEN_VIEW_PLAIN,
    TOKEN_VIEW_MARKS, /* [cloud: word], [fallback: word] */
    TOKEN_VIEW_COLOUR /* cloud underlined in cyan, fallback reversed in yellow */
};

/* Colour where f is a terminal that has it and the user does not object (NO_COLOR, TERM=dumb). */
enum token_view_style token_view_style(FILE *f);

const char *token_view_source(int source); /* "edge", "cloud", "fallback" */

struct token_view {
    FILE *to;
    enum token_view_style style;
    struct stops stops;
    struct token_view_byte {
        char c;
        unsigned char source;
        size_t token;
    } held[640];
    size_t n;
    bool ended;        /* a stop string came */
    int open_source;   /* enum mizzle_source */
    size_t open_token; /* the token whose mark is open, if open_source is not the edge */
    bool line_open;    /* the last character shown was not a newline */
};

/* stops: accepted by mizzle_generate, borrowed. */
void token_view_begin(struct token_view *s, FILE *to, enum token_view_style style,
                      const char *const *stops);
/* False when the output can no longer be written. */
bool token_view_token(struct token_view *s, const struct mizzle_token *t);
/* Shows what was held back and ends the line. */
void token_view_end(struct token_view *s);

#endif
