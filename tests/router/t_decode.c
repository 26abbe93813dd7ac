/* Tests the decoding loop: who writes what, that the head is read only when needed, and every way
 * in which an answer ends. The cloud is the stand-in with the same model, so that routed and local
 * greedy answers are one text; or a rude server. */

#include "kernels/sys/buf.h"
#include "model/text/tokenizer.h"
#include "router/decode/step.h"
#include "router/decode/stops.h"
#include "tests/router/loop_help.h"
#include "tests/support/sim.h"
#include "tests/support/rude.h"
#include "tools/lab/stand_in/stand_in.h"

enum { LENGTH = 24, PROMPT = 3, ASK_US = 200 };

static const uint32_t prompt[PROMPT] = { 72, 105, 33 };
static struct engine engine;
static struct router *table, *combined; /* for policies context and combined */
static struct session *session;
static struct sampler *sampler;
static struct stand_in *stand_in;
static struct rude *rude;
static uint32_t edge[LENGTH]; /* what the model writes without a cloud */

static struct seen {
    struct decode_token at[TINY_CONTEXT];
    size_t n, most;
    bool read[TINY_CONTEXT]; /* the head had been read when the token was decided */
    struct decode_stats stats;
    char fault[256];
    _Atomic int stop;
    size_t interrupt_after;
} seen;

static bool on_token(void *arg, const struct decode_token *t)
{
    struct seen *s = arg;
    CHECK(s->n < TINY_CONTEXT && t->pos == s->n && t->ms >= 0);
    CHECK(t->id < tokenizer_size(engine.tokenizer));
    CHECK((t->source == SOURCE_FALLBACK) == (t->fault != NULL));
    CHECK(isnan(t->score) || (t->score >= 0 && t->score <= 1));
    if (t->fault)
        snprintf(s->fault, sizeof(s->fault), "%s", t->fault);
    s->read[s->n] = session_length(session) == PROMPT + s->n && has_logits(session);
    s->at[s->n++] = *t;
    if (s->interrupt_after && s->n == s->interrupt_after)
        s->stop = 1;
    return !s->most || s->n < s->most;
}

static int (*ask_cloud)(void *arg, const uint32_t *ids, size_t n, size_t want,
                        struct cloud_tally *tally, void **call, struct err *err);

/* Ask, and go on late, as the program does when the thread of the network takes its processor. */
static int ask_slowly(void *arg, const uint32_t *ids, size_t n, size_t want,
                      struct cloud_tally *tally, void **call, struct err *err)
{
    int rc = ask_cloud(arg, ids, n, want, tally, call, err);
    rest_us(ASK_US);
    return rc;
}

/* A call takes its time from when it was asked. */
static void on_event(void *arg, const struct decode_event *e)
{
    (void)arg;
    CHECK(e->kind != DECODE_ANSWERED || e->took_ns >= ASK_US * 1000);
}

static int run_prompt(const struct decode_options *given, const struct router *router,
                      struct cloud *cloud, const uint32_t *ids, size_t n, struct err *err)
{
    struct decode_options o = *given;
    o.emit = on_token;
    o.arg = &seen;
    o.stop = &seen.stop;
    seen.n = 0;
    seen.stop = 0;
    seen.fault[0] = '\0';
    struct cloud_port port;
    struct traffic before = { 0 };
    uint64_t calls = cloud ? cloud_ledger(cloud)->calls : 0;
    if (cloud) {
        before = cloud_ledger(cloud)->traffic;
        cloud_port(&port, cloud);
        ask_cloud = port.ask;
        port.ask = ask_slowly;
    }
    o.event = on_event;
    int rc = decode_run(&seen.stats, session, engine.tokenizer, sampler,
                        o.policy == POLICY_CONTEXT    ? table
                        : o.policy == POLICY_COMBINED ? combined
                                                      : router,
                        cloud ? &port : NULL, ids, n, &o, err);
    size_t sources[3] = { 0 };
    for (size_t i = 0; i < seen.n; i++)
        sources[seen.at[i].source]++;
    CHECK(seen.stats.tokens == seen.n && seen.stats.prompt_tokens == n);
    CHECK(seen.stats.cloud == sources[SOURCE_CLOUD]);
    CHECK(seen.stats.fallback == sources[SOURCE_FALLBACK]);
    CHECK((rc == OK) == (seen.stats.finish != FINISH_ERROR));
    if (cloud && rc == OK && !o.ahead) { /* what was counted is this text's */
        struct traffic moved = traffic_since(&cloud_ledger(cloud)->traffic, &before);
        CHECK(cloud_ledger(cloud)->calls == calls + seen.stats.calls);
        CHECK(!memcmp(&moved, &seen.stats.traffic, sizeof(moved)));
    }
    return rc;
}

