#include "model/text/chat.h"

#include <stdlib.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "model/text/tokenizer.h"

static const char qwen_system[] =
    "You are Qwen, created by Alibaba Cloud. You are a helpful assistant.";

struct chat_ids {
    const struct tokenizer *t;
    uint32_t start, end;
    uint32_t *ids;
    size_t count;
};

/* Append a mark (if mark is not NULL) and text[n], encoded without special tokens. */
static int chat_append(struct chat_ids *c, const uint32_t *mark, const char *text, size_t n,
                       struct err *err)
{
    uint32_t *more, *ids;
    size_t count;
    int rc = tokenizer_encode(c->t, &ids, &count, text, n, false, err);
    if (rc != OK)
        return rc;
    more = realloc(c->ids, (c->count + count + 1) * sizeof(*more));
    if (!more) {
        free(ids);
        return err_set(err, ERR_NOMEM, "chat: out of memory");
    }
    c->ids = more;
    if (mark)
        c->ids[c->count++] = *mark;
    if (count)
        memcpy(c->ids + c->count, ids, count * sizeof(*ids));
    c->count += count;
    free(ids);
    return OK;
}

/* Encode role and text together, because they are one piece of text between the marks. */
static int chat_append_message(struct chat_ids *c, const struct chat_message *m, struct err *err)
{
    size_t role = strlen(m->role), n;
    char *both = size_add(&n, role + 1, m->n) ? malloc(n) : NULL;
    if (!both)
        return err_set(err, ERR_NOMEM, "chat: out of memory");
    memcpy(both, m->role, role);
    both[role] = '\n';
    if (m->n)
        memcpy(both + role + 1, m->text, m->n);
    int rc = chat_append(c, &c->start, both, n, err);
    free(both);
    return rc == OK ? chat_append(c, &c->end, "\n", 1, err) : rc;
}

/* Append the template's own system message, if it has one. */
static int chat_append_system(struct chat_ids *c, struct err *err)
{
    char *text;
    int rc = chat_system(c->t, &text, NULL, err);
    if (rc == OK && text)
        rc = chat_append_message(c, &(struct chat_message){ "system", text, strlen(text) }, err);
    free(text);
    return rc;
}

int chat_encode(const struct tokenizer *t, uint32_t **ids, size_t *count,
                const struct chat_message *messages, size_t n, struct err *err)
{
    static const char begin[] = "assistant\n";
    struct chat_ids c = { .t = t };
    int rc = OK;
    *ids = NULL;
    *count = 0;
    if (!tokenizer_special(t, "<|im_start|>", &c.start) ||
        !tokenizer_special(t, "<|im_end|>", &c.end))
        return err_set(err, ERR_FORMAT,
                       "chat: expected the added tokens <|im_start|> and <|im_end|> in the "
                       "vocabulary, found none");
    if (n == 0 || strcmp(messages[0].role, "system"))
        rc = chat_append_system(&c, err);
    for (size_t i = 0; rc == OK && i < n; i++)
        rc = chat_append_message(&c, &messages[i], err);
    if (rc == OK)
        rc = chat_append(&c, &c.start, begin, strlen(begin), err);
    if (rc != OK) {
        free(c.ids);
        return rc;
    }
    *ids = c.ids;
    *count = c.count;
    return OK;
}

/* Copy the text that begins at p up to <|im_end|>. It is part of a literal between quotes or, with
 * quote 0, of the template's plain text. False when anything but text comes before the mark. out
 * has room for strlen(p) bytes. */
static bool chat_literal(char *out, const char *p, char quote)
{
    static const char begin[] = "<|im_start|>", end[] = "<|im_end|>";
    static const char escapes[] = "n\nt\t\\\\'\'\"\"";
    while (strncmp(p, end, strlen(end)) != 0) {
        if (!*p || strncmp(p, begin, strlen(begin)) == 0 || (quote && *p == quote) ||
            (!quote && p[0] == '{' && strchr("{%#", p[1])))
            return false;
        if (quote && *p == '\\') {
            const char *e = escapes;
            p++;
            while (*e && *e != *p)
                e += 2;
            if (!*e)
                return false;
            *out++ = e[1];
            p++;
        } else {
            *out++ = *p++;
        }
    }
    *out = 0;
    return true;
}

int chat_system(const struct tokenizer *t, char **text, bool *guessed, struct err *err)
{
    static const char begin[] = "<|im_start|>system";
    const char *template = tokenizer_template(t), *p = template ? template : "";
    char *out = malloc(strlen(p) + sizeof(qwen_system));
    *text = NULL;
    if (guessed)
        *guessed = !template;
    if (!out)
        return err_set(err, ERR_NOMEM, "chat: out of memory");
    if (!template) {
        memcpy(out, qwen_system, sizeof(qwen_system));
        *text = out;
        return OK;
    }
    while (!*text && (p = strstr(p, begin))) {
        char before = p > template ? p[-1] : 0,
             quote = before == '\'' || before == '"' ? before : 0;
        p += strlen(begin);
        size_t newline = *p == '\n' ? 1 : quote && p[0] == '\\' && p[1] == 'n' ? 2 : 0;
        if (newline && chat_literal(out, p + newline, quote))
            *text = out;
    }
    if (!*text)
        free(out);
    return OK;
}
