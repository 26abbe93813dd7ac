#include <string.h>

#include "kernels/sys/text.h"
#include "model/text/unicode.h"
#include "tools/lab/tasks/extract.h"

/* Characters after "Therefore" that CITER reads, and those at the beginning of a text; room for
 * them in lower case. */
enum { AFTER = 50, FIRST_LETTER = 15, FIRST_TEXT = 20, LOWERED = 4 * (AFTER + 1) };

static const char mark[] = "Therefore";

/* Python's \s, which is its isspace. */
static bool citer_space(uint32_t c)
{
    return (c >= 0x1c && c <= 0x1f) || unicode_class(c) == UNICODE_SPACE;
}

/* Python's \w. */
static bool citer_word(uint32_t c)
{
    return c == '_' || unicode_class(c) == UNICODE_LETTER || unicode_class(c) == UNICODE_NUMBER;
}

/* Return how many bytes the first `most` characters of s[n] take, or, with `line`, those before the
 * end of the line. */
static size_t citer_first(const char *s, size_t n, size_t most, bool line)
{
    size_t i = 0;
    uint32_t c;
    for (; most-- && i < n && !(line && s[i] == '\n');)
        i += text_decode(&c, s + i, n - i, NULL);
    return i;
}

/* Return s[*n] without the spaces around it. */
static const char *citer_strip(const char *s, size_t *n)
{
    size_t from = 0, end = 0;
    uint32_t c;
    for (size_t i = 0, more; i < *n; i += more) {
        more = text_decode(&c, s + i, *n - i, NULL);
        if (!citer_space(c))
            end = i + more;
        else if (!end)
            from = i + more;
    }
    *n = end ? end - from : 0;
    return s + from;
}

/* Write s[n] in lower case, as Python's lower does; false if it takes more than LOWERED bytes. A
 * sigma at the end of a word has a form of its own. */
static bool citer_lower(char out[LOWERED + 1], const char *s, size_t n)
{
    size_t m = 0;
    bool word = false;
    uint32_t c, next;
    for (size_t i = 0; i < n;) {
        i += text_decode(&c, s + i, n - i, NULL);
        bool last = word && (i == n || (text_decode(&next, s + i, n - i, NULL) &&
                                        unicode_class(next) != UNICODE_LETTER));
        word = unicode_class(c) == UNICODE_LETTER;
        if (m + 6 > LOWERED)
            return false;
        if (c == 0x130) { /* i and a dot above */
            out[m++] = 'i';
            c = 0x307;
        }
        m += text_encode(out + m, c == 0x3a3 && last ? 0x3c2 : extract_lower(c));
    }
    out[m] = 0;
    return true;
}

/* Return the label of the first choice that occurs in s[n], which is a window of the text. */
static char citer_choice(const char *s, size_t n, const struct extract_choices *c)
{
    char window[LOWERED + 1], choice[LOWERED + 1];
    if (!citer_lower(window, s, n))
        return 0;
    for (size_t i = 0; i < c->n; i++)
        if (citer_lower(choice, c->choices[i], strlen(c->choices[i])) && strstr(window, choice))
            return c->labels[i][0];
    return 0;
}

/* Return the capital at s that no character of a word follows, or 0. What CITER's expression lets
 * stand between the letter and the end of its match changes nothing. */
static char citer_capital(const char *s, size_t n)
{
    uint32_t next;
    if (!n || *s < 'A' || *s > 'Z')
        return 0;
    if (n > 1)
        text_decode(&next, s + 1, n - 1, NULL);
    return n == 1 || !citer_word(next) ? *s : 0;
}

/* Stages 1 and 2: after each "Therefore", a choice; then, after each, the first such capital,
 * wherever it stands in a word. The windows do not overlap. */
static char citer_therefore(const char *text, const struct extract_choices *c, bool letters)
{
    for (const char *p = text; (p = strstr(p, mark)) != NULL;) {
        char found = 0;
        const char *s = p += sizeof(mark) - 1;
        size_t n = citer_first(s, strnlen(s, 4 * (AFTER + 1)), AFTER, true);
        p += n;
        s = citer_strip(s, &n);
        if (!letters)
            found = citer_choice(s, n, c);
        for (size_t i = 0; letters && !found && i < n; i++)
            found = citer_capital(s + i, n - i);
        if (found)
            return found;
    }
    return 0;
}

/* Stage 4: the text begins with a capital, behind spaces, brackets and quotation marks. */
static char citer_initial(const char *text, size_t n)
{
    size_t i = 0, more;
    uint32_t c;
    for (; i < n; i += more) {
        more = text_decode(&c, text + i, n - i, NULL);
        if (!citer_space(c) && c != '(' && c != '[' && c != 0x201c && c != 0x2018 && c != '"' &&
            c != '\'')
            break;
    }
    return citer_capital(text + i, n - i);
}

char extract_citer_label(const char *text, const struct extract_choices *c)
{
    size_t n = strnlen(text, 4 * (FIRST_TEXT + 1)); /* more than the stages at the beginning read */
    char found = citer_therefore(text, c, false);
    if (!found)
        found = citer_therefore(text, c, true);
    for (const char *p = text; !found && (p = strchr(p, '(')) != NULL; p++)
        if (p[1] && p[2] == ')' && ((p[1] | 32) >= 'a' && (p[1] | 32) <= 'z'))
            found = (char)(p[1] & ~32);
    if (!found)
        found = citer_initial(text, citer_first(text, n, FIRST_LETTER, false));
    return found ? found : citer_choice(text, citer_first(text, n, FIRST_TEXT, false), c);
}

const char *extract_citer_number(size_t *n, const char *text)
{
    size_t open = 1;
    const char *start = strstr(text, "\\boxed{"), *end;
    if (!start)
        return NULL;
    end = start += 7;
    for (; *end && open; end++)
        open = *end == '{' ? open + 1 : *end == '}' ? open - 1 : open;
    /* Without its brace, the text loses its last character. */
    while (end > start && ((unsigned char)*--end & 0xc0) == 0x80)
        continue;
    *n = (size_t)(end - start);
    return start;
}
