/* The demo world: the same for ever in every topic and wording, and with test questions about what
 * training never asks. */
#include "tests/support/test.h"
#include "tools/cli/demo_files.h"
#include "tools/lab/demo/world_internal.h"

static const struct world_filter mixture = { WORLD_TOPICS, WORLD_WORDINGS };
static const struct world_reader edge = { .known = 0.4, .notes = true };

/* Add a text, and what stands in each of its bytes (NULL: nothing), to a digest (FNV-1a). */
static void digest_text(uint64_t *sum, const char *text, const void *marks)
{
    for (size_t i = 0; text[i]; i++)
        *sum = (*sum ^ (unsigned char)text[i] ^
                (marks ? (uint64_t)((const unsigned char *)marks)[i] << 8 : 0)) *
               0x100000001b3u;
}

/* Questions of every topic in every wording are the same for ever: so are their balance, their
 * choices and their answers, which hold the key. The same seed gives the same ones. */
static void check_streams(const struct world *w, const struct world *same)
{
    static struct world_question q, again;
    uint64_t all = 0xcbf29ce484222325u;
    char key[WORLD_KEY];
    for (size_t k = 0; k <= WORLD_TOPICS; k++)
        for (size_t v = 0; v <= WORLD_WORDINGS; v++)
            for (uint64_t i = 0; i < 400; i++) {
                const struct world_filter f = { (enum world_topic)k, (enum world_wording)v };
                const uint64_t stream = i % 2 ? 2 : world_test_stream(7);
                world_question(&q, w, f, stream, i / 2);
                world_question(&again, same, f, stream, i / 2);
                CHECK((k == WORLD_TOPICS || q.topic == k) &&
                      (v == WORLD_WORDINGS || q.wording == v));
                CHECK(!strcmp(q.prompt, again.prompt) && !strcmp(q.answer, again.answer));
                CHECK(world_extract(key, q.answer) && !strcmp(key, q.key));
                CHECK(!world_extract(key, q.prompt));
                digest_text(&all, q.prompt, NULL);
                digest_text(&all, q.answer, q.mark);
                digest_text(&all, q.key, NULL);
                digest_text(&all, q.subject, NULL);
            }
    CHECK_MSG(all == 0xf19b07aef17eda78u, "found %llx", (unsigned long long)all);
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
