/* t_local_cloud.c - a large model of this process as the cloud: texts, calls and sizes are those of
 * the same model behind HTTP, many texts share its passes, and no call is left behind. */
#include "model/model.h"
#include "model/text/tokenizer.h"
#include "net/answers/answers.h"
#include "router/local_cloud.h"
#include "router/mizzle.h"
#include "router/routing.h"
#include "router/texts/turn.h"
#include "tests/support/test.h"
#include "tests/support/tiny.h"
#include "tools/lab/stand_in/stand_in.h"

#define EDGE  "weights/milli/edge-0.5.gguf"
#define LARGE "weights/milli/cloud.gguf"

enum { LENGTH = 60, TEXTS = 8, CONTEXT = 256 };

static struct engine engine;
static struct session *session;
static struct sampler *greedy;
static uint32_t *prompt[TEXTS];
static size_t prompt_n[TEXTS];
static _Atomic int stop;

static struct routing_options options_of(const char *policy)
{
    struct routing_options o = routing_defaults;
    o.engine.model = EDGE;
    o.policy = policy;
    o.cloud = "required";
    o.engine.kv = "f32"; /* as the stand-in has it */
    return o;
}

static void open_with(struct routing *r, const struct routing_options *o)
{
    struct err err = { "" };
    CHECK_MSG(routing_open(r, &engine, o, &stop, &err) == OK, "%s", err.msg);
}

struct written {
    struct decode_token at[LENGTH];
    size_t n;
    struct decode_stats stats;
};

static bool on_token(void *arg, const struct decode_token *t)
{
    struct written *w = arg;
    w->at[w->n++] = *t;
    return true;
}

static void write_text(struct written *w, struct routing *r, size_t i)
{
    struct decode_options o = r->how;
    o.max_tokens = LENGTH;
    o.seed = i;
    o.emit = on_token;
    o.arg = w;
    memset(w, 0, sizeof(*w));
    session_rewind(session, 0);
    CHECK(decode_run(&w->stats, session, engine.tokenizer, greedy, r->router, routing_port(r),
                     prompt[i], prompt_n[i], &o, NULL) == OK);
    CHECK(w->n == w->stats.tokens && w->n > 10);
}

static void compare(const struct written *a, const struct written *b)
{
    const struct decode_stats *s = &a->stats, *t = &b->stats;
    CHECK(a->n == b->n);
    for (size_t i = 0; i < a->n; i++) {
        const struct decode_token *x = &a->at[i], *y = &b->at[i];
        CHECK(x->id == y->id && x->source == y->source && x->reason == y->reason);
    }
    CHECK(s->cloud == t->cloud && s->fallback == t->fallback);
    CHECK(s->committed == t->committed && s->failed == t->failed && !s->failed);
    CHECK(s->memo == t->memo && s->finish == t->finish);
}

/* Write the texts with this routing through the stand-in and without it. */
static void both_ways(struct routing_options o, const char *url)
{
    static struct written here[TEXTS], there[TEXTS];
    struct routing_options s = o;
    struct routing a, b;
    const size_t n = SANITIZED ? 2 : 3;
    uint64_t calls = 0;
    o.cloud_model = LARGE;
    s.cloud_url = url;
    s.max_cloud_tokens += o.max_cloud_tokens != UINT64_MAX; /* the probe asks for one */
    open_with(&a, &o);
    open_with(&b, &s);
    const struct cloud_info ia = a.port.info(a.port.arg), ib = b.port.info(b.port.arg);
    CHECK(a.local && !a.cloud && b.cloud && !b.local && !strcmp(ia.model, ib.model));
    CHECK(ia.tokenizer && ia.tokens == o.cloud_tokens && ib.tokens == o.cloud_tokens);
    CHECK(!strcmp(ia.says + 33, ",\"kv\":\"f32\",\"weights\":\"Q8_0\"}"));
    CHECK(!strncmp(ib.says, ia.says, 33)); /* {"fingerprint":"..",..} */
    for (size_t i = 0; i < n; i++) {
        write_text(&here[i], &a, i);
        write_text(&there[i], &b, i);
        compare(&here[i], &there[i]);
        const struct traffic *t = &here[i].stats.traffic;
        CHECK(here[i].stats.calls == there[i].stats.calls);
        CHECK(t->asked_tokens == there[i].stats.traffic.asked_tokens);
        CHECK(t->bytes_up == 0 && t->bytes_down == 0);
        calls += here[i].stats.calls;
    }
    CHECK(calls == cloud_ledger(b.cloud)->calls && cloud_ledger(b.cloud)->faults == 0);
    routing_close(&a);
    routing_close(&b);
}

