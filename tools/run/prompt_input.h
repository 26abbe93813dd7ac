/* prompt_input.h - what is asked: a prompt from the command line or a file, or a conversation. */
#ifndef TOOLS_RUN_PROMPT_INPUT_H
#define TOOLS_RUN_PROMPT_INPUT_H

#include <stdbool.h>
#include <stddef.h>

#include "router/mizzle.h"
#include "router/stops.h"

struct err;

/* The whole of a file, "-" for standard input, terminated; at most 64 MiB. Free it. ERR_IO,
 * ERR_FORMAT (too long), ERR_NOMEM. */
int prompt_input_read(char **out, size_t *n, const char *path, struct err *err);

/* The next line of standard input without its end, terminated; one that ends in a backslash goes on
 * in the next line. asks: show "> " on stderr. *out (NULL at first) is used again from call to
 * call; free it. False at the end of the input. ERR_NOMEM and ERR_STOP (interrupted) in *rc. */
bool prompt_input_line(char **out, size_t *n, bool asks, int *rc, struct err *err);

struct conversation {
    struct mizzle_message *messages; /* texts are owned */
    size_t n;
};

/* role is borrowed, text[n] copied. */
int conversation_add(struct conversation *c, const char *role, const char *text, size_t n,
                     struct err *err);
/* The text of an answer as it is shown: up to a stop string, without special tokens. */
struct answer_text {
    char *text; /* [n]; owned, free it */
    size_t n, cap;
    struct stops stops;
    bool ended; /* a stop string came */
};

/* Begin anew. stops: accepted by mizzle_generate, borrowed. */
void answer_text_begin(struct answer_text *a, const char *const *stops);
/* Append a token's bytes[n]. False where memory ran out. */
bool answer_text_add(struct answer_text *a, const char *bytes, size_t n);

/* Forget the messages from number n on; 0 frees everything. */
void conversation_cut(struct conversation *c, size_t n);

#endif
