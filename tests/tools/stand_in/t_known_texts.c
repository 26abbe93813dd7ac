/* `mizzle cloud --say`: prefixes of known texts are continued wherever and however they are cut, in
 * every dialect; others go to the model, or are refused if there is none. */
#include <jansson.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernels/sys/base.h"
#include "model/text/tokenizer.h"
#include "tests/support/http_client.h"
#include "tests/support/files.h"
#include "tests/support/torture.h"
#include "tools/lab/stand_in/question.h"
#include "tools/lab/stand_in/source.h"
#include "tools/lab/stand_in/known_texts.h"
#include "tools/lab/stand_in/stand_in.h"

static const char vocabulary[] = "weights/milli/vocabulary.gguf",
                  model[] = "weights/milli/cloud.gguf";
static char path[] = "/tmp/mizzle_say_XXXXXX";
static struct tokenizer *tok;
static uint32_t eos, single[256];

/* The texts of the first file: NFC and other forms, characters of 2 to 4 bytes, prompts that begin
 * alike, "text" in place of "cot", the line ends of other systems, the same line twice. */
static const char texts[] =
    "{\"prompt\":\"Question: Where is the fish?\\nAnswer:\",\"cot\":\"Every fish is found in the "
    "lake. Therefore\\nthe answer is lake (C).\"}\r\n"
    "\n"
    "{\"prompt\":\"Question: Where is the fish?\\nAnswer: Every cat\",\"text\":\"house\"}\n"
    "{\"prompt\":\"Cafe\\u0301 \",\"cot\":\"nai\\u0308ve \xf0\x9f\x90\x9f\xe2\x82\xac, "
    "e\\u0301t\\u00e9\","
    "\"id\":7}\n"
    "{\"prompt\":\"Caf\\u00e9 \",\"cot\":\"na\\u00efve \xf0\x9f\x90\x9f\xe2\x82\xac, "
    "\\u00e9te\\u0301\"}";
static const struct {
    const char *prompt, *rest;
} known[] = {
    { "Question: Where is the fish?\nAnswer:",
      " Every fish is found in the lake. Therefore\nthe answer is lake (C)." },
    { "Question: Where is the fish?\nAnswer: Every cat", " house" },
    { "Caf\xc3\xa9 ", " na\xc3\xafve \xf0\x9f\x90\x9f\xe2\x82\xac, \xc3\xa9t\xc3\xa9" },
};

static struct known_texts *open_texts(const char *text)
{
    struct known_texts *k;
    struct err err = { "" };
    spill(path, text, strlen(text));
    int rc = known_texts_open(&k, path, tok, &err);
    if (rc)
        fprintf(stderr, "%s\n", err.msg);
    CHECK(rc == OK);
    return k;
}

/* Append the text to ids[*n], as the tokenizer cuts it or byte by byte. */
static void append(uint32_t *ids, size_t *n, const char *text, size_t bytes, bool cut)
{
    struct err err;
    uint32_t *more;
    size_t count;
    for (size_t i = 0; !cut && i < bytes; i++)
        ids[(*n)++] = single[(unsigned char)text[i]];
    if (!cut)
        return;
    CHECK(tokenizer_encode(tok, &more, &count, text, bytes, false, &err) == OK);
    memcpy(ids + *n, more, count * sizeof(*more));
    *n += count;
    free(more);
}

/* Continue ids[n] to end-of-text and compare what is written. */
static void walk(const struct known_texts *k, uint32_t *ids, size_t n, const char *want)
{
    char got[512];
    size_t len, at = 0;
    while (known_texts_next(&ids[n], k, ids, n) == OK && ids[n] != eos) {
        const char *piece = tokenizer_bytes(tok, ids[n++], &len);
        CHECK(piece && at + len <= sizeof(got));
        memcpy(got + at, piece, len);
        at += len;
    }
    CHECK(ids[n] == eos && at == strlen(want) && memcmp(got, want, at) == 0);
    CHECK(known_texts_next(&ids[n + 1], k, ids, n + 1) == ERR_TEXT); /* nothing follows the end */
}

/* Every cut of every text, in the tokenizer's tokens and in single bytes. */
static void test_cuts(void)
{
    uint32_t ids[1024], whole[512];
    struct known_texts *k = open_texts(texts);
    for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++) {
        const char *rest = known[i].rest;
        for (size_t cut = 0; cut <= strlen(rest); cut++) {
            size_t n = 0, m = 0, to = 0;
            append(ids, &n, known[i].prompt, strlen(known[i].prompt), cut % 2);
            append(ids, &n, rest, cut, false);
            walk(k, ids, n, rest + cut);
            append(whole, &m, rest, strlen(rest), true);
            for (size_t j = 0, len; j < m && to <= cut; to += len, j++) {
                tokenizer_bytes(tok, whole[j], &len);
                CHECK(to < cut || ids[n] == whole[j]); /* at a boundary: the tokenizer's own */
            }
        }
    }
    known_texts_close(k);
}

