#include <ctype.h>
#include <string.h>

#include "kernels/sys/text.h"
#include "tools/lab/tasks/extract.h"
#include "tools/lab/tasks/reading.h"

/* How far behind "the answer is" the answer may be, in bytes; words behind something named that may
 * judge it, and before a label at the end that may deny it. */
enum { TARGET = 160, JUDGED = 4, DENIES = 3 };
/* What a place of the text may say besides naming a choice. */
enum { NOTHING = -1, DENIED = -2 };
/* What speaks for an answer. The last of these counts. */
enum {
    UNFINISHED, /* the only choice that the last sentence names, which may have been cut */
    MENTIONED,  /* the only choice that the others name, and do not deny */
    MARKED,     /* the only label */
    PRAISED,    /* "X is most likely", "the best place is X" */
    BEGUN,      /* the text begins with a choice, which is all of its line or sentence */
    LABELLED,   /* or with a label */
    SAID,       /* "the answer is X", "hence X." */
    CLOSED,     /* the text ends with a label in parentheses, as CITER's prompt asks for */
    RANKS
};

static const char nouns[] = " answer ans option choice solution label ";
static const char verbs[] = " is was be are were seems ";
/* And what says something of a label before it, or has a label behind it. */
static const char speaks[] = " is was be are were seems must makes fits works does ";
static const char leads[] =
    " is be letter say probably likely but not so hence thus therefore only "
    "leaves believe ";
static const char negations[] = " not no never nor unlike instead rather wrong incorrect t none "
                                "neither cannot impossible ";
static const char praise[] = " correct right best better most likely answer appropriate ";
/* Words between "the answer is" and the answer that say nothing. */
static const char fillers[] = " the a an answer option choice letter label solution boxed text "
                              "textbf mathrm mathbf most likely probably definitely clearly "
                              "certainly therefore thus that it is be would to number simply also "
                              "correct final right following ";

/* A text that is read once, from its first to its last word. */
struct label {
    struct reading r;
    const struct extract_choices *c;
    int found[RANKS];
    size_t first;           /* the first word, or n */
    size_t last;            /* where the last sentence begins */
    size_t before, earlier; /* the word before, and the one before that, or n */
    size_t denied;          /* words since a negation, from 1; 0: none in this sentence */
    size_t from;            /* where an answer begins that was announced, or n */
    int announced;          /* as which of `found` */
    bool direct;            /* only words that say nothing since then */
    bool refuses;           /* the text says that it has no answer */
    int listed;             /* choices with their label before ".", ")" or ":", in their order */
};

/* Return how many bytes of s[n] are the choice, in small or capital letters, or 0. An apostrophe
 * may be a curved one, and an s may follow. */
static size_t label_match(const struct reading *r, size_t at, const char *choice)
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
static int label_choice(const struct label *l, size_t i, size_t *end)
{
    int found = NOTHING;
    size_t longest = 0;
    for (size_t k = 0; i < l->r.n && k < l->c->n; k++) {
        size_t n = label_match(&l->r, i, l->c->choices[k]);
        if (n > longest) {
            longest = n;
            found = (int)k;
        }
    }
    *end = i + longest;
    return found;
}

/* Return the byte at i; lines end before the text and behind it. */
static char label_byte(const struct label *l, size_t i)
{
    return i < l->r.n ? l->r.s[i] : '\n';
}

/* Return the label that is a word of its own at i, or NOTHING. */
static int label_letter(const struct label *l, size_t i)
{
    char at = label_byte(l, i), before = label_byte(l, i - 1), after = label_byte(l, i + 1);
    if (reading_word_end(&l->r, i) != i + 1 || before == '.' ||
        (before == '\'' && (after != '\'' || reading_letter(&l->r, i - 2)))) /* but "'A'" */
        return NOTHING;
    if (isdigit((unsigned char)at) && /* "$3", "1,3", "3.5" */
        (strchr("$-,", before) || (strchr(".,", after) && reading_letter(&l->r, i + 2))))
        return NOTHING;
    for (size_t k = 0; k < l->c->n; k++)
        if (tolower((unsigned char)at) == tolower((unsigned char)l->c->labels[k][0]))
            return (int)k;
    return NOTHING;
}

/* True when the label at i is meant as one: brackets, marks of bold letters or quotation marks are
 * around it or, with `direct`, it is no article. */
static bool label_means(const struct label *l, size_t i, int label, bool direct)
{
    size_t end, next = reading_next(&l->r, i + 1);
    char before = label_byte(l, i - 1), after = label_byte(l, i + 1), at = l->r.s[i];
    if (strchr("([{*\"`$'", before) || strchr(")]}*\"`", after) ||
        (i > 2 && (!memcmp(l->r.s + i - 3, "\xe2\x80\x9c", 3) ||
                   !memcmp(l->r.s + i - 3, "\xe2\x80\x98", 3))))
        return true;
    if (!direct || strchr(".,;:!?\n-=", after))
        return direct;
    int choice = next == i + 2 && (at | 32) == 'a' ? label_choice(l, next, &end) : NOTHING;
    return choice == NOTHING ? at != 'a' : choice == label;
}

