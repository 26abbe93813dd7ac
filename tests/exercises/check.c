/* check.c - checks exercises 9 to 12 against what the project does, on random inputs that end or
 * begin on guard pages, and shows the speed of what is right beside it. t_kernels.c checks those
 * before. */
#include <signal.h>

#include "tests/exercises/exercise.h"
#include "tests/exercises/watched_cloud.h"
#include "tests/kernels/deadline.h"
#include "tests/support/differ.h"
#include "tests/support/guard.h"
#include "tools/lab/bench/doubt.h"

enum { ROUNDS = 2000, WORD = 300, LINE = 1000, PICKS = 4096, TRACES = 10 };

static uint64_t drawn;
static struct kernels kernels;
static char told[400]; /* of the round: "; of the word 'aab'" */
static bool doubts;    /* one of the times is doubtful */

static size_t check_rnd(size_t below)
{
    return (size_t)rand_below(round_seed, drawn++, below);
}

static size_t check_size(size_t most)
{
    return 1 + check_rnd(check_rnd(4) ? most < 12 ? most : 12 : most);
}

static void check_begin(uint64_t seed)
{
    round_seed = seed;
    drawn = 0;
    differ_text[0] = told[0] = 0;
}

/* Write the shortest time of many turns, marked if the machine was busy. */
enum { TIME_TEXT = 32, TIME_NS = 260000000 }; /* doubt_look needs a quarter of a second */
static const char *check_time(char out[TIME_TEXT], void (*f)(void *), void *arg)
{
    double best = 1e30;
    uint64_t end = os_now_ns() + TIME_NS;
    char busy[DOUBT_TEXT] = "";
    struct doubt_others beside = { 0 };
    doubt_look(&beside);
    for (int i = 0; i < 5 || os_now_ns() < end; i++) {
        uint64_t begin = os_now_ns();
        f(arg);
        double us = (double)(os_now_ns() - begin) / 1000;
        best = us < best ? us : best;
    }
    doubt_look(&beside);
    bool doubtful = doubt_busy(busy, 1, beside.took);
    doubts |= doubtful;
    snprintf(out, TIME_TEXT, "%.1f us%s", best, doubtful ? "?" : "");
    return out;
}

struct merge_case {
    struct tokenizer *t;
    char word[LINE];
    uint32_t *ids;
    size_t n;
};

/* Make a word of few letters, so that pairs repeat and overlap. */
static void merge_word(struct merge_case *c, size_t n, size_t letters)
{
    c->n = n;
    c->ids = guard_alloc(n * sizeof(*c->ids), (int)check_rnd(2));
    guard_name(c->ids, "ids");
    for (size_t i = 0; i < n; i++) {
        c->word[i] = (char)('a' + check_rnd(letters));
        c->ids[i] = c->t->byte_id[(unsigned char)c->word[i]];
    }
    snprintf(told, sizeof(told), "; of the word '%.*s'", (int)n, c->word);
}

static void merge_mine(void *arg)
{
    struct merge_case *c = arg;
    for (size_t i = 0; i < c->n; i++)
        c->ids[i] = c->t->byte_id[(unsigned char)c->word[i]];
    exercise.merge(c->t, c->ids, c->n);
}

static void merge_theirs(void *arg)
{
    struct merge_case *c = arg;
    uint32_t *ids;
    size_t n;
    CHECK(tokenizer_encode(c->t, &ids, &n, c->word, c->n, false, NULL) == OK);
    free(ids);
}

static const char *check_merge(void)
{
    struct merge_case c;
    const char *why = NULL;
    CHECK(tokenizer_open_path(&c.t, "weights/milli/vocabulary.gguf", NULL) == OK);
    for (uint64_t seed = 0; !why && seed < ROUNDS; seed++) {
        uint32_t *want;
        size_t n, got;
        check_begin(seed);
        merge_word(&c, check_size(WORD), 2 + check_rnd(25));
        CHECK(tokenizer_encode(c.t, &want, &n, c.word, c.n, false, NULL) == OK);
        got = exercise.merge(c.t, c.ids, c.n);
        for (size_t i = 0; !why && i < n && i < got; i++)
            if (c.ids[i] != want[i]) {
                differ_ints(i, want[i], c.ids[i]);
                why = "ids";
            }
        if (!why && got != n) {
            differ_ints(0, (int64_t)n, (int64_t)got);
            why = "how many are left";
        }
        free(want);
        guard_reset();
    }
    tokenizer_close(c.t);
    return why;
}

