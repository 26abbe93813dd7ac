/* Tests the stepper: several texts in turn, whose rows are lost whenever another text has its pass,
 * with one gate and one cloud, write what each writes alone; calls, traffic and cost are counted
 * for the text that caused them; and the hook tells what the stats say. */
#include "router/decode/step.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kernels/sys/base.h"
#include "model/model.h"
#include "model/sample.h"
#include "model/text/tokenizer.h"
#include "net/answers/answers.h"
#include "net/answers/answers_port.h"
#include "net/cloud.h"
#include "net/cloud_port.h"
#include "router/engine.h"
#include "router/mizzle.h"
#include "router/policy.h"
#include "router/router.h"
#include "tests/router/loop_help.h"
#include "tests/support/rude.h"
#include "tests/support/test.h"
#include "tests/support/tiny.h"
#include "tools/lab/stand_in/stand_in.h"

enum { TEXTS = 4, LENGTH = 30, PROMPT = 4 };

static struct engine engine;
static struct session *sessions[TEXTS];
static struct sampler *sampler;
static struct router *router, *table, *combined; /* for mlp, context and combined */
static struct answers *memo;
static size_t most_rows; /* texts in one pass */
static size_t accepted;  /* ids of drafts */

static struct text {
    struct decode_token at[LENGTH];
    size_t n;
    struct decode_stats stats;
    struct decode_options o;
    struct step_text of;
    uint32_t prompt[PROMPT];
    struct step *step;
    const struct step_need *need;
    /* What the hook has told. */
    size_t evaluated, asked, answered, failed, back;
    uint64_t latest;
} alone[TEXTS], together[TEXTS];

static int (*ask_cloud)(void *arg, const uint32_t *ids, size_t n, size_t want,
                        struct cloud_tally *tally, void **call, struct err *err);
static uint64_t ask_ns; /* least time of a call */

/* Ask, and go on late, as the program does when the thread of the network takes its processor. */
static int ask_slowly(void *arg, const uint32_t *ids, size_t n, size_t want,
                      struct cloud_tally *tally, void **call, struct err *err)
{
    int rc = ask_cloud(arg, ids, n, want, tally, call, err);
    nanosleep(&(struct timespec){ .tv_nsec = (long)ask_ns }, NULL);
    return rc;
}

static bool on_token(void *arg, const struct decode_token *t)
{
    struct text *x = arg;
    CHECK(x->n < LENGTH);
    x->at[x->n++] = *t;
    return true;
}

static void on_event(void *arg, const struct decode_event *e)
{
    struct text *x = arg;
    CHECK(e->ns >= x->latest && e->n > 0 && e->took_ns <= e->ns);
    CHECK((e->kind == DECODE_ASKED || e->kind == DECODE_ROLLED_BACK) == !e->took_ns);
    CHECK(e->kind != DECODE_ANSWERED || e->took_ns >= ask_ns); /* since it was asked */
    x->latest = e->ns;
    x->evaluated += e->kind == DECODE_EVALUATED ? e->n : 0;
    x->asked += e->kind == DECODE_ASKED;
    x->answered += e->kind == DECODE_ANSWERED && e->reason == GATE_OPEN;
    x->failed += e->kind == DECODE_ANSWERED && e->reason != GATE_OPEN;
    x->back += e->kind == DECODE_ROLLED_BACK ? e->n : 0;
}

/* Give the texts the heads that they want, which are read at once. */
static void give_heads(struct text *x, size_t n)
{
    struct err err;
    size_t all[BATCH_ROWS] = { 0 }, nall = 0;
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; x[i].need->want == STEP_HEAD && k < x[i].need->n; k++)
            CHECK(session_row(&all[nall++], x[i].of.session, x[i].need->at[k]));
    CHECK(batch_logits(engine.batch, all, nall, &err) == OK);
    nall = 0;
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; x[i].need->want == STEP_HEAD && k < x[i].need->n; k++)
            step_give_head(x[i].step, x[i].need->at[k], batch_logits_at(engine.batch, all[nall++]));
}

/* Evaluate what the texts want in one pass, of each at most three ids. The rows of those that want
 * none are void then. */
