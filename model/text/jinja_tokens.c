/* jinja_tokens.c - a template as tokens. */
#include <string.h>

#include "model/text/jinja_internal.h"

static bool jinja_tokens_blank(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static bool jinja_tokens_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool jinja_tokens_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

/* The tokens lie one after the other in memory, because nothing else is taken while they are read.
 * Taking 8 bytes at a time keeps them aligned. */
static void jinja_tokens_add(struct jinja *j, enum jinja_type type, const char *p, size_t n)
{
    struct jinja_token *t = jinja_take(j, sizeof(*t));
    if (!t)
        return;
    *t = (struct jinja_token){ { p, n }, type };
    if (!j->ntokens++)
        j->tokens = t;
}

/* Add the token at p, in a tag, and return its length. */
static size_t jinja_tokens_one(struct jinja *j, const char *p, const char *end)
{
    static const char two[] = "==!=<=>=//**";
    size_t n = 1, left = (size_t)(end - p);
    j->where = p;
    if (*p == '\'' || *p == '"') {
        while (n < left && p[n] != *p)
            n += p[n] == '\\' ? 2 : 1;
        if (n >= left) {
            jinja_fail(j, "a string has no end");
            return left;
        }
        jinja_tokens_add(j, JINJA_STRING, p + 1, n - 1);
        return n + 1;
    }
    if (jinja_tokens_digit(*p)) {
        while (n < left && jinja_tokens_digit(p[n]))
            n++;
        jinja_tokens_add(j, JINJA_INTEGER, p, n);
    } else if (jinja_tokens_letter(*p)) {
        while (n < left && (jinja_tokens_letter(p[n]) || jinja_tokens_digit(p[n])))
            n++;
        jinja_tokens_add(j, JINJA_NAME, p, n);
    } else {
        for (size_t i = 0; left > 1 && i < sizeof(two) - 1; i += 2)
            if (p[0] == two[i] && p[1] == two[i + 1])
                n = 2;
        jinja_tokens_add(j, JINJA_SIGN, p, n);
    }
    return n;
}

/* How the text behind a tag begins. */
enum jinja_trim { KEEP_ALL, TRIM_NEWLINE, TRIM_ALL };

/* Add the tokens of a tag whose inside begins at p; return what follows it. */
static const char *jinja_tokens_tag(struct jinja *j, const char *p, const char *end, char kind,
                                    enum jinja_trim *trim)
{
    char close = kind == '{' ? '}' : '%';
    jinja_tokens_add(j, kind == '{' ? JINJA_PRINT : JINJA_TAG, p, 0);
    while (!j->failed) {
        while (p < end && jinja_tokens_blank(*p))
            p++;
        size_t sign = p < end && (*p == '-' || *p == '+');
        if ((size_t)(end - p) < 2 + sign)
            jinja_fail(j, "a tag has no end");
        else if (p[sign] == close && p[sign + 1] == '}') {
            *trim = sign && *p == '-' ? TRIM_ALL : sign || kind == '{' ? KEEP_ALL : TRIM_NEWLINE;
            jinja_tokens_add(j, JINJA_CLOSE, p, 0);
            return p + sign + 2;
        } else {
            p += jinja_tokens_one(j, p, end);
        }
    }
    return end;
}

/* Return where a comment ends whose inside begins at p. */
static const char *jinja_tokens_comment(struct jinja *j, const char *p, const char *end,
                                        enum jinja_trim *trim)
{
    for (; end - p >= 2; p++)
        if (p[0] == '#' && p[1] == '}') {
            *trim = p[-1] == '-' ? TRIM_ALL : TRIM_NEWLINE;
            return p + 2;
        }
    jinja_fail(j, "a comment has no end");
    return end;
}

/* Add the text from p to q, which a tag follows unless q is the end. */
static void jinja_tokens_text(struct jinja *j, const char *p, const char *q, const char *end,
                              enum jinja_trim trim)
{
    bool sign = end - q > 2;
    if (trim == TRIM_NEWLINE && p < q && *p == '\n')
        p++;
    while (trim == TRIM_ALL && p < q && jinja_tokens_blank(*p))
        p++;
    if (q < end && sign && q[2] == '-') {
        while (q > p && jinja_tokens_blank(q[-1]))
            q--;
    } else if (q < end && q[1] != '{' && !(sign && q[2] == '+')) {
        const char *line = q;
        while (line > p && (line[-1] == ' ' || line[-1] == '\t'))
            line--;
        if (line == j->template || line[-1] == '\n')
            q = line;
    }
    if (q > p)
        jinja_tokens_add(j, JINJA_TEXT, p, (size_t)(q - p));
}

/* Write every end of a line as Jinja reads it: as a newline. */
static void jinja_tokens_newlines(struct jinja *j)
{
    const char *t = j->template;
    char *copy = memchr(t, '\r', j->length) ? jinja_take(j, j->length) : NULL;
    size_t n = 0;
    if (!copy)
        return;
    for (size_t i = 0; i < j->length; i++)
        if (t[i] != '\r')
            copy[n++] = t[i];
        else if (i + 1 == j->length || t[i + 1] != '\n')
            copy[n++] = '\n';
    j->template = j->where = copy;
    j->length = n;
}

void jinja_tokens(struct jinja *j)
{
    jinja_tokens_newlines(j);
    const char *p = j->template, *end = p + j->length;
    enum jinja_trim trim = KEEP_ALL;
    if (end > p && end[-1] == '\n')
        end--;
    while (p < end && !j->failed) {
        const char *q = p;
        while (q < end && !(q[0] == '{' && end - q > 1 && strchr("{%#", q[1]) && q[1]))
            q++;
        jinja_tokens_text(j, p, q, end, trim);
        if (q == end)
            break;
        j->where = q;
        char kind = q[1];
        p = q + 2;
        if (p < end && (*p == '-' || *p == '+'))
            p++;
        p = kind == '#' ? jinja_tokens_comment(j, p, end, &trim)
                        : jinja_tokens_tag(j, p, end, kind, &trim);
    }
    jinja_tokens_add(j, JINJA_END, end, 0);
}
