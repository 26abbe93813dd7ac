/* What lm-evaluation-harness computes from our replies, with its two request forms and its parsing
 * rebuilt here: `local-completions` (ids in batches) and `gguf` (text). Sums of logprobs are
 * compared with a float64 log-softmax of `mizzle logits` for each type of keys and values. */
#include "kernels/sys/text.h"
#include "model/model.h"
#include "model/text/tokenizer.h"
#include "router/engine.h"
#include "router/mizzle.h"
#include "tests/support/serving.h"
#include "tests/support/test.h"
#include "tools/cli/json_report.h"
#include "tools/serve/serve_choice.h"

enum { IDS = 100, BATCH = 3, GREEDY = 3 };

#define ASKED "Question: Where could you come across the lonumamo?\nAnswer:"

/* Contexts and continuations; the last ones come from the model. */
static char pairs[][2][200] = {
    { ASKED, " the garden" },
    { "Once upon", " a time there was a train" },
    { "The caf\xc3\xa9 \xf0\x9f\x99\x82", " is \xc3\xa9ven open" },
    { "Question: Rank these three words: ocher, chair, juice.\nAnswer:", " juice, chair" },
    { ASKED, "" },
    { "Once upon a", "" },
};
enum { PAIRS = sizeof(pairs) / sizeof(pairs[0]), MADE = 4 };

struct result {
    double logprob;
    bool greedy;
};

/* A pair as ids, and what the logits of the program say of it. */
struct pair {
    uint32_t ids[IDS];
    size_t n, context;
    struct result want;
    double whole; /* the logprob of all ids but the first */
};

static struct serving server;
static struct tokenizer *tokenizer;
static size_t vocab; /* rows of the logits */

/* Return the largest logprob of an entry of top_logprobs, and its key. */
static double largest(json_t *top, const char **of)
{
    double most = (double)-INFINITY;
    const char *key;
    json_t *v;
    json_object_foreach(top, key, v)
    {
        if (json_number_value(v) > most) {
            most = json_number_value(v);
            *of = key;
        }
    }
    return most;
}

/* Check that tokens begin where the text has them; it holds no control tokens. */
static void check_offsets(const json_t *choice, const uint32_t *ids, size_t n)
{
    struct buf all = { 0 };
    size_t at = 0, chars = 0, starts[IDS];
    CHECK(n <= IDS);
    for (size_t i = 0; i < n; i++) {
        size_t len;
        const char *bytes = tokenizer_bytes(tokenizer, ids[i], &len);
        starts[i] = all.n;
        CHECK(buf_add(&all, bytes, len));
    }
    for (size_t i = 0; i < n; i++) {
        uint32_t code;
        size_t len = text_decode(&code, all.p + at, all.n - at, NULL);
        for (; at + len <= starts[i]; len = text_decode(&code, all.p + at, all.n - at, NULL)) {
            at += len;
            chars++;
        }
        CHECK(json_integer_value(json_array_get(serving_at(choice, "logprobs.text_offset"), i)) ==
              (json_int_t)chars);
    }
    buf_free(&all);
}

/* As `local-completions` does: the sum of token_logprobs[context:-1], and whether each is the
 * largest of its top_logprobs. */
static struct result parse_completions(const json_t *choice, size_t context)
{
    const json_t *probs = serving_at(choice, "logprobs.token_logprobs");
    const json_t *tops = serving_at(choice, "logprobs.top_logprobs");
    struct result r = { .greedy = true };
    const char *key;
    CHECK(context > 0 && json_array_size(probs) == json_array_size(tops));
    CHECK(json_is_null(json_array_get(probs, 0)));
    for (size_t i = context; i + 1 < json_array_size(probs); i++) {
        const json_t *x = json_array_get(probs, i);
        const json_t *name = json_array_get(serving_at(choice, "logprobs.tokens"), i);
        CHECK(json_is_real(x) && json_object_get(json_array_get(tops, i), json_string_value(name)));
        r.logprob += json_real_value(x);
        r.greedy = r.greedy && json_real_value(x) == largest(json_array_get(tops, i), &key);
    }
    return r;
}

/* As `gguf` does: from the first token that begins at or after the end of the
 * context, in characters. The generated token must be the likeliest one, too. */
static struct result parse_gguf(const json_t *choice, size_t characters)
{
    const json_t *probs = serving_at(choice, "logprobs.token_logprobs");
    const json_t *tokens = serving_at(choice, "logprobs.tokens");
    const json_t *offsets = serving_at(choice, "logprobs.text_offset");
    struct result r = { .greedy = true };
    size_t at = 0, n = json_array_size(tokens);
    while ((size_t)json_integer_value(json_array_get(offsets, at)) < characters)
        CHECK(++at < n);
    for (size_t i = at; i < n; i++) {
        const char *key = "";
        largest(json_array_get(serving_at(choice, "logprobs.top_logprobs"), i), &key);
        r.greedy = r.greedy && strcmp(key, json_string_value(json_array_get(tokens, i))) == 0;
        if (i + 1 < n)
            r.logprob += json_real_value(json_array_get(probs, i));
    }
    return r;
}

