/* The public interface as a hostile program uses it: callbacks that call back, overlapping calls,
 * mizzle_stop from other threads and signal handlers, several handles at once, a cloud that is slow
 * or absent, and no memory. */
#include <signal.h>

#include "tests/router/loop_help.h"
#include "tests/router/mizzle_help.h"
#include "tools/lab/stand_in/stand_in.h"

static struct stand_in *cloud;

/* The same seed gives the same text, another seed gives another one. */
static void test_seed(void)
{
    struct mizzle_options o = base;
    struct seen s[3] = { 0 };
    o.temp = 5;
    o.seed = 2;
    struct mizzle *m = open_with(&o);
    for (size_t i = 0; i < 3; i++) {
        const struct mizzle_prompt p = { .size = sizeof(p), .text = "a", .seed = i == 1 ? 7 : 0 };
        CHECK(mizzle_generate(m, &p, on_token, &s[i], NULL, NULL) == MIZZLE_OK);
    }
    CHECK(memcmp(s[0].ids, s[1].ids, sizeof(s[0].ids)) != 0);
    CHECK(memcmp(s[0].ids, s[2].ids, sizeof(s[0].ids)) == 0);
    CHECK(mizzle_close(m) == MIZZLE_OK);
}

/* In the callback of a call, all other calls on the handle are refused and change nothing. */
static void call_again(struct seen *s)
{
    struct mizzle_stats st = { .size = sizeof(st), .tokens = 5 };
    struct mizzle_error e = { .size = sizeof(e) };
    const struct mizzle_prompt p = { .size = sizeof(p), .text = "other" };
    const struct mizzle_token before = *s->now;
    CHECK(mizzle_generate(s->m, &p, on_token, s, &st, &e) == MIZZLE_BUSY);
    CHECK(e.code == MIZZLE_BUSY && *e.message && st.tokens == 5 && s->n == 1);
    CHECK(mizzle_close(s->m) == MIZZLE_BUSY && !mizzle_note(s->m, &e));
    CHECK(memcmp(&before, s->now, sizeof(before)) == 0);
}

static void *close_elsewhere(void *arg)
{
    CHECK(mizzle_close(arg) == MIZZLE_BUSY);
    return NULL;
}

static void *stop_elsewhere(void *arg)
{
    mizzle_stop(arg);
    return NULL;
}

static void in_thread(void *(*fn)(void *arg), void *arg)
{
    pthread_t t;
    CHECK(pthread_create(&t, NULL, fn, arg) == 0 && pthread_join(t, NULL) == 0);
}

static void close_from_thread(struct seen *s)
{
    in_thread(close_elsewhere, s->m);
}

static void stop_from_thread(struct seen *s)
{
    in_thread(stop_elsewhere, s->m);
}

static struct mizzle *handled; /* what the signal handler stops */

static void on_signal(int number)
{
    (void)number;
    mizzle_stop(handled);
}

static void stop_from_signal(struct seen *s)
{
    handled = s->m;
    CHECK(raise(SIGUSR1) == 0);
}

/* Calls that overlap do not disturb the answer; mizzle_stop ends one answer and no more. */
static void test_busy_and_stop(void)
{
    static void (*const disturb[])(struct seen * s) = { call_again, close_from_thread };
    static void (*const stop[])(struct seen * s) = { stop_from_thread, stop_from_signal };
    struct sigaction act = { .sa_handler = on_signal };
    struct mizzle *m = open_with(&base);
    CHECK(sigaction(SIGUSR1, &act, NULL) == 0);
    for (size_t i = 0; i < 2; i++) {
        struct seen calm = { 0 }, busy = { .first = disturb[i] }, cut = { .first = stop[i] };
        struct mizzle_stats st = { .size = sizeof(st) };
        CHECK(write_text(m, "some text", &calm, NULL) == MIZZLE_OK);
        CHECK(write_text(m, "some text", &busy, NULL) == MIZZLE_OK);
        CHECK(busy.n == calm.n && memcmp(busy.ids, calm.ids, sizeof(calm.ids)) == 0);
        CHECK(write_text(m, "some text", &cut, &st) == MIZZLE_STOPPED && cut.n == 1);
        CHECK(st.tokens == 1 && strcmp(st.finish, "error") == 0);
        expect_answer(m);
        mizzle_stop(m); /* ends the next call at once, and only that one */
        cut = (struct seen){ 0 };
        CHECK(write_text(m, "some text", &cut, NULL) == MIZZLE_STOPPED && cut.n == 0);
        expect_answer(m);
    }
    CHECK(mizzle_close(m) == MIZZLE_OK);
}

static struct seen *whole_text; /* which is not stopped */