/* The longest prompt counts, even if only the text of a shorter one would go on. */
static void test_longest(void)
{
    uint32_t ids[64];
    size_t n = 0;
    struct known_texts *k = open_texts("{\"prompt\":\"a\",\"cot\":\"b c\"}\n"
                                       "{\"prompt\":\"a b\",\"cot\":\"d\"}\n");
    append(ids, &n, "a b", 3, true);
    walk(k, ids, n, " d");
    append(ids, &n, " c", 2, true);
    CHECK(known_texts_next(&ids[n], k, ids, n) == ERR_TEXT);
    known_texts_close(k);
}

static void test_unknown(void)
{
    uint32_t ids[256] = { 0 }, next;
    struct known_texts *k = open_texts(texts);
    for (size_t cut = 1; cut <= strlen(known[0].prompt) + 1; cut++) {
        size_t n = 0;
        append(ids, &n, known[0].prompt, cut - 1, true);
        CHECK((known_texts_next(&next, k, ids, n) == OK) == (cut == strlen(known[0].prompt) + 1));
    }
    size_t n = 0;
    append(ids, &n, known[2].prompt, strlen(known[2].prompt), true);
    append(ids, &n, " nay", 4, true);
    CHECK(known_texts_next(&next, k, ids, n) == ERR_TEXT);
    ids[n - 1] = 1000000; /* no such id */
    CHECK(known_texts_next(&next, k, ids, n) == ERR_TEXT);
    known_texts_close(k);
}

/* Many prompts of few and of many lengths, some of which begin with others. */
static void test_many(void)
{
    enum { MANY = 3000 };
    static char all[MANY * 160];
    uint32_t ids[256];
    size_t at = 0;
    for (int i = 0; i < MANY; i++)
        at +=
            (size_t)sprintf(all + at, "{\"prompt\":\"%d %.*s\",\"cot\":\"%d\"}\n", i, i % 64,
                            "................................................................", i);
    struct known_texts *k = open_texts(all);
    for (int i = 0; i < MANY; i++) {
        char prompt[128], want[16];
        size_t n = 0;
        sprintf(prompt, "%d %.*s", i, i % 64,
                "................................................................");
        sprintf(want, " %d", i);
        append(ids, &n, prompt, strlen(prompt), true);
        walk(k, ids, n, want);
    }
    known_texts_close(k);
}

static void test_bad(void)
{
    static const struct {
        const char *text, *why;
    } bad[] = {
        { "", "expected JSON lines with prompt and cot, found none" },
        { "\n \r\n", "found none" },
        { "{\"prompt\":\"a\",\"cot\":\"b\"}\n\n{\"prompt\":\"a\"", "line 3: not JSON" },
        { "{\"prompt\":\"a\",\"cot\":\"b\"}\n[1]", "line 2: expected an object, found a list" },
        { "{\"prompt\":\"a\",\"cot\":\"\xff\"}", "line 1: not JSON" },
        { "{\"cot\":\"b\"}", "line 1: prompt: expected a text, found nothing" },
        { "{\"prompt\":3,\"cot\":\"b\"}", "line 1: prompt: expected a text, found a number" },
        { "{\"prompt\":\"\",\"cot\":\"b\"}",
          "line 1: prompt: expected a text, found an empty one" },
        { "{\"prompt\":\"a\"}", "line 1: cot: expected a text, found nothing" },
        { "{\"prompt\":\"a\",\"text\":null}", "line 1: text: expected a text, found null" },
        { "{\"prompt\":\"a\",\"cot\":\"\"}", "line 1: cot: expected a text, found an empty one" },
        { "{\"prompt\":\"a\",\"cot\":\"b\"}\n{\"prompt\":\"c\",\"cot\":\"b\"}\n"
          "{\"prompt\":\"a\",\"cot\":\"d\"}",
          "line 3: prompt: expected one text for it, found another than in line 1" },
    };
    struct known_texts *k;
    struct err err;
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        spill(path, bad[i].text, strlen(bad[i].text));
        int rc = known_texts_open(&k, path, tok, &err);
        if (rc != ERR_FORMAT || !strstr(err.msg, bad[i].why) || !strstr(err.msg, path))
            fprintf(stderr, "%zu: %d, %s\n", i, rc, err.msg);
        CHECK(rc == ERR_FORMAT && !k && strstr(err.msg, bad[i].why) && strstr(err.msg, path));
    }
    spill(path, "{\"prompt\":\"a\0\",\"cot\":\"b\"}", 24);
    CHECK(known_texts_open(&k, path, tok, &err) == ERR_FORMAT && strstr(err.msg, "a byte 0"));
    CHECK(known_texts_open(&k, "/tmp/no/such/file", tok, &err) == ERR_IO && !k);
    CHECK(known_texts_open(&k, "/tmp", tok, &err) == ERR_IO && !k);
}