/* Turn a text into ids, as the harness does with our tokenizer. */
static size_t encode(uint32_t ids[IDS], const char *text)
{
    const json_t *list =
        serving_at(serving_send(&server, "/tokenize",
                                json_pack("{s:s,s:b}", "prompt", text, "add_special_tokens", 0)),
                   "tokens");
    size_t n = json_array_size(list);
    CHECK(n > 0 && n <= IDS);
    for (size_t i = 0; i < n; i++)
        ids[i] = (uint32_t)json_integer_value(json_array_get(list, i));
    return n;
}

/* Have the program write the logits of the ids, and return their log-softmax, [n][vocab]. */
static double *logits(const struct pair *p, const char *kv)
{
    const char *program = getenv("MIZZLE");
    char line[4096];
    size_t n = (size_t)snprintf(line, sizeof(line), "%s logits -m %s --kv %s -o - --ids ",
                                program ? program : "build/mizzle", serving_model, kv);
    for (size_t i = 0; i < p->n; i++)
        n +=
            (size_t)snprintf(line + n, sizeof(line) - n, "%s%u", i ? "," : "", (unsigned)p->ids[i]);
    snprintf(line + n, sizeof(line) - n, " 2>/dev/null");
    float *raw = malloc(p->n * vocab * sizeof(*raw));
    double *out = malloc(p->n * vocab * sizeof(*out));
    FILE *f = popen(line, "r");
    CHECK(raw && out && f);
    CHECK(fread(raw, sizeof(*raw), p->n * vocab, f) == p->n * vocab);
    CHECK(fgetc(f) == EOF && pclose(f) == 0);
    for (size_t i = 0; i < p->n; i++) {
        double max = (double)-INFINITY, sum = 0;
        for (size_t k = 0; k < vocab; k++)
            max = fmax(max, (double)raw[i * vocab + k]);
        for (size_t k = 0; k < vocab; k++)
            sum += exp((double)raw[i * vocab + k] - max);
        for (size_t k = 0; k < vocab; k++)
            out[i * vocab + k] = (double)raw[i * vocab + k] - max - log(sum);
    }
    free(raw);
    return out;
}

/* Set up a pair; a continuation that is empty becomes what the model writes. */
static void prepare(struct pair *p, size_t number, const char *kv)
{
    const char *context = pairs[number][0];
    char *more = pairs[number][1], whole[400];
    uint32_t first[IDS];
    if (number >= MADE) {
        json_t *reply = serving_send(&server, RAW,
                                     json_pack("{s:s,s:i,s:s}", "prompt", context, "max_tokens",
                                               GREEDY, "model", "edge-0.5:edge"));
        snprintf(more, sizeof(pairs[0][1]), "%s",
                 json_string_value(serving_at(reply, "choices.0.text")));
        CHECK(*more);
    }
    snprintf(whole, sizeof(whole), "%.199s%.199s", context, more);
    p->context = encode(first, context);
    p->n = encode(p->ids, whole);
    CHECK(p->n > p->context && memcmp(first, p->ids, p->context * sizeof(*first)) == 0);
    double *scores = logits(p, kv);
    p->want = (struct result){ .greedy = true };
    p->whole = 0;
    for (size_t i = 1; i < p->n; i++) {
        const double *row = scores + (i - 1) * vocab;
        p->whole += row[p->ids[i]];
        if (i < p->context)
            continue;
        p->want.logprob += row[p->ids[i]];
        for (size_t k = 0; k < tokenizer_size(tokenizer); k++)
            p->want.greedy = p->want.greedy && row[k] <= row[p->ids[i]];
    }
    CHECK(number < MADE || p->want.greedy);
    free(scores);
}

static void check(const struct pair *p, struct result got, const char *form)
{
    double room = 1e-5 * (double)(p->n - p->context);
    CHECK_MSG(fabs(got.logprob - p->want.logprob) < room && got.greedy == p->want.greedy,
              "%s: expected %.9f, %d, found %.9f, %d", form, p->want.logprob, p->want.greedy,
              got.logprob, got.greedy);
}

/* {"model":"any","prompt":[[ids],..],"temperature":0,"max_tokens":1,"logprobs":1,"seed":1234,
 * "echo":true}, and the choices sorted by index. */
static void test_completions(const struct pair *p)
{
    for (size_t from = 0; from < PAIRS; from += BATCH) {
        json_t *prompts = json_array();
        for (size_t i = from; i < from + BATCH && i < PAIRS; i++)
            json_array_append_new(prompts, json_report_ids(p[i].ids, p[i].n));
        size_t every = ((size_t)1 << json_array_size(prompts)) - 1;
        json_t *body =
            json_pack("{s:s,s:o,s:i,s:i,s:i,s:i,s:b}", "model", "any", "prompt", prompts,
                      "temperature", 0, "max_tokens", 1, "logprobs", 1, "seed", 1234, "echo", 1);
        json_t *reply = serving_send(&server, RAW, body), *choice;
        size_t i, seen = 0;
        CHECK(server.status == 200);
        json_array_foreach(json_object_get(reply, "choices"), i, choice)
        {
            size_t index = (size_t)json_integer_value(json_object_get(choice, "index"));
            CHECK(from + index < PAIRS);
            const struct pair *of = &p[from + index];
            check(of, parse_completions(choice, of->context), "local-completions");
            CHECK(fabs(parse_completions(choice, 1).logprob - of->whole) < 1e-5 * (double)of->n);
            CHECK(json_array_size(serving_at(choice, "logprobs.tokens")) == of->n + 1);
            check_offsets(choice, of->ids, of->n);
            seen |= (size_t)1 << index;
        }
        CHECK(seen == every);
    }
}

