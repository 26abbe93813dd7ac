#include "tools/run/token_view.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernels/sys/text.h"
#include "router/decode/decode.h"

enum { HELD = sizeof(((struct token_view *)0)->held) / sizeof(struct token_view_byte) };

enum token_view_style token_view_style(FILE *f)
{
    const char *none = getenv("NO_COLOR"), *term = getenv("TERM");
    if (!isatty(fileno(f)) || (none && *none) || !term || !*term || strcmp(term, "dumb") == 0)
        return TOKEN_VIEW_MARKS;
    return TOKEN_VIEW_COLOUR;
}

void token_view_begin(struct token_view *s, FILE *to, enum token_view_style style,
                      const char *const *stops)
{
    memset(s, 0, sizeof(*s));
    s->to = to;
    s->style = style;
    stops_begin(&s->stops, stops, NULL);
}

/* Close the open mark and open one for this token, unless the byte continues the open one. The
 * small model's tokens have no mark. */
static void token_view_mark(struct token_view *s, int source, size_t token)
{
    static const char *const colours[] = { "", "\033[4;36m", "\033[7;33m" };
    if (source == s->open_source && (source == MIZZLE_EDGE || token == s->open_token))
        return;
    if (s->style == TOKEN_VIEW_COLOUR) {
        if (s->open_source != MIZZLE_EDGE)
            fputs("\033[0m", s->to);
        fputs(colours[source], s->to);
    } else if (s->style == TOKEN_VIEW_MARKS) {
        if (s->open_source != MIZZLE_EDGE)
            fputc(']', s->to);
        if (source != MIZZLE_EDGE)
            fprintf(s->to, "[%s:", source_name((enum source)source));
    }
    s->open_source = source;
    s->open_token = token;
}

/* Show all but the last `keep` bytes that are held. A character that may still be completed is kept
 * as well, unless this is the end. */
static void token_view_flush(struct token_view *s, size_t keep, bool end)
{
    char text[HELD];
    size_t at = 0;
    for (size_t i = 0; i < s->n; i++)
        text[i] = s->held[i].c;
    size_t whole = end ? s->n : text_complete(text, s->n);
    while (at + keep < s->n && at < whole) {
        uint32_t c;
        bool ok;
        size_t len = text_decode(&c, text + at, s->n - at, &ok);
        token_view_mark(s, s->held[at].source, s->held[at].token);
        if (!ok)
            fputs("\xef\xbf\xbd", s->to);
        else if (c != '\n' && c != '\t' && !text_harmless(c))
            fprintf(s->to, c < 0x100 ? "\\x%02x" : "\\u%04x", (unsigned)c);
        else
            fwrite(text + at, 1, len, s->to);
        s->line_open = c != '\n';
        at += len;
    }
    memmove(s->held, s->held + at, (s->n - at) * sizeof(s->held[0]));
    s->n -= at;
}

bool token_view_token(struct token_view *s, const struct mizzle_token *t)
{
    size_t at, length;
    for (size_t i = 0; i < t->piece_size && !s->stops.found; i++) {
        s->held[s->n++] = (struct token_view_byte){ t->piece[i], (unsigned char)t->source, t->pos };
        if (stops_feed(&s->stops, t->piece + i, 1, &at, &length))
            s->n -= length < s->n ? length : s->n;
        else if (s->n == HELD)
            token_view_flush(s, stops_held(&s->stops), false);
    }
    token_view_flush(s, stops_held(&s->stops), false);
    token_view_mark(s, MIZZLE_EDGE, 0);
    return fflush(s->to) == 0;
}

void token_view_end(struct token_view *s)
{
    token_view_flush(s, 0, true);
    token_view_mark(s, MIZZLE_EDGE, 0);
    if (s->line_open)
        fputc('\n', s->to);
    s->line_open = false;
    fflush(s->to);
}
