/* serve_prompt.c - prompts and messages as token ids. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/text/chat.h"
#include "model/text/tokenizer.h"
#include "net/http/json_input.h"
#include "tools/serve/serve_field.h"
#include "tools/serve/serve_exchange.h"

bool serve_prompt_ids(uint32_t **ids, size_t *n, const struct serve *s, const json_t *list,
                      const char *param, struct serve_error *e)
{
    size_t count = json_array_size(list), len;
    *n = 0;
    *ids = calloc(count ? count : 1, sizeof(**ids));
    if (!*ids)
        return serve_error_of(e, ERR_NOMEM, NULL);
    for (size_t i = 0; i < count; i++) {
        const json_t *v = json_array_get(list, i);
        if (json_input_id(&(*ids)[i], v, s->vocab) &&
            tokenizer_bytes(s->engine.tokenizer, (*ids)[i], &len))
            continue;
        free(*ids);
        *ids = NULL;
        char at[SERVE_PARAM];
        snprintf(at, sizeof(at), "%.40s[%zu]", param, i);
        return serve_field_wrong(e, at, "a token id of this model", v);
    }
    *n = count;
    return true;
}

struct serve_prompt *serve_prompt_add(struct serve_ask *a)
{
    struct serve_prompt *more = realloc(a->prompts, (a->nprompts + 1) * sizeof(*more));
    if (!more)
        return NULL;
    a->prompts = more;
    a->prompts[a->nprompts] = (struct serve_prompt){ 0 };
    return &a->prompts[a->nprompts++];
}

/* Read one text or one list of ids. */
static bool serve_prompt_one(struct serve_ask *a, const struct serve *s, const json_t *v,
                             const char *param, struct serve_error *e)
{
    struct serve_prompt *p = serve_prompt_add(a);
    if (!p)
        return serve_error_of(e, ERR_NOMEM, NULL);
    if (json_is_array(v)) {
        if (!serve_prompt_ids(&p->ids, &p->n, s, v, param, e))
            return false;
    } else if (!json_is_string(v)) {
        return serve_field_wrong(e, param, "a text or a list of token ids", v);
    } else if (tokenizer_encode(s->engine.tokenizer, &p->ids, &p->n, json_string_value(v),
                                json_string_length(v), true, NULL)) {
        p->ids = NULL;
        return serve_error_of(e, ERR_NOMEM, NULL);
    }
    if (!p->n)
        return serve_error_set(e, 400, "invalid_value", param,
                               "%s: expected at least one token, found none", param);
    return true;
}

bool serve_prompt_read(struct serve_ask *a, const struct serve *s, const json_t *prompt,
                       struct serve_error *e)
{
    const json_t *first = json_array_get(prompt, 0);
    size_t n = json_array_size(prompt);
    char param[SERVE_PARAM];
    if (!prompt || json_is_null(prompt))
        return serve_error_set(e, 400, "missing_required_parameter", "prompt",
                               "prompt: expected a text or token ids, found nothing");
    if (!json_is_string(first) && !json_is_array(first))
        return serve_prompt_one(a, s, prompt, "prompt", e);
    if (n > SERVE_PROMPTS)
        return serve_error_set(e, 400, "invalid_value", "prompt",
                               "prompt: expected at most %d prompts, found %zu", SERVE_PROMPTS, n);
    for (size_t i = 0; i < n; i++) {
        snprintf(param, sizeof(param), "prompt[%zu]", i);
        if (!serve_prompt_one(a, s, json_array_get(prompt, i), param, e))
            return false;
    }
    return true;
}

/* Read the content of a message: a text, or parts of text, which are joined in *joined. */
static bool serve_prompt_content(struct chat_message *m, struct buf *joined, const json_t *content,
                                 const char *at, struct serve_error *e)
{
    char param[SERVE_PARAM];
    snprintf(param, sizeof(param), "%s.content", at);
    if (json_is_string(content)) {
        m->text = json_string_value(content);
        m->n = json_string_length(content);
        return true;
    }
    bool silent = (!content || json_is_null(content)) && strcmp(m->role, "assistant") == 0;
    if (!json_is_array(content) && !silent)
        return serve_field_wrong(e, param, "a text or a list of parts", content);
    for (size_t i = 0; i < json_array_size(content); i++) {
        const json_t *part = json_array_get(content, i), *text = json_object_get(part, "text");
        const char *type = json_string_value(json_object_get(part, "type"));
        snprintf(param, sizeof(param), "%s.content[%zu]", at, i);
        if (!type || strcmp(type, "text") != 0)
            return serve_field_wrong(e, param, "a part of type text",
                                     type ? json_object_get(part, "type") : part);
        if (!json_is_string(text))
            return serve_field_wrong(e, param, "a text", text);
        if (!buf_add(joined, json_string_value(text), json_string_length(text)))
            return serve_error_of(e, ERR_NOMEM, NULL);
    }
    m->text = joined->p ? joined->p : "";
    m->n = joined->n;
    return true;
}

