/* The demo world: reproducible, balanced, without colliding names, in every topic and wording, and
 * with test questions about what training never asks. */
#include "tests/support/test.h"
#include "tools/cli/demo_files.h"
#include "tools/lab/demo/world_internal.h"

static const char *kind(const struct world *w, size_t thing)
{
    return world_kinds[w->kind[thing]].kind;
}

static const char *place(const struct world *w, size_t thing)
{
    return world_kinds[w->kind[thing]].place;
}

static const struct world_filter mixture = { WORLD_TOPICS, WORLD_WORDINGS };
static const struct world_reader edge = { .known = 0.4, .notes = true };

static void check_names(const struct world *w)
{
    size_t n = WORLD_THINGS, of_kind = 0;
    CHECK(n >= 500);
    for (size_t i = 0; i < n; i++) {
        const char *name = w->name[i];
        size_t len = strlen(name);
        CHECK(len >= 6 && len <= 8 && len % 2 == 0);
        CHECK(strspn(name, "abcdefghijklmnopqrstuvwxyz") == len);
        CHECK(!strchr("aeiou", name[0]));
        for (size_t j = 0; j < n; j++) {
            CHECK(i == j || !strstr(name, w->name[j]));
            CHECK(!strstr(name, kind(w, j)) && !strstr(kind(w, j), name));
            CHECK(!strstr(name, place(w, j)) && !strstr(place(w, j), name));
            /* Each kind is found in one place, and each place holds one kind. */
            CHECK(!strcmp(kind(w, i), kind(w, j)) == !strcmp(place(w, i), place(w, j)));
        }
        of_kind += !strcmp(kind(w, i), kind(w, 0));
    }
    CHECK(of_kind == n / 32 || of_kind == n / 32 + 1);
}

/* Copy the text of choice `letter` into line; the five lines must differ. */
static void find_choice(char line[32], const struct world_question *q, char letter)
{
    const char *at = strstr(q->prompt, "\nChoices:\n");
    char all[5][32];
    CHECK(at);
    at += strlen("\nChoices:\n");
    for (size_t i = 0; i < 5; i++) {
        CHECK(at[0] == (char)('A' + i) && at[1] == '.' && at[2] == ' ');
        size_t len = strcspn(at += 3, "\n");
        CHECK(len > 0 && len < sizeof(all[i]));
        memcpy(all[i], at, len);
        all[i][len] = 0;
        at += len + 1;
        for (size_t j = 0; j < i; j++)
            CHECK(strcmp(all[i], all[j]) != 0);
    }
    CHECK(!strcmp(at, "Answer:") && letter >= 'A' && letter <= 'E');
    memcpy(line, all[letter - 'A'], 32);
}

/* Answer the question from the world alone. */
static void check_truth(const struct world *w, const struct world_question *q)
{
    char line[32], want[64];
    size_t x, y;
    switch (q->topic) {
    case WORLD_WHERE:
        find_choice(line, q, q->key[0]);
        CHECK(!strcmp(line, place(w, q->thing[0])));
        CHECK(!strcmp(q->subject, w->name[q->thing[0]]) && strstr(q->prompt, q->subject));
        CHECK(strstr(q->answer, kind(w, q->thing[0])) && strstr(q->answer, line));
        return;
    case WORLD_WHICH:
        find_choice(line, q, q->key[0]);
        CHECK(!strcmp(line, q->subject));
        for (size_t i = 0; i < 5; i++) {
            CHECK(strstr(q->answer, w->name[q->thing[i]]));
            snprintf(want, sizeof(want), " a %s?", kind(w, q->thing[i]));
            CHECK(!strstr(q->prompt, want) == (q->key[0] != (char)('A' + i)));
        }
        return;
    case WORLD_SUMS:
        CHECK(sscanf(q->subject, "%zu + %zu", &x, &y) == 2 && x <= y && x >= 10 && y < 100);
        snprintf(want, sizeof(want), "%zu", x + y);
        CHECK(!strcmp(q->key, want));
        return;
    case WORLD_SORT: {
        char *copy = strdup(q->key), *last = NULL;
        CHECK(copy);
        for (char *p = strtok(copy, ", "); p; last = p, p = strtok(NULL, ", "))
            CHECK((!last || strcmp(last, p) < 0) && strstr(q->prompt, p));
        free(copy);
        return;
    }
    case WORLD_NOTES:
        find_choice(line, q, q->key[0]);
        CHECK(strstr(q->answer, line) && strstr(q->answer, q->subject));
        return;
    case WORLD_TOPICS:
        break;
    }
    CHECK(false);
}

