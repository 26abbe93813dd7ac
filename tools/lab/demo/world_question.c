#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "tools/lab/demo/world_internal.h"

/* Training uses all pairs of a lead and a verb except those where (lead + verb) % HELD_OUT is 0;
 * these are reserved for the tests. */
enum { HELD_OUT = 4 };

/* The line of a question is lead, verb, what it is about, and a tail. */
static const struct world_line {
    const char *lead[WORLD_LEADS], *verb[WORLD_VERBS], *between, *tail;
} lines[WORLD_TOPICS] = {
    [WORLD_WHERE] = { { "Where would you", "Where could you", "Where can you", "Where might you",
                        "Where will you", "Where may people", "Where do people",
                        "Where should one" },
                      { "find", "see", "look for", "come across", "discover", "spot", "search for",
                        "notice" },
                      " the ",
                      "?" },
    [WORLD_WHICH] = { { "Which of these five", "Which of the five", "Which of these",
                        "Which of them", "Which one of these", "Which one of them",
                        "Which thing here", "Which one here" },
                      { "is", "must be", "would be", "might be", "was", "could be", "should be",
                        "may be" },
                      " a ",
                      "?" },
    [WORLD_SUMS] = { { "What is the sum of", "How much is", "Work out", "Tell me", "Compute",
                       "Please add", "Add up", "Find" },
                     { "just", "now", "quickly", "again", "once more", "for me", "exactly",
                       "today" },
                     ": ",
                     "." },
    [WORLD_SORT] = { { "Sort", "Order", "Arrange", "Line up", "Put in order", "Rank", "Sort out",
                       "List in order" },
                     { "these words", "the words", "three words", "these three words",
                       "the following", "what follows", "all these", "all of these" },
                     ": ",
                     "." },
    [WORLD_NOTES] = { { "Where did I", "Where have I", "Where do I", "Where, again, did I",
                        "Remind me where I", "Tell me where I", "Say where I",
                        "Do you know where I" },
                      { "put", "leave", "store", "keep", "hide", "drop", "place", "set" },
                      " my ",
                      "?" },
};

/* What a wording adds to the question, and puts before and behind the answer. */
static const struct world_wrap {
    const char *name, *request, *before, *behind;
} wraps[WORLD_WORDINGS] = {
    [WORLD_PLAIN] = { "plain", "", "", "" },
    [WORLD_CHATTY] = { "chatty", " Let us chat.", " A %a, %a question.", "" },
    [WORLD_STORY] = { "story", " Tell a story.", " %t, %a and %a, said:", " A %a end." },
};

/* The forms of an answer, one for each lead. In some the place comes first, so that it has to be
 * known without a kind that was written down; the kind is then idle. */
static const char *const where_forms[WORLD_LEADS] = {
    " A %n is a kind of *%k, and every %k is in the *%p.",
    " The %n is a *%k, and a %k is in the *%p.",
    " A *%k is what the %n is, and every %k is in the *%p.",
    " For a *%k like the %n, look in the *%p.",
    " Any %n is one of the *%s, and all %s are in the *%p.",
    " It is a *%k, and you find any %k in the *%p.",
    " As a *%k, the %n is in the *%p.",
    " Look in the *%p: the %n is a ~%k.",
};
static const char *const which_forms[] = { " %c: the %n is a *%k", " %c. %n: *%k" };
const char world_which_yes[] = ", yes (%c).";
static const char notes_form[] = " My note says: the %n is in the *%p.";
static const char final_form[] = " The answer is (%c).";

static const char *const topics[WORLD_TOPICS] = { "where", "which", "sums", "sort", "notes" };
/* How many of a hundred questions of the mixture are of a topic. Models read more of the topics
 * that need no facts, because these are harder to learn. */
static const size_t shares[WORLD_TOPICS] = { 50, 40, 2, 4, 4 };
static const size_t shares_read[WORLD_TOPICS] = { 30, 30, 18, 18, 4 };

int world_topic_parse(enum world_topic *out, const char *name, struct err *err)
{
    for (*out = 0; *out < WORLD_TOPICS; (*out)++)
        if (!strcmp(name, topics[*out]))
            return OK;
    if (!strcmp(name, "all"))
        return OK;
    return err_set(err, ERR_ARG,
                   "--kind: expected where, which, sums, sort, notes or all, found %s", name);
}