static int run(const struct decode_options *o, const struct router *router, struct cloud *cloud)
{
    struct err err = { "" };
    int rc = run_prompt(o, router, cloud, prompt, PROMPT, &err);
    CHECK((rc == OK) == !err.msg[0]);
    return rc;
}

static bool same_text(void)
{
    for (size_t i = 0; i < seen.n; i++)
        if (seen.at[i].id != edge[i])
            return false;
    return true;
}

static struct cloud *client(const char *url)
{
    /* Padded rows pass here, so that the loop itself must refuse them. */
    const struct cloud_options o = {
        .url = url, .api = CLOUD_OPENAI, .model = "m", .vocab = TINY_VOCAB
    };
    struct cloud *c;
    CHECK(cloud_open(&c, &o, NULL) == OK);
    return c;
}

#define REPLY(id)                                  \
    "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" \
    "{\"choices\":[{\"index\":0,\"text\":\"x\",\"token_ids\":[" #id "]}]}"

/* The model alone writes what the plain loop writes. */
static void test_edge(void)
{
    size_t size = tokenizer_size(engine.tokenizer);
    CHECK(size < TINY_VOCAB);
    CHECK(session_eval(session, prompt, PROMPT, NULL, NULL) == OK);
    for (size_t i = 0; i < LENGTH; i++) {
        edge[i] = (uint32_t)engine.kernels.argmax_f32(session_logits(session, 0), size);
        CHECK(session_eval(session, &edge[i], 1, NULL, NULL) == OK);
        /* The tests below need a text without an end. */
        CHECK(!tokenizer_is_eog(engine.tokenizer, edge[i]));
    }
    const struct decode_options o = { .policy = POLICY_NEVER, .max_tokens = LENGTH };
    /* The second time the session holds the text already. */
    for (int again = 0; again < 2; again++) {
        CHECK(run(&o, NULL, NULL) == OK && seen.n == LENGTH && same_text());
        CHECK(seen.stats.finish == FINISH_LENGTH && seen.stats.cloud == 0);
        for (size_t i = 0; i < seen.n; i++)
            CHECK(seen.at[i].has_edge && seen.at[i].edge_id == edge[i] && isnan(seen.at[i].score));
    }
    CHECK(seen.stats.prompt_ms > 0 && seen.stats.ttft_ms >= seen.stats.prompt_ms);
    CHECK(seen.stats.ttft_ms > 0 && seen.stats.total_ms >= seen.stats.ttft_ms);
    CHECK(seen.stats.edge_ms > 0 && seen.stats.cloud_ms == 0);
}

/* Return a threshold between the scores of a policy, so that it routes some tokens, not all. */
static float middle(enum policy policy, const struct router *router)
{
    const struct decode_options o = { .policy = policy, .max_tokens = LENGTH, .seed = 4 };
    float least = 1, most = 0;
    CHECK(run(&o, router, NULL) == OK && seen.stats.fallback == 0);
    for (size_t i = 0; i < seen.n; i++) {
        least = seen.at[i].score < least ? seen.at[i].score : least;
        most = seen.at[i].score > most ? seen.at[i].score : most;
    }
    CHECK(policy == POLICY_NEVER || least < most);
    return (least + most) / 2;
}