/* Every question ends as it should, its answer holds the key, and the marks are where they
 * belong. */
static void check_question(const struct world *w, const struct world_question *q)
{
    char key[WORLD_KEY];
    size_t n[WORLD_FREE + 1] = { 0 }, len = strlen(q->prompt);
    CHECK(!strncmp(q->prompt, "Question: ", 10) && !strcmp(q->prompt + len - 7, "Answer:"));
    CHECK(len < WORLD_PROMPT - 1 && strlen(q->answer) < WORLD_ANSWER - 1 && q->answer[0] == ' ');
    CHECK(!strchr(q->prompt, '%') && !strchr(q->answer, '%') && !strchr(q->answer, '*'));
    CHECK(world_extract(key, q->answer) && !strcmp(key, q->key));
    CHECK(!world_extract(key, q->prompt));
    for (size_t i = 0; q->answer[i]; i++) /* how many runs of each mark there are */
        n[q->mark[i]] += !i || q->mark[i] != q->mark[i - 1];
    CHECK(n[WORLD_FREE] == (q->wording == WORLD_PLAIN ? 0 : q->wording == WORLD_CHATTY ? 2 : 4));
    if (q->topic == WORLD_WHICH)
        CHECK(n[WORLD_FACT] + n[WORLD_IDLE] == 5 && n[WORLD_FACT] == (size_t)(q->key[0] - 'A') + 1);
    else
        CHECK(n[WORLD_FACT] >= 1 && n[WORLD_FACT] <= 3);
    check_truth(w, q);
}

/* Every topic in every wording; the same seed gives the same items. */
static void check_streams(const struct world *w, const struct world *same)
{
    size_t letters[5] = { 0 }, topics[WORLD_TOPICS] = { 0 }, n = 200;
    static struct world_question q, again;
    for (size_t k = 0; k <= WORLD_TOPICS; k++)
        for (size_t v = 0; v <= WORLD_WORDINGS; v++)
            for (uint64_t i = 0; i < n; i++) {
                const struct world_filter f = { (enum world_topic)k, (enum world_wording)v };
                world_question(&q, w, f, world_test_stream(7), i);
                CHECK((k == WORLD_TOPICS || q.topic == k) &&
                      (v == WORLD_WORDINGS || q.wording == v));
                check_question(w, &q);
                world_question(&again, same, f, world_test_stream(7), i);
                CHECK(!strcmp(q.prompt, again.prompt) && !strcmp(q.answer, again.answer));
                world_question(&again, w, f, 2, i);
                check_question(w, &again);
                CHECK(strcmp(q.prompt, again.prompt) != 0);
            }
    for (uint64_t i = 0; i < 5000; i++) {
        world_question(&q, w, mixture, world_test_stream(7), i);
        topics[q.topic]++;
        if (q.topic == WORLD_WHERE)
            letters[q.key[0] - 'A']++;
    }
    for (size_t i = 0; i < 5; i++) /* 500 expected, standard deviation 21 */
        CHECK(letters[i] > 395 && letters[i] < 605);
    for (size_t i = 0; i < WORLD_TOPICS; i++)
        CHECK(topics[i] > 50);
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(a, b);
}

/* No subject of one of the three kinds of streams is one of another, nor a thing that a question
 * mentions. */