static void test_same(const char *url)
{
    static const char *const policies[] = { "mlp", "max-prob", "random", "always" };
    static const size_t tokens[] = { 1, 8 };
    for (size_t p = 0; p < 4; p++)
        for (size_t a = 0; a < 2; a++)
            for (size_t t = 0; t < 2; t++) {
                struct routing_options o = options_of(policies[p]);
                o.threshold = p == 1 ? 0.3 : p == 2 ? 0.2 : o.threshold;
                o.ahead = a;
                o.cloud_tokens = tokens[t];
                both_ways(o, url);
            }
    struct routing_options o = options_of("mlp");
    o.max_cloud_tokens = 4;
    both_ways(o, url);
    o.cloud_tokens = 3;
    o.max_cloud_tokens = UINT64_MAX;
    o.max_cloud_input = 300;
    o.draft = "both";
    both_ways(o, url);
}

static struct text *ask(struct texts *e, size_t i)
{
    const struct text_wish w = { .prompt = prompt[i],
                                 .n = prompt_n[i],
                                 .max = LENGTH,
                                 .sample = { .top_p = 1, .repeat_penalty = 1 },
                                 .slot = -1 };
    struct text *t;
    CHECK(texts_ask(e, &t, &w, NULL) == OK);
    return t;
}

/* Texts that are written together are what each is alone, and share the large model's passes. */
static void test_together(void)
{
    static struct written alone[TEXTS];
    struct routing_options o = options_of("always");
    struct routing r;
    struct text *t[TEXTS];
    o.ahead = 0;
    o.cloud_model = LARGE;
    open_with(&r, &o);
    for (size_t i = 0; i < TEXTS; i++)
        write_text(&alone[i], &r, i);
    answers_forget(r.answers);
    const struct texts_counts before = texts_count(local_cloud_texts(r.local));
    struct texts *e;
    const struct texts_options to = { .engine = &engine,
                                      .routing = &r,
                                      .slots = TEXTS,
                                      .queue = TEXTS,
                                      .context = CONTEXT,
                                      .kv = KVCACHE_F32 };
    CHECK(texts_open(&e, &to, NULL) == OK);
    for (size_t i = 0; i < TEXTS; i++) {
        turn_take(local_cloud_turn(r.local)); /* each begins a turn or two after the one before */
        t[i] = ask(e, i);
        turn_give(local_cloud_turn(r.local));
    }
    size_t tokens = 0;
    for (size_t i = 0; i < TEXTS; i++) {
        struct text_view v = text_wait(t[i], SIZE_MAX);
        CHECK(v.rc == OK && v.n == alone[i].n);
        for (size_t k = 0; k < v.n; k++)
            CHECK(v.tokens[k].t.id == alone[i].at[k].id && v.tokens[k].t.source == SOURCE_CLOUD);
        tokens += v.n;
        text_drop(t[i]);
    }
    texts_close(e);
    struct texts_counts c = texts_count(local_cloud_texts(r.local));
    uint64_t passes = c.passes - before.passes;
    printf("%zu tokens of %d texts in %llu passes, %.1f rows each\n", tokens, TEXTS,
           (unsigned long long)passes, (double)(c.rows - before.rows) / (double)passes);
    CHECK(passes * 2 < tokens); /* most at a time, as far as the machine gives all a turn */
    CHECK(c.asked - before.asked == tokens && c.stopped == 0);
    routing_close(&r);
}

/* Thread function: interrupt whoever waits, and after a while let the large model go on. */
static void *interrupt(void *turn)
{
    rest_us(60000);
    atomic_store(&stop, 1);
    rest_us(60000);
    turn_give(turn);
    return NULL;
}

