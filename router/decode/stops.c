#include "router/decode/stops.h"

#include <string.h>

#include "kernels/sys/base.h"
#include "kernels/sys/buf.h"
#include "model/text/tokenizer.h"

int stops_begin(struct stops *s, const char *const *list, struct err *err)
{
    s->list = list;
    s->n = 0;
    s->found = false;
    for (size_t i = 0; list && list[i]; i++)
        if (!*list[i] || strlen(list[i]) > STOPS_MAX)
            return err_set(err, ERR_ARG, "stop string: expected 1 to %d bytes, found %zu",
                           STOPS_MAX, strlen(list[i]));
    return OK;
}

/* Return the length of the longest stop string that the text ends with, or 0. */
static size_t stops_complete(const struct stops *s)
{
    size_t longest = 0;
    for (size_t i = 0; s->list[i]; i++) {
        size_t n = strlen(s->list[i]);
        if (n > longest && n <= s->n && memcmp(s->tail + s->n - n, s->list[i], n) == 0)
            longest = n;
    }
    return longest;
}

bool stops_feed(struct stops *s, const char *text, size_t n, size_t *at, size_t *length)
{
    for (size_t i = 0; s->list && i < n; i++) {
        if (s->n == sizeof(s->tail)) {
            s->n = STOPS_MAX;
            memmove(s->tail, s->tail + sizeof(s->tail) - STOPS_MAX, STOPS_MAX);
        }
        s->tail[s->n++] = text[i];
        *length = stops_complete(s);
        if (*length) {
            *at = i + 1;
            s->found = true;
            return true;
        }
    }
    return false;
}

bool stops_token(struct stops *s, const struct tokenizer *tok, uint32_t id)
{
    size_t n, at, length;
    const char *bytes = tokenizer_bytes(tok, id, &n);
    return bytes && !tokenizer_is_control(tok, id) && stops_feed(s, bytes, n, &at, &length);
}

bool stops_append(struct stops *s, struct buf *to, const char *text, size_t n)
{
    size_t at, length, before = to->n;
    if (s->found)
        return true;
    if (!buf_add(to, text, n))
        return false;
    if (stops_feed(s, text, n, &at, &length))
        to->n = before + at - length;
    return true;
}

size_t stops_held(const struct stops *s)
{
    size_t held = 0;
    for (size_t i = 0; s->list && s->list[i] && !s->found; i++) {
        size_t n = strlen(s->list[i]) - 1;
        for (n = n < s->n ? n : s->n; n > held; n--)
            if (memcmp(s->tail + s->n - n, s->list[i], n) == 0)
                held = n;
    }
    return held;
}
