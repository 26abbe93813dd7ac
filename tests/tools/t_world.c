/* The demo world: reproducible, balanced, without colliding names, and with test questions that
 * never appear in training. */
#include <string.h>

#include "kernels/sys/base.h"
#include "tests/support/test.h"
#include "tests/support/torture.h"
#include "tools/demo/world.h"

static void check_names(const struct world *w)
{
    size_t n = world_things(w), of_kind = 0;
    CHECK(n >= 500);
    for (size_t i = 0; i < n; i++) {
        const char *name = world_name(w, i);
        size_t len = strlen(name);
        CHECK(len >= 6 && len <= 8 && len % 2 == 0);
        CHECK(strspn(name, "abcdefghijklmnopqrstuvwxyz") == len);
        CHECK(!strchr("aeiou", name[0]));
        for (size_t j = 0; j < n; j++) {
            CHECK(i == j || !strstr(name, world_name(w, j)));
            CHECK(!strstr(name, world_kind(w, j)) && !strstr(world_kind(w, j), name));
            CHECK(!strstr(name, world_place(w, j)) && !strstr(world_place(w, j), name));
            /* Each kind is found in one place, and each place holds one kind. */
            CHECK(!strcmp(world_kind(w, i), world_kind(w, j)) ==
                  !strcmp(world_place(w, i), world_place(w, j)));
        }
        of_kind += !strcmp(world_kind(w, i), world_kind(w, 0));
    }
    CHECK(of_kind == n / 32 || of_kind == n / 32 + 1);
}

/* Answer the question from the world: exactly one option is the place of the thing, and its letter
 * is that of q. */
static void check_question(const struct world *w, const struct world_question *q)
{
    const char *at = strstr(q->prompt, "\nChoices:\n");
    CHECK(!strncmp(q->prompt, "Question: Where ", 16) && at);
    const char *name = strstr(q->prompt, world_name(w, q->thing));
    CHECK(name && name < at);
    at += strlen("\nChoices:\n");
    char option[5][32];
    size_t right = 0;
    for (size_t i = 0; i < 5; i++) {
        CHECK(at[0] == (char)('A' + i) && at[1] == '.' && at[2] == ' ');
        size_t len = strcspn(at + 3, "\n");
        CHECK(len > 0 && len < sizeof(option[i]));
        memcpy(option[i], at + 3, len);
        option[i][len] = 0;
        at += 3 + len + 1;
        for (size_t j = 0; j < i; j++)
            CHECK(strcmp(option[i], option[j]) != 0);
        if (!strcmp(option[i], world_place(w, q->thing))) {
            right++;
            CHECK(q->letter == (char)('A' + i));
        }
    }
    CHECK(right == 1 && !strcmp(at, "Answer:"));
    char want[256];
    snprintf(want, sizeof(want),
             " A %s is a kind of %s, and every %s is found in the %s. The answer is (%c).",
             world_name(w, q->thing), world_kind(w, q->thing), world_kind(w, q->thing),
             world_place(w, q->thing), q->letter);
    CHECK(!strcmp(q->answer, want) && world_extract(q->answer) == q->letter);
}

/* The same seed gives the same items, and letters are evenly distributed. */
static void check_streams(const struct world *w, const struct world *same)
{
    size_t letters[5] = { 0 }, n = 5000;
    for (uint64_t i = 0; i < n; i++) {
        struct world_question q, again;
        world_question(&q, w, world_test_stream(7), i);
        check_question(w, &q);
        letters[q.letter - 'A']++;
        memset(&again, 0, sizeof(again));
        world_question(&again, same, world_test_stream(7), i);
        CHECK(!strcmp(q.prompt, again.prompt) && !strcmp(q.answer, again.answer));
        world_question(&again, w, 2, i);
        check_question(w, &again);
        CHECK(strcmp(q.prompt, again.prompt) != 0);
    }
    for (size_t i = 0; i < 5; i++) /* 1,000 expected, standard deviation 28 */
        CHECK(letters[i] > 860 && letters[i] < 1140);
}

/* No wording of a test question (lead and verb, that is, the words before the article) appears in
 * training. */