/* Every policy writes the same text with the stand-in, and reads the head only when needed. */
static void test_policies(const struct router *router)
{
    struct cloud *c = client(stand_in_url(stand_in));
    for (int p = POLICY_MLP; p <= POLICY_NEVER; p++) {
        float threshold = p == POLICY_ALWAYS ? 0 : middle((enum policy)p, router);
        const struct decode_options o = {
            .policy = (enum policy)p, .threshold = threshold, .max_tokens = LENGTH, .seed = 4
        };
        session_rewind(session, 0);
        CHECK(run(&o, router, c) == OK && seen.n == LENGTH && same_text());
        CHECK(seen.stats.fallback == 0);
        for (size_t i = 0; i < seen.n; i++) {
            const struct decode_token *t = &seen.at[i];
            bool routed = p == POLICY_ALWAYS || (p != POLICY_NEVER && t->score < threshold);
            CHECK(t->source == (routed ? SOURCE_CLOUD : SOURCE_EDGE));
            CHECK(t->has_edge == (!routed || policy_reads_logits(o.policy)));
            CHECK(seen.read[i] == (t->has_edge || p == POLICY_COMBINED));
            CHECK(!t->has_edge || t->edge_id == edge[i]);
        }
        if (p == POLICY_ALWAYS)
            CHECK(seen.stats.cloud == LENGTH && seen.stats.cloud_ms > 0 &&
                  seen.stats.traffic.bytes_up && seen.stats.traffic.bytes_down);
        if (p < POLICY_ALWAYS)
            CHECK(seen.stats.cloud > 0 && seen.stats.cloud < LENGTH && seen.stats.router_ms > 0);
    }
    cloud_close(c);
}

/* A text that the server refuses is refused alone: the next one is sent. */
static void test_unfit(struct cloud *c)
{
    struct gate gate;
    struct decode_options o = { .policy = POLICY_ALWAYS, .max_tokens = 6, .gate = &gate };
    static const char *const unfit[][2] = {
        { "400", "HTTP/1.1 400 no\r\nContent-Length: 0\r\n\r\n" },
        { "413", "HTTP/1.1 413 no\r\nContent-Length: 0\r\n\r\n" },
        { "422", "HTTP/1.1 422 no\r\nContent-Length: 0\r\n\r\n" },
    };
    for (size_t i = 0; i < 3; i++) {
        for (size_t ahead = 0; ahead <= 1; ahead++) {
            o.ahead = ahead;
            gate = (struct gate){ 0 };
            rude_play(rude, RUDE_CLOSE, unfit[i][1]);
            /* More often than the breaker allows faults in a row. */
            for (size_t k = 0; k < 4; k++) {
                CHECK(run(&o, NULL, c) == OK && seen.stats.fallback == 6 && same_text());
                CHECK(seen.stats.reasons[GATE_UNFIT] == 6 && seen.stats.failed == 1);
                CHECK(strstr(seen.fault, unfit[i][0]));
            }
            rude_play(rude, RUDE_CLOSE, REPLY(65));
            CHECK(run(&o, NULL, c) == OK && seen.stats.cloud == 6);
        }
    }
}

