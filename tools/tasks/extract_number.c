#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/tasks/extract.h"

/* Bytes of a piece of text in which a number is looked for, of what bold letters may say, of the
 * end of an unfinished text, from "answer" to its verb, and of blanks behind that. */
enum { PIECE = 240, BOLD = 40, AT_END = 12, VERB = 60, BLANKS = 8 };

/* Copy s[n] without LaTeX, and without what is before the last equals sign: of "x = \frac{70}{2}
 * \text{ eggs}", "  70/2   eggs" is left. Dollars stay. True when there was such a sign. */
static bool number_plain(char out[PIECE + 1], const char *s, size_t n)
{
    size_t m = 0;
    bool equal = false;
    for (size_t i = 0; i < n && m < PIECE; i++) {
        if (s[i] == '=') {
            m = 0;
            equal = true;
        } else if (!strncmp(s + i, "}{", 2)) { /* of \frac */
            out[m++] = '/';
            i++;
        } else if (!strncmp(s + i, "{,}", 3)) {
            out[m++] = ',';
            i += 2;
        } else if (!strncmp(s + i, "\xe2\x88\x92", 3)) { /* a minus */
            out[m++] = '-';
            i += 2;
        } else if (s[i] == '\\' && isalpha((unsigned char)s[i + 1])) {
            if (!m || out[m - 1] != '-')
                out[m++] = ' ';
            while (i + 1 < n && isalpha((unsigned char)s[i + 1]))
                i++;
        } else if (s[i] == '\\' && i + 1 < n && strchr(",;!", s[i + 1])) {
            i++;
        } else if (!strchr("\\{}*", s[i])) {
            out[m++] = s[i];
        }
    }
    out[m] = 0;
    return equal;
}

/* Return the end of the digits at s, with separators of thousands and a fraction, or s. */
static const char *number_end(const char *s)
{
    const char *end = s;
    while (isdigit((unsigned char)*end) ||
           (*end == ',' && end > s && strspn(end + 1, "0123456789") == 3))
        end++;
    if (*end == '.' && isdigit((unsigned char)end[1]))
        end += 1 + strspn(end + 1, "0123456789");
    return end;
}

/* Write digits without separators, and without zeros that say nothing. */
static void number_write(char out[EXTRACT_NUMBER], bool minus, const char *s, const char *end)
{
    size_t n = 0;
    if (memchr(s, '.', (size_t)(end - s))) {
        while (end[-1] == '0')
            end--;
        end -= end[-1] == '.';
    }
    while (s + 1 < end && *s == '0' && s[1] != '.')
        s++;
    if (minus && (s + 1 < end || *s != '0'))
        out[n++] = '-';
    if (s == end || *s == '.')
        out[n++] = '0';
    for (; s < end && n + 1 < EXTRACT_NUMBER; s++)
        if (*s != ',')
            out[n++] = *s;
    out[n] = 0;
}

/* Write the number at s and return its end; "7/2" and "3 1/2" are 3.5. */
static const char *number_read(char out[EXTRACT_NUMBER], bool minus, const char *s)
{
    const char *end = number_end(s), *next = end + strspn(end, " "), *over = s;
    number_write(out, minus, s, end);
    if (next > end && next < number_end(next) && *number_end(next) == '/')
        over = next;
    const char *line = number_end(over) + strspn(number_end(over), " ");
    const char *under = line + 1 + strspn(line + (*line != 0), " ") - !*line;
    if (*line != '/' || number_end(under) == under)
        return end;
    char part[2][EXTRACT_NUMBER];
    number_write(part[0], false, over, number_end(over));
    number_write(part[1], false, under, number_end(under));
    double value = strtod(part[0], NULL) / strtod(part[1], NULL);
    if (over > s)
        value += fabs(strtod(out, NULL));
    if (value < 1e15) { /* and no NaN */
        int n = snprintf(part[0], EXTRACT_NUMBER, "%.10f", value);
        number_write(out, minus, part[0], part[0] + n);
    }
    return number_end(under);
}

/* How much speaks for a number: letters follow, nothing, a dollar sign is before it. */
enum { NONE, LETTERS, BARE, MONEY };

/* Find the number that s[n] states: the first behind an equals sign or if nothing but signs is
 * before it, else the last sum of money, else the last. Returns how much speaks for it. */
static int number_stated(char out[EXTRACT_NUMBER], const char *s, size_t n)
{
    char plain[PIECE + 1], value[EXTRACT_NUMBER];
    int best = NONE;
    bool first = number_plain(plain, s, n);
    const char *p = plain;
    first = first || isdigit((unsigned char)p[strspn(p, " .$-([\"'`")]);
    for (bool word = false, money = false; *p && !(first && best);
         word = isalnum((unsigned char)*p++)) {
        const char *at = p;
        bool minus = *at == '-' && !word && !(at > plain && at[-1] == ')');
        at += minus;
        at += strspn(at, "$");
        if (word || number_end(at) == at)
            continue;
        money = at > plain && at[-1] == '$';
        p = number_read(value, minus, at);
        int now = isalpha((unsigned char)*p) ? LETTERS : money ? MONEY : BARE;
        if (now >= best) {
            best = now;
            memcpy(out, value, sizeof(value));
        }
        if (!*p)
            break;
    }
    return best;
}

