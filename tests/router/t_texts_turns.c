/* t_texts_turns.c - whose turn it is: a dead cloud costs the others no pass, cancelling frees a
 * slot wherever the text is, of several texts with one beginning one reads it, pieces of prompts
 * leave room for those who write, and functions answer without the model. */
#include <sched.h>

#include "tests/router/texts_help.h"

static struct script script;
static uint32_t prompt[TINY_CONTEXT];

static struct routing routed(void)
{
    return (struct routing){ .how.policy = POLICY_ALWAYS, .how.ahead = 1, .port = script.port };
}

/* Wait, in other words without a limit, until the condition holds. */
#define UNTIL(condition) \
    while (!(condition)) \
    sched_yield()

/* Beside a text whose cloud is dead, one of the small model alone needs the passes that it needs by
 * itself: one a token, and not a single one for the other text. */
static void test_dead_cloud(void)
{
    uint64_t passes[2];
    for (int dead = 0; dead < 2; dead++) {
        struct routing r = routed();
        struct texts *e = texts_with(&r, 4, 4, TINY_CONTEXT);
        struct text_wish w = wish_of(prompt, 8, 200);
        struct text *stuck = NULL;
        script.dead = dead;
        if (dead) {
            stuck = ask_text(e, &w);
            UNTIL(texts_count(e).passes == 1); /* its prompt, for the guess behind which it waits */
        }
        uint64_t before = texts_count(e).passes;
        w.model = TEXT_EDGE;
        w.prompt = prompt + 20;
        struct text_view v = text_written(e, &w);
        CHECK(v.rc == OK && v.n == 200);
        passes[dead] = texts_count(e).passes - before;
        if (dead) {
            v = text_look(stuck);
            CHECK(!v.finished && v.n == 0);
            text_cancel(stuck);
            v = text_wait(stuck, SIZE_MAX);
            CHECK(v.rc == ERR_STOP && v.stats.calls == 1);
        }
        text_drop(stuck);
        texts_close(e);
    }
    script.dead = false;
    CHECK(passes[0] == passes[1]);
}

/* A text whose prompt ends with a part of the answer has the scores that it had in one go, with a
 * router that reads the place in the answer. */
static void test_answer(void)
{
    enum { N = 20 };
    struct routing r = { .router = gain,
                         .how = { .policy = POLICY_MLP, .threshold = 0.5f },
                         .port = script.port };
    struct texts *e = texts_with(&r, 2, 4, TINY_CONTEXT);
    struct text_wish w = wish_of(prompt, 8, N);
    uint32_t ids[8 + N];
    float scores[N];
    size_t differ = 0; /* scores that differ where the answer is taken for a prompt */
    struct text *t = ask_text(e, &w);
    struct text_view v = text_wait(t, SIZE_MAX);
    CHECK(v.rc == OK && v.n == N);
    memcpy(ids, v.ids, sizeof(ids));
    for (size_t i = 0; i < N; i++)
        scores[i] = v.tokens[i].t.score;
    text_drop(t);
    for (size_t at = 1; at < 2 * N; at++) {
        w = wish_of(ids, 8 + at % N, N - at % N);
        w.answer = at < N ? 8 : 0;
        t = ask_text(e, &w);
        v = text_wait(t, SIZE_MAX);
        CHECK(v.rc == OK && v.n == w.max);
        for (size_t i = 0; i < v.n && at < N; i++)
            CHECK(v.tokens[i].t.score == scores[at + i] && v.ids[w.n + i] == ids[w.n + i]);
        differ += at > N && v.tokens[0].t.score != scores[at % N];
        text_drop(t);
    }
    CHECK(differ > N / 2);
    texts_close(e);
}

static _Atomic bool alive, told; /* the text has not been dropped; its news is being told */

static void on_news(void *arg)
{
    CHECK(arg == prompt && alive);
    told = true;
    for (int i = 0; i < 500; i++)
        sched_yield();
    CHECK(alive);
}

/* A text that is cancelled while it waits for a slot, while it reads, while another reads for it,
 * and while the cloud is asked, leaves its place to the next. */
static void test_cancel(void)
{
    struct routing r = routed();
    struct texts *e = texts_with(&r, 1, 2, TINY_CONTEXT);
    struct text_wish w = wish_of(prompt, 8, 20);
    script.dead = true;
    struct text *asks = ask_text(e, &w);
    UNTIL(texts_busy(e, 0));
    struct text *queued = ask_text(e, &w), *next;
    CHECK(texts_count(e).waiting == 1 && text_look(queued).waiting);
    text_cancel(queued);
    CHECK(text_wait(queued, SIZE_MAX).rc == ERR_STOP && texts_count(e).waiting == 0);
    w.model = TEXT_EDGE;
    next = ask_text(e, &w);
    struct text *dropped = ask_text(e, &w);
    CHECK(texts_ask(e, &(struct text *){ NULL }, &w, NULL) == ERR_NET); /* the queue is full */
    text_drop(dropped);
    CHECK(texts_count(e).waiting == 1);
    text_cancel(asks);
    CHECK(text_wait(asks, SIZE_MAX).rc == ERR_STOP);
    CHECK(text_wait(next, SIZE_MAX).rc == OK);
    text_drop(asks);
    text_drop(queued);
    text_drop(next);
    w = wish_of(prompt, 240, 5);
    w.news = on_news;
    w.news_arg = prompt;
    for (int i = 0; i < 50; i++) { /* at any moment of its life */
        alive = true;
        struct text *t = ask_text(e, &w);
        for (int k = 0; k < i * 20; k++)
            sched_yield();
        if (i % 4 == 0)
            UNTIL(told);
        if (i % 2)
            text_cancel(t);
        text_drop(t);
        alive = told = false;
    }
    w = wish_of(prompt, 240, 5);
    w.model = TEXT_EDGE;
    CHECK(text_written(e, &w).rc == OK);
    texts_close(e);
    script.dead = false;
    CHECK(script.live == 0);
}