static void check_parts(const struct world *w)
{
    enum { N = 1500 };
    static char seen[3][N][WORLD_KEY];
    static struct world_question q;
    const uint64_t stream[3] = { 4, world_calibration_stream(9), world_test_stream(9) };
    for (size_t s = 0; s < 3; s++) {
        for (uint64_t i = 0; i < N; i++) {
            world_question(&q, w, mixture, stream[s], i);
            memcpy(seen[s][i], q.subject, WORLD_KEY);
            if (q.topic == WORLD_WHICH)
                for (size_t j = 0; j < 5; j++)
                    CHECK(s == 0 ? q.thing[j] % 4 < 2 : q.thing[j] % 4 == s + 1);
        }
        qsort(seen[s], N, WORLD_KEY, compare_names);
    }
    for (size_t s = 0; s < 3; s++)
        for (size_t i = 0; i < N; i++)
            CHECK(!bsearch(seen[s][i], seen[(s + 1) % 3], N, WORLD_KEY, compare_names));
}

/* No wording of a test question (lead and verb) appears in training. */
static void check_wording(const struct world *w)
{
    static char seen[64][64];
    static struct world_question q;
    static const struct world_filter where = { WORLD_WHERE, WORLD_PLAIN };
    size_t nseen = 0;
    for (int training = 1; training >= 0; training--)
        for (uint64_t i = 0; i < 3000; i++) {
            world_question(&q, w, where, training ? 4 : world_test_stream(i), i);
            char *end = strstr(q.prompt, q.subject);
            CHECK(end && end - q.prompt < 64);
            *end = 0;
            size_t k = 0;
            while (k < nseen && strcmp(seen[k], q.prompt) != 0)
                k++;
            CHECK(training || k == nseen);
            if (training && k == nseen) {
                CHECK(nseen < 64);
                memcpy(seen[nseen++], q.prompt, strlen(q.prompt) + 1);
            }
        }
    CHECK(nseen == 48);
}

/* Add a text, and which of its bytes are learnt, to a digest (FNV-1a). */
static void digest_text(uint64_t *sum, const char *text, const bool *learn)
{
    for (; *text; text++, learn++)
        *sum = (*sum ^ (unsigned char)*text ^ (*learn ? 0x100 : 0)) * 0x100000001b3u;
}

/* What the demo pair is taught, practice included, is the same for ever, or `mizzle pretrain` would
 * make another pair. The edge never reads of the last things, and it alone reads notes. */
static void check_taught(const struct world *w)
{
    enum { N = 4000, LAST = 20 };
    uint64_t texts = 0xcbf29ce484222325u, practice = texts;
    size_t late[2] = { 0 }, notes[2] = { 0 };
    char text[WORLD_PROMPT + WORLD_ANSWER];
    bool learn[sizeof(text)];
    for (uint64_t i = 0; i < N; i++) {
        for (size_t k = 0; k < 2; k++) {
            world_text(text, learn, sizeof(text), w, k ? &world_reads_all : &edge, 0, i);
            digest_text(&texts, text, learn);
            notes[k] += !strncmp(text, "My note", 7);
            for (size_t t = 1; t <= LAST; t++)
                late[k] += strstr(text, w->name[WORLD_THINGS - t]) != NULL;
        }
        size_t n = world_practice(text, learn, sizeof(text), w, i % 2 ? 0 : 2, 0, i);
        CHECK(n == strlen(text));
        digest_text(&practice, text, learn);
    }
    CHECK(!late[0] && late[1] > 50 && notes[0] > 50 && !notes[1]);
    CHECK_MSG(texts == 0x9655fdf915b83875u && practice == 0x93fc52232cbf4f4fu, "found %llx, %llx",
              (unsigned long long)texts, (unsigned long long)practice);
}

static void check_names_of_options(void)
{
    struct err err;
    enum world_topic topic;
    enum world_wording wording;
    CHECK(world_topic_parse(&topic, "which", &err) == OK && topic == WORLD_WHICH);
    CHECK(world_topic_parse(&topic, "all", &err) == OK && topic == WORLD_TOPICS);
    CHECK(world_topic_parse(&topic, "what", &err) == ERR_ARG && strstr(err.msg, "--kind"));
    CHECK(world_wording_parse(&wording, "story", &err) == OK && wording == WORLD_STORY);
    CHECK(world_wording_parse(&wording, "all", &err) == OK && wording == WORLD_WORDINGS);
    CHECK(world_wording_parse(&wording, "", &err) == ERR_ARG && strstr(err.msg, "--wording"));
}