/* Every allocation fails once, and nothing is lost. */
static void test_memory(void)
{
    struct known_texts *k;
    struct err err;
    uint32_t ids[64], next;
    size_t n = 0;
    bool reached = true;
    spill(path, texts, sizeof(texts) - 1);
    for (long i = 1; reached; i++) {
        torture_begin(i);
        int rc = known_texts_open(&k, path, tok, &err);
        CHECK((rc == OK) == (k != NULL));
        known_texts_close(k);
        reached = torture_end();
        CHECK((rc == OK) == !reached && torture_live() == 0);
    }
    k = open_texts(texts);
    append(ids, &n, known[0].prompt, strlen(known[0].prompt), true);
    append(ids, &n, " Eve", 4, false);
    reached = true;
    for (long i = 1; reached; i++) {
        torture_begin(i);
        int rc = known_texts_next(&next, k, ids, n);
        reached = torture_end();
        CHECK(rc == (reached ? ERR_NOMEM : OK) && torture_live() == 0);
    }
    known_texts_close(k);
}

/* Ask a question and return how many tokens the answer has. */
static size_t ask_source(struct stand_in_source *source, uint32_t *out,
                         const struct stand_in_question *q)
{
    struct err err = { "" };
    struct text *t;
    CHECK(stand_in_source_ask(source, &t, q, &err) == OK);
    struct text_view v = text_wait(t, SIZE_MAX);
    CHECK(v.finished && v.rc == OK);
    memcpy(out, v.ids + v.prompt_n, v.n * sizeof(*out));
    text_drop(t);
    return v.n;
}

/* Ask for max tokens after text and id (UINT32_MAX: after text alone), in a slot that
 * worked on another text before; return how many there are. */
static size_t ask(uint32_t *out, const char *say, const char *text, uint32_t id, size_t max,
                  bool go_on)
{
    uint32_t ids[256], other[8] = { 40, 41, 42 };
    size_t n = 0;
    struct stand_in_source *e;
    struct err err = { "" };
    const struct stand_in_options o = { .say = say, .threads = 1 };
    append(ids, &n, text, strlen(text), true);
    if (id != UINT32_MAX)
        ids[n++] = id;
    CHECK(stand_in_source_open(&e, model, &o, &err) == OK);
    struct stand_in_question q = { .ids = other, .n = 3, .max = 8, .slot = 0, .go_on = true };
    CHECK(ask_source(e, out, &q) == 8);
    q = (struct stand_in_question){ .ids = ids, .n = n, .max = max, .slot = 0, .go_on = go_on };
    n = ask_source(e, out, &q);
    stand_in_source_close(e);
    return n;
}

/* The model writes what is not known, also after a known text that it must go on with. */
static void test_model(void)
{
    uint32_t a[64], b[64], word[8];
    size_t m = 0;
    spill(path, texts, sizeof(texts) - 1);
    append(word, &m, " house", 6, true);
    CHECK(ask(a, path, known[1].prompt, UINT32_MAX, 40, false) == m + 1);
    CHECK(memcmp(a, word, m * sizeof(*a)) == 0 && a[m] == eos);
    CHECK(ask(a, path, "Question: Where", UINT32_MAX, 9, true) == 9);
    CHECK(ask(b, NULL, "Question: Where", UINT32_MAX, 9, true) == 9);
    CHECK(memcmp(a, b, 9 * sizeof(*a)) == 0);
    char text[128];
    sprintf(text, "%s house", known[1].prompt);
    CHECK(ask(a, path, known[1].prompt, UINT32_MAX, m + 10, true) == m + 10);
    CHECK(ask(b, NULL, text, eos, 9, true) == 9 && a[m] == eos);
    CHECK(memcmp(a + m + 1, b, 9 * sizeof(*a)) == 0);
}

