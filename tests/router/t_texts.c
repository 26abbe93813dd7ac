/* t_texts.c - many texts at once are what each of them is alone. Random mixes of 1 to 12 texts
 * share few slots, a short context and a scripted cloud; some are cancelled. Ids, sources, scores,
 * reasons and counts must be those of decode_run with the same options, and logprobs those of the
 * model. TEXTS_CASES mixes are tried (default 150; under a sanitizer or $RUN a fifth of it). */
#include "tests/router/texts_help.h"

enum { TEXTS = 12, MOST = 40 };

struct plan {
    struct text_wish wish;
    struct text_routing routing;
    uint32_t prompt[TINY_CONTEXT], stop_ids[2];
    char stop[4];
    const char *stops[2];
    size_t cancel; /* after so many tokens; SIZE_MAX: never */
    struct text *text;
    /* What it is alone. */
    struct decode_token at[TINY_CONTEXT];
    char faults[TINY_CONTEXT][64];
    size_t n;
    struct decode_stats stats;
};

static struct plan plans[TEXTS];
static struct script script;
static uint64_t draws;
static size_t cancelled, copied, answered, fallbacks, stopped, full, accepted, alike;
static size_t passed, secrets, unread;

static size_t draw(size_t below)
{
    return (size_t)rand_below(29, draws++, below);
}

static bool once_in(size_t n)
{
    return draw(n) == 0;
}

/* Draw a prompt of n ids; half of them begin like the one before. */
static void draw_prompt(struct plan *p, size_t n)
{
    size_t same = p > plans && once_in(2) ? n - draw(n < 9 ? n : 9) : 0;
    if (p > plans && same > p[-1].wish.n)
        same = p[-1].wish.n;
    for (size_t i = 0; i < n; i++)
        p->prompt[i] = i < same ? p[-1].prompt[i] : (uint32_t)draw(TINY_IM_END);
    alike += same > 32;
}

static void draw_routing(struct plan *p)
{
    static const enum policy policies[] = { POLICY_MLP,    POLICY_ENTROPY, POLICY_MAX_PROB,
                                            POLICY_MARGIN, POLICY_RANDOM,  POLICY_ALWAYS,
                                            POLICY_NEVER,  POLICY_CONTEXT, POLICY_COMBINED };
    enum policy policy = policies[draw(9)];
    p->routing = (struct text_routing){ .policy = policy,
                                        .router = policy == POLICY_CONTEXT    ? table
                                                  : policy == POLICY_COMBINED ? combined
                                                  : once_in(3)                ? mixed
                                                                              : NULL,
                                        .threshold = (float)draw(once_in(3) ? 10 : 100) / 100,
                                        .max_routed = once_in(5) ? 0.2f : 0,
                                        .ahead = once_in(2),
                                        .max_cloud_tokens = once_in(4) ? draw(5) : UINT64_MAX };
    if (script.tokens > 1) /* what is known of a reply counts less than a call in such a limit */
        p->routing.max_cloud_tokens = UINT64_MAX;
    p->wish.model = once_in(6) ? TEXT_EDGE : once_in(6) ? TEXT_CLOUD : TEXT_ROUTED;
    p->wish.routing = &p->routing;
}

static void draw_plan(struct plan *p, size_t context)
{
    *p = (struct plan){ .cancel = once_in(6) ? draw(20) : SIZE_MAX };
    struct text_wish *w = &p->wish;
    w->n = 1 + draw(once_in(2) ? context : 20);
    w->max = 1 + draw(once_in(8) ? context : MOST);
    w->sample = plain;
    w->sample.temp = once_in(3) ? 0.8f : 0;
    w->sample.repeat_penalty = once_in(4) ? 1.3f : 1;
    w->sample.seed = draw(1000);
    w->logprobs = once_in(2);
    w->top = w->logprobs ? draw(5) : 0;
    w->edges = once_in(3);
    w->apart = once_in(2);
    w->events = once_in(2);
    w->ignore_eos = once_in(3);
    w->slot = once_in(8) ? (long)draw(4) : -1;
    w->prompt = p->prompt;
    draw_prompt(p, w->n);
    draw_routing(p);
    if (once_in(6)) { /* lazy */
        p->routing.policy = POLICY_ALWAYS;
        p->routing.ahead = 0;
        w->apart = true;
        w->edges = w->logprobs = false;
        w->top = 0;
    }
    if (once_in(4)) {
        p->stop_ids[0] = (uint32_t)draw(TINY_IM_END);
        p->stop_ids[1] = (uint32_t)draw(TINY_IM_END);
        w->stop_ids = p->stop_ids;
        w->nstop_ids = 2;
    }
    if (once_in(4)) {
        p->stop[0] = (char)(33 + draw(90));
        p->stops[0] = p->stop;
        w->stops = p->stops;
    }
    if (once_in(5))
        w->patterns = "# private\n\\w\\d\nxy\n";
}