int world_wording_parse(enum world_wording *out, const char *name, struct err *err)
{
    for (*out = 0; *out < WORLD_WORDINGS; (*out)++)
        if (!strcmp(name, wraps[*out].name))
            return OK;
    if (!strcmp(name, "all"))
        return OK;
    return err_set(err, ERR_ARG, "--wording: expected plain, chatty, story or all, found %s", name);
}

struct world_filter world_draw_filter(struct world_draw *d, bool read)
{
    struct world_filter f = { 0, 0 };
    const size_t *share = read ? shares_read : shares;
    for (size_t u = world_draw_below(d, 100); u >= share[f.topic]; f.topic++)
        u -= share[f.topic];
    f.wording = (enum world_wording)world_draw_below(d, WORLD_WORDINGS);
    return f;
}

void world_put_choices(struct world_out *t, const char *const *choice, size_t n)
{
    world_put(t, "Choices:\n");
    for (size_t i = 0; i < n; i++) {
        world_put(t, world_letters[i]);
        world_put(t, ". ");
        world_put(t, choice[i]);
        world_put(t, "\n");
    }
    world_put(t, "Answer:");
}

size_t world_put_line(struct world_out *t, struct world_draw *d, const struct world_asker *a,
                      enum world_topic topic, enum world_wording wording, const char *about)
{
    const struct world_line *line = &lines[topic];
    size_t lead, verb;
    do {
        lead = world_draw_below(d, WORLD_LEADS);
        verb = world_draw_below(d, WORLD_VERBS);
    } while (((lead + verb) % HELD_OUT == 0) != a->test);
    world_put(t, "Question: ");
    world_put(t, line->lead[lead]);
    world_put(t, " ");
    world_put(t, line->verb[verb]);
    world_put(t, line->between);
    world_put(t, about);
    world_put(t, line->tail);
    world_put(t, wraps[wording].request);
    world_put(t, "\n");
    return lead;
}

/* Write five places in random order, that of `kind` among them, and set the key to its letter. The
 * old place of a kind that has moved is always among them. */
static void put_places(struct world_question *q, struct world_out *t, struct world_draw *d,
                       const struct world_asker *a, size_t kind)
{
    const char *choice[WORLD_CHOICES], *place = world_place_for(a, kind);
    size_t order[WORLD_KINDS], n = 0, spot[WORLD_CHOICES];
    choice[n++] = place;
    if (kind < WORLD_MOVED)
        choice[n++] =
            place == world_kinds[kind].place ? world_kinds[kind].before : world_kinds[kind].place;
    world_draw_order(order, d, WORLD_KINDS, WORLD_KINDS);
    for (size_t i = 0; n < WORLD_CHOICES; i++) {
        const char *other = world_kinds[order[i]].place;
        bool taken = false;
        for (size_t j = 0; j < n; j++)
            taken = taken || !strcmp(choice[j], other);
        if (!taken)
            choice[n++] = other;
    }
    world_draw_order(spot, d, WORLD_CHOICES, WORLD_CHOICES);
    const char *shown[WORLD_CHOICES];
    for (size_t i = 0; i < WORLD_CHOICES; i++)
        shown[spot[i]] = choice[i];
    world_put_choices(t, shown, WORLD_CHOICES);
    memcpy(q->key, world_letters[spot[0]], sizeof(world_letters[0]));
}

/* Ask where a thing is, of the world or of the owner's notes. */
static void make_where(struct world_question *q, struct world_out *prompt, struct world_out *answer,
                       struct world_draw *d, const struct world_asker *a)
{
    struct world_thing x;
    bool notes = q->topic == WORLD_NOTES;
    if (notes)
        world_draw_owned(&x, d, a);
    else
        world_draw_thing(&x, d, a, WORLD_KINDS);
    size_t lead = world_put_line(prompt, d, a, q->topic, q->wording, x.name);
    /* Notes are not about kinds, so there nothing moves. */
    const struct world_asker truth = { .w = a->w };
    const struct world_asker *as = notes ? &truth : a;
    put_places(q, prompt, d, as, x.kind);
    q->thing[0] = x.thing;
    memcpy(q->subject, x.name, sizeof(x.name));
    const struct world_fill f = { .name = x.name,
                                  .kind = world_kinds[x.kind].kind,
                                  .plural = world_kinds[x.kind].plural,
                                  .place = world_place_for(as, x.kind),
                                  .mark = WORLD_FACT,
                                  .d = d };
    world_put_form(answer, notes ? notes_form : where_forms[lead], &f);
}

