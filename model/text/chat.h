/* chat.h - a conversation as token ids, in the form of a model's own chat template.
 *
 * A template, which is a program, is known by the hash of its text and never run. Each known one
 * has one of seven forms, which may also be named: Qwen2.5, with a system message of its own, QwQ
 * and Qwen3, which cut thoughts out of earlier answers, Qwen3-Coder, ChatML, and the two of
 * DeepSeek-R1-Distill-Qwen, of which the later one (deepseek-r1) begins the answer with <think>.
 *
 * The marks (<|im_start|>, <|im_end|> or DeepSeek's, and <think> and </think> where the form has
 * them) are inserted as ids. What people and models say is encoded without special tokens, so a
 * message that spells a mark stays plain text of its turn. */
#ifndef MODEL_TEXT_CHAT_H
#define MODEL_TEXT_CHAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct tokenizer;
struct chat; /* immutable once open: threads may share it */

struct chat_message {
    const char *role; /* "system", "user", "assistant" */
    const char *text; /* [n] any bytes */
    size_t n;
};

/* enable_thinking of the template: not set, true, false. Most templates do not read it. */
enum chat_think { CHAT_THINK_AUTO, CHAT_THINK_ON, CHAT_THINK_OFF };

/* ERR_ARG unless chat_open accepts these two. */
int chat_check_options(const char *form, const char *think, struct err *err);

/* Find the form of t's template; t is borrowed. With a form, such as "chatml", the template is
 * ignored; NULL reads it. Without a template it is ChatML if the vocabulary has the marks. think is
 * what chat_encode uses unless it is told otherwise: "auto" (or NULL), "on" or "off". A template or
 * a vocabulary that cannot be used is an error of chat_encode only. ERR_ARG: another form or think;
 * ERR_NOMEM. On error *out is NULL. */
int chat_open(struct chat **out, const struct tokenizer *t, const char *form, const char *think,
              struct err *err);
void chat_close(struct chat *c); /* NULL is fine */

/* Return the form's name, such as "qwen2.5", or NULL if conversations cannot be encoded. */
const char *chat_form(const struct chat *c);
/* Return true and set *note if the form is a guess because there is no template, or if the think of
 * chat_open has no effect with this form. */
bool chat_note(const struct chat *c, struct err *note);
/* True if the model's template is known here, or the form was named; else *why says what there is
 * instead. A guess is not known. */
bool chat_known(const struct chat *c, struct err *why);
/* ERR_FORMAT when conversations cannot be encoded; the line says why and what to do. */
int chat_check(const struct chat *c, struct err *err);

/* Encode the messages and the beginning of the answer to them. If the first message is not a system
 * message, that of the template, if it has one, is put in front. think: CHAT_THINK_AUTO means as
 * chat_open was told. *ids is malloc'ed. ERR_ARG for another role; ERR_FORMAT as chat_check;
 * ERR_NOMEM. */
int chat_encode(const struct chat *c, uint32_t **ids, size_t *count,
                const struct chat_message *messages, size_t n, enum chat_think think,
                struct err *err);

#endif
