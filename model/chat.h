/* chat.h - ChatML, Qwen2.5's conversation form. */
#ifndef MODEL_CHAT_H
#define MODEL_CHAT_H

#include <stddef.h>

struct err;

struct chat_message {
    const char *role; /* "system", "user", "assistant" */
    const char *text;
};

/* The text "<|im_start|>role\ntext<|im_end|>\n" of each message, then "<|im_start|>assistant\n".
 * With no system message first, Qwen2.5's own default one is put in front. *out is malloc'ed and
 * terminated. Encode it with special tokens parsed. */
int chat_render(char **out, const struct chat_message *messages, size_t n, struct err *err);

#endif