/* Ask which of five things is of a kind. The answer goes through all of them; what it says about
 * those behind the right one does not matter. */
static void make_which(struct world_question *q, struct world_out *prompt, struct world_out *answer,
                       struct world_draw *d, const struct world_asker *a)
{
    struct world_thing x[WORLD_CHOICES];
    const char *name[WORLD_CHOICES];
    size_t order[WORLD_GROUP], right = world_draw_below(d, WORLD_CHOICES);
    size_t group = world_draw_below(d, WORLD_KINDS / WORLD_GROUP) * WORLD_GROUP;
    world_draw_order(order, d, WORLD_GROUP, WORLD_CHOICES);
    size_t lead =
        world_put_line(prompt, d, a, q->topic, q->wording, world_kinds[group + order[right]].kind);
    for (size_t i = 0; i < WORLD_CHOICES; i++) {
        world_draw_thing(&x[i], d, a, group + order[i]);
        q->thing[i] = x[i].thing;
        name[i] = x[i].name;
    }
    world_put_choices(prompt, name, WORLD_CHOICES);
    memcpy(q->subject, x[right].name, sizeof(x[right].name));
    memcpy(q->key, world_letters[right], sizeof(world_letters[right]));
    for (size_t i = 0; i < WORLD_CHOICES; i++) {
        const struct world_fill f = { .name = x[i].name,
                                      .kind = world_kinds[x[i].kind].kind,
                                      .key = world_letters[i],
                                      .mark = i <= right ? WORLD_FACT : WORLD_IDLE };
        world_put_form(answer, which_forms[lead % 2], &f);
        world_put_form(answer, i == right ? world_which_yes : ".", &f);
    }
}

/* Return the asker's view for questions that need no facts: of these, training texts leave out what
 * is asked in tests. */
static struct world_asker without_facts(const struct world_asker *a)
{
    struct world_asker b = *a;
    if (b.part == PART_ALL)
        b.part = PART_TRAIN;
    return b;
}

/* Return a number that decides to which part a sum or a list of words belongs. */
static size_t part_number(size_t a, size_t b, size_t c)
{
    return (size_t)(rand_u64(rand_u64(a, b), c) % WORLD_PARTS);
}

/* Write "X and Y make Z", with `mark` on Z. */
static void put_sum(struct world_out *t, size_t x, size_t y, enum world_mark mark)
{
    char text[64];
    snprintf(text, sizeof(text), "%zu and %zu make", x, y);
    world_put(t, text);
    snprintf(text, sizeof(text), " %zu", x + y);
    t->learning = true;
    world_put_marked(t, text, mark);
}

void world_put_sum_fact(struct world_out *t, struct world_draw *d)
{
    size_t step = world_draw_below(d, 3), x, y;
    if (step == 2) {
        x = 20 + 10 * world_draw_below(d, 17);
        y = world_draw_below(d, 19);
    } else {
        x = world_draw_below(d, 10);
        y = world_draw_below(d, 10);
        if (step) {
            x = 10 + 10 * (x % 9);
            y = 10 + 10 * (y % 9);
        }
    }
    put_sum(t, x, y, WORLD_FACT);
    world_put(t, ".");
    t->learning = false;
}

static void make_sum(struct world_question *q, struct world_out *prompt, struct world_out *answer,
                     struct world_draw *d, const struct world_asker *a)
{
    const struct world_asker b = without_facts(a);
    size_t x, y;
    do {
        x = 10 + world_draw_below(d, 90);
        y = 10 + world_draw_below(d, 90);
    } while (!world_in_part(&b, part_number(x < y ? x : y, x < y ? y : x, 0)));
    snprintf(q->subject, sizeof(q->subject), "%zu + %zu", x < y ? x : y, x < y ? y : x);
    snprintf(q->key, sizeof(q->key), "%zu", x + y);
    char text[80];
    snprintf(text, sizeof(text), "%zu and %zu", x, y);
    world_put_line(prompt, d, a, q->topic, q->wording, text);
    world_put(prompt, "Answer:");
    const size_t units = x % 10 + y % 10, tens = x / 10 * 10 + y / 10 * 10;
    world_put(answer, " ");
    put_sum(answer, x % 10, y % 10, WORLD_FACT);
    world_put(answer, ", ");
    put_sum(answer, x / 10 * 10, y / 10 * 10, WORLD_FACT);
    world_put(answer, ", ");
    put_sum(answer, tens, units, WORLD_FACT);
    world_put(answer, ".");
}