static void test_faults(void)
{
    struct err err = { "" };
    struct decode_options o = { .policy = POLICY_ALWAYS, .max_tokens = 6 };
    CHECK(run(&o, NULL, NULL) == OK && seen.stats.fallback == 6 && same_text() && *seen.fault);

    /* t_net_matrix.c has all replies that are wrong; here are some of each kind. */
    static const struct {
        const char *reply, *says;
    } wrong[] = {
        { "HTTP/1.1 500 no\r\n\r\n", "500" },
        { REPLY(265), "265" }, /* the id of a padded row */
        { REPLY(-1), "-1" },
        { "HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n{", "" },
        { "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n<html>", "html" },
        { "SSH-2.0-OpenSSH_9.2\r\n", "" },
    };
    struct cloud *c = client(rude_url(rude));
    for (size_t i = 0; i < 2 * sizeof(wrong) / sizeof(wrong[0]); i++) {
        o.ahead = i % 2;
        rude_play(rude, RUDE_CLOSE, wrong[i / 2].reply);
        CHECK(run(&o, NULL, c) == OK && seen.stats.fallback == 6 && same_text());
        CHECK_MSG(strstr(seen.fault, wrong[i / 2].says), "%s", seen.fault);
        CHECK(seen.stats.failed == seen.stats.calls && seen.stats.calls == 3);
    }
    o.ahead = false;

    unsigned before = rude_requests(rude);
    rude_play(rude, RUDE_CLOSE, "HTTP/1.1 401 no\r\nContent-Length: 0\r\n\r\n");
    CHECK(run(&o, NULL, c) == OK && seen.stats.fallback == 6 && same_text());
    CHECK(rude_requests(rude) == before + 1 && strstr(seen.fault, "401"));

    /* A gate that outlives the text keeps the refusal. */
    struct gate gate = { 0 };
    o.gate = &gate;
    for (size_t ahead = 0; ahead <= 1; ahead++) {
        o.ahead = ahead;
        gate = (struct gate){ 0 };
        CHECK(run(&o, NULL, c) == OK && seen.stats.fallback == 6 && same_text());
        CHECK(seen.stats.reasons[GATE_REFUSED] == 6 && seen.stats.failed == 1);
        CHECK(run(&o, NULL, c) == OK && seen.stats.calls == 0 && strstr(seen.fault, "401"));
    }
    test_unfit(c);
    o.gate = NULL;
    o.ahead = false;
    rude_play(rude, RUDE_CLOSE, "HTTP/1.1 500 no\r\n\r\n");
    CHECK(run(&o, NULL, c) == OK && seen.stats.calls == 3); /* then the breaker is open */
    CHECK(seen.stats.reasons[GATE_FAULT] == 3 && seen.stats.reasons[GATE_BREAKER] == 3);

    rude_play(rude, RUDE_CLOSE, "HTTP/1.1 401 no\r\nContent-Length: 0\r\n\r\n");
    o.cloud_required = true;
    CHECK(run_prompt(&o, NULL, c, prompt, PROMPT, &err) == ERR_REMOTE && strstr(err.msg, "401"));
    o.ahead = true;
    CHECK(run_prompt(&o, NULL, c, prompt, PROMPT, &err) == ERR_REMOTE && strstr(err.msg, "401"));
    rude_play(rude, RUDE_CLOSE, "");
    CHECK(run_prompt(&o, NULL, c, prompt, PROMPT, &err) == ERR_NET && seen.n == 0);
    CHECK(run_prompt(&o, NULL, NULL, prompt, PROMPT, &err) == ERR_NET);
    cloud_close(c);
}

/* The cloud's tokens stand in the text, and its end-of-text ends it. */
static void test_cloud_tokens(void)
{
    struct cloud *c = client(rude_url(rude));
    struct decode_options o = { .policy = POLICY_ALWAYS, .max_tokens = 3 };
    rude_play(rude, RUDE_CLOSE, REPLY(65));
    session_rewind(session, 0);
    CHECK(run(&o, NULL, c) == OK && seen.stats.cloud == 3 && seen.stats.finish == FINISH_LENGTH);
    CHECK(session_length(session) == 0 && seen.stats.passes == 0); /* nothing was read */
    o.edges = true;
    CHECK(run(&o, NULL, c) == OK && seen.stats.cloud == 3 && seen.stats.passes == 2);
    CHECK(session_length(session) == PROMPT + 2 && session_ids(session)[PROMPT] == 65);
    o.edges = false;
    rude_play(rude, RUDE_CLOSE, REPLY(257));
    CHECK(run(&o, NULL, c) == OK && seen.n == 1 && seen.at[0].eog);
    CHECK(seen.stats.finish == FINISH_EOS && seen.stats.cloud == 1);
    cloud_close(c);
}

