/* Tests streams, recorded and wrong, cut at every byte, and all forms of SGLang's ids. */
#include "net/cloud.h"
#include "net/dialect/dialect.h"
#include "net/http/json_input.h"
#include "net/http/sse.h"
#include "tests/support/test.h"

static bool skipped;
static const uint32_t prompt[] = { 3491, 3019, 553, 3019, 382 };

struct reading {
    const struct dialect *d;
    struct ask ask;
    struct reply reply;
};

/* Read an event as the client does. */
static int on_event(void *arg, const char *data, size_t n, struct err *err)
{
    struct reading *r = arg;
    json_t *root;
    if (n == 6 && memcmp(data, "[DONE]", 6) == 0) {
        r->reply.ended = true;
        return OK;
    }
    int rc = json_input_parse(&root, data, n, err);
    if (rc == OK)
        rc = r->d->read(&r->reply, root, &r->ask, err);
    json_decref(root);
    return rc;
}

/* Read p[n] in two pieces, cut after `cut` bytes; 0: byte by byte. */
static int read_stream(struct reading *r, const char *p, size_t n, size_t cut, struct err *err)
{
    struct sse s = { on_event, r, .line.max = 1 << 16, .data.max = 1 << 16 };
    int rc = OK;
    r->reply = (struct reply){ 0 };
    if (cut) {
        rc = sse_feed(&s, p, cut, err);
        if (rc == OK)
            rc = sse_feed(&s, p + cut, n - cut, err);
    }
    for (size_t i = 0; !cut && i < n && rc == OK; i++)
        rc = sse_feed(&s, p + i, 1, err);
    sse_free(&s);
    return rc;
}

/* Read the stream cut at every byte, with equal results. */
static void everywhere(const char *name, const struct dialect *d, const char *p, size_t n,
                       size_t want, const uint32_t *ids, size_t count)
{
    struct reading r = {
        .d = d, .ask = { .ids = prompt, .n = 5, .vocab = 151936, .want = want, .stream = true }
    };
    for (size_t cut = 0; cut < n; cut++) {
        struct err err = { "" };
        int rc = read_stream(&r, p, n, cut, &err);
        CHECK_MSG(rc == OK && r.reply.n == count && r.reply.ended &&
                      memcmp(r.reply.ids, ids, count * sizeof(*ids)) == 0,
                  "%s, cut at %zu: %d %s, %zu ids", name, cut, rc, err.msg, r.reply.n);
    }
}

/* Check what dialect d makes of a stream: an error with these words, or this many ids. */
static void one(const struct dialect *d, const char *p, int code, const char *says, size_t count)
{
    struct err err = { "" };
    struct reading r = {
        .d = d, .ask = { .ids = prompt, .n = 5, .vocab = 1000, .want = 4, .stream = true }
    };
    int rc = read_stream(&r, p, strlen(p), strlen(p), &err);
    CHECK_MSG(rc == code && r.reply.n == count && strstr(err.msg, says), "%s: %d %s, %zu ids", p,
              rc, err.msg, r.reply.n);
}

/* Return a recorded message without its head, which those from web pages do not have, and all of it
 * in *text; NULL when it is absent. */
static char *recorded(const char *path, char **text, size_t *n)
{
    *text = slurp_all(test_data("http/%s", path), n);
    skipped = skipped || !*text;
    char *body = *text ? strstr(*text, "\r\n\r\n") : NULL;
    if (!body)
        return *text;
    *n -= (size_t)(body + 4 - *text);
    return body + 4;
}

/* Read a recorded stream, whose chunks are joined, everywhere. */
static void stream(const char *path, const struct dialect *d, size_t want, const uint32_t *ids,
                   size_t count)
{
    char *text, *out;
    size_t n;
    char *at = recorded(path, &text, &n);
    if (!at)
        return;
    if (at != text) {
        out = text;
        for (size_t size; (size = (size_t)strtoul(at, &at, 16)) > 0; at += size + 2) {
            memmove(out, at + 2, size);
            out += size;
            at += 2;
        }
        n = (size_t)(out - text);
    }
    if (count) {
        everywhere(path, d, text, n, want, ids, count);
    } else {
        struct reading r = {
            .d = d, .ask = { .ids = prompt, .n = 5, .vocab = 151936, .want = want, .stream = true }
        };
        CHECK(read_stream(&r, text, n, n, NULL) == ERR_REMOTE);
    }
    free(text);
}