static void stop_reading(void *arg, size_t done, size_t all)
{
    struct seen *s = arg;
    CHECK(s->n == 0 && done > s->reached && done <= all && all == 240);
    s->reached = done;
    if (done < all && s != whole_text)
        mizzle_stop(s->m);
}

/* mizzle_stop ends a call while the prompt is read, which takes more than one pass. */
static void test_stop_reading(void)
{
    struct mizzle *m = open_with(&base), *other = open_with(&base);
    char text[241] = "";
    struct seen cut = { .m = m }, whole = { 0 }, again = { 0 };
    memset(text, 'x', 240);
    const struct mizzle_prompt p = { .size = sizeof(p), .text = text, .on_reading = stop_reading };
    CHECK(mizzle_generate(m, &p, on_token, &cut, NULL, NULL) == MIZZLE_STOPPED && cut.n == 0);
    whole_text = &whole;
    CHECK(mizzle_generate(other, &p, on_token, &whole, NULL, NULL) == MIZZLE_OK);
    CHECK(whole.n > 0 && whole.reached == 240);
    CHECK(write_text(m, text, &again, NULL) == MIZZLE_OK && again.n == whole.n);
    CHECK(memcmp(again.ids, whole.ids, sizeof(again.ids)) == 0);
    CHECK(mizzle_close(m) == MIZZLE_OK && mizzle_close(other) == MIZZLE_OK);
    /* Nothing is told of a prompt that is read behind a token of the cloud. */
    struct mizzle_options o = base;
    struct mizzle_stats st = { .size = sizeof(st) };
    struct seen late = { 0 };
    o.cloud_model = model;
    o.policy = "position";
    o.place = "0";
    o.ahead = 0;
    m = open_with(&o);
    CHECK(mizzle_generate(m, &p, on_token, &late, &st, NULL) == MIZZLE_OK);
    CHECK(late.from[MIZZLE_CLOUD] == 1 && late.n > 1 && late.reached == 0);
    CHECK(st.ttft_ms > 0 && !(st.prompt_ms > 0) && st.edge_ms > 0);
    CHECK(mizzle_close(m) == MIZZLE_OK);
}

static void *stop_soon(void *arg)
{
    rest_us(100000);
    mizzle_stop(arg);
    return NULL;
}

static pthread_t stopper;
static size_t told; /* calls of on_opening */

/* The first call brings the handle, which another thread then stops; the second one brings NULL. */
static void on_opening(void *arg, struct mizzle *m)
{
    const struct mizzle_prompt p = { .size = sizeof(p), .text = "x" };
    told++;
    CHECK(arg == &told && (told == 1) == (m != NULL));
    if (!m)
        return;
    /* Opening is a call like any other, so further calls are refused. */
    CHECK(mizzle_close(m) == MIZZLE_BUSY && !mizzle_note(m, NULL));
    CHECK(mizzle_generate(m, &p, NULL, NULL, NULL, NULL) == MIZZLE_BUSY);
    CHECK(pthread_create(&stopper, NULL, stop_soon, m) == 0);
}

/* mizzle_stop ends a call that waits for a cloud which takes a minute, and mizzle_open while that
 * cloud is being asked for its dialect. */
static void test_stop_waiting(void)
{
    const struct stand_in_options so = { .model = model, .threads = 1, .latency_ms = 60000 };
    struct mizzle_options o = base;
    struct stand_in *slow;
    struct seen s = { 0 };
    pthread_t t;
    CHECK(stand_in_open(&slow, &so, NULL) == OK);
    o.cloud_url = stand_in_url(slow);
    o.cloud_api = "openai";
    o.cloud_model = "slow";
    o.policy = "always";
    o.cloud_timeout = 600000;
    struct mizzle *m = open_with(&o);
    CHECK(pthread_create(&t, NULL, stop_soon, m) == 0);
    CHECK(write_text(m, "some text", &s, NULL) == MIZZLE_STOPPED && s.n == 0);
    CHECK(pthread_join(t, NULL) == 0 && mizzle_close(m) == MIZZLE_OK);
    o.cloud_api = o.cloud_model = NULL;
    o.on_opening = on_opening;
    o.opening_arg = &told;
    CHECK(mizzle_open(&m, &o, NULL) == MIZZLE_STOPPED && !m && told == 2);
    CHECK(pthread_join(stopper, NULL) == 0);
    stand_in_close(slow);
}

static void *write_some(void *arg)
{
    struct mizzle *m = open_with(arg);
    for (int i = 0; i < 5; i++)
        expect_answer(m);
    CHECK(mizzle_close(m) == MIZZLE_OK);
    return NULL;
}

