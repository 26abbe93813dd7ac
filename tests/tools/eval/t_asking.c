/* Answers that are asked at once, with the demo pair: texts, scores and sources are those of one
 * after the other. And counted: passes are full, nothing is evaluated twice, and what the cloud
 * writes alone is not evaluated at all. */
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "kernels/sys/base.h"
#include "router/texts/texts.h"
#include "tests/support/test.h"
#include "tools/cli/setup.h"
#include "tools/lab/demo/world.h"
#include "tools/lab/eval/asking.h"

enum { ITEMS = 24, TOKENS = 96 };

struct kept { /* of one answer */
    size_t tokens, cloud, prompt;
    struct asked_work work;
    bool right;
    char text[1024];
    float scores[TOKENS];
    struct asked_token trace[TOKENS];
};

static struct kept alone[ITEMS], many[ITEMS];
static struct texts_counts count;
static struct err err;

/* Take the answer to item i. */
static void take(struct kept *k, struct asking *a)
{
    struct asked one;
    *k = (struct kept){ .tokens = 0 };
    CHECK(asking_take(&one, a, &err) == OK && one.stats.tokens <= TOKENS);
    CHECK(one.stats.total_ms >= 0 && one.stats.edge_ms >= 0 && strlen(one.text) < sizeof(k->text));
    k->tokens = one.stats.tokens;
    k->cloud = one.stats.cloud;
    k->prompt = one.stats.prompt_tokens;
    k->work = one.work;
    k->right = one.right;
    snprintf(k->text, sizeof(k->text), "%s", one.text);
    memcpy(k->scores, one.scores, one.stats.tokens * sizeof(*one.scores));
    for (size_t i = 0; i < one.stats.tokens; i++) {
        k->trace[i].source = one.trace[i].source;
        k->trace[i].has_edge = one.trace[i].has_edge;
        k->trace[i].agrees = one.trace[i].agrees;
    }
}

static void open_asking(struct asking *a, struct task **t, enum policy p)
{
    const struct task_options of = {
        .name = "milli", .stream = TASK_TEST, .seed = 3, .world = WORLD_SEED
    };
    const struct asking_options o = { .policy = policy_name(p), .max_tokens = TOKENS, .seed = 3 };
    size_t items[ITEMS];
    for (size_t i = 0; i < ITEMS; i++)
        items[i] = i;
    CHECK(task_open(t, &of, &err) == OK);
    CHECK(asking_open(a, &o, &err) == OK);
    CHECK(asking_prepare(a, *t, items, ITEMS, &err) == OK);
}

/* Ask all items, n at once. */
static void ask(struct kept *out, size_t n, enum policy p)
{
    struct asking a;
    struct task *t;
    const struct asking_how how = { .policy = p, .threshold = 0.4f };
    shared_parallel = n;
    open_asking(&a, &t, p);
    CHECK(a.parallel == n && (n == 1) == (a.window == 1) && (n > 1) == (a.texts != NULL) &&
          (n == 1) == (a.session != NULL));
    asking_begin(&a, true);
    for (size_t i = 0, next = 0; i < ITEMS; i++) {
        for (; next < ITEMS && asking_has_room(&a); next++)
            CHECK(asking_send(&a, t, next, &how, &err) == OK);
        CHECK(next == ITEMS || next == i + a.window);
        take(&out[i], &a);
    }
    if (a.texts)
        count = texts_count(a.texts);
    asking_close(&a);
    task_close(t);
}

static size_t sum_tokens, sum_prompt, sum_cloud;

/* Compare n answers at once with one after the other. */
static void compare(size_t n, enum policy p)
{
    ask(alone, 1, p);
    ask(many, n, p);
    sum_tokens = sum_prompt = sum_cloud = 0;
    for (size_t i = 0; i < ITEMS; i++) {
        CHECK_MSG(!memcmp(&alone[i], &many[i], sizeof(alone[i])),
                  "%s, %zu at once, item %zu: \"%s\", found \"%s\"", policy_name(p), n, i,
                  alone[i].text, many[i].text);
        sum_tokens += many[i].tokens;
        sum_prompt += many[i].prompt;
        sum_cloud += many[i].cloud;
    }
}

/* Each id but the last of an answer is evaluated once, or copied. */
static void check_once(size_t n)
{
    CHECK(count.prompt_tokens + count.cached_tokens == sum_prompt && count.cached_tokens >= ITEMS);
    CHECK(count.rows == count.prompt_tokens + sum_tokens - ITEMS);
    CHECK(count.rows >= count.passes * (n / 2) && count.busy_ns > 0);
}

/* An interrupt ends what is in flight, what is complete can still be taken, and nothing is left
 * behind. */
static void test_interrupt(void)
{
    struct asking a;
    struct asked one;
    struct task *t;
    const struct asking_how how = { .policy = POLICY_NEVER, .threshold = NAN };
    size_t taken = 0, complete;
    shared_parallel = 2;
    open_asking(&a, &t, POLICY_NEVER);
    for (size_t i = 0; i < 8; i++)
        CHECK(asking_has_room(&a) && asking_send(&a, t, i, &how, &err) == OK);
    while ((complete = texts_count(a.texts).finished) < 3)
        sched_yield();
    asking_stop(&a);
    for (size_t i = 0; i < 6; i++) {
        int rc = asking_take(&one, &a, &err);
        CHECK(rc == OK || rc == ERR_STOP);
        taken += rc == OK;
    }
    CHECK(taken + 2 >= complete && a.flying == 2);
    asking_close(&a);
    task_close(t);
    open_asking(&a, &t, POLICY_NEVER);
    for (size_t i = 0; i < 8; i++)
        CHECK(asking_send(&a, t, i, &how, &err) == OK);
    interrupted = 1;
    int rc = OK;
    while (rc == OK && a.flying)
        rc = asking_take(&one, &a, &err);
    CHECK(rc == ERR_STOP);
    interrupted = 0;
    asking_close(&a);
    task_close(t);
}

int main(void)
{
    if (access("weights/milli/edge-0.5.gguf", R_OK))
        SKIP("no demo pair in weights/milli");
    mizzle_options_init(&shared_options, sizeof(shared_options));
    shared_options.cloud_api = "auto";
    shared_options.model = "weights/milli/edge-0.5.gguf";
    shared_options.cloud_model = "weights/milli/cloud.gguf";
    shared_options.cloud = "required";
    shared_options.cloud_timeout = 600000;
    shared_options.draft = "off";
    compare(16, POLICY_NEVER);
    check_once(16);
    CHECK(!sum_cloud);
    compare(16, POLICY_ALWAYS);
    CHECK(sum_cloud == sum_tokens && !count.rows && !count.passes);
    shared_options.ahead = 0; /* no guess is evaluated for nothing */
    compare(7, POLICY_MLP);
    CHECK(sum_cloud);
    check_once(4);
    compare(12, POLICY_RANDOM);
    check_once(2);
    shared_options.ahead = 1;
    shared_options.draft = NULL;
    compare(5, POLICY_ENTROPY);
    test_interrupt();
    shared_options.max_cloud_tokens = 9;
    struct asking a;
    CHECK(asking_open(&a, &(struct asking_options){ .max_tokens = 1 }, &err) == ERR_ARG);
    CHECK(strstr(err.msg, "--parallel 2: expected 1 with a limit on what"));
    return 0;
}