/* True when a sentence or a line ends at s. */
static bool number_stops(const char *s, const char *end)
{
    return s >= end || *s == '\n' ||
           (strchr(".!?", *s) && (s + 1 == end || strchr(" \n\\*\"'", s[1])));
}

/* Return how many bytes are in the box that begins at s, up to its brace or the end of the text. */
static size_t number_box(const char *s, const char *end)
{
    size_t n = 0;
    for (size_t open = 1; s + n < end && n < PIECE; n++) {
        open += s[n] == '{';
        open -= s[n] == '}';
        if (!open)
            break;
    }
    return n;
}

/* Return where the answer begins behind "answer" at s: "answer is", "answer to this is", "Answer:",
 * or NULL. */
static const char *number_cue(const char *s, const char *end)
{
    static const char word[] = "answer";
    for (size_t i = 0; word[i]; i++)
        if (tolower((unsigned char)s[i]) != word[i])
            return NULL;
    end = end - s > VERB ? s + VERB : end;
    for (s += sizeof(word) - 1; s < end && (isalpha((unsigned char)*s) || strchr(" *", *s)); s++)
        if (!strncmp(s, " is", 3) && !isalpha((unsigned char)s[3]))
            return s + 3;
    return s < end && strchr(":=", *s) ? s + 1 : NULL;
}

/* Find the number of the last sentence that has one. Of a text that is cut in the middle of a later
 * sentence, nobody knows the answer unless a number is right at its end. */
static bool number_ending(char out[EXTRACT_NUMBER], const char *text, const char *end)
{
    while (end > text && strchr(" \n", end[-1]))
        end--;
    const char *from = end;
    bool whole = end > text && strchr(".!?)]*", end[-1]);
    if (end > text && strchr("=+-/({,", end[-1]))
        return false;
    while (!whole && from > text && !number_stops(from - 1, end))
        from--;
    if (!whole && from > text) {
        from = end - text > AT_END ? end - AT_END : text;
        while (from > text && !strchr(" \n", from[-1]))
            from--;
        return number_stated(out, from, (size_t)(end - from)) > LETTERS;
    }
    for (from = end; from > text; from -= from > text) {
        const char *stop = from;
        while (from > text && !number_stops(from - 1, end))
            from--;
        bool item = stop + 1 < end && *stop == '.' && from + strspn(from, " 0123456789") == stop;
        if (!item && number_stated(out, from, (size_t)(stop - from))) /* an item is "3. " */
            return true;
    }
    return false;
}

bool extract_number(char out[EXTRACT_NUMBER], const char *text)
{
    enum { NOWHERE, BOLDLY, SAID, MARKED, BOXED } rank = NOWHERE, now; /* the highest counts */
    char value[EXTRACT_NUMBER];
    size_t n;
    text = extract_segment(&n, text);
    const char *end = text + n, *box = NULL; /* end of the sentence's first box, which counts */
    for (const char *s = text, *at; s < end; s++) {
        box = number_stops(s, end) ? NULL : box;
        at = s;
        n = 0;
        if (!strncmp(s, "\\boxed{", 7)) {
            now = BOXED;
            at = s + 7;
            n = box ? 0 : number_box(at, end);
        } else if (!strncmp(s, "####", 4)) {
            now = MARKED;
            at = s + 4 + (s[4] == ' ');
            n = *at && strchr("$-0123456789", *at) ? strcspn(at, "\n") : 0;
        } else if ((at = number_cue(s, end)) != NULL) {
            now = SAID;
            for (size_t i = 0; i < BLANKS && strchr(" \n:*", *at) && *at; i++)
                at++;
            while (n < PIECE && !number_stops(at + n, end))
                n++;
        } else if (!strncmp(s, "**", 2) && s[2] && strchr("$-0123456789", s[2])) {
            now = BOLDLY;
            at = s + 2;
            n = strcspn(at, "*:.\n");
            n += at[n] == '.' ? strcspn(at + n, "*:\n") : 0;
            if (n >= BOLD || strncmp(at + n, "**", 2) != 0 || at[n + 2] == ':' || at[n - 1] == '.')
                n = 0;
        } else {
            continue;
        }
        if (now < rank || at + n > end || number_stated(value, at, n) == NONE)
            continue;
        rank = now;
        box = now == BOXED ? at : box;
        memcpy(out, value, sizeof(value));
    }
    return rank || number_ending(out, text, end);
}