/* Several handles in several threads give the same answers as one alone. */
static void test_side_by_side(void)
{
    struct mizzle_options o = base;
    pthread_t t[2];
    o.cloud_url = stand_in_url(cloud);
    o.policy = "never";
    o.threads = 2;
    for (size_t i = 0; i < 2; i++)
        CHECK(pthread_create(&t[i], NULL, write_some, &o) == 0);
    struct mizzle *a = open_with(&base), *b = open_with(&base);
    expect_answer(a);
    expect_answer(b);
    CHECK(mizzle_close(a) == MIZZLE_OK);
    expect_answer(b);
    CHECK(mizzle_close(b) == MIZZLE_OK);
    for (size_t i = 0; i < 2; i++)
        CHECK(pthread_join(t[i], NULL) == 0);
}

/* A cloud that writes everything, one that is capped, none, and one that cannot be reached. */
static void test_cloud(void)
{
    struct mizzle_options o = base;
    struct mizzle_error e = { .size = sizeof(e) };
    struct mizzle_stats st = { .size = sizeof(st) };
    struct seen s = { 0 }, alone = { 0 };
    o.policy = "always";
    o.cloud_url = stand_in_url(cloud);
    struct mizzle *m = open_with(&o);
    CHECK(write_text(m, "some text", &s, &st) == MIZZLE_OK && s.from[MIZZLE_CLOUD] == s.n);
    CHECK(st.cloud == s.n && st.calls == s.n && st.bytes_up > 0 && st.held.fault == 0);
    CHECK(st.start_ms > 0); /* the second answer does not report it again */
    CHECK(write_text(m, "some text", &alone, &st) == MIZZLE_OK && st.start_ms == 0);
    alone = (struct seen){ 0 };
    CHECK(mizzle_close(m) == MIZZLE_OK);
    o.max_cloud_tokens = 4; /* one of them is asked for as the server is found out */
    m = open_with(&o);
    CHECK(write_text(m, "some text", &alone, &st) == MIZZLE_OK && st.cloud == 3);
    CHECK(st.held.capped == alone.n - 3 && alone.faults == alone.n - 3);
    CHECK(mizzle_close(m) == MIZZLE_OK);
    o.cloud_url = NULL;
    CHECK(mizzle_open(&m, &o, &e) == MIZZLE_NET && strstr(e.message, "cloud_url"));
    o.policy = "random";
    m = open_with(&o);
    CHECK(mizzle_note(m, &e) && strstr(e.message, "cloud off") && !mizzle_note(m, &e));
    CHECK(mizzle_close(m) == MIZZLE_OK);
    const char *usual = o.model;
    o.model = "weights/milli/edge-0.5.gguf"; /* whose router has nobody to ask */
    o.policy = NULL;
    m = open_with(&o);
    CHECK(mizzle_note(m, &e) && strstr(e.message, "no cloud_model") && !mizzle_note(m, &e));
    alone = (struct seen){ 0 };
    CHECK(write_text(m, "some text", &alone, &st) == MIZZLE_OK && !st.fallback && !alone.faults);
    CHECK(mizzle_close(m) == MIZZLE_OK);
    o.model = usual;
    o.policy = "random";
    o.cloud_url = "http://127.0.0.1:1";
    o.cloud = "required";
    CHECK(mizzle_open(&m, &o, &e) == MIZZLE_NET && strstr(e.message, "127.0.0.1") && !m);
}

static size_t longest; /* text that max_prob was asked about */

/* Score as policy max-prob does, from what on_score is given; some tokens have no score. */
static float max_prob(void *arg, const struct mizzle_state *x)
{
    double sum = 0, hidden = 0;
    size_t best = 0;
    CHECK(x->size == sizeof(*x) && x->n_ids && x->n_hidden == 32 && x->n_logits > x->id);
    for (size_t i = 0; i < x->n_logits; i++)
        best = x->logits[i] > x->logits[best] ? i : best;
    for (size_t i = 0; i < x->n_logits; i++)
        sum += exp((double)x->logits[i] - (double)x->logits[best]);
    for (size_t i = 0; i < x->n_hidden; i++)
        hidden += (double)x->hidden[i] * (double)x->hidden[i];
    CHECK(hidden > 0 && best == x->id);
    longest = x->n_ids > longest ? x->n_ids : longest;
    return *(bool *)arg ? (float)NAN : (float)(1 / sum);
}

