/* chat.h - a conversation as token ids, in ChatML, Qwen2.5's form.
 *
 * The marks <|im_start|> and <|im_end|> are put as ids. What people and models say is encoded
 * without special tokens, so that a message which spells a mark stays the text of its turn. */
#ifndef MODEL_TEXT_CHAT_H
#define MODEL_TEXT_CHAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct tokenizer;

struct chat_message {
    const char *role; /* "system", "user", "assistant" */
    const char *text; /* [n] any bytes */
    size_t n;
};

/* Ids of "<|im_start|>role\ntext<|im_end|>\n" for each message, then "<|im_start|>assistant\n".
 * Where no system message comes first, chat_system's is put in front. *ids is malloc'ed.
 * ERR_FORMAT where the vocabulary lacks the marks; ERR_NOMEM. */
int chat_encode(const struct tokenizer *t, uint32_t **ids, size_t *count,
                const struct chat_message *messages, size_t n, struct err *err);

/* The system message of a conversation that has none of its own: the text between
 * "<|im_start|>system\n" and "<|im_end|>" that the model's chat template spells out. NULL if the
 * template spells none out, for then the model is asked without one. If there is no template it is
 * Qwen2.5's own, a guess, and *guessed (may be NULL) is true. *text is malloc'ed and terminated.
 * ERR_NOMEM only. */
int chat_system(const struct tokenizer *t, char **text, bool *guessed, struct err *err);

#endif
