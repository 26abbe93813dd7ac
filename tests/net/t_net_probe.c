/* Tests what the client asks a server before it trusts it: dialect, tokenizer, ids or text. */
#include "net/cloud_internal.h"
#include "tests/support/port.h"
#include "tests/support/rude.h"

static struct rude *server;
/* The behaviour of the server, set by the tests. */
static _Atomic int tokenize, text_only, sglang, ik, slow, shift, two;
/* How many more requests are refused; how many for /v1/models were seen. */
static _Atomic int down_for, probes;
static _Atomic int asked_m1;          /* requests of model org/m1 */
static const char *_Atomic spelt_key; /* stands in every text of the server; or NULL */

/* Our tokenizer: a byte is a token, and 'x' is 7. */
static int bytes(void *arg, uint32_t **ids, size_t *count, const char *text, size_t n,
                 struct err *err)
{
    (void)arg;
    *ids = malloc((n + 1) * sizeof(**ids));
    if (!*ids)
        return err_set(err, ERR_NOMEM, "out of memory");
    for (size_t i = 0; i < n; i++)
        (*ids)[i] = text[i] == 'x' ? 7 : 100 + (unsigned char)text[i];
    *count = n;
    return OK;
}

/* Write the ids of the string after "key": in the request, unescaped as far as needed. */
static void sample_ids(const struct rude_request *r, const char *key, char *out, size_t cap)
{
    const char *at = strstr(r->body, key);
    size_t n = 0;
    CHECK(at);
    for (at += strlen(key) + 1; *at != '"'; at++) {
        unsigned c = (unsigned char)*at;
        if (c == '\\') {
            at++;
            c = *at == 'n' ? '\n' : *at == 't' ? '\t' : (unsigned char)*at;
        }
        n += (size_t)snprintf(out + n, cap - n, "%s%u", n ? "," : "",
                              (c == 'x' ? 7 : 100 + c) + (unsigned)shift);
        CHECK(n < cap);
    }
}

static bool completions(const struct rude_request *r)
{
    char json[4096], ids[3000] = "";
    if (text_only)
        return rude_json(r, "200 OK",
                         r->last == 8 ? "{\"choices\":[{\"text\":\"\",\"matched_stop\":2}]}"
                                      : "{\"choices\":[{\"text\":\"xy\"}]}");
    if (strstr(r->body, "\"prompt\":\""))
        sample_ids(r, "\"prompt\":", ids, sizeof(ids));
    snprintf(json, sizeof(json),
             "{\"choices\":[{\"text\":\"x\",\"token_ids\":[7],\"prompt_token_ids\":[%s]}]}", ids);
    return rude_json(r, "200 OK", json);
}