static void evaluate(struct text *x, size_t n)
{
    struct batch_part parts[TEXTS], *p = parts;
    struct err err;
    for (size_t i = 0; i < n; i++) {
        if (x[i].need->want != STEP_ROWS)
            continue;
        CHECK(step_next(x[i].step) == x[i].need && x[i].need->want == STEP_ROWS);
        *p++ = (struct batch_part){ .session = x[i].of.session,
                                    .ids = x[i].need->ids,
                                    .n = x[i].need->n > 3 ? 3 : x[i].need->n };
    }
    CHECK(batch_eval(engine.batch, parts, (size_t)(p - parts), NULL, &err) == OK);
    p = parts;
    for (size_t i = 0; i < n; i++)
        if (x[i].need->want == STEP_ROWS) {
            CHECK(p->rc == OK && p->session == x[i].of.session);
            step_give_rows(x[i].step, p++->n);
        }
}

/* Write n texts together. */
static void write_texts(struct text *x, size_t n)
{
    struct err err = { "" };
    for (size_t i = 0; i < n; i++)
        CHECK(step_open(&x[i].step, &x[i].of, &x[i].o, &x[i].stats, &err) == OK);
    for (;;) {
        size_t wants[STEP_DONE + 1] = { 0 };
        struct text *waits = NULL;
        for (size_t i = 0; i < n; i++) {
            x[i].need = step_next(x[i].step);
            wants[x[i].need->want]++;
            waits = x[i].need->want == STEP_CLOUD ? &x[i] : waits;
        }
        most_rows = wants[STEP_ROWS] > most_rows ? wants[STEP_ROWS] : most_rows;
        if (wants[STEP_HEAD])
            give_heads(x, n);
        else if (wants[STEP_ROWS])
            evaluate(x, n);
        else if (waits)
            step_wait(waits->step);
        else
            break;
    }
    for (size_t i = 0; i < n; i++)
        CHECK(step_close(x[i].step, &err) == OK);
}

/* Make the texts of a case. */
static void make_texts(struct text *x, const struct decode_options *o,
                       const struct cloud_port *port)
{
    memset(x, 0, TEXTS * sizeof(*x));
    for (size_t i = 0; i < TEXTS; i++) {
        session_rewind(sessions[i], 0);
        x[i].o = *o;
        x[i].o.seed = i;
        x[i].o.ahead = i % 2; /* both ways at the same time */
        x[i].o.emit = on_token;
        x[i].o.event = on_event;
        x[i].o.arg = &x[i];
        for (size_t k = 0; k < PROMPT; k++)
            x[i].prompt[k] = (uint32_t)(65 + 7 * i + k * k);
        x[i].of = (struct step_text){ .session = sessions[i],
                                      .tok = engine.tokenizer,
                                      .sampler = sampler,
                                      .router = o->policy == POLICY_CONTEXT    ? table
                                                : o->policy == POLICY_COMBINED ? combined
                                                                               : router,
                                      .cloud = port,
                                      .prompt = x[i].prompt,
                                      .n = PROMPT };
    }
}

/* The text is that of decode_run, and the hook has told what the stats say. */
static void compare(const struct text *a, const struct text *b)
{
    const struct decode_stats *s = &a->stats, *t = &b->stats;
    CHECK(a->n == b->n && a->n == LENGTH && s->finish == t->finish);
    for (size_t i = 0; i < a->n; i++) {
        const struct decode_token *x = &a->at[i], *y = &b->at[i];
        CHECK(x->id == y->id && x->source == y->source && x->reason == y->reason);
        /* A guess is shown whenever the answer came, so the waits do not show. */
        CHECK(x->has_edge == y->has_edge && (!x->has_edge || x->edge_id == y->edge_id));
        CHECK(memcmp(&x->score, &y->score, sizeof(x->score)) == 0);
    }
    CHECK(s->committed == t->committed && s->failed == t->failed && s->memo == t->memo);
    CHECK(t->calls == t->committed + t->failed);
    CHECK(b->asked == t->calls && b->answered == t->committed && b->failed == t->failed);
    bool reads = policy_reads(b->o.policy) >= READS_LOGITS; /* a row for each token */
    CHECK(!reads || b->evaluated >= PROMPT + LENGTH - 1);
    CHECK(b->back <= b->evaluated + LENGTH);
}

static struct cloud *client(const char *url, size_t tokens)
{
    struct err err = { "" };
    struct cloud *c;
    const struct cloud_options o = { .url = url,
                                     .api = CLOUD_OPENAI,
                                     .model = "m",
                                     .vocab = TINY_VOCAB,
                                     .tokens = tokens,
                                     .found = memo ? answers_found : NULL,
                                     .found_arg = memo };
    CHECK(cloud_open(&c, &o, &err) == OK);
    return c;
}