static bool on_token(void *arg, const struct decode_token *t)
{
    struct plan *p = arg;
    snprintf(p->faults[p->n], sizeof(p->faults[0]), "%s", t->fault ? t->fault : "");
    p->at[p->n++] = *t;
    return !p->wish.nstop_ids || (t->id != p->stop_ids[0] && t->id != p->stop_ids[1]);
}

static void write_alone(struct plan *p, const struct routing *r, struct session *s)
{
    const struct text_wish *w = &p->wish;
    struct private_filter *patterns;
    struct gate gate = { 0 };
    uint64_t limit = p->routing.max_cloud_tokens;
    struct sampler *sampler;
    CHECK(private_open(&patterns, NULL, w->patterns, engine.tokenizer, NULL) == OK);
    CHECK(sampler_open(&sampler, &w->sample, tokenizer_size(engine.tokenizer), &engine.kernels,
                       NULL) == OK);
    struct decode_options o = { .policy = w->model == TEXT_CLOUD  ? POLICY_ALWAYS
                                          : w->model == TEXT_EDGE ? POLICY_NEVER
                                                                  : p->routing.policy,
                                .threshold = p->routing.threshold,
                                .call_tokens = r->how.call_tokens,
                                .max_routed = w->model == TEXT_CLOUD ? 0 : p->routing.max_routed,
                                .ahead = p->routing.ahead,
                                .gate = &gate,
                                .edges = w->edges || w->logprobs,
                                .max_tokens = w->max,
                                .seed = w->sample.seed,
                                .stops = w->stops,
                                .ignore_eos = w->ignore_eos,
                                .cloud_limit = limit == UINT64_MAX ? 0 : limit + 1,
                                .patterns = patterns,
                                .emit = on_token,
                                .arg = p };
    p->n = 0;
    session_rewind(s, 0);
    const struct router *router = p->routing.router ? p->routing.router : r->router;
    CHECK(decode_run(&p->stats, s, engine.tokenizer, sampler, router, &script.port, p->prompt, w->n,
                     &o, NULL) == OK);
    sampler_close(sampler);
    private_close(patterns);
}

static bool is_word(uint32_t id)
{
    return id == '_' || (id >= '0' && id <= '9') || (id >= 'A' && id <= 'Z') ||
           (id >= 'a' && id <= 'z');
}

/* True when the patterns of draw_plan match somewhere in the ids, which are bytes. */
static bool is_private(const uint32_t *ids, size_t n)
{
    for (size_t i = 1; i < n; i++)
        if ((ids[i - 1] == 'x' && ids[i] == 'y') ||
            (is_word(ids[i - 1]) && ids[i] >= '0' && ids[i] <= '9'))
            return true;
    return false;
}

/* What the wish forbids has not happened. */
static void check_limits(const struct plan *p, const struct text_view *v)
{
    const struct text_wish *w = &p->wish;
    CHECK(v->stats.committed <= p->routing.max_cloud_tokens);
    for (size_t i = 0; i < v->n; i++) {
        const struct text_token *t = &v->tokens[i];
        bool eog = tokenizer_is_eog(engine.tokenizer, t->t.id), secret = false;
        if (w->patterns)
            secret = is_private(v->ids, w->n + i);
        CHECK(t->t.eog == (eog && !w->ignore_eos) && (!t->t.eog || i + 1 == v->n));
        CHECK(!secret || !t->call.bytes_up);
        CHECK(w->model != TEXT_EDGE || t->t.source == SOURCE_EDGE);
        passed += eog && !t->t.eog;
        secrets += secret && t->t.reason == GATE_PRIVATE;
    }
}

