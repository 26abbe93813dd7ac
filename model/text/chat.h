/* chat.h - a conversation as token ids, in ChatML, the format of Qwen2.5.
 *
 * The marks <|im_start|> and <|im_end|> are inserted as ids. What people and models say is encoded
 * without special tokens, so a message that spells a mark stays plain text of its turn. */
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

/* Encode "<|im_start|>role\ntext<|im_end|>\n" for each message, then "<|im_start|>assistant\n". If
 * the first message is not a system message, the one of chat_system is put in front. *ids is
 * malloc'ed. ERR_FORMAT when the vocabulary lacks the marks; ERR_NOMEM. */
int chat_encode(const struct tokenizer *t, uint32_t **ids, size_t *count,
                const struct chat_message *messages, size_t n, struct err *err);

/* Return the system message of a conversation that has none of its own: the text between
 * "<|im_start|>system\n" and "<|im_end|>" that the model's chat template contains. *text is NULL if
 * the template contains none, because the model is then asked without one. Without a template it is
 * Qwen2.5's own, which is a guess, and *guessed (guessed may be NULL) is true. *text is malloc'ed
 * and terminated. ERR_NOMEM only. */
int chat_system(const struct tokenizer *t, char **text, bool *guessed, struct err *err);

#endif