static void time_merge(void)
{
    struct merge_case c;
    char mine[TIME_TEXT], theirs[TIME_TEXT];
    CHECK(tokenizer_open_path(&c.t, "weights/milli/vocabulary.gguf", NULL) == OK);
    check_begin(1);
    for (size_t n = 10; n <= LINE; n += LINE - 10) {
        merge_word(&c, n, 26);
        printf("%zu letters: yours %s, the project's %s\n", n, check_time(mine, merge_mine, &c),
               check_time(theirs, merge_theirs, &c));
    }
    guard_reset();
    tokenizer_close(c.t);
}

struct top_p_case {
    struct sampler *s;
    float *logits;
    size_t n;
    float p;
};

static void top_p_mine(void *arg)
{
    struct top_p_case *c = arg;
    exercise.top_p(c->logits, c->n, c->p, 1, 1);
}

static void top_p_theirs(void *arg)
{
    struct top_p_case *c = arg;
    const uint32_t prefix = 0;
    sampler_pick(c->s, c->logits, &prefix, 1);
}

/* Logits with equals among them, sometimes with NaN and -inf. */
static void top_p_draw(struct top_p_case *c, size_t n)
{
    bool wild = check_rnd(3) == 0, coarse = check_rnd(2);
    c->n = n;
    c->p = check_rnd(4) ? (float)(check_rnd(100) + 1) / 100 : 1;
    c->logits = guard_alloc(n * sizeof(float), (int)check_rnd(2));
    guard_name(c->logits, "logits");
    snprintf(told, sizeof(told), "; n %zu, p %.9g", n, (double)c->p);
    for (size_t i = 0; i < n; i++) {
        float x = (float)(rand_unit(round_seed, drawn++) * 12 - 6);
        c->logits[i] = coarse ? rintf(x) : x;
        if (wild && check_rnd(3) == 0)
            c->logits[i] = check_rnd(2) ? NAN : -INFINITY;
    }
    struct sample_params p = { .temp = 1, .top_p = c->p, .repeat_penalty = 1, .seed = round_seed };
    CHECK(sampler_open(&c->s, &p, n, &kernels, NULL) == OK);
}

static const char *check_top_p(void)
{
    const char *why = NULL;
    uint32_t prefix[8] = { 0 };
    struct top_p_case c;
    for (uint64_t seed = 0; !why && seed < ROUNDS; seed++) {
        check_begin(seed);
        top_p_draw(&c, check_size(PICKS));
        size_t at = 1 + check_rnd(8);
        uint32_t want = sampler_pick(c.s, c.logits, prefix, at);
        uint32_t got = exercise.top_p(c.logits, c.n, c.p, seed, at);
        if (got != want) {
            differ_ints(at, want, got);
            why = "id";
        }
        sampler_close(c.s);
        guard_reset();
    }
    return why;
}

static void time_top_p(void)
{
    struct top_p_case c;
    char mine[TIME_TEXT], theirs[TIME_TEXT];
    check_begin(1);
    top_p_draw(&c, PICKS);
    printf("%d ids: yours %s, the project's %s\n", PICKS, check_time(mine, top_p_mine, &c),
           check_time(theirs, top_p_theirs, &c));
    sampler_close(c.s);
    guard_reset();
}

struct score_case {
    struct router_form form;
    struct router *router;
    float *x, *scratch;
};

static void score_mine(void *arg)
{
    struct score_case *c = arg;
    exercise.score(&c->form, c->x);
}

static void score_theirs(void *arg)
{
    struct score_case *c = arg;
    router_score(c->router, c->x, c->scratch);
}

static float *score_numbers(size_t n, bool wild)
{
    float *x = guard_alloc(n * sizeof(*x), (int)check_rnd(2));
    for (size_t i = 0; i < n; i++)
        x[i] = wild && check_rnd(8) == 0 ? (check_rnd(2) ? NAN : INFINITY)
                                         : (float)(rand_unit(round_seed, drawn++) * 2 - 1);
    return x;
}

