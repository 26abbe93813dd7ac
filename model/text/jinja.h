/* jinja.h - evaluates the part of Jinja that the chat templates of Qwen's models use, to see what
 * they render.
 *
 * Known: {{ }}, {% if for set %}, macros that are not called, loop, namespace, slices, string
 * methods, a few filters and tests. Everything else ends the evaluation. White space is handled as
 * by Hugging Face's transformers (a newline after a tag and blanks before one go). Memory and steps
 * are bounded, because templates come with files that anyone may have made.
 *
 * Source: the documentation of Jinja 3.1. */
#ifndef MODEL_TEXT_JINJA_H
#define MODEL_TEXT_JINJA_H

#include <stddef.h>

struct chat_message;
struct err;

enum jinja_flag { JINJA_UNSET, JINJA_TRUE, JINJA_FALSE };

/* Render a template[n] for messages[count], with add_generation_prompt true and enable_thinking as
 * given. *out is malloc'ed and terminated. ERR_FORMAT when the template is wrong, too large or uses
 * what is not known here: the message says where; ERR_NOMEM. */
int jinja_render(char **out, const char *template, size_t n, const struct chat_message *messages,
                 size_t count, enum jinja_flag thinking, struct err *err);

#endif
