#include <stdlib.h>
#include <string.h>

#include "kernels/base.h"
#include "model/chat.h"

static const char system_prompt[] =
    "You are Qwen, created by Alibaba Cloud. You are a helpful assistant.";

static char *put(char *to, const char *text)
{
    size_t n = strlen(text);
    memcpy(to, text, n);
    return to + n;
}

static char *put_message(char *to, const char *role, const char *text)
{
    to = put(put(to, "<|im_start|>"), role);
    to = put(put(to, "\n"), text);
    return put(to, "<|im_end|>\n");
}

int chat_render(char **out, const struct chat_message *messages, size_t n, struct err *err)
{
    enum { MARKS = 32 }; /* more than the marks of one message take */
    bool bare = n == 0 || strcmp(messages[0].role, "system");
    size_t bytes = sizeof(system_prompt) + 3 * MARKS;
    *out = NULL;
    for (size_t i = 0; i < n; i++)
        if (!size_add(&bytes, bytes, strlen(messages[i].role) + strlen(messages[i].text) + MARKS))
            return err_set(err, ERR_NOMEM, "chat: out of memory");
    char *at = *out = malloc(bytes);
    if (!at)
        return err_set(err, ERR_NOMEM, "chat: out of memory");
    if (bare)
        at = put_message(at, "system", system_prompt);
    for (size_t i = 0; i < n; i++)
        at = put_message(at, messages[i].role, messages[i].text);
    *put(at, "<|im_start|>assistant\n") = 0;
    return OK;
}
