#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/lab/tasks/extract.h"
#include "tools/lab/tasks/reading.h"

/* Bytes of a piece of text in which a number is looked for, of what bold letters may say, and of
 * the end of an unfinished text. */
enum { PIECE = 240, BOLD = 40, AT_END = 12 };

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
        } else if (!strncmp(s + i, "\xc2\xa0", 2) || !strncmp(s + i, "\xe2\x80\xaf", 3)) {
            out[m++] = ' '; /* blanks at which no line breaks */
            i += s[i] == '\xc2' ? 1 : 2;
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

/* Return the end of digits in threes behind blanks, "1 234 567", or s. One group alone is often a
 * number of its own, "3 500 ml", "4 200-meter laps", "week 2 300", but not so "1 200 tickets". */
static const char *number_threes(const char *s)
{
    static const char ordered[] = " chapter day month number page part question step week year ";
    const char *end = s + strspn(s, "0123456789"), *before = s;
    size_t threes = 0;
    bool round = false;
    if (end == s || end - s > 3)
        return s;
    for (; *end == ' ' && strspn(end + 1, "0123456789") == 3; end += 4, threes++)
        round = !memcmp(end + 1, "000", 3);
    if (threes != 1 || round)
        return threes ? end : s;
    while (before[-1] == ' ' ? !isalpha((unsigned char)*before)
                             : isalpha((unsigned char)before[-1]))
        before--;
    struct reading prior = { before, (size_t)(s - before) }, after = { end, strlen(end) };
    size_t word = reading_word_end(&after, 1);
    bool apart = *end == ' ' ? word < 5 || end[word - 1] != 's'
                             : *end == '-' || *end == '/' || isalpha((unsigned char)*end);
    return apart || reading_is(&prior, 0, ordered) ? s : end;
}

/* Return the end of the digits at s, with separators of thousands and a fraction, or s. */
static const char *number_end(const char *s)
{
    const char *end = number_threes(s);
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
        if (*s != ',' && *s != ' ')
            out[n++] = *s;
    out[n] = 0;
}

/* Return the power of ten that the number before *end is multiplied with, and set *end behind it:
 * "e3", "10^3" behind a sign that is gone, "million". */
static int number_power(const char **end)
{
    static const char *const words[] = { "thousand", "million", "billion", "trillion" };
    const char *s = *end, *word = s + strspn(s, " ");
    char *to = NULL;
    long power = 0;
    if (tolower((unsigned char)*s) == 'e' &&
        isdigit((unsigned char)s[1 + (strchr("+-", s[1]) && s[1])]))
        power = strtol(s + 1, &to, 10);
    else if (word > s && !strncmp(word, "10^", 3) &&
             (isdigit((unsigned char)word[3]) || word[3] == '-'))
        power = strtol(word + 3, &to, 10);
    for (size_t i = 0; word > s && i < sizeof(words) / sizeof(words[0]); i++) {
        size_t n = strlen(words[i]);
        if (strncmp(word, words[i], n) != 0)
            continue;
        n += word[n] == 's';
        if (!isalnum((unsigned char)word[n])) {
            power = 3 * (long)(i + 1);
            to = (char *)(size_t)word + n;
        }
    }
    if (!to || isalnum((unsigned char)*to) || power < -12 || power > 15)
        return 0;
    *end = to;
    return (int)power;
}

/* Write a value with at most ten decimals, if it is not too large. */
static void number_value(char out[EXTRACT_NUMBER], bool minus, double value)
{
    char text[EXTRACT_NUMBER];
    if (value < 1e15) { /* and no NaN */
        int n = snprintf(text, sizeof(text), "%.10f", value);
        number_write(out, minus, text, text + n);
    }
}

/* Write the number at s and return its end; "7/2" and "3 1/2" are 3.5, and "1.5e3" is 1500. */
static const char *number_read(char out[EXTRACT_NUMBER], bool minus, const char *s)
{
    const char *end = number_end(s), *next = end + strspn(end, " "), *over = s;
    number_write(out, minus, s, end);
    if (next > end && next < number_end(next) && *number_end(next) == '/')
        over = next;
    const char *line = number_end(over) + strspn(number_end(over), " ");
    const char *under = line + 1 + strspn(line + (*line != 0), " ") - !*line;
    if (*line != '/' || number_end(under) == under) {
        int power = number_power(&end);
        if (power)
            number_value(out, minus, fabs(strtod(out, NULL)) * pow(10, power));
        return end;
    }
    char part[2][EXTRACT_NUMBER];
    number_write(part[0], false, over, number_end(over));
    number_write(part[1], false, under, number_end(under));
    double value = strtod(part[0], NULL) / strtod(part[1], NULL);
    if (over > s)
        value += fabs(strtod(out, NULL));
    number_value(out, minus, value);
    return number_end(under);
}

/* How much speaks for a number: letters follow, nothing, a dollar sign is before it. */
enum { NONE, LETTERS, BARE, MONEY };

/* Find the number that s[n] states: the first behind an equals sign or if nothing but signs is
 * before it, else the last sum of money, else the last. Returns how much speaks for it. */
static int number_stated(char out[EXTRACT_NUMBER], const char *s, size_t n)
{
    char room[PIECE + 2] = ".", *plain = room + 1, value[EXTRACT_NUMBER];
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

/* Return how many bytes are in the box that begins at i, up to its brace or the end of the text. */
static size_t number_box(const struct reading *r, size_t i)
{
    size_t n = 0;
    for (size_t open = 1; i + n < r->n && n < PIECE; n++) {
        open += r->s[i + n] == '{';
        open -= r->s[i + n] == '}';
        if (!open)
            break;
    }
    return n;
}

/* Return where the last line begins to check its answer, "To check: 180 / 3 = 60", or r->n. */
static size_t number_check(const struct reading *r)
{
    static const char begins[] = " step to let lets s me us we can now double 1 2 3 4 5 6 7 8 9 ";
    size_t end = r->n, i, check = r->n, at = 0;
    while (end && strchr(" \n", r->s[end - 1]))
        end--;
    for (i = end; i && r->s[i - 1] != '\n';)
        i--;
    for (; i < end; i++) {
        at = at < i ? reading_next(r, i) : at;
        while (reading_is(r, at, begins))
            at = reading_next(r, reading_word_end(r, at));
        if (reading_is(r, at, " check verify verifying verification ") &&
            r->s[reading_word_end(r, at)] != '-') /* "check-in" */
            check = check < i ? check : i;
        else if (reading_is(r, at, " so therefore thus hence "))
            check = r->n; /* another answer follows */
        while (!reading_stops(r, i))
            i++;
    }
    return check;
}

/* Find the number of the last sentence that has one. Of a text that is cut in the middle of a later
 * sentence, nobody knows the answer unless a number is right at its end. */
static bool number_last(char out[EXTRACT_NUMBER], const struct reading *r)
{
    size_t end = r->n, from;
    while (end && strchr(" \n", r->s[end - 1]))
        end--;
    if (end && strchr("=+-/({,", r->s[end - 1]))
        return false;
    for (size_t to = end; to; to = from - (from > 0)) {
        for (from = to; from && !reading_stops(r, from - 1);)
            from--;
        bool cut = to == end && from && !strchr(".!?)]*", r->s[end - 1]);
        if (cut) {
            for (from = end > AT_END ? end - AT_END : 0; from && !strchr(" \n", r->s[from - 1]);)
                from--;
            return number_stated(out, r->s + from, end - from) > LETTERS;
        }
        bool item = r->s[to] == '.' && from + strspn(r->s + from, " 0123456789") == to;
        if (!(item && to + 1 < end) && number_stated(out, r->s + from, to - from)) /* "3. " */
            return true;
    }
    return false;
}

/* Find the number at the end of the text, before what checks it. */
static bool number_ending(char out[EXTRACT_NUMBER], const struct reading *r)
{
    struct reading before = { r->s, number_check(r) };
    return (before.n < r->n && number_last(out, &before)) || number_last(out, r);
}

bool extract_number(char out[EXTRACT_NUMBER], const char *text)
{
    enum { NOWHERE, BOLDLY, SAID, MARKED, BOXED } rank = NOWHERE, now; /* the highest counts */
    char value[EXTRACT_NUMBER];
    struct reading r;
    r.s = extract_segment(&r.n, text);
    bool boxed = false; /* the sentence has a box, the first of which counts */
    for (size_t i = 0, at, n; i < r.n; i++) {
        const char *s = r.s + i;
        boxed = boxed && !reading_stops(&r, i);
        n = 0;
        if (!strncmp(s, "\\boxed{", 7)) {
            now = BOXED;
            at = i + 7;
            n = boxed ? 0 : number_box(&r, at);
        } else if (!strncmp(s, "####", 4)) {
            now = MARKED;
            at = i + 4 + (s[4] == ' ');
            n = strchr("$-0123456789", r.s[at]) ? strcspn(r.s + at, "\n") : 0;
        } else if (reading_is(&r, i, " answer ") && (at = reading_verb(&r, i + 6)) > 0) {
            now = SAID;
            at += strspn(r.s + at, " \n:*");
            while (n < PIECE && !reading_stops(&r, at + n))
                n++;
        } else if (!strncmp(s, "**", 2) && s[2] && strchr("$-0123456789", s[2])) {
            now = BOLDLY;
            at = i + 2;
            n = strcspn(r.s + at, "*:.\n");
            n += r.s[at + n] == '.' ? strcspn(r.s + at + n, "*:\n") : 0;
            if (n >= BOLD || strncmp(r.s + at + n, "**", 2) != 0 || r.s[at + n + 2] == ':' ||
                r.s[at + n - 1] == '.')
                n = 0;
        } else {
            continue;
        }
        if (now < rank || at + n > r.n || number_stated(value, r.s + at, n) == NONE)
            continue;
        rank = now;
        boxed = boxed || now == BOXED;
        memcpy(out, value, sizeof(value));
    }
    return rank || number_ending(out, &r);
}