/* A call that is dropped, or interrupted, or closed with its cloud, costs nothing from then on. */
static void test_ends(void)
{
    struct routing_options o = options_of("always");
    struct routing r;
    struct cloud_tally tally = { .limit = 0 };
    void *call;
    uint32_t id;
    struct err err = { "" };
    pthread_t thread;
    o.cloud_model = LARGE;
    o.cloud_tokens = 8;
    open_with(&r, &o);
    const struct cloud_port *p = &r.port;
    struct turn *turn = local_cloud_turn(r.local);
    turn_take(turn); /* the large model waits */
    CHECK(p->ask(p->arg, prompt[0], prompt_n[0], 8, &tally, &call, NULL) == OK &&
          !p->done(call, 0));
    p->end(call, CLOUD_DROP);
    CHECK(p->traffic(p->arg, &tally, true).asked_tokens == 8);
    CHECK(p->ask(p->arg, prompt[1], prompt_n[1], 1, NULL, &call, NULL) == OK);
    CHECK(pthread_create(&thread, NULL, interrupt, turn) == 0);
    CHECK(p->take(call, 0, &id, &err) == ERR_STOP && strstr(err.msg, "interrupted"));
    p->end(call, CLOUD_USE);
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK(p->ask(p->arg, prompt[1], prompt_n[1], 1, NULL, &call, NULL) == ERR_STOP);
    atomic_store(&stop, 0);
    while (texts_count(local_cloud_texts(r.local)).stopped < 2)
        rest_us(1000);
    CHECK(texts_count(local_cloud_texts(r.local)).tokens == 0 &&
          texts_count(local_cloud_texts(r.local)).stopped == 2);
    /* Looked at as it comes. */
    uint32_t first = 0;
    size_t n = 1;
    CHECK(p->ask(p->arg, prompt[2], prompt_n[2], 8, &tally, &call, NULL) == OK);
    CHECK(p->take(call, 0, &first, NULL) == OK && p->done(call, 0));
    while (p->take(call, n, &id, NULL) == OK)
        n++;
    CHECK(n <= 8 && p->done(call, 8) && !p->traffic(p->arg, &tally, false).bytes_down);
    p->end(call, CLOUD_USE);
    CHECK(p->known(p->arg, prompt[2], prompt_n[2], true, &id) == CLOUD_MEMO && id == first);
    /* Too long for the model: other texts may be asked for. */
    uint32_t *many = calloc(5000, sizeof(*many));
    CHECK(many && p->ask(p->arg, many, 5000, 1, NULL, &call, NULL) == OK);
    CHECK(p->take(call, 0, &id, &err) == ERR_TEXT && strstr(err.msg, "prompt: expected 1 to"));
    p->end(call, CLOUD_USE);
    free(many);
    turn_take(turn);
    CHECK(p->ask(p->arg, prompt[3], prompt_n[3], 8, &tally, &call, NULL) == OK);
    turn_give(turn);
    routing_close(&r); /* with a call in flight */
}

/* A model whose ids mean something else is refused, and one that is none. */
static void test_refused(void)
{
    struct routing_options o = options_of("always");
    struct routing r;
    struct err err;
    o.cloud_model = tiny_make();
    CHECK(routing_open(&r, &engine, &o, NULL, &err) == ERR_FORMAT);
    CHECK(strstr(err.msg, "vocabulary: expected that of") && !r.local && !r.cloud);
    o.cloud_model = "no-such-model";
    CHECK(routing_open(&r, &engine, &o, NULL, &err) == ERR_IO);
    o.cloud = "off";
    o.policy = "random";
    open_with(&r, &o);
    CHECK(!routing_port(&r) && !r.local);
    routing_close(&r);
}

/* As many texts as an eighth of the memory holds, and at most TEXTS_SLOTS. */
static void test_fit(void)
{
    for (size_t context = CONTEXT, slots = TEXTS_SLOTS; slots > 1; context *= 2) {
        size_t bytes, cache, before = slots;
        const struct model_config *c = &engine.model->config;
        CHECK(texts_fit(&slots, &engine, context, KVCACHE_F16, NULL) == OK);
        CHECK(session_size(&bytes, &cache, c, context, KVCACHE_F16, NULL) == OK);
        CHECK(slots <= before && slots >= 1);
        CHECK(slots == 1 || slots * bytes <= os_memory() / 8);
        CHECK(slots == TEXTS_SLOTS || (slots + 1) * bytes > os_memory() / 8);
    }
}

/* Make tiny's context longer by its config. */
static void stretch(const char *folder)
{
    char path[128], config[1024];
    snprintf(path, sizeof(path), "%s/config.json", folder);
    FILE *f = fopen(path, "r+");
    CHECK(f);
    config[fread(config, 1, sizeof(config) - 1, f)] = '\0';
    const char *at = strstr(config, "256");
    CHECK(at && fseek(f, at - config, SEEK_SET) == 0);
    CHECK(fprintf(f, "6000%s", at + 3) > 0 && fclose(f) == 0);
}