/* Write the texts one by one with decode_run, then together, with the same client. */
static void run(struct cloud *c, enum policy policy, struct traffic *sum)
{
    struct cloud_port behind, port;
    struct err err = { "" };
    const struct decode_options o = { .policy = policy,
                                      .threshold = policy == POLICY_COMBINED ? 0.8f : 0.5f,
                                      .call_tokens = memo ? 4 : 1,
                                      .max_tokens = LENGTH };
    cloud_port(&behind, c);
    behind.close = NULL; /* the client is the caller's */
    port = behind;
    CHECK(!memo || answers_port(&port, memo, &behind, &err) == OK);
    ask_cloud = port.ask;
    port.ask = ask_slowly;
    ask_ns = 200000;
    for (int way = 0; way < 2; way++) {
        struct text *x = way ? together : alone;
        struct gate gate = { 0 };
        struct traffic before = cloud_ledger(c)->traffic;
        uint64_t calls = cloud_ledger(c)->calls;
        if (memo)
            answers_forget(memo);
        make_texts(x, &o, &port);
        for (size_t i = 0; i < TEXTS; i++) {
            x[i].o.gate = &gate;
            x[i].o.drafts = way ? DRAFT_BOTH : DRAFT_OFF;
            x[i].o.draft_max = 5; /* of which a pass takes two */
            if (!way)
                CHECK(decode_run(&x[i].stats, sessions[i], engine.tokenizer, sampler,
                                 x[i].of.router, &port, x[i].prompt, PROMPT, &x[i].o, &err) == OK);
        }
        if (way)
            write_texts(x, TEXTS);
        *sum = (struct traffic){ 0 };
        for (size_t i = 0; i < TEXTS; i++) {
            compare(&alone[i], &x[i]);
            traffic_add(sum, &x[i].stats.traffic);
            calls += x[i].stats.calls;
            accepted += x[i].stats.accepted;
            CHECK(!x[i].stats.calls == !x[i].stats.traffic.bytes_up);
        }
        const struct cloud_ledger *l = cloud_ledger(c);
        struct traffic moved = traffic_since(&l->traffic, &before);
        CHECK(l->calls == calls && gate.out == 0);
        CHECK(sum->retries <= moved.retries && sum->bytes_up <= moved.bytes_up);
        CHECK(memo || memcmp(sum, &moved, sizeof(moved)) == 0);
    }
    if (memo)
        port.close(port.arg);
    ask_ns = 0;
}

static void test_policies(const char *url)
{
    struct err err;
    struct traffic sum;
    struct cloud *c = client(url, 1);
    for (int p = POLICY_MLP; p <= POLICY_ALWAYS; p++)
        run(c, (enum policy)p, &sum);
    cloud_close(c);
    const struct answers_options none = { 0 };
    CHECK(answers_open(&memo, &none, &err) == OK);
    c = client(url, 4); /* replies of several tokens, some of which arrive after the first */
    run(c, POLICY_RANDOM, &sum);
    CHECK(together[0].stats.memo > 2);
    cloud_close(c);
    answers_close(memo);
    memo = NULL;
}

/* Texts whose calls are in flight together keep to a limit, and use what it allows. */
static void test_limits(const char *url, bool ahead)
{
    const struct decode_options o = { .policy = POLICY_ALWAYS,
                                      .ahead = ahead,
                                      .max_tokens = LENGTH };
    struct cloud *c = client(url, 1);
    struct cloud_port port;
    cloud_port(&port, c);
    for (size_t i = 0; i < 2; i++) {
        struct quota quota = { .tokens = i ? UINT64_MAX : 7, .input = i ? 100 : UINT64_MAX };
        struct gate gate = { .quota = &quota };
        size_t capped = 0, cloud = 0;
        make_texts(together, &o, &port);
        for (size_t k = 0; k < TEXTS; k++)
            together[k].o.gate = &gate;
        write_texts(together, TEXTS);
        for (size_t k = 0; k < TEXTS; k++) {
            capped += together[k].stats.reasons[GATE_CAPPED];
            cloud += together[k].stats.cloud;
        }
        CHECK(quota.asked == cloud && cloud + capped == TEXTS * LENGTH);
        CHECK(quota.asked <= quota.tokens && quota.sent <= quota.input);
        CHECK((i || cloud == 7) && cloud > TEXTS);
    }
    cloud_close(c);
}

