/* Answers that are asked at once, with the demo pair, are counted: passes are full, nothing is
 * evaluated twice, and what the cloud writes alone is not evaluated at all. t_eval_many.sh shows
 * that they are those of one after the other. */
#include <math.h>
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

static struct texts_counts count;
static size_t sum_tokens, sum_prompt, sum_cloud;
static struct err err;

static void open_asking(struct asking *a, struct task **t, struct eval_list *l, enum policy p)
{
    const struct task_options of = {
        .name = "milli", .stream = TASK_TEST, .seed = 3, .world = WORLD_SEED
    };
    size_t items[ITEMS];
    for (size_t i = 0; i < ITEMS; i++)
        items[i] = i;
    CHECK(task_open(t, &of, &err) == OK);
    CHECK(eval_list_parse(l, policy_name(p), &err) == OK);
    CHECK(asking_open(a, l, TOKENS, 3, &err) == OK);
    CHECK(asking_prepare(a, *t, items, ITEMS, &err) == OK);
}

/* Ask all items, n at once, and add up the answers. */
static void ask(size_t n, enum policy p)
{
    struct asking a;
    struct task *t;
    struct eval_list l;
    const struct asking_how how = { &l.at[0], 0.4f, 0 };
    shared_parallel = n;
    open_asking(&a, &t, &l, p);
    CHECK(a.parallel == n && a.window == (n > 1 ? 4 * n : 1));
    sum_tokens = sum_prompt = sum_cloud = 0;
    asking_begin(&a, true);
    for (size_t i = 0, next = 0; i < ITEMS; i++) {
        struct asked one;
        for (; next < ITEMS && asking_has_room(&a); next++)
            CHECK(asking_send(&a, t, next, &how, &err) == OK);
        CHECK(next == ITEMS || next == i + a.window);
        CHECK(asking_take(&one, &a, &err) == OK && one.stats.tokens <= TOKENS);
        CHECK(one.stats.total_ms >= 0 && one.stats.edge_ms >= 0);
        sum_tokens += one.stats.tokens;
        sum_prompt += one.stats.prompt_tokens;
        sum_cloud += one.stats.cloud;
    }
    count = texts_count(a.texts);
    asking_close(&a);
    eval_list_close(&l);
    task_close(t);
}

/* Each id but the last of an answer is evaluated once, or copied; where the score needs no row, ids
 * before a run of the cloud's tokens to the end are never evaluated. */
static void check_once(size_t n, bool all)
{
    CHECK(count.prompt_tokens + count.cached_tokens == sum_prompt && count.cached_tokens >= ITEMS);
    const size_t most = count.prompt_tokens + sum_tokens - ITEMS;
    CHECK(all ? count.rows == most : count.rows <= most && count.rows + sum_cloud > most);
    CHECK(count.rows >= count.passes * (n / 2) && count.busy_ns > 0);
}

/* An interrupt ends what is in flight, and nothing is left behind. */
static void test_interrupt(void)
{
    struct asking a;
    struct asked one;
    struct task *t;
    struct eval_list l;
    const struct asking_how how = { &l.at[0], NAN, 0 };
    int rc = OK;
    shared_parallel = 2;
    open_asking(&a, &t, &l, POLICY_NEVER);
    for (size_t i = 0; i < 8; i++)
        CHECK(asking_has_room(&a) && asking_send(&a, t, i, &how, &err) == OK);
    CHECK(!asking_has_room(&a));
    interrupted = 1;
    while (rc == OK && a.flying)
        rc = asking_take(&one, &a, &err);
    CHECK(rc == ERR_STOP && a.flying);
    interrupted = 0;
    asking_close(&a);
    eval_list_close(&l);
    task_close(t);
}

int main(void)
{
    if (access("weights/milli/edge-0.5.gguf", R_OK))
        SKIP("no demo pair in weights/milli");
    shared_options = routing_defaults;
    shared_options.cloud_api = "auto";
    shared_options.engine.model = "weights/milli/edge-0.5.gguf";
    shared_options.cloud_model = "weights/milli/cloud.gguf";
    shared_options.cloud = "required";
    shared_options.cloud_timeout = 600000;
    shared_options.draft = "off";
    ask(16, POLICY_NEVER);
    check_once(16, true);
    CHECK(!sum_cloud);
    ask(16, POLICY_ALWAYS);
    CHECK(sum_cloud == sum_tokens && !count.rows && !count.passes);
    shared_options.ahead = 0; /* no guess is evaluated for nothing */
    ask(7, POLICY_MLP);
    CHECK(sum_cloud);
    check_once(4, true);
    ask(12, POLICY_RANDOM);
    check_once(2, false);
    ask(1, POLICY_MLP);
    check_once(1, true);
    test_interrupt();
    return 0;
}