static void test_recorded(void)
{
    static const uint32_t llama[] = { 116825, 85187, 70185, 52268 }, sgl[] = { 12095, 13 };
    static const uint32_t lmdeploy[] = { 10234 };
    stream("llama_server_2026-08/qwen_random/completion_stream.response", &dialect_llamacpp, 4,
           llama, 4);
    stream("llama_server_2025-02/qwen_random/completion_stream.response", &dialect_llamacpp, 4,
           llama, 4);
    stream("sglang_wire_sim/wire/generate_stream.response", &dialect_sglang, 2, sgl, 2);
    /* Deltas without a count: only the first ids are sure. */
    stream("recorded_public/lmdeploy_generate_qwen2.5-1.5b_stream.txt", &dialect_sglang, 16,
           lmdeploy, 1);
    stream("llama_server_2026-08/qwen_random/v1_completions_ids_stream.response", &dialect_openai,
           4, NULL, 0);
}

static void whole(const char *path, size_t n, uint32_t last, int code)
{
    size_t len;
    char *text, *body = recorded(path, &text, &len);
    if (!body)
        return;
    json_t *j;
    struct reply r = { 0 };
    struct err err = { "" };
    const struct ask a = { .ids = prompt, .n = n ? 5 : 4, .vocab = 200000, .want = n ? n : 1 };
    CHECK(json_input_parse(&j, body, len, &err) == OK);
    int rc = dialect_sglang.read(&r, j, &a, &err);
    CHECK_MSG(rc == code && (rc || (r.n == n && r.ids[n - 1] == last)), "%s: %d %s", path, rc,
              err.msg);
    json_decref(j);
    free(text);
}

static void test_sglang_replies(void)
{
    whole("sglang_wire_sim/wire/generate_ids.response", 1, 12095, OK);
    whole("recorded_public/sglang_generate_input_ids_dsv4_2026-04.response.json", 1, 113899, OK);
    whole("recorded_public/sglang_generate_kimi_2026-04.json", 8, 378, OK);
    /* five of the prompt's ids before the new one; refused after another prompt */
    whole("recorded_public/sglang_output_ids_with_prompt_tail_BUG.json", 1, 5338, OK);
    whole("recorded_public/sglang_output_ids_with_prompt_tail_BUG.json", 0, 0, ERR_NET);
}

#define IDS(list, made) \
    "data: {\"output_ids\":[" list "],\"meta_info\":{\"completion_tokens\":" made "}}\n\n"
#define FIRST IDS("11", "1")

static void test_sglang_streams(void)
{
    static const uint32_t ids[] = { 11, 12, 13 };
    static const char *const same[] = {
        FIRST IDS("11,12", "2") IDS("11,12,13", "3") "data: [DONE]\n\n",
        FIRST IDS("12", "2") IDS("13", "3") "data: [DONE]\n\n",
        FIRST IDS("12,13", "3") IDS("", "3") "data: [DONE]\n\n",
        IDS("3019,382,11", "1") IDS("3019,382,11,12,13", "3") "data: [DONE]\n\n",
        ": hello\r\nevent: x\r\nid: 1\r\n" FIRST "data:\r\n\r\ndata: [DONE]\r\r",
    };
    for (size_t i = 0; i < 4; i++)
        everywhere("sglang forms", &dialect_sglang, same[i], strlen(same[i]), 4, ids, 3);
    const struct dialect *s = &dialect_sglang;
    one(s, same[4], ERR_FORMAT, "empty", 1); /* empty data is not JSON */
    one(s, FIRST IDS("14,12", "2"), ERR_NET, "expected 1 new id after those before", 1);
    one(s, FIRST IDS("12", "4"), ERR_NET, "expected 3 new ids", 1);
    one(s, IDS("11,12,13,14,15", "5"), ERR_NET, "expected 4 token ids", 0);
    one(s, IDS("1000", "1"), ERR_NET, "below 1000", 0);
    one(s, "data: {\"text\":\"a\",\"meta_info\":{}}\n\n", ERR_REMOTE, "without token ids", 0);
    one(s,
        "data: {\"output_ids\":[],\"meta_info\":{\"finish_reason\":{\"type\":\"abort\",\"message\":"
        "\"queue\"}}}\n\n",
        ERR_NET, "abort: queue", 0);
}

/* llama.cpp leaves out a token whose text ends inside a character; its count shows it. */
static void test_llamacpp_streams(void)
{
    const struct dialect *l = &dialect_llamacpp;
#define PART(ids, made, stop) \
    "data: {\"tokens\":[" ids "],\"tokens_predicted\":" made ",\"stop\":" stop "}\n\n"
    one(l, PART("1", "1", "false") PART("2,3", "3", "false") PART("", "3", "true"), OK, "", 3);
    one(l, PART("1", "1", "false") PART("1", "1", "true"), OK, "", 1); /* said again */
    one(l, PART("1", "1", "false") PART("3", "3", "false"), ERR_NET, "expected 2 new ids", 1);
    one(l, PART("2", "2", "false"), ERR_NET, "expected 2 new ids", 0);
}

