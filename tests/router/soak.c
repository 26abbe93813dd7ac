/* soak.c - `make soak`: writes 100,000 tokens (or as many as the argument says) from a server of
 * another process that fails at every tenth, decoding ahead and in step. Memory and descriptors
 * must not grow, and the text must be the one that is written in step. */
#include "model/model.h"
#include "model/sample.h"
#include "model/text/tokenizer.h"
#include "router/decode/decode.h"
#include "router/engine.h"
#include "router/mizzle.h"
#include "tests/support/process.h"
#include "tests/support/tiny.h"
#include "tools/lab/stand_in/stand_in.h"

enum { TOKENS = 100000, LENGTH = 200, DESCRIPTORS = 4, SLACK_KB = 2048 };

/* One request in ten fails; the first three kinds are retried. "wrong-id" is no fault: it makes the
 * cloud another model than the local one, so that guesses are wrong and the text is rolled back. */
static const char *const faults[] = { "500:0.002",         "reset:0.002",     "cut:0.001",
                                      "bad-json:0.03",     "nan:0.02",        "empty-ids:0.02",
                                      "out-of-vocab:0.02", "error-200:0.005", "wrong-id:0.1" };

struct tally {
    uint64_t hash; /* hash of all tokens and their sources */
    uint64_t texts, tokens, cloud, fallback, calls, retries;
    size_t kb[2], server_kb[2], descriptors[2]; /* after a fifth, and at the end */
    double seconds;
};

static struct engine engine;
static struct session *session;
static struct sampler *sampler;

/* The server, which says its port and ends with its stdin. */
static void serve(const void *model)
{
    struct stand_in_options o = { .model = model, .threads = 1, .seed = 1 };
    struct stand_in *s;
    char byte;
    for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
        CHECK(stand_in_fault_add(&o.faults, faults[i], NULL) == OK);
    CHECK(stand_in_open(&s, &o, NULL) == OK);
    unsigned port = stand_in_port(s);
    CHECK(write(STDOUT_FILENO, &port, sizeof(port)) == sizeof(port));
    while (read(STDIN_FILENO, &byte, 1) > 0)
        ;
    stand_in_close(s);
    _exit(0);
}

static void look(struct tally *t, size_t when, const struct child *s)
{
    t->kb[when] = resident_kb(getpid());
    t->server_kb[when] = resident_kb(s->pid);
    t->descriptors[when] = descriptors();
}

static bool on_token(void *arg, const struct decode_token *t)
{
    struct tally *y = arg;
    CHECK(t->id < tokenizer_size(engine.tokenizer));
    y->hash = (y->hash ^ t->id ^ (uint64_t)t->source << 32) * UINT64_C(0x100000001b3);
    return true;
}

static void one_text(struct tally *y, struct gate *gate, const struct cloud_port *cloud, bool ahead)
{
    uint64_t n = y->texts++;
    const uint32_t prompt[] = { (uint32_t)(n & 255), (uint32_t)(n >> 8 & 255), 33 };
    const struct decode_options o = { .policy = POLICY_RANDOM,
                                      .threshold = 0.6f,
                                      .seed = n,
                                      .ahead = ahead,
                                      .gate = gate,
                                      .max_tokens = LENGTH,
                                      .emit = on_token,
                                      .arg = y };
    struct decode_stats stats;
    struct err err = { "" };
    CHECK_MSG(decode_run(&stats, session, engine.tokenizer, sampler, NULL, cloud, prompt, 3, &o,
                         &err) == OK &&
                  stats.calls == stats.committed + stats.failed,
              "text %llu: %s", (unsigned long long)n, err.msg);
    y->tokens += stats.tokens;
    y->cloud += stats.cloud;
    y->fallback += stats.fallback;
    y->calls += stats.calls;
}

/* Write the same texts until the cloud has given this many tokens. */
static void run(struct tally *y, const char *model, bool ahead, uint64_t most)
{
    struct child s;
    unsigned number;
    struct cloud *c;
    struct cloud_port port;
    struct gate gate = { 0 };
    char url[64];
    bool begun = false;
    *y = (struct tally){ .hash = UINT64_C(0xcbf29ce484222325) };
    child_start(&s, serve, model);
    CHECK(read(s.from, &number, sizeof(number)) == sizeof(number));
    snprintf(url, sizeof(url), "http://127.0.0.1:%u", number);
    const struct cloud_options o = {
        .url = url, .api = CLOUD_OPENAI, .model = "m", .vocab = TINY_VOCAB, .timeout_ms = 60000
    };
    CHECK(cloud_open(&c, &o, NULL) == OK);
    cloud_port(&port, c);
    uint64_t clock = os_now_ns();
    while (y->cloud < most) {
        one_text(y, &gate, &port, ahead);
        if (!begun && y->cloud >= most / 5)
            look(y, 0, &s);
        begun = y->cloud >= most / 5;
    }
    look(y, 1, &s);
    y->seconds = (double)(os_now_ns() - clock) / 1e9;
    y->retries = cloud_ledger(c)->traffic.retries;
    CHECK(cloud_ledger(c)->calls == y->calls);
    cloud_close(c);
    CHECK(child_end(&s, 0) == 0);
    printf("ahead %d: %llu texts, %llu tokens, %llu of the cloud, %llu fallback; %llu calls, "
           "%llu sent again; %.1f s\n",
           ahead, (unsigned long long)y->texts, (unsigned long long)y->tokens,
           (unsigned long long)y->cloud, (unsigned long long)y->fallback,
           (unsigned long long)y->calls, (unsigned long long)y->retries, y->seconds);
    printf("  resident after a fifth and at the end: %zu and %zu KB (the server: %zu and %zu), "
           "descriptors: %zu and %zu\n",
           y->kb[0], y->kb[1], y->server_kb[0], y->server_kb[1], y->descriptors[0],
           y->descriptors[1]);
}

int main(int argc, char **argv)
{
    uint64_t most = argc > 1 ? strtoull(argv[1], NULL, 10) : TOKENS;
    const struct sample_params greedy = { .top_p = 1, .repeat_penalty = 1 };
    struct tally ahead, step;
    const char *model = tiny_make();
    const struct engine_options o = { .model = model, .threads = 1 };
    CHECK(engine_open(&engine, &o, true, NULL) == OK);
    CHECK(session_open(&session, engine.batch, TINY_CONTEXT, KVCACHE_F32, NULL) == OK);
    CHECK(sampler_open(&sampler, &greedy, tokenizer_size(engine.tokenizer), &engine.kernels,
                       NULL) == OK);
    run(&ahead, model, true, most);
    run(&step, model, false, most);
    CHECK(ahead.texts == step.texts && ahead.tokens == step.tokens && ahead.hash == step.hash);
    CHECK(ahead.cloud == step.cloud && ahead.fallback == step.fallback);
    CHECK(ahead.fallback * 20 > ahead.cloud && ahead.retries > 0);
    CHECK(ahead.kb[1] <= ahead.kb[0] + SLACK_KB && step.kb[1] <= step.kb[0] + SLACK_KB);
    CHECK(ahead.descriptors[1] <= ahead.descriptors[0] + DESCRIPTORS);
    CHECK(step.descriptors[1] <= step.descriptors[0] + DESCRIPTORS);
    puts("the same text ahead and in step");
    sampler_close(sampler);
    session_close(session);
    engine_close(&engine);
    return 0;
}
