#include "tools/serve/serve_choice.h"

#include <stdio.h>
#include <string.h>

#include "kernels/sys/text.h"
#include "model/text/tokenizer.h"
#include "tools/cli/json_report.h"

json_t *serve_choice_token(const struct tokenizer *t, uint32_t id, bool quiet)
{
    size_t n = 0;
    const char *p = tokenizer_bytes(t, id, &n);
    struct buf out = { 0 };
    char byte[8];
    if (!p || text_valid(p, n) || quiet)
        return p && text_valid(p, n) ? json_stringn(p, n) : json_string("");
    bool fine = buf_str(&out, "bytes:");
    for (size_t i = 0; i < n && fine; i++) {
        snprintf(byte, sizeof(byte), "\\x%02x", (unsigned)(unsigned char)p[i]);
        fine = buf_str(&out, byte);
    }
    json_t *text = fine ? json_stringn(out.p, out.n) : NULL;
    buf_free(&out);
    return text;
}

json_t *serve_choice_bytes(const struct tokenizer *t, uint32_t id)
{
    size_t n;
    const char *p = tokenizer_bytes(t, id, &n);
    json_t *bytes = json_array();
    for (size_t i = 0; i < n; i++)
        json_report_add(&bytes, json_integer((unsigned char)p[i]));
    return bytes;
}

bool serve_choice_begin(struct serve_choice *c)
{
    bool fine = true;
    stops_begin(&c->stops, c->ask->wish.stops, NULL);
    for (size_t i = 0; c->ask->echo && i < c->prompt->n && fine; i++) {
        size_t n;
        const char *p = tokenizer_bytes(c->tokenizer, c->prompt->ids[i], &n);
        fine = !p || buf_add(&c->raw, p, n);
    }
    return fine;
}

/* Append a token to the text. */
static bool serve_choice_take(struct serve_choice *c, uint32_t id)
{
    size_t n;
    const char *p = tokenizer_bytes(c->tokenizer, id, &n);
    return !p || (tokenizer_is_control(c->tokenizer, id) && !c->ask->specials) ||
           stops_append(&c->stops, &c->raw, p, n);
}

bool serve_choice_look(struct serve_choice *c)
{
    c->view = text_look(c->text);
    size_t n = c->view.n;
    if (c->ask->plain && c->ask->stream && n > c->taken + 1) {
        n = c->taken + 1;
        c->view.finished = false;
    }
    for (; c->taken < n; c->taken++)
        if (!serve_choice_take(c, c->view.tokens[c->taken].t.id))
            return false;
    return true;
}

void serve_choice_forget(struct buf *b, size_t n)
{
    if (!n)
        return;
    b->n -= n;
    memmove(b->p, b->p + n, b->n);
}

size_t serve_choice_ready(const struct serve_choice *c)
{
    size_t n = c->raw.n, held = stops_held(&c->stops);
    if (c->view.finished)
        return n;
    n = text_complete(c->raw.p, n > held ? n - held : 0);
    return n > c->shown ? n : c->shown;
}

size_t serve_choice_tokens(const struct serve_choice *c)
{
    return c->taken + (c->ask->echo ? c->prompt->n : 0);
}

size_t serve_choice_from(const struct serve_choice *c)
{
    size_t prompt = c->ask->echo ? c->prompt->n : 0;
    return c->told > prompt ? c->told - prompt : 0;
}

void serve_choice_end(struct serve_choice *c)
{
    text_drop(c->text);
    c->text = NULL;
    buf_free(&c->raw);
    buf_free(&c->part);
    buf_free(&c->counted);
}