static void test_openai_streams(void)
{
    const struct dialect *o = &dialect_openai;
#define CHUNK(ids, more) "data: {\"choices\":[{\"text\":\"t\",\"token_ids\":" ids more "}]}\n\n"
    one(o, CHUNK("[1]", "") CHUNK("[2,3]", "") "data: {\"choices\":[],\"usage\":{}}\n\n", OK, "",
        3);
#define COUNTED(ids, more) CHUNK(ids, more "}],\"usage\":{\"completion_tokens\":1},\"x\":[{")
    one(o, COUNTED("[]", "") COUNTED("[1]", "") COUNTED("[2]", "") COUNTED("[3,4]", ""), OK, "", 4);
    one(o, COUNTED("[382,1]", ",\"finish_reason\":\"stop\""), OK, "", 1); /* a whole reply */
    one(o, CHUNK("[]", "") CHUNK("[2]", ",\"finish_reason\":\"stop\""), OK, "", 1);
    one(o, CHUNK("[1]", "") CHUNK("[2]", ",\"finish_reason\":\"abort\""), ERR_NET, "abort", 1);
    one(o, CHUNK("[1,2,3]", "") CHUNK("[4,5]", ""), ERR_NET, "found 5", 3);
    one(o, CHUNK("null", ""), ERR_REMOTE, "without token ids", 0);
    one(o, CHUNK("7", ""), ERR_NET, "a number", 0);
    /* Choices of another index are not ours, in an event of their own or beside ours. */
    one(o, CHUNK("[1]", ",\"index\":0") CHUNK("[9]", ",\"index\":1") CHUNK("[2]", ""), OK, "", 2);
    one(o, CHUNK("[9]", ",\"index\":1},{\"index\":0,\"token_ids\":[1]"), OK, "", 1);
    one(o, CHUNK("[9]", ",\"index\":1},{\"index\":2,\"token_ids\":[1]"), OK, "", 0);
    one(o, CHUNK("[9]", "},{\"index\":0,\"token_ids\":[1]"), ERR_NET, "index 0", 0);
    one(o, "data: {\"choices\":7}\n\n", ERR_NET, "choices", 0);
    one(o, "data: [[[\n\n", ERR_FORMAT, "JSON", 0);
    one(o, "data: {\"choices\":[{\"token_ids\":[1]}]}", OK, "", 0); /* the event is not finished */
}

static int ignore(void *arg, const char *data, size_t n, struct err *err)
{
    (void)data, (void)err;
    *(size_t *)arg = n;
    return OK;
}

/* Endless lines and events end at the limit, whatever the pieces. */
static void test_limits(void)
{
    static char long_line[3000], many[3000];
    size_t seen = 0;
    memset(long_line, 'x', sizeof(long_line));
    for (size_t i = 0; i < sizeof(many); i++)
        many[i] = "data: y\n"[i % 8];
    for (size_t piece = 1; piece < 3000; piece += 371)
        for (size_t k = 0; k < 2; k++) {
            struct sse s = { ignore, &seen, .line.max = 1000, .data.max = 200 };
            struct err err = { "" };
            const char *p = k ? many : long_line;
            int rc = OK;
            for (size_t i = 0; i + piece <= 3000 && rc == OK; i += piece)
                rc = sse_feed(&s, p + i, piece, &err);
            CHECK(rc == ERR_NET && strstr(err.msg, "longer than"));
            sse_free(&s);
        }
    struct sse s = { ignore, &seen, .line.max = 1000, .data.max = 200 };
    CHECK(sse_feed(&s, "data:a\ndata: b\n\n", 16, NULL) == OK && seen == 3);
    torture_begin(1);
    int rc = sse_feed(&s, long_line, 900, NULL);
    int hit = torture_end();
    CHECK(hit ? rc == ERR_NOMEM : rc == OK);
    sse_free(&s);
}

int main(void)
{
    test_recorded();
    test_sglang_replies();
    test_sglang_streams();
    test_llamacpp_streams();
    test_openai_streams();
    test_limits();
    if (skipped)
        SKIP("recorded streams: no data at $MIZZLE_TESTDATA (default ../shared/data)");
    return 0;
}