static struct text *_Atomic watched; /* NULL: not known yet */
static struct texts *its;
static size_t tokens_then;
static uint64_t passes_then;

/* Cancel the text when it has five tokens. */
static void cancel_at_five(void *arg)
{
    struct text *t;
    (void)arg;
    UNTIL((t = watched));
    struct text_view v = text_look(t);
    if (v.n < 5 || v.finished || tokens_then)
        return;
    tokens_then = v.n;
    passes_then = texts_count(its).passes;
    text_cancel(t);
}

/* A cancelled text writes no further token; at most the pass that it wanted has begun. */
static void test_cancel_at_once(void)
{
    struct text_wish w = wish_of(prompt, 8, 200);
    its = texts_with(NULL, 1, 1, TINY_CONTEXT);
    w.news = cancel_at_five;
    prompt[0] = 77;
    script.dead = false;
    /* The text must be known before its first news. */
    struct text_wish first = wish_of(prompt, 100, 100);
    struct text *before = ask_text(its, &first);
    watched = ask_text(its, &w);
    struct text_view v = text_wait(watched, SIZE_MAX);
    text_drop(watched); /* waits for the callback */
    CHECK(v.rc == ERR_STOP && tokens_then >= 5 && v.n == tokens_then);
    CHECK(texts_count(its).passes <= passes_then + 1 && !texts_busy(its, 0));
    text_drop(before);
    texts_close(its);
}

/* Cancel the other text when there was a round in which it waited for this one. */
static void cancel_held(void *arg)
{
    size_t *calls = arg;
    UNTIL(watched);
    if (++*calls == 2)
        text_cancel(watched);
}

/* A text that waits while another reads for it is cancelled as any other. The prompt takes several
 * passes, so it needs the model with the longer context. */
static void test_cancel_held(void)
{
    static uint32_t many[700];
    size_t calls = 0;
    struct text_wish w = wish_of(prompt, 700, 1);
    const struct engine_options from = { .model = tiny_make_qwen3(), .threads = 1 };
    struct engine wide;
    struct texts_options o = {
        .engine = &wide, .slots = 2, .queue = 2, .context = 800, .kv = KVCACHE_F32
    };
    struct texts *e;
    CHECK(engine_open(&wide, &from, true, NULL) == OK && texts_open(&e, &o, NULL) == OK);
    w.prompt = many;
    w.news = cancel_held;
    w.news_arg = &calls;
    watched = NULL;
    struct text *reads = ask_text(e, &w);
    w.news = NULL;
    watched = ask_text(e, &w);
    struct text_view v = text_wait(watched, SIZE_MAX);
    CHECK(v.rc == ERR_STOP && !v.waiting && v.cached == 0 && v.read == 0);
    CHECK(text_wait(reads, SIZE_MAX).rc == OK);
    text_drop(watched);
    text_drop(reads); /* waits for the callback */
    CHECK(calls > 3);
    texts_close(e);
    engine_close(&wide);
}

/* Slots are given in the order of asking. */
static void test_order(void)
{
    enum { N = 9 };
    struct texts *e = texts_with(NULL, 2, N, TINY_CONTEXT);
    struct text *t[N];
    uint64_t begun = 0;
    for (size_t i = 0; i < N; i++) {
        struct text_wish w = wish_of(prompt, 4 + 20 * (i % 3), 6 + i % 2);
        w.prompt = prompt + i;
        t[i] = ask_text(e, &w);
    }
    for (size_t i = 0; i < N; i++) {
        struct text_view v = text_wait(t[i], SIZE_MAX);
        uint64_t slot_at = v.tokens[0].at - (uint64_t)(v.tokens[0].t.ms * 1e6 + 0.5);
        CHECK(v.rc == OK && slot_at + 1000 >= begun);
        begun = slot_at;
    }
    for (size_t i = 0; i < N; i++)
        text_drop(t[i]);
    texts_close(e);
}