/* Answer as the variables above say. */
static bool serve(const struct rude_request *r)
{
    char json[4096], ids[3000];
    if (slow && !rude_pause(r, 150))
        return false;
    probes += strcmp(r->path, "/v1/models") == 0;
    if (down_for && down_for--)
        return rude_json(r, "503 Down", "{}");
    snprintf(json, sizeof(json),
             strcmp(r->path, "/version") == 0
                 ? "{\"version\":\"1 %s\"}"
                 : "{\"data\":[{\"id\":\"org/%1$s\",\"owned_by\":\"%1$s\",\"root\":\"/a/%1$s\","
                   "\"meta\":{\"%1$s\":1}}],\"error\":{\"message\":\"no %1$s\"}}",
             spelt_key ? spelt_key : "");
    if (spelt_key && strcmp(r->path, "/v1/completions") == 0 && r->last) {
        asked_m1 += strstr(r->text, "\"model\":\"org/m1\"") != NULL;
        return rude_json(r, "400 No", json);
    }
    if (spelt_key && (strcmp(r->path, "/v1/models") == 0 || strcmp(r->path, "/version") == 0))
        return rude_json(r, "200 OK", json);
    if (strcmp(r->path, "/v1/models") == 0 && two)
        return rude_json(r, "200 OK",
                         "{\"data\":[{\"id\":\"v\",\"root\":\"/a\",\"max_model_len\":4},"
                         "{\"id\":\"w\",\"root\":\"/b\",\"max_model_len\":7}]}");
    if (strcmp(r->path, "/v1/models") == 0)
        return rude_json(r, "200 OK",
                         sglang ? "{\"data\":[{\"id\":\"s\",\"owned_by\":\"sglang\","
                                  "\"max_model_len\":4096}]}"
                         : ik   ? "{\"data\":[{\"id\":\"v\",\"owned_by\":\"llamacpp\"}]}"
                                : "{\"data\":[{\"id\":\"v\",\"owned_by\":\"vllm\"}]}");
    if (strcmp(r->path, "/version") == 0)
        return rude_json(r, "200 OK", "{\"version\":\"0.19.1\"}");
    if (strcmp(r->path, "/health") == 0)
        return rude_text(r, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    if (strcmp(r->path, "/tokenize") == 0 && tokenize) {
        sample_ids(r, "\"content\":", ids, sizeof(ids));
        snprintf(json, sizeof(json), "{\"tokens\":[%s]}", ids);
        return rude_json(r, "200 OK", json);
    }
    if (strcmp(r->path, "/completion") == 0 && ik)
        return rude_json(r, "200 OK", "{\"content\":\"x\",\"stop\":true}");
    if (strcmp(r->path, "/v1/completions") == 0)
        return completions(r);
    if (strcmp(r->path, "/generate") == 0 && strstr(r->body, "\"text\"")) {
        sample_ids(r, "\"text\":", ids, sizeof(ids));
        snprintf(json, sizeof(json), /* 1 is begin-of-text */
                 "{\"output_ids\":[7],\"meta_info\":{\"input_token_logprobs\":[[null,1,null],%s]}}",
                 ids);
        return rude_json(r, "200 OK", json);
    }
    if (strcmp(r->path, "/generate") == 0)
        return rude_json(r, "200 OK",
                         "{\"output_ids\":[7],\"meta_info\":{\"completion_tokens\":1}}");
    return rude_json(r, "404 Not Found", "{\"detail\":\"Not Found\"}");
}

static int begin(struct cloud **c, struct cloud_options o, struct err *err)
{
    o.url = rude_url(server);
    o.vocab = 1000;
    return cloud_open(c, &o, err);
}

/* Check what cloud_ready returns for such a server, and which path confirmed the tokenizer. */
static void expect(const char *name, struct cloud_options o, int code, const char *by,
                   const char *note)
{
    struct cloud *c = NULL;
    struct cloud_info info = { 0 };
    struct err err = { "" }, said = { "" };
    int rc = begin(&c, o, &err);
    if (rc == OK)
        rc = cloud_ready(c, &err);
    if (rc == OK)
        rc = cloud_inspect(c, &info, &err);
    bool told = rc == OK && cloud_note(c, &said);
    CHECK_MSG(rc == code && (rc == OK || *err.msg) && told == (note != NULL), "%s: %d %s; %s", name,
              rc, err.msg, said.msg);
    CHECK(!note || (strstr(said.msg, note) && !cloud_note(c, &said)));
    if (rc == OK) {
        uint32_t id = 0;
        CHECK(!by == !info.tokenizer && (!by || strcmp(by, info.tokenizer) == 0));
        CHECK(info.healthy && strcmp(info.version, "0.19.1") == 0 && info.ids == !text_only);
        CHECK(info.context == (sglang ? 4096u : 0u));
        CHECK(port_next(c, (const uint32_t[]){ 5, 6 }, 2, &id, &err) == OK && id == 7);
    } else if (code == ERR_REMOTE) {
        CHECK(strstr(err.msg, "another tokenizer"));
    }
    cloud_close(c);
}

static void test_tokenizers(void)
{
    const struct cloud_options plain = { .encode = bytes };
    struct cloud_options named = { .encode = bytes, .api = CLOUD_OPENAI, .background = true };
    for (int i = 0; i < 2; i++) {
        sglang = i;
        tokenize = 1;
        expect("tokenize", plain, OK, "/tokenize", NULL);
        tokenize = 0;
        expect("text and ids", plain, OK, i ? "/generate" : "/v1/completions", NULL);
        shift = 1;
        expect("other ids", plain, ERR_REMOTE, NULL, NULL);
        expect("other ids", named, ERR_REMOTE, NULL, NULL);
        tokenize = 1;
        expect("other tokenizer", plain, ERR_REMOTE, NULL, NULL);
        shift = 0;
        expect("not asked", (struct cloud_options){ 0 }, OK, NULL, NULL);
        named.api = CLOUD_SGLANG;
    }
    sglang = 0;
}

/* Text alone is noted, and used if it can be cut into ids; else the call is refused. */
static void test_text(void)
{
    struct cloud *c;
    struct err err;
    uint32_t id = 77;
    text_only = 1;
    tokenize = 0;
    expect("text", (struct cloud_options){ .encode = bytes }, OK, NULL, "text without token ids");
    CHECK(begin(&c, (struct cloud_options){ 0 }, &err) == OK);
    CHECK(port_next(c, (const uint32_t[]){ 5 }, 1, &id, &err) == ERR_REMOTE && id == 77);
    CHECK(strstr(err.msg, "without token ids"));
    cloud_close(c);
    /* SGLang names the id that ended the text. */
    CHECK(begin(&c, (struct cloud_options){ .encode = bytes }, &err) == OK);
    CHECK(port_next(c, (const uint32_t[]){ 5, 8 }, 2, &id, &err) == OK && id == 2);
    cloud_close(c);
    text_only = 0;
}

/* A server of llama.cpp's kind without return_tokens is used in OpenAI's form; its text is cut. */
static void test_no_return_tokens(void)
{
    struct cloud *c;
    ik = text_only = 1;
    for (tokenize = 0; tokenize < 2; tokenize++)
        expect("no return_tokens", (struct cloud_options){ .encode = bytes }, OK,
               tokenize ? "/tokenize" : NULL, "text without token ids");
    CHECK(begin(&c, (struct cloud_options){ .tokens = 8 }, NULL) == OK &&
          cloud_ready(c, NULL) == OK);
    CHECK(cloud_known_info(c).api == CLOUD_OPENAI && cloud_known_info(c).tokens == 1);
    cloud_close(c);
    ik = text_only = tokenize = 0;
}

/* Of several models, what is known is that of the one that is requested. */
static void test_models(void)
{
    static const char *const names[] = { NULL, "w", "other" };
    two = tokenize = 1;
    for (size_t i = 0; i < 3; i++) {
        struct cloud *c;
        CHECK(begin(&c, (struct cloud_options){ .encode = bytes, .model = names[i] }, NULL) == OK);
        const struct cloud_info info = cloud_known_info(c);
        CHECK(!strcmp(info.model, names[i] ? names[i] : "v"));
        CHECK(info.context == (i == 1 ? 7 : 4) && strstr(info.says, i == 1 ? "/b" : "/a"));
        cloud_close(c);
    }
    two = tokenize = 0;
}

/* The key is in no text of the server that is kept, however it is spelt there. */
static void test_key(void)
{
    static const char *const spelt[] = {
        "sk-proj/0123456789+abcdefQ",
        "Qfedcba+9876543210/jorp-ks",
        "c2stcHJvai8wMTIzNDU2Nzg5K2FiY2RlZlE=",     /* base64, */
        "dTpzay1wcm9qLzAxMjM0NTY3ODkrYWJjZGVmUQ==", /* of "u:" and the key, for URLs, */
        "eHNrLXByb2ovMDEyMzQ1Njc4OSthYmNkZWZReQ==", /* and of "x", it and "y" */
        "%73%6B%2D%70%72%6F%6A%2F%30%31%32%33%34%35%36%37%38%39%2B%61%62%63%64%65%66%51",
        "s%6b-%70r%6fj%2f0%312%334%356%378%39+%61b%63d%65f%51",
        "sk-proj/|01234567|89+abcde",
    };
    for (size_t i = 0; i < sizeof(spelt) / sizeof(spelt[0]); i++) {
        struct cloud *c;
        struct cloud_info info;
        struct err err = { "" };
        uint32_t id;
        spelt_key = spelt[i];
        CHECK(begin(&c, (struct cloud_options){ .key = spelt[0] }, &err) == OK);
        CHECK(cloud_inspect(c, &info, &err) == OK);
        CHECK(port_next(c, (const uint32_t[]){ 5 }, 1, &id, &err) == ERR_TEXT);
        const char *kept[] = { info.model, info.server, info.version, info.says, err.msg };
        for (size_t k = 0; k < 5; k++) {
            CHECK_MSG(strstr(kept[k], "***"), "%s", kept[k]);
            for (size_t at = 4; at + 8 <= strlen(spelt_key) - 4; at++) {
                char part[9] = "";
                memcpy(part, spelt_key + at, 8);
                CHECK_MSG(!strstr(kept[k], part), "%s: %s", spelt_key, kept[k]);
            }
        }
        cloud_close(c);
    }
    /* A key that stands in the name of the model by chance does not change what is asked for. */
    struct cloud *c;
    struct err err = { "" };
    uint32_t id;
    spelt_key = "m1";
    CHECK(begin(&c, (struct cloud_options){ .key = "1" }, &err) == OK);
    CHECK(port_next(c, (const uint32_t[]){ 5 }, 1, &id, &err) == ERR_TEXT && asked_m1);
    cloud_close(c);
    spelt_key = NULL;
}

/* Only callers that want an answer wait for the server; calls made meanwhile are sent later. */
static void test_background(void)
{
    struct cloud *c;
    void *calls[3];
    struct err err = { "" };
    uint32_t id = 0;
    const struct cloud_options o = { .api = CLOUD_OPENAI, .background = true };
    slow = 1;
    CHECK(begin(&c, o, &err) == OK);
    for (size_t i = 0; i < 3; i++)
        CHECK(cloud_ask(c, (const uint32_t[]){ 5, 6 }, 2, CLOUD_MAX_TOKENS, NULL, &calls[i],
                        &err) == OK);
    CHECK(!cloud_done(calls[0], 0));
    cloud_end(calls[2], CLOUD_DROP); /* before it has been sent */
    CHECK(cloud_known_info(c).api == CLOUD_AUTO && !cloud_known_info(c).model);
    for (size_t i = 0; i < 2; i++) {
        CHECK(cloud_take(calls[i], 0, &id, &err) == OK && id == 7);
        cloud_end(calls[i], CLOUD_USE);
    }
    CHECK(strcmp(cloud_known_info(c).model, "v") == 0);
    cloud_close(c);
    CHECK(begin(&c, o, &err) == OK);
    CHECK(cloud_ask(c, (const uint32_t[]){ 5, 6 }, 2, CLOUD_MAX_TOKENS, NULL, &calls[0], &err) ==
          OK);
    cloud_close(c); /* in the middle of a probe */
    slow = 0;
}

/* A failed probe is the error of all calls that wait for it, or of the next one; the next call
 * probes again. */
static void test_failed_probe(void)
{
    struct cloud *c;
    void *calls[5];
    struct err err = { "" };
    uint32_t id = 77;
    const struct cloud_options o = { .api = CLOUD_OPENAI, .background = true };
    probes = 0;
    slow = 1;         /* the calls are made before it fails */
    down_for = 2 * 2; /* each request is tried twice */
    CHECK(begin(&c, o, &err) == OK);
    for (size_t i = 0; i < 5; i++)
        CHECK(cloud_ask(c, (const uint32_t[]){ 5, 6 }, 2, CLOUD_MAX_TOKENS, NULL, &calls[i],
                        &err) == OK);
    cloud_end(calls[0], CLOUD_DROP);
    for (size_t i = 1; i < 5; i++) {
        CHECK(cloud_take(calls[i], 0, &id, &err) == ERR_NET && strstr(err.msg, "503"));
        CHECK(cloud_done(calls[i], 0));
        cloud_end(calls[i], CLOUD_USE);
    }
    CHECK(probes == 2 && port_next(c, (const uint32_t[]){ 5 }, 1, &id, &err) == ERR_NET);
    slow = 0;
    CHECK(port_next(c, (const uint32_t[]){ 5 }, 1, &id, &err) == OK && id == 7);
    CHECK(down_for == 0 && probes == 2 * 2 + 1);
    cloud_close(c);

    down_for = 2; /* nobody waits for the first probe */
    CHECK(begin(&c, o, &err) == OK);
    for (bool failed = false; !failed; os_nap(1000000)) {
        wire_lock(c->wire);
        failed = c->state == CLOUD_FAILED;
        wire_unlock(c->wire);
    }
    CHECK(port_next(c, (const uint32_t[]){ 5 }, 1, &id, &err) == ERR_NET);
    CHECK(port_next(c, (const uint32_t[]){ 5 }, 1, &id, &err) == OK && id == 7);
    cloud_close(c);
}

/* Return how many seconds a call for `want` tokens after n ids has. */
static double seconds_for(unsigned timeout_ms, size_t n, size_t want)
{
    static uint32_t ids[200000];
    const struct cloud_options o = { .api = CLOUD_OPENAI,
                                     .background = true,
                                     .tokens = want,
                                     .timeout_ms = timeout_ms,
                                     .encode = bytes };
    struct cloud *c;
    void *call;
    CHECK(begin(&c, o, NULL) == OK && cloud_ready(c, NULL) == OK);
    uint64_t now = os_now_ns();
    CHECK(cloud_ask(c, ids, n, want, NULL, &call, NULL) == OK);
    double seconds = (double)(((struct cloud_call *)call)->wire->deadline - now) / 1e9;
    cloud_end(call, CLOUD_DROP);
    cloud_close(c);
    return seconds;
}

/* A slow server has a later deadline, which grows with what is asked up to the bound, unless one is
 * given. */
static void test_deadline(void)
{
    tokenize = 1;
    double fast = seconds_for(0, 2, 1);
    CHECK(fast >= 10 && fast < 15);
    slow = 1; /* 150 ms for each of 66 tokens, four times */
    CHECK(seconds_for(0, 2, CLOUD_MAX_TOKENS) > 39 && seconds_for(0, 1000, CLOUD_MAX_TOKENS) > 44);
    double longest = seconds_for(0, 200000, 1);
    CHECK(longest > 599 && longest < 601);
    CHECK(seconds_for(3000, 1000, CLOUD_MAX_TOKENS) < 4);
    slow = tokenize = 0;
}

int main(void)
{
    server = rude_open(serve);
    test_deadline();
    test_tokenizers();
    test_text();
    test_no_return_tokens();
    test_models();
    test_key();
    test_background();
    test_failed_probe();
    rude_close(server);
    return 0;
}