/* A score of the program's own routes as a policy of the same score, whatever is in flight. */
static void test_own_score(void)
{
    struct mizzle_options o = base;
    struct mizzle_stats st[2] = { { .size = sizeof(*st) }, { .size = sizeof(*st) } };
    bool nothing = false;
    size_t routed = 0, kept = 0;
    o.cloud_url = stand_in_url(cloud);
    for (size_t i = 0; i < 12; i++) {
        struct seen s[2] = { 0 };
        o.ahead = i % 2;
        o.threshold = 0.02 + 0.01 * (double)(i / 3);
        for (size_t own = 0; own < 2; own++) {
            o.policy = own ? NULL : "max-prob";
            o.on_score = own ? max_prob : NULL;
            o.score_arg = &nothing;
            struct mizzle *m = open_with(&o);
            CHECK(write_text(m, "some text", &s[own], &st[own]) == MIZZLE_OK);
            CHECK(mizzle_close(m) == MIZZLE_OK);
        }
        CHECK(st[0].cloud == st[1].cloud && !memcmp(s[0].ids, s[1].ids, sizeof(s[0].ids)));
        routed += st[1].cloud;
        kept += st[1].tokens - st[1].cloud;
    }
    CHECK_MSG(routed && kept && longest > 6, "%zu, %zu", routed, kept);
    struct seen s = { 0 };
    nothing = true;
    struct mizzle *m = open_with(&o);
    CHECK(write_text(m, "some text", &s, st) == MIZZLE_OK && st->cloud == st->tokens);
    CHECK(mizzle_close(m) == MIZZLE_OK);
}

/* The program passes the server's key; without it, the server refuses. */
static void test_key(void)
{
    const struct stand_in_options so = { .model = model, .threads = 1, .listen.key = "secret" };
    struct mizzle_options o = base;
    struct mizzle *m;
    struct stand_in *locked;
    struct seen s = { 0 };
    CHECK(stand_in_open(&locked, &so, NULL) == OK);
    o.policy = "always";
    o.cloud = "required";
    o.cloud_url = stand_in_url(locked);
    CHECK(mizzle_open(&m, &o, NULL) == MIZZLE_REMOTE && !m);
    o.cloud_key = "secret";
    m = open_with(&o);
    CHECK(write_text(m, "some text", &s, NULL) == MIZZLE_OK && s.from[MIZZLE_CLOUD] == s.n);
    CHECK(mizzle_close(m) == MIZZLE_OK);
    stand_in_close(locked);
}

/* Answers are kept and need no network then. t_answers.sh has a full disk. */
static void test_answers(void)
{
    struct mizzle_stats stats = { .size = sizeof(stats) };
    struct mizzle_options o = base;
    struct seen s = { 0 };
    o.policy = "always";
    o.cloud_url = stand_in_url(cloud);
    o.answers = in_scratch("answers");
    struct mizzle *m = open_with(&o);
    CHECK(write_text(m, "some text", &s, NULL) == MIZZLE_OK && mizzle_close(m) == MIZZLE_OK);
    o.offline = 1;
    o.cloud = "required";
    o.cloud_url = NULL;
    m = open_with(&o);
    s = (struct seen){ 0 };
    CHECK(write_text(m, "some text", &s, &stats) == MIZZLE_OK && s.from[MIZZLE_CLOUD] == s.n);
    CHECK(stats.store == s.n && stats.calls == 0);
    s = (struct seen){ 0 };
    CHECK(write_text(m, "another text", &s, NULL) == MIZZLE_NET && mizzle_close(m) == MIZZLE_OK);
}

/* For torture_each: a call that lacks memory returns MIZZLE_NOMEM, and nothing leaks. */
static int open_and_write(const void *arg)
{
    struct mizzle *m;
    struct mizzle_error e = { .size = sizeof(e) };
    struct seen s = { 0 };
    int rc = mizzle_open(&m, arg, &e);
    CHECK((rc == MIZZLE_OK) == (m != NULL) && e.code == rc);
    if (rc == MIZZLE_OK)
        rc = write_text(m, "some text", &s, NULL);
    CHECK(mizzle_close(m) == MIZZLE_OK && (rc == MIZZLE_OK || rc == MIZZLE_NOMEM));
    return rc == MIZZLE_OK ? OK : ERR_NOMEM;
}

/* Handles that are opened and closed leave no file descriptors. */
static void test_leaks(void)
{
    struct mizzle_options o = base;
    o.cloud_url = stand_in_url(cloud);
    o.policy = "random";
    CHECK(mizzle_close(open_with(&o)) == MIZZLE_OK); /* opens what libraries keep until exit */
    size_t before = descriptors();
    for (int i = 0; i < 20; i++)
        CHECK(mizzle_close(open_with(&o)) == MIZZLE_OK);
    CHECK(descriptors() <= before + 2); /* the stand-in's side of the last connection */
}

int main(void)
{
    base_make();
    const struct stand_in_options so = { .model = model, .threads = 1 };
    torture_each(open_and_write, &base); /* before there are other threads */
    CHECK(stand_in_open(&cloud, &so, NULL) == OK);
    test_seed();
    test_busy_and_stop();
    test_stop_reading();
    test_stop_waiting();
    test_side_by_side();
    test_cloud();
    test_own_score();
    test_key();
    test_answers();
    test_leaks();
    stand_in_close(cloud);
    return 0;
}