/* The text is what it is alone, or the beginning of that if it was cancelled. */
static void compare(const struct plan *p, const struct text_view *v)
{
    const struct decode_stats *s = &p->stats, *t = &v->stats;
    bool whole = v->rc == OK;
    size_t calls = 0; /* that tokens had */
    CHECK(v->finished && (whole || (v->rc == ERR_STOP && p->cancel != SIZE_MAX)));
    CHECK(whole ? v->n == p->n && t->finish == s->finish : v->n <= p->n);
    CHECK(v->prompt_n == p->wish.n && !memcmp(v->ids, p->prompt, p->wish.n * sizeof(*v->ids)));
    for (size_t i = 0; i < v->n; i++) {
        const struct decode_token *x = &p->at[i];
        const struct text_token *y = &v->tokens[i];
        CHECK(x->id == y->t.id && v->ids[p->wish.n + i] == x->id && x->source == y->t.source);
        CHECK(x->reason == y->t.reason && x->eog == y->t.eog);
        CHECK(!strcmp(p->faults[i], y->t.fault ? y->t.fault : ""));
        CHECK(memcmp(&x->score, &y->t.score, sizeof(x->score)) == 0);
        /* With replies of several tokens, it knows alone what it had to ask for before. */
        CHECK(x->has_edge == y->t.has_edge || script.tokens > 1);
        CHECK(!x->has_edge || !y->t.has_edge || x->edge_id == y->t.edge_id);
        CHECK(!p->wish.logprobs == isnan(y->logprob));
        if (p->wish.logprobs)
            check_logprob(v->ids, p->wish.n + i, y->logprob, v->tops + i * v->top, v->top);
        answered += y->t.source == SOURCE_CLOUD;
        CHECK(y->call.bytes_up == (y->call_ms > 0 ? p->wish.n + i : 0));
        CHECK(y->memo == (y->t.source == SOURCE_CLOUD && !y->call.bytes_up));
        calls += y->call_ms > 0;
        fallbacks += y->t.source == SOURCE_FALLBACK;
    }
    check_limits(p, v);
    CHECK(t->calls == t->committed + t->failed || !whole);
    if (!whole)
        return;
    CHECK(script.tokens > 1 || s->committed == t->committed);
    CHECK(s->failed == t->failed && s->tokens == t->tokens);
    CHECK(s->cloud == t->cloud && s->fallback == t->fallback);
    CHECK(v->read == v->prompt_n || t->cloud == t->tokens);
    unread += v->read < v->prompt_n;
    CHECK(!memcmp(s->reasons, t->reasons, sizeof(s->reasons)));
    CHECK(!t->calls == !t->traffic.bytes_up && calls == t->committed + t->failed);
    stopped += s->finish == FINISH_STOP;
    full += p->wish.n + v->n > 40 && s->finish == FINISH_LENGTH && v->n < p->wish.max;
    accepted += t->accepted;
}

static void pause_ns(long ns)
{
    nanosleep(&(struct timespec){ .tv_nsec = ns }, NULL);
}

static void run(void)
{
    script_forget(&script);
    script.tokens = once_in(2) ? 1 : 2 + draw(5);
    script.unfit = script.tokens == 1; /* what is known of such a text depends on the others */
    struct text_view views[TEXTS];
    size_t n = 1 + draw(TEXTS), context = once_in(2) ? TINY_CONTEXT : 40 + draw(40);
    struct routing r = { .router = once_in(3) ? gain : network,
                         .how.call_tokens = script.tokens,
                         .how.drafts = (enum draft_kind)draw(4),
                         .port = script.port };
    struct texts *e = texts_with(&r, 1 + draw(6), TEXTS, context);
    struct session *alone;
    script.delay = once_in(4) ? 40 : once_in(2) ? draw(12) : 0;
    script.seed = draw(1000);
    CHECK(session_open(&alone, others, context, KVCACHE_F32, NULL) == OK);
    for (size_t i = 0; i < n; i++) {
        struct plan *p = &plans[i];
        draw_plan(p, context);
        if (once_in(2))
            pause_ns((long)draw(300000));
        CHECK(texts_ask(e, &p->text, &p->wish, NULL) == OK);
    }
    for (size_t i = 0; i < n; i++)
        if (plans[i].cancel != SIZE_MAX) {
            text_wait(plans[i].text, plans[i].cancel);
            text_cancel(plans[i].text);
        }
    for (size_t i = 0; i < n; i++)
        views[i] = text_wait(plans[i].text, SIZE_MAX);
    for (size_t i = 0; i < n; i++) {
        write_alone(&plans[i], &r, alone);
        compare(&plans[i], &views[i]);
        cancelled += views[i].rc == ERR_STOP;
        copied += views[i].cached > 0;
    }
    for (size_t i = 0; i < n; i++)
        text_drop(plans[i].text);
    struct texts_counts c = texts_count(e);
    CHECK(!c.busy && !c.waiting && c.asked == n && c.finished + c.stopped == n && !c.failed);
    CHECK(!r.gate.out && !script.live);
    texts_close(e);
    session_close(alone);
}

int main(void)
{
    const char *given = getenv("TEXTS_CASES"), *run_by = getenv("RUN");
    bool slow = SANITIZED || (run_by && *run_by);
    size_t cases = given ? strtoul(given, NULL, 10) : slow ? 30 : 150;
    open_all();
    script = (struct script){
        .agree = 60, .unfit = 1, .store = 10, .size = TINY_EOS + 1, .edge = other, .greedy = greedy
    };
    script_open(&script);
    for (size_t i = 0; i < cases; i++)
        run();
    printf(
        "%zu cancelled, %zu with a copied beginning, %zu alike, %zu tokens of the cloud, %zu "
        "fallbacks, %zu stops, %zu full contexts, %zu drafted, %zu ends ignored, %zu private, %zu "
        "mended unread\n",
        cancelled, copied, alike, answered, fallbacks, stopped, full, accepted, passed, secrets,
        unread);
    CHECK(cases < 20 || (cancelled && copied && alike && answered && fallbacks && stopped && full &&
                         accepted && passed && secrets && unread));
    script_close(&script);
    close_all();
    return 0;
}
