#include "tools/lab/tasks/reading.h"

#include <ctype.h>
#include <string.h>

#include "kernels/sys/text.h"
#include "model/text/unicode.h"
#include "tools/lab/tasks/extract.h"

/* How far behind "the answer" its verb may be, in bytes. */
enum { VERB = 60 };

bool reading_letter(const struct reading *r, size_t i)
{
    uint32_t c;
    if (i >= r->n)
        return false;
    if ((unsigned char)r->s[i] < 0x80)
        return isalnum((unsigned char)r->s[i]);
    while (i && ((unsigned char)r->s[i] & 0xc0) == 0x80)
        i--;
    text_decode(&c, r->s + i, r->n - i, NULL);
    return unicode_class(c) == UNICODE_LETTER || unicode_class(c) == UNICODE_NUMBER;
}

bool reading_begins(const struct reading *r, size_t i)
{
    return reading_letter(r, i) && !(i && reading_letter(r, i - 1));
}

size_t reading_word_end(const struct reading *r, size_t i)
{
    while (reading_letter(r, i))
        i++;
    return i;
}

size_t reading_next(const struct reading *r, size_t i)
{
    while (i < r->n && !reading_begins(r, i))
        i++;
    return i;
}

bool reading_is(const struct reading *r, size_t i, const char *list)
{
    char word[20] = " ";
    size_t n = 0;
    for (; n + 3 < sizeof(word) && reading_letter(r, i + n); n++)
        word[n + 1] = (char)tolower((unsigned char)r->s[i + n]);
    if (!n || reading_letter(r, i + n))
        return false;
    word[n + 1] = ' ';
    return strstr(list, word);
}

bool reading_stops(const struct reading *r, size_t i)
{
    return i >= r->n || r->s[i] == '\n' ||
           (strchr(".!?", r->s[i]) && (i + 1 == r->n || strchr(" \n\\\"'*)", r->s[i + 1])));
}

size_t reading_verb(const struct reading *r, size_t i)
{
    size_t limit = i + VERB < r->n ? i + VERB : r->n;
    bool bare = true; /* no word so far; "option analysis:" announces none */
    bool answer = tolower((unsigned char)r->s[i - 1]) == 'r';
    for (; i < limit; i++) {
        if (reading_begins(r, i)) {
            size_t end = reading_word_end(r, i);
            if (end == i + 1 && !strchr("aI", r->s[i]) && strchr(" *\"", r->s[i - 1]))
                return 0; /* a label */
            if (reading_is(r, i, " is was be are were seems "))
                return end;
            i = end - 1;
            bare = false;
        } else if ((strchr(":=", r->s[i]) && (bare || answer)) ||
                   (bare && strchr("\n-", r->s[i]))) {
            return i + 1;
        } else if (strchr(".,;!?\n(", r->s[i])) {
            return 0;
        }
    }
    return 0;
}

/* What a text that runs on to another question has at the beginning of a line, and anywhere. */
static const char *const lines[] = { "Question:", "Question ", "Q:",    "Choices:",
                                     "Problem:",  "Human:",    "User:", "### Quest" };
static const char *const anywhere[] = { "<|im_end|>", "<|im_start|>", "<|endoftext|>", "</s>" };

/* Return how long the mark at p is that ends an answer, or 0. */
static size_t segment_mark(const char *p, bool line)
{
    for (size_t i = 0; i < sizeof(anywhere) / sizeof(anywhere[0]); i++)
        if (!strncmp(p, anywhere[i], strlen(anywhere[i])))
            return strlen(anywhere[i]);
    for (size_t i = 0; line && i < sizeof(lines) / sizeof(lines[0]); i++)
        if (!strncmp(p, lines[i], strlen(lines[i])))
            return strlen(lines[i]);
    return 0;
}

const char *extract_segment(size_t *n, const char *text)
{
    bool line = true, blank = true, asked = false;
    const char *thought = strstr(text, "</think>");
    const char *p = text = thought ? thought + strlen("</think>") : text;
    for (size_t mark; *p; p++) {
        mark = segment_mark(p, line);
        if (mark && !blank && !(asked && !strncmp(p, "Choices:", 8)))
            break;
        asked = asked || (mark && blank); /* the text begins with the question that was asked */
        blank = blank && (mark || strchr(" \t\r\n*#", *p));
        p += mark ? mark - 1 : 0;
        line = *p == '\n' || (line && strchr(" \t\r*#", *p));
    }
    *n = (size_t)(p - text);
    return text;
}

/* Every step-th code point from `first` to `last` has the lower case that is `delta` behind it.
 * Source: the Unicode Standard, simple case mappings of what texts in Latin, Greek, Cyrillic and
 * Armenian letters have; other alphabets with two cases are compared as they are. */
static const struct {
    uint32_t first, last, step;
    int32_t delta;
} lower[] = {
    { 0xc0, 0xd6, 1, 32 },        { 0xd8, 0xde, 1, 32 },     { 0x100, 0x12e, 2, 1 },
    { 0x132, 0x136, 2, 1 },       { 0x139, 0x147, 2, 1 },    { 0x14a, 0x176, 2, 1 },
    { 0x178, 0x178, 1, -121 },    { 0x179, 0x17d, 2, 1 },    { 0x370, 0x372, 2, 1 },
    { 0x376, 0x376, 1, 1 },       { 0x37f, 0x37f, 1, 116 },  { 0x386, 0x386, 1, 38 },
    { 0x388, 0x38a, 1, 37 },      { 0x38c, 0x38c, 1, 64 },   { 0x38e, 0x38f, 1, 63 },
    { 0x391, 0x3a1, 1, 32 },      { 0x3a3, 0x3ab, 1, 32 },   { 0x3cf, 0x3cf, 1, 8 },
    { 0x3d8, 0x3ee, 2, 1 },       { 0x3f4, 0x3f4, 1, -60 },  { 0x3f7, 0x3f7, 1, 1 },
    { 0x3f9, 0x3f9, 1, -7 },      { 0x3fa, 0x3fa, 1, 1 },    { 0x3fd, 0x3ff, 1, -130 },
    { 0x400, 0x40f, 1, 80 },      { 0x410, 0x42f, 1, 32 },   { 0x460, 0x480, 2, 1 },
    { 0x48a, 0x4be, 2, 1 },       { 0x4c0, 0x4c0, 1, 15 },   { 0x4c1, 0x4cd, 2, 1 },
    { 0x4d0, 0x52e, 2, 1 },       { 0x531, 0x556, 1, 48 },   { 0x1e00, 0x1e94, 2, 1 },
    { 0x1e9e, 0x1e9e, 1, -7615 }, { 0x1ea0, 0x1efe, 2, 1 },  { 0x2160, 0x216f, 1, 16 },
    { 0x24b6, 0x24cf, 1, 26 },    { 0xff21, 0xff3a, 1, 32 },
};

uint32_t extract_lower(uint32_t c)
{
    if (c < 0x80)
        return c >= 'A' && c <= 'Z' ? c + 32 : c;
    for (size_t i = 0; i < sizeof(lower) / sizeof(lower[0]) && c >= lower[i].first; i++)
        if (c <= lower[i].last)
            return (c - lower[i].first) % lower[i].step ? c : c + (uint32_t)lower[i].delta;
    return c;
}
