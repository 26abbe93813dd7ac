#include <ctype.h>
#include <string.h>

#include "kernels/sys/text.h"
#include "model/text/unicode.h"
#include "tools/tasks/extract.h"

/* How far behind "the answer" its verb may be, and behind the verb the answer, in bytes; words
 * between "X is" and "correct". */
enum { VERB = 60, TARGET = 160, PRAISE = 6 };
/* What a place of the text may say besides naming a choice. */
enum { NOTHING = -1, DENIED = -2 };

static const char nouns[] = " answer ans option choice solution label ";
static const char verbs[] = " is was be are were seems ";
static const char denials[] =
    " none neither nothing unknown unclear undetermined cannot impossible ";
static const char negations[] = " not no never nor unlike instead rather wrong incorrect t ";
static const char praise[] = " correct right best most likely answer appropriate ";
/* Words between "the answer is" and the answer that say nothing. */
static const char fillers[] = " the a an answer option choice letter label solution boxed text "
                              "textbf mathrm mathbf most likely "
                              "probably definitely clearly certainly therefore thus that it is be "
                              "would to number simply also "
                              "correct final right following ";
/* Words of somebody who chooses, and before them those who do. */
static const char chooses[] = " choose chose pick picked select selected ";
static const char choosers[] = " i we would d ll will ";

/* What is read. */
struct reading {
    const char *s;
    size_t n;
    const struct extract_choices *c;
};

/* True when the character that byte i is a part of belongs to a word. */
static bool reading_letter(const struct reading *r, size_t i)
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

static bool reading_begins(const struct reading *r, size_t i)
{
    return reading_letter(r, i) && !(i && reading_letter(r, i - 1));
}

static size_t reading_word_end(const struct reading *r, size_t i)
{
    while (reading_letter(r, i))
        i++;
    return i;
}

/* True when the word at i is one of the list, which has a blank before and after each. */
static bool reading_is(const struct reading *r, size_t i, const char *list)
{
    char word[20] = " ";
    size_t n = reading_word_end(r, i) - i;
    if (!n || n + 3 > sizeof(word))
        return false;
    for (size_t k = 0; k < n; k++)
        word[k + 1] = (char)tolower((unsigned char)r->s[i + k]);
    word[n + 1] = ' ';
    return strstr(list, word);
}

/* Return the beginning of the first word from i to `end`, or `end`. */
static size_t reading_next(const struct reading *r, size_t i, size_t end)
{
    while (i < end && !reading_begins(r, i))
        i++;
    return i;
}

/* True when a sentence or a line ends at i. */
static bool reading_stops(const struct reading *r, size_t i)
{
    return i >= r->n || r->s[i] == '\n' ||
           (strchr(".!?", r->s[i]) && (i + 1 == r->n || strchr(" \n\"*)", r->s[i + 1])));
}

/* Return how many bytes of s[n] are the choice, in small or capital letters, or 0. An apostrophe
 * may be a curved one, and an s may follow. */
static size_t reading_match(const struct reading *r, size_t at, const char *choice)
{
    uint32_t a, b;
    if ((unsigned char)*choice < 0x80 && tolower((unsigned char)r->s[at]) != tolower(*choice))
        return 0;
    size_t i = at, n = strnlen(choice, EXTRACT_NAMED + 1), k = 0;
    n -= n && choice[n - 1] == '.';
    while (n <= EXTRACT_NAMED && k < n && i < r->n) {
        a = (unsigned char)r->s[i];
        b = (unsigned char)choice[k];
        i += a < 0x80 ? 1 : text_decode(&a, r->s + i, r->n - i, NULL);
        k += b < 0x80 ? 1 : text_decode(&b, choice + k, n - k, NULL);
        if (extract_lower(a == 0x2019 ? '\'' : a) != extract_lower(b == 0x2019 ? '\'' : b))
            return 0;
    }
    if (!n || k < n)
        return 0;
    i += i < r->n && r->s[i] == 's' && !reading_letter(r, i + 1);
    return reading_letter(r, i - 1) && reading_letter(r, i) ? 0 : i - at;
}

/* Return the longest choice at i and set *end behind it, or NOTHING. */
static int reading_choice(const struct reading *r, size_t i, size_t *end)
{
    int found = NOTHING;
    size_t longest = 0;
    for (size_t k = 0; k < r->c->n; k++) {
        size_t n = reading_match(r, i, r->c->choices[k]);
        if (n > longest) {
            longest = n;
            found = (int)k;
        }
    }
    *end = i + longest;
    return found;
}