/* {"prompt":"text","logprobs":10,"temperature":0,"max_tokens":1,"echo":true}, without a model. */
static void test_gguf(const struct pair *p)
{
    for (size_t i = 0; i < PAIRS; i++) {
        char whole[400];
        size_t characters = 0;
        snprintf(whole, sizeof(whole), "%.199s%.199s", pairs[i][0], pairs[i][1]);
        for (const char *c = pairs[i][0]; *c; c++)
            characters += ((unsigned char)*c & 0xc0) != 0x80;
        json_t *body = json_pack("{s:s,s:i,s:f,s:i,s:b}", "prompt", whole, "logprobs", 10,
                                 "temperature", 0.0, "max_tokens", 1, "echo", 1);
        json_t *reply = serving_send(&server, RAW, body);
        CHECK(server.status == 200);
        check(&p[i], parse_gguf(serving_at(reply, "choices.0"), characters), "gguf");
    }
}

/* Return the choice with the given scores of the ids 5, 40 and of a generated 40. */
static json_t *choice_of(const struct text_top *tops, const double *scores)
{
    static const uint32_t ids[3] = { 5, 40, 40 };
    struct serve_prompt prompt = { (uint32_t *)(size_t)ids, 3 };
    const struct serve_ask a = { .echo = true, .logprobs = true, .top = 3 };
    struct serve_choice c = { .ask = &a,
                              .tokenizer = tokenizer,
                              .prompt = &prompt,
                              .view = { .scores = scores, .score_tops = tops, .top = 3 } };
    json_t *choice = json_pack("{s:o}", "logprobs", serve_logprobs_raw(&c));
    serve_choice_end(&c);
    return choice;
}

/* Where two ids have the same text, it has the logprob of the likelier one, whichever comes first.
 * The same id stands for both here, as the demo's vocabulary has no such pair. */
static void test_collisions(void)
{
    for (int i = 0; i < 2; i++) { /* the actual token is the second of the two, then the first */
        const double likely = -1.25, other = -2.5,
                     scores[3] = { (double)NAN, i ? likely : other, likely };
        const struct text_top tops[9] = { { 0, 0 },       { 0, 0 },      { 0, 0 },
                                          { 40, likely }, { 40, other }, { 200, -3.5 },
                                          { 40, likely }, { 40, other }, { 200, -3.5 } };
        json_t *choice = choice_of(tops, scores);
        const json_t *top = serving_at(choice, "logprobs.top_logprobs.1");
        const char *name = json_string_value(serving_at(choice, "logprobs.tokens.1"));
        CHECK(json_object_size(top) == 2);
        CHECK(json_real_value(json_object_get(top, name)) == likely);
        struct result r = parse_completions(choice, 1);
        CHECK(r.logprob == scores[1] && r.greedy == (i == 1));
        r = parse_gguf(choice, 1); /* compares texts, and that is the likeliest one */
        CHECK(r.logprob == scores[1] && r.greedy);
        json_decref(choice);
    }
    for (uint32_t id = 0; id < 256; id++) { /* what is no whole character is spelt in bytes */
        size_t n;
        char want[16];
        const unsigned char *p = (const unsigned char *)tokenizer_bytes(tokenizer, id, &n);
        if (!p || n != 1 || *p < 0x80)
            continue;
        snprintf(want, sizeof(want), "bytes:\\x%02x", (unsigned)*p);
        json_t *name = serve_choice_token(tokenizer, id, false);
        CHECK(strcmp(json_string_value(name), want) == 0);
        json_decref(name);
    }
}

int main(void)
{
    static const char *const kvs[] = { "f32", "f16", "q8" };
    static struct pair all[PAIRS];
    const struct engine_options mo = { .model = serving_model, .threads = 1 };
    struct engine engine;
    serving_need_pair();
    CHECK(engine_open(&engine, &mo, true, NULL) == OK);
    tokenizer = engine.tokenizer;
    vocab = engine.model->config.vocab;
    test_collisions();
    for (size_t k = 0; k < sizeof(kvs) / sizeof(kvs[0]); k++) {
        serving_open_with(&server, &(struct serve_options){ .parallel = 8 }, 0, kvs[k]);
        for (size_t i = 0; i < PAIRS; i++)
            prepare(&all[i], i, kvs[k]);
        test_completions(all);
        test_gguf(all);
        serving_close(&server);
    }
    engine_close(&engine);
    return 0;
}