/* A text may be as long as the edge's. Unless told, keys and values are of the type that suits the
 * model: f16 for the demo's. */
static void test_long(void)
{
    static uint32_t ids[5000];
    struct engine tiny;
    struct routing_options o = options_of("always");
    struct routing r;
    void *call;
    uint32_t id;
    o.engine.kv = NULL;
    o.cloud_model = LARGE;
    open_with(&r, &o);
    CHECK(strstr(r.port.info(r.port.arg).says, "\"kv\":\"f16\""));
    routing_close(&r);
    o.engine.model = o.cloud_model = tiny_make();
    stretch(o.engine.model);
    CHECK(engine_open(&tiny, &o.engine, true, NULL) == OK);
    CHECK(routing_open(&r, &tiny, &o, NULL, NULL) == OK);
    CHECK(strstr(r.port.info(r.port.arg).says, "\"kv\":\"f32\",\"weights\":\"F32\""));
    for (size_t i = 0; i < 5000; i++)
        ids[i] = (uint32_t)(i % 251);
    CHECK(r.port.ask(r.port.arg, ids, 5000, 1, NULL, &call, NULL) == OK);
    CHECK(r.port.take(call, 0, &id, NULL) == OK);
    r.port.end(call, CLOUD_USE);
    routing_close(&r);
    engine_close(&tiny);
}

/* Whichever allocation fails, there is an error or an answer, and nothing is left. */
static void test_memory(void)
{
    static const uint32_t ids[] = { 1, 2, 3, 4, 5, 6, 7, 8, 9 };
    struct engine tiny;
    struct routing_options o = options_of("always");
    o.engine.model = tiny_make();
    o.engine.threads = 1;
    CHECK(engine_open(&tiny, &o.engine, true, NULL) == OK);
    o.cloud_model = o.engine.model;
    o.cloud_tokens = 4;
    size_t failed = 0;
    for (long i = 1, reached = 1; reached; i += 1 + i / 64) {
        struct routing r;
        void *call;
        uint32_t id;
        torture_begin(i);
        int rc = routing_open(&r, &tiny, &o, NULL, NULL);
        for (size_t k = 0; rc == OK && k < 2; k++) {
            rc = r.port.ask(r.port.arg, ids, 9 - k, 4, NULL, &call, NULL);
            if (rc == OK) {
                rc = r.port.take(call, 0, &id, NULL);
                r.port.end(call, k ? CLOUD_DROP : CLOUD_USE);
            }
        }
        CHECK(rc == OK || rc == ERR_NOMEM || rc == ERR_FORMAT); /* a part of the vocabulary lost */
        failed += rc != OK;
        routing_close(&r);
        reached = torture_end();
        CHECK(torture_live() == 0);
    }
    CHECK(failed > 50);
    engine_close(&tiny);
}

int main(void)
{
    const struct engine_options o = { .model = EDGE };
    const struct sample_params plain = { .top_p = 1, .repeat_penalty = 1 };
    const struct stand_in_options so = { .model = LARGE };
    struct stand_in *server;
    CHECK(engine_open(&engine, &o, true, NULL) == OK);
    CHECK(session_open(&session, engine.batch, CONTEXT, KVCACHE_F32, NULL) == OK);
    CHECK(sampler_open(&greedy, &plain, tokenizer_size(engine.tokenizer), &engine.kernels, NULL) ==
          OK);
    for (size_t i = 0; i < TEXTS; i++) {
        char text[256];
        snprintf(text, sizeof(text),
                 "Question: Where can you search for the %cekikupu? Tell a story.\nChoices:\n"
                 "A. tower\nB. swamp\nC. hospital\nD. cave\nE. station\nAnswer:",
                 (int)('l' + i));
        CHECK(tokenizer_encode(engine.tokenizer, &prompt[i], &prompt_n[i], text, strlen(text), true,
                               NULL) == OK);
    }
    CHECK(stand_in_open(&server, &so, NULL) == OK);
    test_same(stand_in_url(server));
    stand_in_close(server);
    test_together();
    test_ends();
    test_refused();
    test_fit();
    test_long();
    test_memory();
    for (size_t i = 0; i < TEXTS; i++)
        free(prompt[i]);
    sampler_close(greedy);
    session_close(session);
    engine_close(&engine);
    return 0;
}