static void test_ends(void)
{
    struct err err = { "" };
    struct decode_options o = { .policy = POLICY_NEVER, .max_tokens = LENGTH };
    /* Tokens are bytes here, so a stop string of three bytes lies across three tokens. */
    char stop[4] = { (char)edge[4], (char)edge[5], (char)edge[6] };
    const char *stops[] = { "never there at all", stop, NULL };
    o.stops = stops;
    CHECK(memchr(stop, 0, 3) == NULL);
    CHECK(run(&o, NULL, NULL) == OK && seen.stats.finish == FINISH_STOP && seen.n <= 7);
    CHECK(seen.at[seen.n - 1].id == edge[6] && same_text());
    stops[1] = "";
    CHECK(run(&o, NULL, NULL) == ERR_ARG);
    o.stops = NULL;

    seen.most = 5;
    CHECK(run(&o, NULL, NULL) == OK && seen.n == 5 && seen.stats.finish == FINISH_STOP);
    seen.most = 0;
    o.max_tokens = 0;
    CHECK(run(&o, NULL, NULL) == OK && seen.n == 0 && seen.stats.finish == FINISH_LENGTH);
    o.max_tokens = LENGTH;
    seen.interrupt_after = 4;
    CHECK(run(&o, NULL, NULL) == ERR_STOP && seen.n == 4);
    seen.interrupt_after = 0;
    CHECK(run(&o, NULL, NULL) == OK && same_text());

    static uint32_t longest[TINY_CONTEXT + 1];
    for (size_t i = 0; i <= TINY_CONTEXT; i++)
        longest[i] = (uint32_t)(65 + i % 26);
    CHECK(run_prompt(&o, NULL, NULL, longest, TINY_CONTEXT + 1, &err) == ERR_ARG);
    CHECK(run_prompt(&o, NULL, NULL, longest, 0, &err) == ERR_ARG);
    CHECK(run_prompt(&o, NULL, NULL, longest, TINY_CONTEXT, &err) == OK && seen.n == 1 &&
          seen.stats.finish == FINISH_LENGTH);
    o.policy = POLICY_MLP;
    CHECK(run_prompt(&o, NULL, NULL, prompt, PROMPT, &err) == ERR_ARG);
}

static void test_stops(void)
{
    static const char *const list[] = { "abab", "bc", "\n\n", NULL };
    struct stops s;
    struct err err;
    size_t at, length;
    CHECK(stops_begin(&s, list, &err) == OK);
    CHECK(!stops_feed(&s, "xaba", 4, &at, &length) && stops_held(&s) == 3);
    CHECK(!stops_feed(&s, "a", 1, &at, &length) && stops_held(&s) == 1);
    CHECK(!stops_feed(&s, "ba", 2, &at, &length) && stops_held(&s) == 3);
    CHECK(stops_feed(&s, "bc", 2, &at, &length) && at == 1 && length == 4);
    CHECK(stops_begin(&s, list, &err) == OK && stops_held(&s) == 0);
    CHECK(stops_feed(&s, "abc", 3, &at, &length) && at == 3 && length == 2);
    CHECK(stops_begin(&s, list, &err) == OK);
    for (int i = 0; i < 5000; i++)
        CHECK(!stops_feed(&s, "xyz\n", 4, &at, &length) && stops_held(&s) == 1);
    CHECK(stops_feed(&s, "\n", 1, &at, &length) && at == 1 && length == 2);
    char big[STOPS_MAX + 2];
    memset(big, 'a', sizeof(big));
    big[STOPS_MAX + 1] = '\0';
    const char *const one[] = { big, NULL };
    CHECK(stops_begin(&s, one, &err) == ERR_ARG);
    big[STOPS_MAX] = '\0';
    CHECK(stops_begin(&s, one, &err) == OK);
    CHECK(!stops_feed(&s, "ba", 2, &at, &length));
    for (int i = 2; i < STOPS_MAX; i++)
        CHECK(!stops_feed(&s, "a", 1, &at, &length));
    CHECK(stops_feed(&s, "a", 1, &at, &length) && length == STOPS_MAX);
    CHECK(stops_begin(&s, NULL, &err) == OK && !stops_feed(&s, "abab", 4, &at, &length));
    /* A text ends where a stop string begins, and stays so. */
    struct buf text = { 0 };
    CHECK(stops_begin(&s, list, &err) == OK && stops_append(&s, &text, "xaba", 4));
    CHECK(text.n == 4 && stops_append(&s, &text, "bc", 2) && stops_append(&s, &text, "d", 1));
    CHECK(text.n == 1 && text.p[0] == 'x' && stops_held(&s) == 0);
    buf_free(&text);
}