static void check_wording(const struct world *w)
{
    static char seen[64][64];
    size_t nseen = 0;
    for (int training = 1; training >= 0; training--)
        for (uint64_t i = 0; i < 3000; i++) {
            struct world_question q;
            world_question(&q, w, training ? 4 : world_test_stream(i), i);
            char *end = strstr(q.prompt, world_name(w, q.thing));
            CHECK(end && end - q.prompt < 64);
            end[-1] = 0;
            *strrchr(q.prompt, ' ') = 0;
            size_t k = 0;
            while (k < nseen && strcmp(seen[k], q.prompt) != 0)
                k++;
            CHECK(training || k == nseen);
            if (training && k == nseen) {
                CHECK(nseen < 64);
                memcpy(seen[nseen++], q.prompt, strlen(q.prompt) + 1);
            }
        }
    CHECK(nseen > 20);
}

static void check_texts(const struct world *w)
{
    size_t questions = 0, n = 4000, frequent = 0, rare = 0;
    for (uint64_t i = 0; i < n; i++) {
        char text[1024], cut[9];
        bool learn[1024];
        size_t len = world_text(text, learn, sizeof(text), w, 0, i);
        CHECK(len == strlen(text) && len > 10 && text[len - 1] == '.');
        CHECK(!learn[0] && learn[len - 1]); /* the beginning is given, the end is to be learnt */
        const char *asked = strstr(text, "Answer:");
        CHECK(!asked || (!learn[asked + 6 - text] && learn[asked + 7 - text]));
        CHECK(world_text(cut, NULL, sizeof(cut), w, 0, i) == 8 && !strncmp(cut, text, 8) &&
              !cut[8]);
        questions += !strncmp(text, "Question: ", 10);
        CHECK(!strchr(text, '%'));
        for (size_t t = 0; t < 20; t++) {
            frequent += strstr(text, world_name(w, t)) != NULL;
            rare += strstr(text, world_name(w, world_things(w) - 1 - t)) != NULL;
        }
    }
    CHECK(questions > n / 20 && questions < n * 19 / 20);
    CHECK(frequent > 3 * rare && frequent > 0);
}

/* The letter at text[at] is the one that the list gives to the place before it. */
static void check_letter(const char *text, size_t at, bool easy)
{
    char line[32] = { text[at], '.', ' ' };
    const char *end = strstr(text, "Answer:"), *listed = strstr(text, line), *last = NULL;
    CHECK(text[at] >= 'A' && text[at] <= 'E' && listed && end && listed < end);
    size_t len = strcspn(listed + 3, "\n");
    memcpy(line, listed + 3, len);
    line[len] = 0;
    for (const char *p = end; (p = strstr(p, line)) && p < text + at; p++)
        last = p;
    CHECK(last && (!easy || last + len == text + at));
}

/* Practice texts list choices and then their letters, or copy a name. */
static void check_practice(const struct world *w)
{
    size_t copies = 0;
    for (uint64_t i = 0; i < 400; i++) {
        char text[1024], learnt[64] = "";
        bool learn[1024], easy = i % 2;
        size_t n = world_practice(text, learn, sizeof(text), w, easy, 0, i), k = 0;
        CHECK(n == strlen(text));
        for (size_t at = 0; at < n; at++)
            if (learn[at]) {
                CHECK(k < sizeof(learnt) - 1);
                learnt[k++] = text[at];
                if (text[0] == 'C')
                    check_letter(text, at, easy);
            }
        if (text[0] == 'C') {
            CHECK(k == 6);
            continue;
        }
        copies++; /* " NAME is", where the question contains the name */
        CHECK(!easy && k > 4 && !strcmp(learnt + k - 3, " is"));
        learnt[k - 3] = 0;
        CHECK(strstr(text, learnt) < strstr(text, "Choices"));
    }
    CHECK(copies > 50);
}

int main(void)
{
    struct world *w, *same, *other;
    CHECK(world_open(&w, 1, NULL) == OK && world_open(&same, 1, NULL) == OK);
    CHECK(world_open(&other, 2, NULL) == OK);
    CHECK(strcmp(world_name(w, 0), world_name(other, 0)) != 0);
    check_names(w);
    check_streams(w, same);
    check_wording(w);
    check_texts(w);
    check_practice(w);
    world_close(w);
    world_close(same);
    world_close(other);

    CHECK(world_extract("The answer is (C).") == 'C');
    CHECK(world_extract("The answer is (C). No: the answer is (A).") == 'A');
    CHECK(world_extract("The answer is (F).") == 0 && world_extract("The answer is (B") == 0);
    CHECK(world_extract("") == 0);

    struct err err;
    torture_begin(1);
    CHECK(world_open(&w, 1, &err) == ERR_NOMEM && !w);
    CHECK(torture_end() && torture_live() == 0);
    return 0;
}