/* Return what is named at the beginning i of a word, and set *end behind it: a label that is meant,
 * or a choice. */
static int label_named(const struct label *l, size_t i, bool direct, size_t *end)
{
    int label = label_letter(l, i), choice = label_choice(l, i, end);
    size_t next = reading_next(&l->r, *end);
    if (label != NOTHING && *end <= i + 1 && label_means(l, i, label, direct)) {
        *end = i + 1;
        return label;
    }
    if (choice != NOTHING && reading_is(&l->r, i, nouns) && next <= *end + 2 &&
        label_letter(l, next) != NOTHING)
        return NOTHING; /* "answer (D)", and one of the choices is "answer" */
    return choice;
}

/* True when another choice is offered besides the one whose name ends at i: "(A) or (B)", "a bank,
 * a mall". */
static bool label_offers(const struct label *l, size_t i, int named)
{
    const struct reading *r = &l->r;
    size_t end = i, limit = i + 40, at = reading_next(r, i);
    if (at < limit && label_named(l, at, true, &end) == named)
        at = reading_next(r, i = end);
    if (at >= r->n || at >= limit)
        return false;
    bool list = memchr(r->s + i, ',', at - i), other = reading_is(r, at, " or ");
    bool both = reading_is(r, at, " and ");
    while (at < limit && reading_is(r, at, " or and the a an option ")) {
        i = at;
        at = reading_next(r, reading_word_end(r, at));
    }
    int next = at < limit ? label_named(l, at, true, &end) : NOTHING;
    return next != NOTHING && next != named && (other || list || (both && reading_stops(r, end)));
}

/* Return what the words from i on say about something named: PRAISED ("the right choice"), DENIED
 * ("no", "is not right") or NOTHING. */
static int label_judged(const struct reading *r, size_t i)
{
    for (size_t k = 0; k < JUDGED; k++) {
        size_t next = reading_next(r, i);
        for (; i < next; i++)
            if (r->s[i] == ',' || (k && reading_stops(r, i)))
                return NOTHING;
        if (reading_is(r, next, negations))
            return DENIED;
        if (reading_is(r, next, praise))
            return PRAISED;
        i = reading_word_end(r, next);
    }
    return NOTHING;
}

/* True when the sentence that i is in asks something. */
static bool label_asks(const struct reading *r, size_t i)
{
    while (!reading_stops(r, i))
        i++;
    return i < r->n && r->s[i] == '?';
}

/* Return where an answer begins that the word at i announces, or 0. */
static size_t label_cue(const struct label *l, size_t i)
{
    const struct reading *r = &l->r;
    size_t end = reading_word_end(r, i), before = l->before;
    if (reading_is(r, i, nouns) &&
        !reading_is(r, before, " wrong incorrect other no if whose each every any "))
        return reading_verb(r, end);
    bool chosen = reading_is(r, i, " choose chose pick picked select selected with for ") &&
                  reading_is(r, before, " i we would d ll will go going went opt opting ");
    return chosen || (reading_is(r, i, " boxed ") && label_byte(l, end) == '{') ? end : 0;
}

static void label_announce(struct label *l, int as, size_t i)
{
    l->announced = as;
    l->from = i;
    l->direct = true;
    l->denied = 0;
}

/* True when the label at i, in no sentence where an answer is announced, is meant as one. */
static bool label_alone(const struct label *l, size_t i)
{
    const struct reading *r = &l->r;
    if (reading_is(r, l->before, nouns) && label_byte(l, i - 1) != '\n')
        return true;
    if (i == l->first && (!strchr("AIabcdefghi", r->s[i]) || label_byte(l, i + 1) != ' ' ||
                          !reading_begins(r, i + 2))) /* else it is an article */
        return true;
    if (!isupper((unsigned char)r->s[i]))
        return false;
    bool its = reading_is(r, l->before, " s ") && reading_is(r, l->earlier, " it that ");
    return ((reading_is(r, l->before, leads) || its) &&
            (!strchr("AI", r->s[i]) || !reading_begins(r, i + 2))) ||
           reading_is(r, l->before, " is be letter say probably likely ") ||
           reading_is(r, i + 2, speaks) ||
           (i > 1 && strchr(",!:;.\n", r->s[i - 2]) && label_letter(l, l->before) == NOTHING &&
            reading_next(r, i + 1) == r->n); /* "So, B." */
}

/* True when the label at i ends the text, in parentheses: "a desk or drawer (b)." It counts unless
 * it is denied, or one of several: "(A) or (B)". */
static bool label_closes(const struct label *l, size_t i)
{
    const struct reading *r = &l->r;
    if (i < 3 || r->s[i - 1] != '(' || r->s[i - 2] != ' ' || !reading_letter(r, i - 3) ||
        label_byte(l, i + 1) != ')' || (l->denied && l->denied <= DENIES) ||
        reading_is(r, l->before, " or and than "))
        return false;
    for (i += 2; i < r->n; i++)
        if (!strchr(" \n.", r->s[i]))
            return false;
    return true;
}

/* True when an answer at i was announced. */
static bool label_expects(const struct label *l, size_t i)
{
    return i >= l->from && i - l->from < TARGET;
}