/* Of several texts with the same beginning, one reads it. */
static void test_one_reads(void)
{
    enum { N = 6, SAME = 230 };
    struct texts *e = texts_with(NULL, N, N, TINY_CONTEXT);
    uint32_t own[N][SAME + 4];
    struct text *t[N];
    for (size_t i = 0; i < N; i++) {
        memcpy(own[i], prompt, sizeof(own[i]));
        own[i][SAME] = (uint32_t)(i + 1);
        struct text_wish w = wish_of(prompt, SAME + 4, 3);
        w.prompt = own[i];
        t[i] = ask_text(e, &w);
    }
    size_t cached = 0;
    for (size_t i = 0; i < N; i++) {
        struct text_view v = text_wait(t[i], SIZE_MAX);
        CHECK(v.rc == OK && v.n == 3 && v.read == SAME + 4);
        cached += v.cached;
        text_drop(t[i]);
    }
    CHECK(cached == (N - 1) * SAME);
    CHECK(texts_count(e).prompt_tokens == SAME + 4 + (N - 1) * 4);
    /* The second turn of a conversation reads what is new. The last text's slot has been given to
     * nobody else, which may have happened to the others' if their askers were slow. */
    struct text_wish w = wish_of(prompt, SAME + 4, 3);
    w.prompt = own[N - 1];
    CHECK(text_written(e, &w).cached == SAME + 3);
    texts_forget(e);
    CHECK(text_written(e, &w).cached == 0);
    texts_close(e);
}

/* A text that merely begins like another one, though with most of it, does not take its slot. */
static void test_both_stay(void)
{
    enum { N = 2, SAME = 150, OWN = 60 };
    struct texts *e = texts_with(NULL, N, N, TINY_CONTEXT);
    uint32_t own[N][SAME + OWN];
    for (size_t turn = 0; turn < 2 * N; turn++) {
        size_t i = turn % N;
        struct text_wish w = wish_of(prompt, SAME + OWN, 1);
        memcpy(own[i], prompt, sizeof(own[i]));
        own[i][SAME] = (uint32_t)(i + 1);
        w.prompt = own[i];
        CHECK(text_written(e, &w).cached == (turn >= N ? SAME + OWN - 1 : i * SAME));
    }
    texts_close(e);
}

/* Return the number of ids of the text's first pass. */
static size_t first_piece(struct texts *e, const struct text_wish *w)
{
    struct decode_event event;
    struct text *t = ask_text(e, w);
    struct text_view v = text_wait(t, SIZE_MAX);
    CHECK(v.rc == OK && v.nevents > 0 && text_events(t, 0, &event, 1) == 1);
    CHECK(event.kind == DECODE_EVALUATED && event.at == v.cached);
    text_drop(t);
    return event.n;
}

/* While somebody writes, and be it that the cloud is asked, a prompt is read in pieces whose size
 * is learnt from small ones, and else in large ones. */
static void test_pieces(void)
{
    struct routing r = routed();
    struct texts *e = texts_with(&r, 4, 4, TINY_CONTEXT);
    struct text_wish w = wish_of(prompt, 240, 1), v = wish_of(prompt, 2, 200);
    w.model = TEXT_EDGE;
    w.events = true;
    script.dead = true;
    v.prompt = prompt + 9;
    v.events = true;
    struct text *writes = ask_text(e, &v);
    UNTIL(texts_count(e).passes > 0);
    CHECK(first_piece(e, &w) == 8);
    w.prompt = prompt + 3;
    CHECK(first_piece(e, &w) > 8);
    text_drop(writes);
    texts_close(e);
    r.how.ahead = false; /* then nobody reads the prompt of what the cloud writes */
    e = texts_with(&r, 4, 4, TINY_CONTEXT);
    writes = ask_text(e, &v);
    UNTIL(text_look(writes).nevents > 0);
    CHECK(texts_count(e).passes == 0 && first_piece(e, &w) == 8);
    text_drop(writes);
    texts_close(e);
    e = texts_with(&r, 4, 4, TINY_CONTEXT);
    CHECK(first_piece(e, &w) == BATCH_ROWS);
    texts_close(e);
    script.dead = false;
}

/* Whoever sees the last token sees that the text has ended, and so can say so with the token. */
static void test_last_token(void)
{
    struct texts *e = texts_with(NULL, 1, 1, TINY_CONTEXT);
    for (size_t i = 0; i < 300; i++) {
        size_t max = 1 + i % 3;
        struct text_wish w = wish_of(prompt, 8, max);
        struct text *t = ask_text(e, &w);
        struct text_view v;
        UNTIL((v = text_look(t)).n == max);
        CHECK(v.finished && v.rc == OK && v.stats.tokens == max);
        text_drop(t);
    }
    texts_close(e);
}

int main(void)
{
    open_all();
    for (size_t i = 0; i < TINY_CONTEXT; i++)
        prompt[i] = (uint32_t)rand_below(3, i, TINY_IM_END);
    script = (struct script){ .size = TINY_IM_END };
    script_open(&script);
    test_answer();
    test_dead_cloud();
    test_cancel();
    test_cancel_at_once();
    test_cancel_held();
    test_order();
    test_one_reads();
    test_both_stay();
    test_pieces();
    test_last_token();
    script_close(&script);
    close_all();
    return 0;
}