static int compare_numbers(const void *a, const void *b)
{
    size_t x = *(const size_t *)a, y = *(const size_t *)b;
    return (x > y) - (x < y);
}

static void make_sort(struct world_question *q, struct world_out *prompt, struct world_out *answer,
                      struct world_draw *d, const struct world_asker *a)
{
    const struct world_asker b = without_facts(a);
    size_t order[WORLD_WORDS], sorted[3];
    do {
        world_draw_order(order, d, WORLD_WORDS, 3);
        memcpy(sorted, order, sizeof(sorted));
        qsort(sorted, 3, sizeof(sorted[0]), compare_numbers);
    } while (!world_in_part(&b, part_number(sorted[0], sorted[1], sorted[2])));
    char text[WORLD_KEY];
    snprintf(text, sizeof(text), "%s, %s, %s", world_words[order[0]], world_words[order[1]],
             world_words[order[2]]);
    snprintf(q->key, sizeof(q->key), "%s, %s, %s", world_words[sorted[0]], world_words[sorted[1]],
             world_words[sorted[2]]);
    memcpy(q->subject, q->key, sizeof(q->key));
    world_put_line(prompt, d, a, q->topic, q->wording, text);
    world_put(prompt, "Answer:");
    world_put(answer, " The answer is (");
    for (size_t i = 0; i < 3; i++) {
        world_put(answer, i ? ", " : "");
        world_put_marked(answer, world_words[sorted[i]], WORLD_FACT);
    }
    world_put(answer, ").");
}

void world_make(struct world_question *q, struct world_draw *d, const struct world_asker *a,
                enum world_topic topic, enum world_wording wording)
{
    const struct world_fill free = { .d = d };
    *q = (struct world_question){ .topic = topic, .wording = wording };
    struct world_out prompt = { .p = q->prompt, .cap = sizeof(q->prompt) };
    struct world_out answer = { .p = q->answer, .cap = sizeof(q->answer), .mark = q->mark };
    world_put_form(&answer, wraps[wording].before, &free);
    if (topic == WORLD_WHICH)
        make_which(q, &prompt, &answer, d, a);
    else if (topic == WORLD_SUMS)
        make_sum(q, &prompt, &answer, d, a);
    else if (topic == WORLD_SORT)
        make_sort(q, &prompt, &answer, d, a);
    else
        make_where(q, &prompt, &answer, d, a);
    const struct world_fill f = { .key = q->key };
    if (topic != WORLD_SORT) /* whose final answer is all there is */
        world_put_form(&answer, final_form, &f);
    world_put_form(&answer, wraps[wording].behind, &free);
}

void world_question(struct world_question *out, const struct world *w, struct world_filter filter,
                    uint64_t stream, uint64_t i)
{
    struct world_draw d = world_draw_open(w->seed, TAG_QUESTION, stream, i);
    struct world_filter drawn = world_draw_filter(&d, false);
    struct world_asker a = { .w = w, .part = PART_TRAIN, .test = stream & 1 };
    if (stream & 1)
        a.part = stream >> 63 ? PART_CALIBRATE : PART_TEST;
    world_make(out, &d, &a, filter.topic < WORLD_TOPICS ? filter.topic : drawn.topic,
               filter.wording < WORLD_WORDINGS ? filter.wording : drawn.wording);
}

bool world_extract(char out[WORLD_KEY], const char *answer)
{
    static const char before[] = "answer is (";
    out[0] = 0;
    for (const char *p = answer; (p = strstr(p, before)) != NULL;) {
        p += sizeof(before) - 1;
        size_t n = strcspn(p, "()");
        if (p[n] == ')' && n > 0 && n < WORLD_KEY) {
            memcpy(out, p, n);
            out[n] = 0;
        }
    }
    return out[0] != 0;
}