static void score_open(struct score_case *c, const struct kernels *k, size_t dim, size_t width)
{
    c->form = (struct router_form){ .dim = dim, .width = width, .members = 1, .b2 = { 0.25f } };
    c->form.w1 = score_numbers(dim * width, false);
    c->form.b1 = score_numbers(width, false);
    c->form.w2 = score_numbers(width, false);
    c->x = score_numbers(dim, check_rnd(3) == 0);
    guard_name(c->form.w1, "f->w1");
    guard_name(c->form.b1, "f->b1");
    guard_name(c->form.w2, "f->w2");
    guard_name(c->x, "x");
    size_t nans = 0;
    for (size_t i = 0; i < dim; i++)
        nans += isnan(c->x[i]) ? 1 : 0;
    snprintf(told, sizeof(told), "; dim %zu, width %zu, NaN in x: %zu", dim, width, nans);
    CHECK(router_make(&c->router, &c->form, "exercise", k, NULL) == OK);
    c->scratch = malloc(router_scratch(c->router) * sizeof(float));
    CHECK(c->scratch);
}

static void score_close(struct score_case *c)
{
    router_close(c->router);
    free(c->scratch);
    guard_reset();
}

static const char *check_score(void)
{
    bool same = true;
    struct score_case c;
    for (uint64_t seed = 0; same && seed < ROUNDS; seed++) {
        check_begin(seed);
        score_open(&c, &kernels, check_size(70), check_size(140));
        float want = router_score(c.router, c.x, c.scratch), got = exercise.score(&c.form, c.x);
        same = differ_same(&want, &got, 1);
        score_close(&c);
    }
    return same ? NULL : "score";
}

static void time_score(void)
{
    struct score_case c;
    char text[TIME_TEXT];
    check_begin(1);
    for (int i = 0; i < 2; i++) {
        score_open(&c, i ? &kernels : &kernels_scalar, 896, 1792);
        if (!i)
            printf("896 x 1792: yours %s", check_time(text, score_mine, &c));
        printf(", %s %s%s", i ? kernels.isa : "scalar", check_time(text, score_theirs, &c),
               i ? "\n" : "");
        score_close(&c);
    }
}

static uint64_t ahead_seed;

static bool ahead_routed(size_t n)
{
    return policy_score_random(ahead_seed, n) < AHEAD_SHARE;
}

/* Write the case's first text as the exercise does. */
static void ahead_mine(struct sim *sim, const struct setup *c, uint64_t trace, uint32_t *ids)
{
    struct sampler *mine, *its;
    struct cloud_port port;
    size_t size = tokenizer_size(engine.tokenizer), total = 1 + c->max_tokens;
    CHECK(sampler_open(&mine, &c->sample, size, &engine.kernels, NULL) == OK);
    CHECK(sampler_open(&its, &c->sample, size, &engine.kernels, NULL) == OK);
    *sim = (struct sim){ .truth = c->truth,
                         .trace = trace,
                         .delay = c->delay,
                         .session = session,
                         .drafts = true,
                         .edge = other,
                         .sampler = its,
                         .size = size };
    sim_port(&port, sim);
    sim_calls = port;
    asked = sim;
    asked_most = total - 1;
    evaluated = asked_at = 0;
    port.ask = ahead_ask;
    port.take = ahead_take;
    port.end = ahead_end;
    session_rewind(session, 0);
    ids[0] = c->prompt[0][0];
    ahead_seed = c->seed;
    const struct ahead_text t = { ids,         1, total, session, mine, &port, engine.tokenizer,
                                  ahead_routed };
    exercise.ahead(&t);
    ahead_steps();
    for (size_t i = 0; i < TRIPS; i++)
        ahead_time.in_step[i] += STEP * (double)(total - 1);
    sampler_close(mine);
    sampler_close(its);
}

static const unsigned ahead_agree[] = { 0, 60, 100 };
static struct ahead_time ahead_times[3]; /* over all rounds */