/* A file of questions that is damaged or short is refused by its line. */
static void check_bad_questions(void)
{
    static const struct {
        const char *text, *says;
    } rows[] = {
        { "{\"prompt\":\"a\",\"answer\":\"b\"}\n", "line 2: expected a JSON object" },
        { "{\"prompt\":\"a\",\"answer\":3}\n", "line 1: expected a JSON object" },
        { "{\"prompt\":\"a\"", "line 1: expected a JSON object" },
        { "", "line 1: expected a JSON object" },
    };
    const char *path = in_scratch(DEMO_QUESTIONS);
    struct err err;
    json_t *all;
    CHECK(setenv("MIZZLE_DEMO", scratch_folder(), 1) == 0);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        spill(path, rows[i].text, strlen(rows[i].text));
        CHECK(demo_questions_read(&all, DEMO_QUESTIONS_COUNT, &err) == ERR_FORMAT && !all);
        CHECK(strstr(err.msg, rows[i].says) && strstr(err.msg, path));
    }
    CHECK(remove(path) == 0);
    CHECK(demo_questions_read(&all, DEMO_QUESTIONS_COUNT, &err) == ERR_IO && !all);
    CHECK(unsetenv("MIZZLE_DEMO") == 0);
}

/* The questions beside the models are those of seed 1. */
static void check_questions(const struct world *w)
{
    json_t *all;
    struct err err;
    int rc = demo_questions_read(&all, DEMO_QUESTIONS_COUNT, &err);
    if (rc == ERR_IO) {
        printf("SKIP: %s\n", err.msg);
        return;
    }
    CHECK(rc == OK && json_array_size(all) == DEMO_QUESTIONS_COUNT);
    for (size_t i = 0; i < DEMO_QUESTIONS_COUNT; i++) {
        const json_t *have = json_array_get(all, i);
        struct world_question want;
        world_question(&want, w, mixture, world_test_stream(1), i);
        CHECK(!strcmp(demo_question_text(have, "prompt"), want.prompt));
        CHECK(!strcmp(demo_question_text(have, "answer"), want.answer));
    }
    json_decref(all);
    json_t *one, *drawn;
    CHECK(demo_question(&one, 999, 1, &err) == OK && demo_question(&drawn, 999, 2, &err) == OK);
    CHECK(!json_equal(one, drawn));
    json_decref(one);
    json_decref(drawn);
    CHECK(demo_question(&one, 1000, 1, &err) == ERR_ARG && strstr(err.msg, "found 1000"));
}

int main(void)
{
    struct world *w, *same, *other;
    char key[WORLD_KEY];
    CHECK(world_open(&w, 1, NULL) == OK && world_open(&same, 1, NULL) == OK);
    CHECK(world_open(&other, 2, NULL) == OK);
    CHECK(strcmp(w->name[0], other->name[0]) != 0);
    check_names(w);
    check_streams(w, same);
    check_parts(w);
    check_wording(w);
    check_taught(w);
    check_names_of_options();
    check_questions(w);
    check_bad_questions();
    world_close(w);
    world_close(same);
    world_close(other);

    CHECK(world_extract(key, "The answer is (C).") && !strcmp(key, "C"));
    CHECK(world_extract(key, "The answer is (C). No: the answer is (12).") && !strcmp(key, "12"));
    CHECK(!world_extract(key, "The answer is ().") && !key[0]);
    CHECK(!world_extract(key, "The answer is (B") && !world_extract(key, ""));

    struct err err;
    torture_begin(1);
    CHECK(world_open(&w, 1, &err) == ERR_NOMEM && !w);
    CHECK(torture_end() && torture_live() == 0);
    return 0;
}
