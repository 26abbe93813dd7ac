/* Runs every third fault of fault_matrix.h under the real decoding loop, with the dialects in turn,
 * in step and ahead. The text must be the local model's where the cloud fails, the cloud's where it
 * does not, and nothing else. */
#include "model/model.h"
#include "model/sample.h"
#include "model/text/tokenizer.h"
#include "router/decode/decode.h"
#include "router/engine.h"
#include "router/mizzle.h"
#include "tests/support/fault_matrix.h"
#include "tests/support/port.h"
#include "tests/support/tiny.h"

enum { PROMPT = 3, LENGTH = 2, MAX_LATE = 2 };

static const uint32_t prompt[PROMPT] = { 7, 8, 9 };
static struct engine engine;
static struct session *session;
static struct sampler *sampler;

struct text {
    struct decode_token at[LENGTH];
    size_t n, faults;
};

/* Keep the token. */
static bool on_token(void *arg, const struct decode_token *t)
{
    struct text *x = arg;
    CHECK(x->n < LENGTH);
    x->faults += t->fault && *t->fault;
    x->at[x->n++] = *t;
    return true;
}

/* Write a text with the cloud and check its result code. */
static void write_text(struct text *x, struct cloud *c, bool ahead, bool required, int code)
{
    struct cloud_port port;
    struct gate gate = { 0 };
    const struct decode_options o = { .policy = c ? POLICY_ALWAYS : POLICY_NEVER,
                                      .ahead = ahead,
                                      .gate = &gate,
                                      .cloud_required = required,
                                      .max_tokens = LENGTH,
                                      .emit = on_token,
                                      .arg = x };
    struct decode_stats stats;
    *x = (struct text){ .n = 0 };
    if (c)
        cloud_port(&port, c);
    int rc = decode_run(&stats, session, engine.tokenizer, sampler, NULL, c ? &port : NULL, prompt,
                        PROMPT, &o, NULL);
    CHECK(rc == code && stats.calls - stats.committed - stats.failed <= (rc != OK));
}

/* True when the row's reply answers token i: a reply that begins with the prompt is right for one
 * prefix only. */
static bool answers(const struct matrix_row *r, size_t i)
{
    return r->code == OK && (i == 0 || !r->ids);
}

/* Compare the text with the local model's and the reply's tokens. */
static bool as_expected(const struct matrix_row *r, const struct text *x, const struct text *edge)
{
    if (x->n != LENGTH)
        return false;
    for (size_t i = 0; i < LENGTH; i++) {
        const struct decode_token *t = &x->at[i];
        bool cloud = answers(r, i);
        if (t->source != (cloud ? SOURCE_CLOUD : SOURCE_FALLBACK))
            return false;
        /* After a token from the cloud, the local model continues with other tokens than in its own
         * text. */
        bool same = i == 0 || !answers(r, i - 1);
        if (cloud ? t->id != MATRIX_ID : t->id != t->edge_id || (same && t->id != edge->at[i].id))
            return false;
    }
    return x->faults == (size_t)!answers(r, 0) + !answers(r, 1);
}

/* Open a client of the row's server. */
static struct cloud *client(const struct matrix_row *r, const struct matrix_server *s,
                            enum cloud_api api)
{
    const struct cloud_options o = { .api = api,
                                     .vocab = TINY_VOCAB,
                                     .max_reply = 1 << 16,
                                     .tokens = r->stream ? 4 : 1,
                                     .timeout_ms = r->late ? MATRIX_LATE_MS : 30000 };
    return port_open(matrix_url(s), o);
}

/* Check one row in step and ahead. */
static void one(const struct matrix_row *r, enum cloud_api api, const struct text *edge)
{
    for (size_t ahead = 0; ahead <= 1; ahead++) {
        struct text x;
        struct matrix_server *s = matrix_open(r, api);
        struct cloud *c = client(r, s, api);
        write_text(&x, c, ahead, false, OK);
        CHECK_MSG(as_expected(r, &x, edge), "%s, %s, ahead %zu", r->name, cloud_api_name(api),
                  ahead);
        cloud_close(c);
        /* When the cloud is required, there is no text at all. */
        if (ahead && r->code && !r->late) {
            c = client(r, s, api);
            write_text(&x, c, ahead, true, r->code);
            CHECK(x.n == 0);
            cloud_close(c);
        }
        matrix_close(s);
    }
}

int main(void)
{
    const struct sample_params greedy = { .top_p = 1, .repeat_penalty = 1 };
    const struct matrix_row *const tables[] = { matrix_replies, matrix_bodies };
    static const enum cloud_api apis[] = { CLOUD_OPENAI, CLOUD_SGLANG, CLOUD_LLAMACPP };
    struct text edge;
    const char *model = tiny_make();
    const struct engine_options o = { .model = model, .threads = 1 };
    size_t rows = 0, late = 0, done = 0;
    CHECK(engine_open(&engine, &o, true, NULL) == OK);
    CHECK(session_open(&session, engine.batch, TINY_CONTEXT, KVCACHE_F32, NULL) == OK);
    CHECK(sampler_open(&sampler, &greedy, tokenizer_size(engine.tokenizer), &engine.kernels,
                       NULL) == OK);
    write_text(&edge, NULL, 0, false, OK);
    CHECK(edge.n == LENGTH && edge.at[0].id != MATRIX_ID);
    for (size_t t = 0; t < 2; t++)
        for (const struct matrix_row *r = tables[t]; r->name; r++) {
            if (rows++ % 3 || (r->late && late++ >= MAX_LATE))
                continue;
            one(r, apis[done++ % 3], &edge);
        }
    CHECK(done >= 60);
    printf("%zu kinds of fault under the decoding loop, in step and ahead\n", done);
    sampler_close(sampler);
    session_close(session);
    engine_close(&engine);
    return 0;
}