/* The stepper: what was wanted cannot be had, or nobody wants it any longer. */
static void test_step_ends(void)
{
    struct err err = { "" };
    struct step *s;
    struct decode_stats stats;
    const struct decode_options o = { .policy = POLICY_NEVER, .max_tokens = LENGTH };
    struct step_text text = {
        .session = session, .tok = engine.tokenizer, .prompt = prompt, .n = PROMPT
    };
    CHECK(step_open(&s, &text, &o, &stats, &err) == OK && step_next(s)->want == STEP_ROWS);
    step_fail(s, ERR_NOMEM, &(struct err){ "no room" });
    CHECK(step_next(s)->want == STEP_DONE);
    CHECK(step_close(s, &err) == ERR_NOMEM && !strcmp(err.msg, "no room"));
    CHECK(stats.finish == FINISH_ERROR && stats.tokens == 0);
    CHECK(step_open(&s, &text, &o, &stats, &err) == OK);
    CHECK(step_close(s, &err) == ERR_STOP && stats.finish == FINISH_ERROR);
    text.n = 0;
    CHECK(step_open(&s, &text, &o, &stats, &err) == ERR_ARG && !s && step_close(s, &err) == OK);
    CHECK(!strcmp(source_name(SOURCE_FALLBACK), "fallback"));
    CHECK(!strcmp(finish_name(FINISH_EOS), "eos"));
}

static int write_once(const void *router)
{
    const struct decode_options o = { POLICY_MLP, .max_tokens = 4, .ahead = true,
                                      .drafts = DRAFT_LOOKUP, .draft_max = 4 };
    struct err err;
    return run_prompt(&o, router, NULL, prompt, PROMPT, &err);
}

int main(void)
{
    const char *model = tiny_engine(&engine);
    /* Its answers take longer than ask_slowly, so that they are waited for. */
    const struct stand_in_options so = { .model = model, .threads = 1, .latency_ms = 1 };
    const struct sample_params greedy = { .top_p = 1, .repeat_penalty = 1 };
    CHECK(stand_in_open(&stand_in, &so, NULL) == OK);
    CHECK(session_open(&session, engine.batch, TINY_CONTEXT, KVCACHE_F32, NULL) == OK);
    CHECK(sampler_open(&sampler, &greedy, tokenizer_size(engine.tokenizer), &engine.kernels,
                       NULL) == OK);
    rude = rude_open(NULL);
    struct router *router = network_open(&engine);
    table = table_open(&engine.kernels);
    combined = featured_open(&engine, 0, 1);
    test_stops();
    test_edge();
    test_policies(router);
    test_faults();
    test_cloud_tokens();
    test_ends();
    test_step_ends();
    torture_each(write_once, router);
    router_close(table);
    router_close(combined);
    router_close(router);
    rude_close(rude);
    sampler_close(sampler);
    session_close(session);
    stand_in_close(stand_in);
    engine_close(&engine);
    return 0;
}
