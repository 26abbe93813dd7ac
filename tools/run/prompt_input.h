/* prompt_input.h - reads prompts from a terminal, and keeps the messages of a
 * conversation. */
#ifndef TOOLS_RUN_PROMPT_INPUT_H
#define TOOLS_RUN_PROMPT_INPUT_H

#include <stdbool.h>
#include <stddef.h>

#include "router/mizzle.h"

struct err;

/* Read the next line of standard input, without its newline, terminated. A line that ends in a
 * backslash continues in the next line, and what is pasted into a terminal is one line. With asks,
 * print "> " to stderr first. Ctrl-C on a terminal drops what was typed; on an empty line, the
 * second one ends the input. *out must be NULL or the result of an earlier call, whose memory is
 * reused; the caller frees it at the end. Return false at the end of the input or after an error:
 * ERR_NOMEM or ERR_STOP (interrupted) in *rc. */
bool prompt_input_line(char **out, size_t *n, bool asks, int *rc, struct err *err);

/* The messages of a conversation; zero at first. */
struct conversation {
    struct mizzle_message *messages; /* the texts are owned */
    size_t n;
};

/* Append a message. role is borrowed, text[n] is copied. ERR_NOMEM. */
int conversation_add(struct conversation *c, const char *role, const char *text, size_t n,
                     struct err *err);
/* Drop all messages but the first n; n = 0 frees everything. */
void conversation_cut(struct conversation *c, size_t n);

/* Report a line that looks like a command but is not one; true if it is such. */
bool prompt_input_no_command(const char *line, size_t n);

#endif