/* Return the label that is a word of its own at i, or NOTHING. */
static int reading_label(const struct reading *r, size_t i)
{
    char before = i ? r->s[i - 1] : 0, after = i + 1 < r->n ? r->s[i + 1] : 0;
    if (reading_word_end(r, i) != i + 1 || before == '.' || before == '\'')
        return NOTHING;
    if (isdigit((unsigned char)r->s[i]) &&
        (before == '$' || before == '-' || before == ',' ||
         ((after == '.' || after == ',') && reading_letter(r, i + 2))))
        return NOTHING;
    for (size_t k = 0; k < r->c->n; k++)
        if (tolower((unsigned char)r->s[i]) == tolower((unsigned char)r->c->labels[k][0]))
            return (int)k;
    return NOTHING;
}

/* True when brackets, marks of bold letters or quotation marks are around the label at i. */
static bool reading_marked(const struct reading *r, size_t i)
{
    char before = i ? r->s[i - 1] : 0, after = i + 1 < r->n ? r->s[i + 1] : 0;
    return (before && strchr("([{*\"`$", before)) || (after && strchr(")]}*\"`", after)) ||
           (i > 2 && !memcmp(r->s + i - 3, "\xe2\x80\x9c", 3));
}

/* True when the label at i is meant as one if it comes right after "the answer is" or at the
 * beginning of a text: "a" may be an article. */
static bool reading_means(const struct reading *r, size_t i, int label)
{
    size_t end, next = reading_next(r, i + 1, r->n);
    char after = i + 1 < r->n ? r->s[i + 1] : 0;
    if (!after || strchr(".,;:)!?\n-=", after))
        return true;
    int choice = reading_choice(r, next, &end);
    if (choice != NOTHING && next == i + 2)
        return choice == label || tolower((unsigned char)r->s[i]) != 'a';
    return !islower((unsigned char)r->s[i]) || r->s[i] != 'a';
}

/* Return what is named at the beginning i of a word, and set *end behind it: a label that is marked
 * or, with `direct`, meant, or a choice. */
static int reading_named(const struct reading *r, size_t i, bool direct, size_t *end)
{
    size_t behind, next;
    int label = reading_label(r, i), choice = reading_choice(r, i, &behind);
    if (label != NOTHING && behind <= i + 1 &&
        (reading_marked(r, i) || (direct && reading_means(r, i, label)))) {
        *end = i + 1;
        return label;
    }
    next = reading_next(r, behind, r->n);
    if (choice != NOTHING && reading_is(r, i, nouns) && next <= behind + 2 &&
        reading_label(r, next) != NOTHING)
        return NOTHING; /* "answer (D)", and one of the choices is "answer" */
    *end = behind;
    return choice;
}

/* True when another choice is offered besides the one whose name ends at i: "(A) or (B)", "a bank,
 * a mall". */
static bool reading_offers(const struct reading *r, size_t i, int named)
{
    size_t end = i, limit = i + 40 < r->n ? i + 40 : r->n, at = reading_next(r, i, limit);
    if (at < limit && reading_named(r, at, true, &end) == named)
        at = reading_next(r, i = end, limit);
    bool list = memchr(r->s + i, ',', at - i), other = reading_is(r, at, " or ");
    bool both = reading_is(r, at, " and ");
    for (; at < limit && reading_is(r, at, " or and the a an option "); i = at)
        at = reading_next(r, reading_word_end(r, at), limit);
    int next = at < limit && at < i + 10 ? reading_named(r, at, true, &end) : NOTHING;
    return next != NOTHING && next != named && (other || list || (both && reading_stops(r, end)));
}

/* Return what is said from i, behind "the answer is", to the end of its sentence: the first that is
 * named and not denied. */
static int reading_target(const struct reading *r, size_t i)
{
    size_t end, limit = i + TARGET < r->n ? i + TARGET : r->n;
    bool direct = true, negated = false;
    for (; i < limit; i = end) {
        if (!reading_begins(r, i)) {
            if (!direct && reading_stops(r, i))
                break;
            end = i + 1;
            continue;
        }
        int named = reading_named(r, i, direct, &end);
        if (named != NOTHING && !negated)
            return reading_offers(r, end, named) ? DENIED : named;
        if (named != NOTHING) {
            negated = false;
            continue;
        }
        if (reading_is(r, i, denials))
            return DENIED;
        if (reading_is(r, i, " wrong incorrect "))
            break;
        negated = (negated || reading_is(r, i, negations)) && !reading_is(r, i, " but ");
        direct = direct && reading_is(r, i, fillers);
        end = reading_word_end(r, i);
    }
    return NOTHING;
}

/* Return where the answer begins behind the noun that ends at i, or 0: "the answer is", "Answer:",
 * "the choice that fits is", but not "option B is". */