/* Return the reply to one request as text; the caller frees it. */
static char *post(unsigned port, const char *to, const char *body, int status)
{
    static struct http_client_reply r;
    http_client_ask(port, &r, "POST", to, "Content-Type: application/json\r\n", body);
    if (r.status != status)
        fprintf(stderr, "%s: %d\n%s\n", to, r.status, r.body);
    CHECK(r.status == status && r.whole);
    char *body_text = r.body;
    r.body = NULL;
    http_client_free(&r);
    return body_text;
}

/* All dialects, whole and streamed, by a server with a vocabulary and no weights. */
static void test_dialects(void)
{
    static const struct {
        const char *to, *ask, *has;
    } rows[] = {
        { "/v1/completions", "{\"prompt\":\"P\",\"max_tokens\":9,\"temperature\":0}",
          "\"text\":\" house\",\"logprobs\":null,\"finish_reason\":\"stop\"" },
        { "/v1/completions", "{\"prompt\":\"P hou\",\"max_tokens\":9,\"temperature\":0}",
          "\"text\":\"se\"" },
        { "/v1/completions",
          "{\"prompt\":\"P\",\"max_tokens\":9,\"temperature\":0,\"stream\":true}",
          "\"text\":\"use\"" },
        { "/generate",
          "{\"text\":\"P\",\"sampling_params\":{\"max_new_tokens\":9,\"temperature\":0}}",
          "\"text\":\" house\"" },
        { "/completion", "{\"prompt\":\"P\",\"n_predict\":9,\"temperature\":0}",
          "\"content\":\" house\"" },
    };
    struct stand_in *s;
    struct err err = { "" };
    spill(path, "{\"prompt\":\"P\",\"cot\":\"house\"}\n", 29);
    const struct stand_in_options o = { .model = vocabulary, .say = path };
    CHECK(stand_in_open(&s, &o, &err) == OK);
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        char other[160], *reply = post(stand_in_port(s), rows[i].to, rows[i].ask, 200);
        if (!strstr(reply, rows[i].has))
            fprintf(stderr, "%zu: %s\n", i, reply);
        CHECK(strstr(reply, rows[i].has));
        free(reply);
        sprintf(other, "%s", rows[i].ask);
        *strchr(other, 'P') = 'Q';
        reply = post(stand_in_port(s), rows[i].to, other, 400);
        CHECK(strstr(reply, "No known text begins with this prompt"));
        free(reply);
    }
    char *reply = post(stand_in_port(s), rows[0].to, rows[0].ask, 200);
    json_t *json = json_loads(reply, 0, NULL), *usage = json_object_get(json, "usage");
    uint32_t ids[8];
    size_t n = 0;
    append(ids, &n, " house", 6, true);
    CHECK(json_integer_value(json_object_get(usage, "prompt_tokens")) == 1);
    CHECK(json_integer_value(json_object_get(usage, "completion_tokens")) == (json_int_t)n + 1);
    json_decref(json);
    free(reply);
    stand_in_close(s);
}

/* Open a vocabulary and find its tokens of one byte. */
static void open_vocabulary(const char *from)
{
    struct err err = { "" };
    CHECK(tokenizer_open_path(&tok, from, &err) == OK && tokenizer_eos(tok, &eos));
    for (uint32_t id = 0; id < tokenizer_size(tok); id++) {
        size_t n;
        const char *piece = tokenizer_bytes(tok, id, &n);
        if (piece && n == 1)
            single[(unsigned char)*piece] = id;
    }
}

/* Repeat the cuts with a vocabulary whose tokens hold whole characters of several bytes. */
static void test_real_vocabulary(void)
{
    char from[1024];
    const char *data = getenv("MIZZLE_TESTDATA");
    snprintf(from, sizeof(from), "%s/tokenizer/qwen2.5-0.5b-instruct",
             data ? data : "../shared/data");
    if (access(from, R_OK)) {
        printf("SKIP: the real vocabulary, no %s\n", from);
        return;
    }
    open_vocabulary(from);
    test_cuts();
    tokenizer_close(tok);
}

int main(void)
{
    if (access(vocabulary, R_OK) || access(model, R_OK)) {
        printf("SKIP: no demo pair in weights/milli\n");
        return 77;
    }
    int fd = mkstemp(path);
    CHECK(fd >= 0 && close(fd) == 0);
    open_vocabulary(vocabulary);
    test_cuts();
    test_longest();
    test_unknown();
    test_many();
    test_bad();
    test_memory();
    test_model();
    test_dialects();
    tokenizer_close(tok);
    test_real_vocabulary();
    unlink(path);
    return 0;
}