/* One case: the same text as in step, and no call left over. */
static const char *ahead_case(unsigned agree, uint64_t trace)
{
    static struct setup c;
    static struct sim sim;
    static uint32_t ids[TINY_CONTEXT];
    c = (struct setup){ .truth = { .seed = 5, .agree = agree, .tokens = 1, .room = SIM_MEMO },
                        .sample = { .top_p = 1, .repeat_penalty = 1 },
                        .policy = POLICY_RANDOM,
                        .threshold = AHEAD_SHARE,
                        .seed = trace,
                        .most_tokens = UINT64_MAX,
                        .most_input = UINT64_MAX,
                        .max_tokens = MOST,
                        .delay = 100,
                        .nprompt = { 1, 1 } };
    c.prompt[0][0] = c.prompt[1][0] = 70;
    run_window(&results[0], &c, 0, trace);
    const struct text *want = &results[0].text[0];
    ahead_mine(&sim, &c, trace, ids);
    for (size_t i = 0; i < want->n; i++)
        if (ids[1 + i] != want->at[i].id) {
            differ_ints(i, want->at[i].id, ids[1 + i]);
            return "the text";
        }
    differ_ints(MOST, 0, (int64_t)sim.live);
    if (sim.live)
        return "calls that have not ended";
    size_t calls = 0;
    for (size_t n = 1; n <= MOST; n++)
        calls += ahead_routed(n);
    differ_ints(MOST, (int64_t)calls, (int64_t)sim.ncommitted);
    return sim.ncommitted == calls ? NULL : "calls that were used";
}

static const char *check_ahead(void)
{
    const char *why = NULL;
    routers_open(true);
    for (size_t i = 0; !why && i < 3; i++) {
        ahead_time = (struct ahead_time){ .ahead = { 0 } };
        for (uint64_t trace = 1; !why && trace <= TRACES; trace++) {
            check_begin(trace);
            why = ahead_case(ahead_agree[i], trace);
        }
        ahead_times[i] = ahead_time;
    }
    routers_close();
    return why;
}

static void show_ahead(void)
{
    printf("ms of a text of %d tokens, means of %d texts; a step takes %d ms:\n", MOST, TRACES,
           STEP);
    for (size_t i = 0; i < 3; i++)
        for (size_t k = 0; k < TRIPS; k++)
            printf("the cloud agrees in %3u of 100, round trip %3.0f ms: %6.0f ahead, %6.0f in "
                   "step\n",
                   ahead_agree[i], trips[k], ahead_times[i].ahead[k] / TRACES,
                   ahead_times[i].in_step[k] / TRACES);
}

/* Say where it crashed: a guard page lies before and behind each buffer. */
static void on_crash(int sig, siginfo_t *about, void *context)
{
    char where[128] = "", line[1024];
    (void)context;
    if (sig != SIGVTALRM)
        guard_where(where, sizeof(where), about->si_addr);
    int n = snprintf(line, sizeof(line), "FAIL: %s%s%s; in the round with round_seed %llu of %s\n",
                     sig == SIGVTALRM ? DEADLINE_MISSED : "crashed", where, told,
                     (unsigned long long)round_seed, program);
    _exit(write(STDOUT_FILENO, line, (size_t)n) < 0 ? 2 : 1);
}

static int check_one(const char *name, bool is, const char *(*check)(void), void (*show)(void))
{
    deadline_set(true);
    const char *why = is ? check() : NULL;
    deadline_set(false);
    if (why)
        printf("FAIL %s: %s%s%s; in the round with round_seed %llu of %s\n", name, why, differ_text,
               told, (unsigned long long)round_seed, program);
    else if (is)
        printf("%s: right\n", name);
    if (is && !why)
        show();
    return why != NULL;
}

int main(int argc, char **argv)
{
    struct sigaction sa = { .sa_sigaction = on_crash, .sa_flags = SA_SIGINFO };
    program = argc ? argv[0] : "";
    if ((cpu_detect() & EXERCISE_NEEDS) != EXERCISE_NEEDS) {
        puts("exercises: not on this machine, which lacks instructions for fmaf");
        return 1;
    }
    sigaction(SIGSEGV, &sa, NULL);
    sigaction(SIGBUS, &sa, NULL);
    sigaction(SIGVTALRM, &sa, NULL);
    CHECK(kernels_pick(&kernels, NULL, cpu_detect(), NULL) == OK);
    setvbuf(stdout, NULL, _IOLBF, 0);
    int failed = check_one("merge", exercise.merge, check_merge, time_merge);
    failed += check_one("top_p", exercise.top_p, check_top_p, time_top_p);
    failed += check_one("score", exercise.score, check_score, time_score);
    failed += check_one("ahead", exercise.ahead, check_ahead, show_ahead);
    if (doubts)
        puts("?: other programs kept the machine busy; these times are the shortest of many");
    return failed != 0;
}
