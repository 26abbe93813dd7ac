#include "net/http/sse.h"

#include <string.h>

#include "kernels/sys/base.h"

/* Say why `extra` bytes could not be added to b: its limit, or memory. */
static int sse_full(const struct buf *b, size_t extra, struct err *err)
{
    if (b->max && extra > b->max - b->n)
        return err_set(err, ERR_NET, "an event of the reply is longer than %zu bytes", b->max);
    return err_set(err, ERR_NOMEM, "out of memory");
}

/* Return the value of a data line and its length in *n, or NULL for another field or a comment. */
static const char *value_of(const struct buf *line, size_t *n)
{
    size_t skip = 4;
    if (line->n < 4 || memcmp(line->p, "data", 4) != 0 || (line->n > 4 && line->p[4] != ':'))
        return NULL;
    if (line->n > 4)
        skip = line->n > 5 && line->p[5] == ' ' ? 6 : 5;
    *n = line->n - skip;
    return line->p + skip;
}

/* Handle the line that is complete in s->line; an empty one ends the event. */
static int end_line(struct sse *s, struct err *err)
{
    int rc = OK;
    size_t n = 0;
    if (!s->line.n) {
        if (s->some)
            rc = s->event(s->arg, s->data.p ? s->data.p : "", s->data.n, err);
        s->data.n = 0;
        s->some = false;
        return rc;
    }
    const char *value = value_of(&s->line, &n);
    if (value && s->some && !buf_add(&s->data, "\n", 1))
        rc = sse_full(&s->data, 1, err);
    if (value && rc == OK && !buf_add(&s->data, value, n))
        rc = sse_full(&s->data, n, err);
    s->some = s->some || value;
    s->line.n = 0;
    return rc;
}

int sse_feed(struct sse *s, const char *p, size_t n, struct err *err)
{
    for (size_t i = 0; i < n;) {
        if (s->cr && p[i] == '\n') { /* the second half of CR LF */
            s->cr = false;
            i++;
            continue;
        }
        s->cr = false;
        size_t end = i;
        while (end < n && p[end] != '\n' && p[end] != '\r')
            end++;
        if (!buf_add(&s->line, p + i, end - i))
            return sse_full(&s->line, end - i, err);
        i = end;
        if (end == n)
            break;
        s->cr = p[i++] == '\r';
        int rc = end_line(s, err);
        if (rc)
            return rc;
    }
    return OK;
}

void sse_free(struct sse *s)
{
    buf_free(&s->line);
    buf_free(&s->data);
}
