/* tokenizer_json.c - the two large values of a folder's JSON files, pieces and merges, without a
 * value in memory for each. Strings stay where they are in the file's text; what is escaped in them
 * is written in place, for it only becomes shorter. UTF-8 is not checked here, because pieces are
 * decoded letter by letter and merges must name pieces. */
#include <stdlib.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "kernels/sys/text.h"
#include "model/text/tokenizer_internal.h"

/* A text that is read; rc is not OK once it cannot be. */
struct scan {
    struct json_pieces *to;
    const char *path, *text;
    char *p, *end; /* *end is 0 */
    int rc;
    struct err *err;
};

static int scan_line(const struct scan *s)
{
    int line = 1;
    for (const char *p = s->text; p < s->p && p < s->end; p++)
        line += *p == '\n';
    return line;
}

static void scan_fail(struct scan *s, const char *why)
{
    if (s->rc == OK)
        s->rc = err_set(s->err, ERR_FORMAT, "%s: line %d: expected a JSON object: %s", s->path,
                        scan_line(s), why);
}

static void scan_blanks(struct scan *s)
{
    while (*s->p == ' ' || *s->p == '\n' || *s->p == '\t' || *s->p == '\r')
        s->p++;
}

/* Take a sign, with the blanks around it, if it is next. */
static bool scan_sign(struct scan *s, char sign)
{
    scan_blanks(s);
    if (s->rc != OK || *s->p != sign)
        return false;
    s->p++;
    scan_blanks(s);
    return true;
}

/* Write what the escape at s->p stands for to `to`, and return its length. */
static size_t scan_escape(struct scan *s, char *to)
{
    bool unicode = s->p[1] == 'u';
    size_t used, n = text_unescape(to, s->p + 1, (size_t)(s->end - s->p - 1), &used);
    if (!n)
        scan_fail(s, unicode ? "invalid Unicode escape" : "invalid escape");
    s->p += n ? 1 + used : 0;
    return n;
}

/* Read a string in place. */
static struct str scan_string(struct scan *s)
{
    char *begin, *to;
    if (s->rc != OK || *s->p != '"') {
        scan_fail(s, "no string where one belongs");
        return (struct str){ "", 0 };
    }
    begin = ++s->p;
    while ((unsigned char)*s->p >= 0x20 && *s->p != '"' && *s->p != '\\')
        s->p++;
    for (to = s->p; s->rc == OK && *s->p != '"';) {
        if ((unsigned char)*s->p < 0x20)
            scan_fail(s, "a string has a control character or no end");
        else if (*s->p == '\\')
            to += scan_escape(s, to);
        else
            *to++ = *s->p++;
    }
    s->p += s->rc == OK;
    return (struct str){ begin, (size_t)(to - begin) };
}

int tokenizer_json_room(struct json_pieces *o, size_t count, struct err *err)
{
    size_t room = o->room ? o->room : count;
    while (room < count)
        room *= 2;
    if (room == o->room)
        return OK;
    struct str *pieces = realloc(o->pieces, room * sizeof(*pieces));
    o->pieces = pieces ? pieces : o->pieces;
    int *types = pieces ? realloc(o->types, room * sizeof(*types)) : NULL;
    if (!types)
        return err_set(err, ERR_NOMEM, "tokenizer: out of memory");
    o->types = types;
    memset(pieces + o->room, 0, (room - o->room) * sizeof(*pieces));
    memset(types + o->room, 0, (room - o->room) * sizeof(*types));
    o->room = room;
    return OK;
}

/* Read "piece": id. */
static void scan_piece(struct scan *s)
{
    struct str piece = scan_string(s);
    size_t id = 0, digits = 0;
    if (!scan_sign(s, ':'))
        scan_fail(s, "no colon where one belongs");
    bool zero = *s->p == '0';
    for (; *s->p >= '0' && *s->p <= '9' && id < MAX_PIECES; digits++)
        id = id * 10 + (size_t)(*s->p++ - '0');
    scan_blanks(s);
    if (s->rc == OK &&
        (!digits || (zero && digits > 1) || id >= MAX_PIECES || (*s->p != ',' && *s->p != '}')))
        s->rc = err_set(s->err, ERR_FORMAT, "%s: line %d: vocabulary: \"%.*s\": expected an id",
                        s->path, scan_line(s), (int)(piece.n < 40 ? piece.n : 40), piece.p);
    if (s->rc == OK)
        s->rc = tokenizer_json_room(s->to, id + 1, s->err);
    if (s->rc != OK)
        return;
    if (s->to->types[id])
        s->rc = err_set(s->err, ERR_FORMAT, "%s: vocabulary: id %zu is there twice", s->path, id);
    s->to->pieces[id] = piece;
    s->to->types[id] = PIECE_NORMAL;
    s->to->top = id >= s->to->top ? id + 1 : s->to->top;
    s->to->n++;
}

/* Read the object of all pieces. */
static void scan_pieces(struct scan *s)
{
    /* About the bytes of a file for each piece: in tokenizer.json, merges take half of them. */
    size_t share = s->p == s->text ? 16 : 40;
    if (s->to->pieces)
        scan_fail(s, "a second vocabulary");
    if (!scan_sign(s, '{'))
        scan_fail(s, "none");
    if (s->rc == OK)
        s->rc = tokenizer_json_room(s->to, (size_t)(s->end - s->text) / share + 512, s->err);
    while (s->rc == OK && *s->p != '}') {
        scan_piece(s);
        if (s->rc == OK && *s->p != '}' && !(scan_sign(s, ',') && *s->p == '"'))
            scan_fail(s, "no comma or piece where one belongs");
    }
    s->p += s->rc == OK;
}