/* A text that the server refuses does not stop the others, and its reason stays its own. */
static void test_faults(void)
{
    struct rude *rude = rude_open(NULL);
    struct traffic sum;
    rude_play(rude, RUDE_CLOSE, "HTTP/1.1 413 no\r\nContent-Length: 0\r\n\r\n");
    struct cloud *c = client(rude_url(rude), 1);
    run(c, POLICY_ALWAYS, &sum);
    for (size_t i = 0; i < TEXTS; i++)
        CHECK(together[i].stats.failed == 1 && together[i].stats.reasons[GATE_UNFIT] == LENGTH);
    cloud_close(c);
    /* An answer that is no id is a fault, until the breaker opens. */
    const struct decode_options o = { .policy = POLICY_ALWAYS, .max_tokens = 5 };
    struct cloud_port port;
    rude_play(rude, RUDE_CLOSE,
              "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"
              "{\"choices\":[{\"index\":0,\"text\":\"x\",\"token_ids\":[265]}]}");
    c = client(rude_url(rude), 1);
    cloud_port(&port, c);
    make_texts(together, &o, &port);
    write_texts(together, 1);
    CHECK(together->failed == BREAKER_FAULTS && together->stats.failed == BREAKER_FAULTS);
    CHECK(together->asked == BREAKER_FAULTS);
    cloud_close(c);
    rude_close(rude);
}

/* What was wanted cannot be had, or nobody wants it any longer. */
static void test_ends(void)
{
    struct err err = { "" };
    static struct text x[TEXTS];
    const struct decode_options o = { .policy = POLICY_NEVER, .max_tokens = LENGTH };
    make_texts(x, &o, NULL);
    CHECK(step_open(&x->step, &x->of, &x->o, &x->stats, &err) == OK);
    CHECK(step_next(x->step)->want == STEP_ROWS);
    step_fail(x->step, ERR_NOMEM, &(struct err){ "no room" });
    CHECK(step_next(x->step)->want == STEP_DONE);
    CHECK(step_close(x->step, &err) == ERR_NOMEM && !strcmp(err.msg, "no room"));
    CHECK(x->stats.finish == FINISH_ERROR && x->stats.tokens == 0);
    CHECK(step_open(&x->step, &x->of, &x->o, &x->stats, &err) == OK);
    CHECK(step_close(x->step, &err) == ERR_STOP && x->stats.finish == FINISH_ERROR);
    x->of.n = 0;
    CHECK(step_open(&x->step, &x->of, &x->o, &x->stats, &err) == ERR_ARG && !x->step);
    CHECK(step_close(NULL, &err) == OK);
}

int main(void)
{
    struct err err = { "" };
    const char *model = tiny_engine(&engine);
    const struct stand_in_options so = { .model = model, .threads = 1 };
    const struct sample_params greedy = { .top_p = 1, .repeat_penalty = 1 };
    struct stand_in *stand_in;
    CHECK(stand_in_open(&stand_in, &so, &err) == OK);
    for (size_t i = 0; i < TEXTS; i++)
        CHECK(session_open(&sessions[i], engine.batch, TINY_CONTEXT, KVCACHE_F32, &err) == OK);
    CHECK(sampler_open(&sampler, &greedy, tokenizer_size(engine.tokenizer), &engine.kernels,
                       &err) == OK);
    router = network_open(&engine);
    table = table_open(&engine.kernels);
    combined = featured_open(&engine, 0, 4, "final");

    test_policies(stand_in_url(stand_in));
    test_limits(stand_in_url(stand_in), false);
    test_limits(stand_in_url(stand_in), true);
    test_faults();
    test_ends();
    CHECK(most_rows == TEXTS && accepted > 50);

    router_close(table);
    router_close(combined);
    router_close(router);
    sampler_close(sampler);
    for (size_t i = 0; i < TEXTS; i++)
        session_close(sessions[i]);
    stand_in_close(stand_in);
    engine_close(&engine);
    CHECK(!strcmp(source_name(SOURCE_FALLBACK), "fallback") &&
          !strcmp(finish_name(FINISH_EOS), "eos"));
    return 0;
}