static size_t reading_verb(const struct reading *r, size_t i)
{
    size_t limit = i + VERB < r->n ? i + VERB : r->n;
    bool bare = true; /* no word so far; "option analysis:" announces none */
    bool answer = tolower((unsigned char)r->s[i - 1]) == 'r';
    for (; i < limit; i++) {
        if (reading_begins(r, i)) {
            if (reading_label(r, i) != NOTHING && r->s[i] != 'a')
                return 0;
            if (reading_is(r, i, verbs))
                return reading_word_end(r, i);
            i = reading_word_end(r, i) - 1;
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

/* True when the words behind "X is" at i praise it. */
static bool reading_praised(const struct reading *r, size_t i)
{
    for (size_t k = 0; k < PRAISE; k++) {
        size_t next = reading_next(r, i, r->n);
        for (; i < next; i++)
            if (reading_stops(r, i))
                return false;
        if (next == r->n || reading_is(r, next, negations))
            return false;
        if (reading_is(r, next, praise))
            return true;
        i = reading_word_end(r, next);
    }
    return false;
}

/* Return where an answer begins that the word at i announces, or 0. `before` is the word before it.
 */
static size_t reading_cue(const struct reading *r, size_t i, size_t before)
{
    size_t end = reading_word_end(r, i);
    if (reading_is(r, i, nouns) &&
        !reading_is(r, before, " wrong incorrect other no if whose each every any "))
        return reading_verb(r, end);
    bool chosen = (reading_is(r, i, chooses) && reading_is(r, before, choosers)) ||
                  (reading_is(r, i, " with ") && reading_is(r, before, " go going went ")) ||
                  (reading_is(r, i, " for ") && reading_is(r, before, " opt opting "));
    return chosen || (reading_is(r, i, " boxed ") && end < r->n && r->s[end] == '{') ? end : 0;
}

/* Return what the last statement of the text says: "the answer is X" or, with `weak`, "X is most
 * likely", "the best place is X". */
static int reading_statement(const struct reading *r, bool weak)
{
    int said = NOTHING, named = NOTHING;
    size_t before = r->n, named_end = 0;
    bool negated = false;
    for (size_t i = 0, end; i < r->n; i++) {
        int now = NOTHING;
        if (!reading_begins(r, i)) {
            if (!weak && i + 4 < r->n && !memcmp(r->s + i, "####", 4))
                now = reading_target(r, i + 4);
            if (reading_stops(r, i)) {
                named = NOTHING;
                negated = false;
            }
        } else if (!weak) {
            size_t cue = reading_cue(r, i, before);
            now = cue ? reading_target(r, cue) : NOTHING;
        } else if (named != NOTHING && i <= named_end + 3 && reading_is(r, i, verbs) &&
                   reading_praised(r, reading_word_end(r, i))) {
            now = named;
        } else if (!negated && reading_is(r, i, " best likely correct right appropriate ")) {
            now = reading_target(r, reading_word_end(r, i));
        }
        said = now == NOTHING ? said : now;
        if (!reading_begins(r, i))
            continue;
        negated = (negated || reading_is(r, i, negations)) && !reading_is(r, i, " but ");
        bool bare = isupper((unsigned char)r->s[i]) && reading_is(r, i + 2, verbs); /* "B is" */
        now = weak ? reading_named(r, i, bare || reading_is(r, before, nouns), &end) : NOTHING;
        if (now != NOTHING && i >= named_end) {
            named = reading_is(r, before, " and or ") ? NOTHING : now;
            named_end = end;
        }
        before = i;
    }
    return said;
}

/* Return the label in parentheses with which the text ends, as CITER's prompt asks for: "a desk or
 * drawer (b)." It counts unless it is denied, or one of several: "(A) or (B)". */
static int reading_closing(const struct reading *r)
{
    size_t i = r->n;
    while (i && strchr(" \n.", r->s[i - 1]))
        i--;
    if (i < 5 || r->s[i - 1] != ')' || r->s[i - 3] != '(' || r->s[i - 4] != ' ' ||
        !reading_letter(r, i - 5))
        return NOTHING;
    int label = reading_label(r, i - 2);
    i -= 4;
    for (size_t k = 0; k < 3 && i && !reading_stops(r, i - 1); k++) {
        while (i && reading_letter(r, i - 1))
            i--;
        if (reading_is(r, i, k ? negations : " or and not nor than unlike "))
            return NOTHING;
        while (i && !reading_letter(r, i - 1) && !reading_stops(r, i - 1))
            i--;
    }
    return label;
}

/* True when what is named before i is denied right behind it: "(A) no", "B is not right". */
static bool reading_denied(const struct reading *r, size_t i)
{
    for (size_t k = 0; k < 4; k++) {
        size_t next = reading_next(r, i, r->n);
        for (; i < next; i++)
            if (r->s[i] == ',' || (k && reading_stops(r, i)))
                return false;
        if (reading_is(r, next, negations))
            return true;
        i = reading_word_end(r, next);
    }
    return false;
}

/* True when the sentence that i is in asks something. */
static bool reading_asks(const struct reading *r, size_t i)
{
    while (!reading_stops(r, i))
        i++;
    return i < r->n && r->s[i] == '?';
}

/* Return what is named in the first n bytes and not denied, if it is only one: labels that are
 * marked or follow "option", or choices. DENIED: there are several. */
static int reading_only(const struct reading *r, size_t n, bool choices)
{
    int only = NOTHING;
    size_t before = r->n;
    bool negated = false;
    for (size_t i = 0, end; i < n; i = end) {
        end = i + 1;
        if (!reading_begins(r, i)) {
            negated = negated && !reading_stops(r, i);
            continue;
        }
        bool alone = i > 1 && strchr(",!:;.\n", r->s[i - 2]) && /* "So, B." */
                     reading_label(r, before) == NOTHING && reading_next(r, i + 1, r->n) == r->n;
        bool direct = (reading_is(r, before, nouns) && r->s[i - 1] != '\n') ||
                      (isupper((unsigned char)r->s[i]) &&
                       (alone || reading_is(r, before, " is be letter say probably likely ")));
        int named = reading_named(r, i, direct, &end);
        bool label = named != NOTHING && end == i + 1 && reading_label(r, i) == named;
        if (named == NOTHING) {
            end = reading_word_end(r, i);
            negated = (negated || reading_is(r, i, negations)) && !reading_is(r, i, " but so it ");
        } else if (label != choices && !negated && only != named && !reading_denied(r, end) &&
                   !reading_asks(r, end)) {
            if (only != NOTHING)
                return DENIED;
            only = named;
        }
        before = i;
    }
    return only;
}

/* Return how many choices have their label before ".", ")" or ":", as in a list of them. */
static size_t reading_listed(const struct reading *r)
{
    uint64_t seen = 0;
    size_t count = 0;
    for (size_t i = 0; i + 1 < r->n; i++) {
        int label =
            reading_begins(r, i) && strchr(".):", r->s[i + 1]) ? reading_label(r, i) : NOTHING;
        if (label != NOTHING && isupper((unsigned char)r->s[i]) && !(seen >> (label & 63) & 1)) {
            seen |= (uint64_t)1 << (label & 63);
            count++;
        }
    }
    return count;
}

/* Return the label or the choice that the text begins with. A choice must be all of its line or
 * sentence. */
static int reading_leading(const struct reading *r)
{
    size_t end, i = reading_next(r, 0, r->n);
    int named = reading_named(r, i, true, &end);
    if (named == NOTHING && reading_is(r, i, " the a an ")) {
        i = reading_next(r, reading_word_end(r, i), r->n);
        named = reading_named(r, i, false, &end);
    }
    if (named == NOTHING)
        return NOTHING;
    if (end == i + 1 && reading_label(r, i) == named) {
        size_t next = reading_next(r, end, r->n), behind;
        bool own = reading_choice(r, next, &behind) == named;
        if (reading_listed(r) > 2 || reading_denied(r, own ? behind : end) ||
            reading_offers(r, end, named))
            return NOTHING;
        bool article = strchr("AIabcdefghi", r->s[i]) && next == end + 1 && r->s[end] == ' ';
        return own || !article ? named : NOTHING;
    }
    while (end < r->n && strchr("*\"'`) ", r->s[end]))
        end++;
    return reading_stops(r, end) || strchr(":(", r->s[end]) ? named : NOTHING;
}

/* True when the text says that it has no answer. */
static bool reading_refuses(const struct reading *r)
{
    size_t before = r->n;
    for (size_t i = 0; i < r->n; i = reading_next(r, reading_word_end(r, i) + 1, r->n)) {
        if (reading_is(r, i, " cannot none neither depends impossible unable unclear ") ||
            (reading_is(r, before, " nothing ") && reading_is(r, i, " can could ")) ||
            (reading_is(r, before, " not t ") &&
             reading_is(r, i, " know sure enough determine possible clear ")))
            return true;
        before = i;
    }
    return false;
}

char extract_label(const char *text, const struct extract_choices *c)
{
    struct reading r = { .c = c };
    size_t last = 0;
    r.s = extract_segment(&r.n, text);
    int found = reading_closing(&r);
    if (found == NOTHING)
        found = reading_statement(&r, false);
    if (found == NOTHING)
        found = reading_leading(&r);
    if (found == NOTHING)
        found = reading_statement(&r, true);
    if (found == NOTHING)
        found = reading_only(&r, r.n, false);
    for (size_t i = 0; i + 1 < r.n; i++) /* of an unfinished sentence at the end, nobody knows */
        last = reading_stops(&r, i) ? i + 1 : last;
    if (found == NOTHING && reading_listed(&r) <= 2 && !reading_refuses(&r)) {
        found = reading_only(&r, last, true);
        if (found == NOTHING)
            found = reading_only(&r, r.n, true);
    }
    return found < 0 ? 0 : c->labels[found][0];
}
