#include "tools/lab/tasks/reading.h"

#include <ctype.h>
#include <string.h>

#include "kernels/sys/text.h"
#include "model/text/unicode.h"

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
