#include "router/private.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "kernels/sys/text.h"
#include "model/text/tokenizer.h"
#include "model/text/unicode.h"

enum { LONGEST = 255, MOST = 4096, LINE = 2048 };

/* An element of a pattern: a byte, or one of these classes. */
enum { DIGIT = 256, WORD, BLANK };

/* Flags of an element, and their places in `at` of the filter. */
enum { AT_FIRST, AT_FOUND, AT_HALF, FLAGS };
enum { FIRST = 1 << AT_FIRST, FOUND = 1 << AT_FOUND, HALF = 1 << AT_HALF };

/* All patterns one after another, while they are collected. */
struct list {
    uint16_t what[MOST];
    unsigned char flags[MOST];
    size_t n;
};

struct private_filter {
    const struct tokenizer *tok;
    size_t words;        /* words of 64 bits, with one bit for each element of all patterns */
    uint64_t *masks;     /* [256][words]: the elements that match this byte */
    uint64_t *at[FLAGS]; /* [words] each: the elements with this flag; in the memory of masks */
};

static const char mark[] = "\xef\xbb\xbf";

static bool is_blank(unsigned c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* True when byte c matches the element. */
static bool matches(unsigned what, unsigned c)
{
    bool digit = c >= '0' && c <= '9';
    bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    return what == DIGIT   ? digit
           : what == WORD  ? digit || letter || c == '_' || c >= 0x80
           : what == BLANK ? c == ' ' || c == '\t'
                           : what == c;
}

/* Add one pattern. Returns NULL, or what is wrong with it. */
static const char *private_add(struct list *l, const char *p, size_t n)
{
    size_t begin = l->n;
    for (size_t i = 0; i < n; i++) {
        unsigned what = (unsigned char)p[i];
        if (what == '\\') {
            unsigned char c = ++i < n ? (unsigned char)p[i] : 0;
            what = c == 'd' ? DIGIT : c == 'w' ? WORD : c == 's' ? BLANK : c == '\\' ? c : 0;
            if (!what)
                return "a backslash before d, w, s or a backslash";
        }
        if (l->n - begin == LONGEST)
            return "at most 255 bytes";
        if (l->n == MOST)
            return "at most 4,096 bytes of patterns, composed ones included";
        l->flags[l->n] = l->n == begin ? FIRST : 0;
        l->what[l->n++] = (uint16_t)what;
    }
    size_t length = l->n - begin;
    for (size_t i = (length + 1) / 2; i <= length; i++)
        l->flags[begin + i - 1] |= HALF;
    l->flags[l->n - 1] |= FOUND;
    return NULL;
}

/* Add text as it is and, if that differs, composed. */
static int add_both(struct list *l, const char *from, const char *p, size_t n, struct err *err)
{
    char *composed;
    size_t nfc;
    if (!text_valid(p, n))
        return err_set(err, ERR_FORMAT, "%s: expected UTF-8 text, found other bytes", from);
    const char *wrong = private_add(l, p, n);
    if (wrong)
        return err_set(err, ERR_FORMAT, "%s: expected %s", from, wrong);
    int rc = unicode_nfc(&composed, &nfc, p, n, err);
    if (rc != OK)
        return rc;
    if (nfc != n || memcmp(p, composed, n) != 0)
        wrong = private_add(l, composed, nfc);
    free(composed);
    return wrong ? err_set(err, ERR_FORMAT, "%s: expected %s", from, wrong) : OK;
}

/* Add a line without blanks around it, unless it is blank or a comment. A mark that editors put
 * before a text would make it a pattern that nothing matches, or hide that it is a comment. */
static int add_line(struct list *l, const char *from, const char *p, size_t n, struct err *err)
{
    if (n >= 3 && !strncmp(p, mark, 3))
        return err_set(err, ERR_FORMAT, "%s: expected a pattern, found a byte order mark", from);
    if (memchr(p, '\r', n))
        return err_set(err, ERR_FORMAT, "%s: expected one line, found a carriage return", from);
    return n && *p != '#' ? add_both(l, from, p, n, err) : OK;
}

/* Add the patterns of an open file, which may begin with a byte order mark, or of a text (path is
 * NULL), and close it. */
static int add_lines(struct list *l, FILE *f, const char *path, struct err *err)
{
    bool marked = path != NULL;
    char line[LINE], from[256];
    path = path ? path : "patterns";
    if (!f)
        return err_set(err, ERR_IO, "%s: %s", path, strerror(errno));
    int rc = OK;
    size_t before = l->n;
    for (size_t number = 1; rc == OK && fgets(line, sizeof(line), f); number++) {
        size_t n = strlen(line), begin = marked && number == 1 && !strncmp(line, mark, 3) ? 3 : 0;
        snprintf(from, sizeof(from), "%s: line %zu", path, number);
        if (!n || (line[n - 1] != '\n' && !feof(f)))
            rc = err_set(err, ERR_FORMAT, "%s: expected at most 255 bytes of text", from);
        while (n > begin && is_blank((unsigned char)line[n - 1]))
            n--;
        while (begin < n && is_blank((unsigned char)line[begin]))
            begin++;
        if (rc == OK)
            rc = add_line(l, from, line + begin, n - begin, err);
    }
    if (rc == OK && ferror(f))
        rc = err_set(err, ERR_IO, "%s: %s", path, strerror(errno));
    fclose(f);
    if (rc == OK && l->n == before)
        rc = err_set(err, ERR_FORMAT, "%s: expected patterns, found none", path);
    return rc;
}

/* Build the bit masks from the list. */
static int private_build(struct private_filter *p, const struct list *l, struct err *err)
{
    p->words = (l->n + 63) / 64;
    p->masks = calloc((256 + FLAGS) * p->words, sizeof(*p->masks));
    if (!p->masks)
        return err_set(err, ERR_NOMEM, "private: out of memory");
    for (size_t f = 0; f < FLAGS; f++)
        p->at[f] = p->masks + (256 + f) * p->words;
    for (size_t i = 0; i < l->n; i++) {
        uint64_t bit = UINT64_C(1) << i % 64;
        for (unsigned c = 0; c < 256; c++)
            if (matches(l->what[i], c))
                p->masks[c * p->words + i / 64] |= bit;
        for (unsigned f = 0; f < FLAGS; f++)
            if (l->flags[i] >> f & 1)
                p->at[f][i / 64] |= bit;
    }
    return OK;
}

int private_open(struct private_filter **out, const char *file, const char *patterns,
                 const struct tokenizer *tok, struct err *err)
{
    *out = NULL;
    size_t size = patterns ? strlen(patterns) : 0;
    if (!file && !size)
        return OK;
    struct private_filter *p = calloc(1, sizeof(*p));
    struct list *l = calloc(1, sizeof(*l));
    int rc = p && l ? OK : err_set(err, ERR_NOMEM, "private: out of memory");
    if (rc == OK)
        p->tok = tok;
    if (rc == OK && file)
        rc = add_lines(l, fopen(file, "rb"), file, err);
    if (rc == OK && size) /* it is only read */
        rc = add_lines(l, fmemopen((char *)(size_t)patterns, size, "r"), NULL, err);
    if (rc == OK)
        rc = private_build(p, l, err);
    free(l);
    if (rc != OK) {
        private_close(p);
        return rc;
    }
    *out = p;
    return OK;
}

void private_close(struct private_filter *p)
{
    if (!p)
        return;
    free(p->masks);
    free(p);
}

/* Advance by one byte. True if the end of the text now matches a pattern. */
static bool private_step(const struct private_filter *p, uint64_t *now, unsigned char c)
{
    const uint64_t *mask = p->masks + c * p->words;
    uint64_t carry = 0, found = 0;
    for (size_t w = 0; w < p->words; w++) {
        uint64_t was = now[w];
        now[w] = (was << 1 | carry | p->at[AT_FIRST][w]) & mask[w];
        carry = was >> 63;
        found |= now[w] & p->at[AT_FOUND][w];
    }
    return found;
}

/* Read the bytes of a token, until something private is found. */
static void private_read(const struct private_filter *p, struct private_text *t, uint32_t id)
{
    size_t n;
    const char *bytes = tokenizer_bytes(p->tok, id, &n);
    for (size_t i = 0; i < n && !t->found; i++)
        t->found = private_step(p, t->now, (unsigned char)bytes[i]);
}

/* Make room for n ids. False: out of memory. */
static bool private_room(const struct private_filter *p, struct private_text *t, size_t n)
{
    size_t bytes, cap = n < SIZE_MAX / 8 ? 2 * n : n;
    if (!t->now)
        t->now = calloc(p->words, sizeof(*t->now));
    if (n <= t->cap || !t->now)
        return t->now != NULL;
    uint32_t *more = size_mul(&bytes, cap, sizeof(*more)) ? realloc(t->ids, bytes) : NULL;
    if (!more)
        return false;
    t->ids = more;
    t->cap = cap;
    return true;
}

bool private_holds(const struct private_filter *p, struct private_text *t, const uint32_t *ids,
                   size_t n)
{
    if (!p)
        return false;
    if (!private_room(p, t, n))
        return true;
    if (n < t->n || (t->n && memcmp(ids, t->ids, t->n * sizeof(*ids)) != 0)) { /* another text */
        memset(t->now, 0, p->words * sizeof(*t->now));
        t->n = 0;
        t->found = false;
    }
    for (; t->n < n; t->n++) {
        private_read(p, t, ids[t->n]);
        t->ids[t->n] = ids[t->n];
    }
    bool half = false;
    for (size_t w = 0; w < p->words && !half; w++)
        half = (t->now[w] & p->at[AT_HALF][w]) != 0;
    return t->found || half;
}

void private_text_end(struct private_text *t)
{
    free(t->ids);
    free(t->now);
    *t = (struct private_text){ .n = 0 };
}