/* Refuse what a template would write into a message beside its content. Templates drop the thoughts
 * of earlier answers (reasoning_content), so these are ignored. */
static bool serve_prompt_extra(const json_t *message, const char *at, struct serve_error *e)
{
    static const char *const fields[] = { "tool_calls", "function_call" };
    char param[SERVE_PARAM];
    for (size_t k = 0; k < sizeof(fields) / sizeof(fields[0]); k++) {
        const json_t *v = json_object_get(message, fields[k]);
        bool empty = !v || json_is_null(v) || (json_is_array(v) && !json_array_size(v)) ||
                     (json_is_string(v) && !json_string_length(v));
        snprintf(param, sizeof(param), "%s.%s", at, fields[k]);
        if (!empty)
            return serve_error_set(e, 400, "unsupported_parameter", param, "%s: not served here",
                                   param);
    }
    return true;
}

/* Read one message. */
static bool serve_prompt_message(struct chat_message *m, struct buf *joined, const json_t *v,
                                 size_t i, struct serve_error *e)
{
    static const char *const roles[][2] = { { "system", "system" },
                                            { "developer", "system" },
                                            { "user", "user" },
                                            { "assistant", "assistant" } };
    char at[SERVE_PARAM / 2], param[SERVE_PARAM];
    snprintf(at, sizeof(at), "messages[%zu]", i);
    if (!json_is_object(v))
        return serve_field_wrong(e, at, "an object", v);
    const json_t *role = json_object_get(v, "role");
    for (size_t k = 0; json_is_string(role) && k < sizeof(roles) / sizeof(roles[0]); k++)
        if (strcmp(json_string_value(role), roles[k][0]) == 0)
            m->role = roles[k][1];
    snprintf(param, sizeof(param), "%s.role", at);
    if (!m->role)
        return serve_field_wrong(e, param, "system, developer, user or assistant", role);
    return serve_prompt_extra(v, at, e) &&
           serve_prompt_content(m, joined, json_object_get(v, "content"), at, e);
}

/* Read chat_template_kwargs, as vLLM and SGLang have it. */
static bool serve_prompt_think(enum chat_think *think, const json_t *in, struct serve_error *e)
{
    static const char field[] = "chat_template_kwargs", name[] = "enable_thinking";
    json_t *kwargs;
    bool on = false;
    if (!serve_field_object(&kwargs, in, field, e) || !serve_field_only(kwargs, field, name, e))
        return false;
    if (!serve_field_flag(&on, kwargs, name, e))
        return serve_field_inside(e, field);
    if (serve_field_get(kwargs, name))
        *think = on ? CHAT_THINK_ON : CHAT_THINK_OFF;
    return true;
}

bool serve_prompt_chat(struct serve_ask *a, const struct serve *s, const json_t *in,
                       struct serve_error *e)
{
    const json_t *messages = json_object_get(in, "messages");
    enum chat_think think = CHAT_THINK_AUTO;
    size_t n = json_array_size(messages);
    struct err err = { "" };
    if (!n)
        return serve_field_wrong(e, "messages", "a list of messages",
                                 json_is_array(messages) ? NULL : messages);
    if (!serve_prompt_think(&think, in, e))
        return false;
    struct chat_message *list = calloc(n, sizeof(*list));
    struct buf *joined = calloc(n, sizeof(*joined));
    struct serve_prompt *p = serve_prompt_add(a);
    bool fine = list && joined && p;
    if (!fine)
        serve_error_of(e, ERR_NOMEM, NULL);
    for (size_t i = 0; i < n && fine; i++)
        fine = serve_prompt_message(&list[i], &joined[i], json_array_get(messages, i), i, e);
    int rc = fine ? chat_encode(s->engine.chat, &p->ids, &p->n, list, n, think, &err) : OK;
    if (rc != OK) {
        p->ids = NULL;
        p->n = 0;
        fine = serve_error_of(e, rc, err.msg);
        if (rc == ERR_FORMAT)
            serve_error_set(e, 400, "no_chat", "messages", "messages: %s", err.msg);
    }
    for (size_t i = 0; joined && i < n; i++)
        buf_free(&joined[i]);
    free(joined);
    free(list);
    return fine;
}