/* Note what is named from i to end. */
static void label_note(struct label *l, size_t i, int named, size_t end)
{
    const struct reading *r = &l->r;
    bool label = end == i + 1 && label_letter(l, i) == named;
    size_t next = reading_next(r, end);
    size_t before = reading_is(r, l->before, " the a an ") ? l->earlier : l->before;
    bool among = reading_is(r, before, " and or "); /* "A and C", "the bank and the mall" */
    if (label && label_closes(l, i))
        l->found[CLOSED] = named;
    if (label_expects(l, i)) {
        if (!l->denied) {
            l->found[l->announced] = label_offers(l, end, named) ? DENIED : named;
            l->from = r->n;
        }
        l->denied = 0;
        return;
    }
    if (next <= end + 3 && reading_is(r, next, verbs) && !among &&
        label_judged(r, reading_word_end(r, next)) == PRAISED)
        l->found[PRAISED] = named;
    if (label && reading_is(r, l->before, " but ") && reading_is(r, next, speaks) &&
        reading_is(r, reading_next(r, reading_word_end(r, next)), " better best more "))
        l->found[SAID] = named;
    if (label && !l->denied && reading_stops(r, end) &&
        reading_is(r, l->before, " so hence thus therefore ")) {
        l->found[SAID] = named;
        return;
    }
    bool first = i == l->first ||
                 (reading_is(r, l->first, " the a an ") && i == reading_word_end(r, l->first) + 1);
    int *only = &l->found[label && first ? LABELLED
                          : label        ? MARKED
                          : i < l->last  ? MENTIONED
                                         : UNFINISHED];
    if (*only == named || *only == DENIED || l->denied || label_judged(r, end) == DENIED ||
        label_asks(r, end))
        return;
    among = among && label && label_letter(l, l->earlier) != NOTHING; /* "both A and C" */
    *only = *only != NOTHING || among || label_offers(l, end, named) ? DENIED : named;
    while (end < r->n && strchr("*\"'`) ", r->s[end]))
        end++;
    if (first && !label && (reading_stops(r, end) || strchr(":(", r->s[end])))
        l->found[BEGUN] = named;
}

/* Note what a word says that names nothing. */
static void label_word(struct label *l, size_t i)
{
    const struct reading *r = &l->r;
    if (!label_expects(l, i) && !l->denied &&
        reading_is(r, i, " best likely correct right appropriate ")) {
        label_announce(l, PRAISED, reading_word_end(r, i));
        return;
    }
    l->direct = l->direct && reading_is(r, i, fillers);
    l->refuses =
        l->refuses || reading_is(r, i, " cannot none neither depends impossible unable unclear ");
    if (reading_is(r, i, negations))
        l->denied = 1;
    else if (reading_is(r, i, " but so it leaves "))
        l->denied = 0;
    else
        l->denied += l->denied > 0;
}

static void label_read(struct label *l)
{
    const struct reading *r = &l->r;
    for (size_t i = 0, end; i < r->n; i = end) {
        end = i + 1;
        if (!reading_begins(r, i)) {
            if (i + 4 < r->n && !memcmp(r->s + i, "####", 4))
                label_announce(l, SAID, i + 4);
            if (reading_stops(r, i)) {
                l->denied = 0;
                l->from = l->direct ? l->from : r->n;
            }
            continue;
        }
        l->listed += isupper((unsigned char)r->s[i]) && strchr(".):\n", label_byte(l, i + 1)) &&
                     label_letter(l, i) == l->listed;
        size_t cue = label_cue(l, i);
        int named =
            label_named(l, i, (l->direct && label_expects(l, i)) || label_alone(l, i), &end);
        if (named != NOTHING) /* perhaps as well, as a choice is "option" */
            label_note(l, i, named, end);
        else if (!cue)
            label_word(l, i);
        if (cue)
            label_announce(l, SAID, cue);
        for (size_t k = cue ? reading_next(r, reading_word_end(r, i)) : r->n; k < cue && !l->denied;
             k = reading_next(r, reading_word_end(r, k)))
            l->denied = reading_is(r, k, negations); /* "the answer cannot be" */
        end = named != NOTHING ? end : cue ? cue : reading_word_end(r, i);
        l->earlier = l->before;
        l->before = i;
    }
}

char extract_label(const char *text, const struct extract_choices *c)
{
    struct label l = { .c = c };
    l.r.s = extract_segment(&l.r.n, text);
    l.before = l.earlier = l.from = l.r.n;
    l.first = reading_next(&l.r, 0);
    for (size_t i = 0; i < RANKS; i++)
        l.found[i] = NOTHING;
    for (size_t i = 0; i + 1 < l.r.n; i++)
        l.last = reading_stops(&l.r, i) ? i + 1 : l.last;
    label_read(&l);
    for (size_t rank = RANKS; rank--;) {
        bool listed = l.listed > 2 && (rank == LABELLED || rank <= MENTIONED);
        if (l.found[rank] != NOTHING && !listed && !(l.refuses && rank <= MENTIONED))
            return l.found[rank] < 0 ? 0 : c->labels[l.found[rank]][0];
    }
    return 0;
}