/* Read "a b", or ["a", "b"], which is written as the former in its place. */
static struct str scan_merge(struct scan *s)
{
    bool pair = scan_sign(s, '['), fine = *s->p == '"';
    struct str a = { "", 0 }, b = a;
    if (fine)
        a = scan_string(s);
    if (pair) {
        fine = fine && scan_sign(s, ',') && *s->p == '"';
        b = fine ? scan_string(s) : b;
        fine = fine && scan_sign(s, ']');
        char *to = (char *)(uintptr_t)a.p + a.n;
        if (fine && s->rc == OK) {
            *to = ' ';
            memmove(to + 1, b.p, b.n);
            a.n += 1 + b.n;
        }
    }
    if (!fine && s->rc == OK)
        s->rc =
            err_set(s->err, ERR_FORMAT, "%s: merge %zu: expected \"a b\"", s->path, s->to->nmerges);
    return a;
}

/* Double the room for merges. */
static bool scan_more(struct scan *s, size_t *room)
{
    struct str *more =
        *room <= MAX_PIECES ? realloc(s->to->merges, 2 * *room * sizeof(*more)) : NULL;
    if (!more) {
        s->rc = *room <= MAX_PIECES ? err_set(s->err, ERR_NOMEM, "tokenizer: out of memory")
                                    : err_set(s->err, ERR_FORMAT, "%s: too many merges", s->path);
        return false;
    }
    s->to->merges = more;
    *room *= 2;
    return true;
}

/* Read the list of all merges. */
static void scan_merges(struct scan *s)
{
    struct json_pieces *o = s->to;
    size_t room = (size_t)(s->end - s->p) / 16 + 512;
    if (o->merges)
        scan_fail(s, "a second list of merges");
    else if (!(o->merges = malloc(room * sizeof(*o->merges))))
        s->rc = err_set(s->err, ERR_NOMEM, "tokenizer: out of memory");
    if (!scan_sign(s, '['))
        scan_fail(s, "no list of merges");
    while (s->rc == OK && *s->p != ']') {
        if (o->nmerges == room && !scan_more(s, &room))
            return;
        o->merges[o->nmerges] = scan_merge(s);
        o->nmerges++;
        scan_blanks(s);
        if (s->rc == OK && *s->p != ']' && !(scan_sign(s, ',') && *s->p != ']'))
            scan_fail(s, "no comma or merge where one belongs");
    }
    s->p += s->rc == OK;
}

int tokenizer_json_vocab(struct json_pieces *out, char *text, size_t n, const char *path,
                         struct err *err)
{
    struct scan s = { out, path, text, text, text + n, OK, err };
    scan_pieces(&s);
    if (s.rc == OK)
        scan_blanks(&s);
    if (s.rc == OK && s.p != s.end)
        scan_fail(&s, "something behind it");
    return s.rc;
}

/* Skip a string without changing it; false if it has no end. */
static bool scan_over(struct scan *s, struct str *out)
{
    char *begin = ++s->p;
    while (s->p < s->end && *s->p != '"')
        s->p += *s->p == '\\' && s->p + 1 < s->end ? 2 : 1;
    *out = (struct str){ begin, (size_t)(s->p - begin) };
    if (s->p >= s->end)
        return false;
    s->p++;
    scan_blanks(s);
    return true;
}

static bool scan_is(struct str s, const char *name)
{
    return s.n == strlen(name) && !memcmp(s.p, name, s.n);
}

/* Append text[n] to the rest. */
static void scan_keep(struct scan *s, struct buf *rest, const char *p, size_t n)
{
    if (s->rc == OK && !buf_add(rest, p, n))
        s->rc = err_set(s->err, ERR_NOMEM, "tokenizer: out of memory");
}

/* Read model.vocab or model.merges, which goes on at s->p, and leave 0 for it in the rest, with its
 * newlines, so that errors behind it name the right line. */
static void scan_large(struct scan *s, struct buf *rest, const char **kept, bool vocab)
{
    const char *begin = s->p;
    scan_keep(s, rest, *kept, (size_t)(begin - *kept));
    if (vocab)
        scan_pieces(s);
    else
        scan_merges(s);
    *kept = s->p;
    scan_keep(s, rest, "0", 1);
    for (const char *p = begin; (p = memchr(p, '\n', (size_t)(s->p - p))); p++)
        scan_keep(s, rest, p, 1);
}

int tokenizer_json_split(struct json_pieces *out, struct buf *rest, char *text, size_t n,
                         const char *path, struct err *err)
{
    struct scan s = { out, path, text, text, text + n, OK, err };
    size_t depth = 0;
    bool model = false;
    const char *kept = text;
    while (s.rc == OK && s.p < s.end) {
        struct str key;
        if (*s.p != '"') {
            depth += *s.p == '{' || *s.p == '[';
            depth -= (*s.p == '}' || *s.p == ']') && depth;
            s.p++;
            continue;
        }
        if (!scan_over(&s, &key))
            break; /* as is the rest, which says so */
        if (*s.p != ':')
            continue;
        s.p++;
        scan_blanks(&s);
        if (depth == 1)
            model = scan_is(key, "model");
        bool vocab = scan_is(key, "vocab") && *s.p == '{';
        if (depth == 2 && model && (vocab || (scan_is(key, "merges") && *s.p == '[')))
            scan_large(&s, rest, &kept, vocab);
    }
    scan_keep(&s, rest, kept, (size_t)(s.end - kept));
    return s.rc;
}
