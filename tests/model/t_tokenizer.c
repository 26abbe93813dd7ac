/* t_tokenizer.c - known answers of other implementations; round trips of random bytes; the ends of
 * the Unicode tables, whose classes and NFC unicode_check.js compares; no memory. */
#include <jansson.h>

#include "model/text/unicode.h"
#include "tests/support/chat_bytes.h"

/* True when text[n] gives exactly these ids. */
static bool equal(const struct tokenizer *t, const char *text, size_t n, bool special,
                  const uint32_t *want, size_t count)
{
    uint32_t *ids;
    size_t got;
    CHECK(tokenizer_encode(t, &ids, &got, text, n, special, NULL) == OK);
    bool same = got == count && !memcmp(ids, want, got * sizeof(*ids));
    free(ids);
    return same;
}

/* True when a test case's text gives its ids; otherwise it is printed. */
static bool equal_json(const struct tokenizer *t, json_t *c)
{
    static uint32_t want[1 << 16];
    json_t *text = json_object_get(c, "text"), *ids = json_object_get(c, "ids");
    size_t n = json_array_size(ids);
    CHECK(json_is_string(text) && json_is_array(ids) && n <= 1 << 16);
    for (size_t i = 0; i < n; i++)
        want[i] = (uint32_t)json_integer_value(json_array_get(ids, i));
    bool same = equal(t, json_string_value(text), json_string_length(text), true, want, n);
    if (!same)
        printf("differs: %.80s\n", json_string_value(text));
    return same;
}

static size_t check_lines(const struct tokenizer *t)
{
    size_t n, bad = 0, count = 0;
    char *text = slurp_all(test_data("tokenizer/known_answers/cross_checked.jsonl"), &n);
    CHECK(text);
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
        json_t *c = json_loads(line, 0, NULL);
        bad += !equal_json(t, c);
        count++;
        json_decref(c);
    }
    CHECK(count > 3900);
    printf("cross_checked: %zu texts, %zu differ\n", count, bad);
    free(text);
    return bad;
}

/* Decoding must give the NFC of the text in which invalid bytes are U+FFFD. */
static void check_round_trips(const struct tokenizer *t)
{
    static const char *const bits[] = {
        "e\xcc\x81", "\xf0\x9f\xa4\x97",         " don't", "\r\n ",     "\xe4\xb8\xad",
        "\xff",      "\xe1\x84\x92\xe1\x85\xa1", "1234",   "<|im_end|>"
    };
    for (uint64_t round = 0; round < 2000; round++) {
        char text[64], got[1024];
        size_t n = 0, at = 0, count, len, want;
        while (n < 40 && rand_below(round, 3 * n, 20)) {
            const char *b = bits[rand_below(round, 3 * n + 1, 9)];
            if (rand_below(round, 3 * n + 2, 2)) {
                text[n] = (char)rand_below(round, 3 * n + 3, 256);
                n++;
            } else {
                memcpy(text + n, b, strlen(b));
                n += strlen(b);
            }
        }
        uint32_t *ids;
        char *fixed, *nfc;
        CHECK(tokenizer_encode(t, &ids, &count, text, n, false, NULL) == OK);
        for (size_t i = 0; i < count; i++) {
            const char *p = tokenizer_bytes(t, ids[i], &len);
            CHECK(p && at + len <= sizeof(got));
            memcpy(got + at, p, len);
            at += len;
        }
        CHECK(unicode_repair(&fixed, &len, text, n, NULL) == OK);
        CHECK(unicode_nfc(&nfc, &want, fixed, len, NULL) == OK);
        CHECK(want == at && !memcmp(nfc, got, at));
        free(ids);
        free(fixed);
        free(nfc);
    }
}

/* Added tokens with flags, as Hugging Face's tokenizers 0.23 finds them. In what is wanted, letters
 * stand for them: L for one at its left, R at its right, N in NFC, B all of that, $ a newline, T a
 * tab that takes white space. */
static void check_added(void)
{
    static const char *const texts[][2] = {
        { "a <l> b", "aL b" },
        { "a \xe3\x80\x80<l>", "aL" },
        { "<r> \n b", "R$ b" }, /* the search goes on behind the token itself */
        { "<r>  <l>b", "RLb" },
        { "<n>e\xcc\x81<n>", "N\xc3\xa9N" },
        { "<n>\xcc\xb8", "<n\xe2\x89\xaf" },
        { "<l>\xcc\xb8", "L\xcc\xb8" },
        { "x <lrn>\xc2\xa0<n>", "xBN" },
        { "<r>\t \n <l>", "R$L" },
        { "e <l>\xcc\x81", "eL\xcc\x81" },
        { "\n<lrn>\n", "$B$" },
        { "\t\t\t a", "T"
                      "a" }, /* the first one leaves nothing to the second */
    };
    static const char *const added[] = { "<l>", "<r>", "<n>", "<lrn>", "\n", "\t" },
                             marks[] = "LRNB$T";
    static const int flags[] = { PIECE_USER | ADDED_LSTRIP,
                                 PIECE_USER | ADDED_RSTRIP,
                                 PIECE_CONTROL | ADDED_NORMALIZED,
                                 PIECE_CONTROL | ADDED_LSTRIP | ADDED_RSTRIP | ADDED_NORMALIZED,
                                 PIECE_USER,
                                 PIECE_USER | ADDED_LSTRIP | ADDED_RSTRIP };
    struct tokenizer *t = chat_bytes_build(NULL, added, flags, 6);
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        uint32_t want[64];
        size_t n = strlen(texts[i][1]);
        for (size_t j = 0; j < n; j++) {
            const char *mark = strchr(marks, texts[i][1][j]);
            want[j] = mark ? 256 + (uint32_t)(mark - marks) : (unsigned char)texts[i][1][j];
        }
        CHECK_MSG(equal(t, texts[i][0], strlen(texts[i][0]), true, want, n), "%s", texts[i][0]);
    }
    tokenizer_close(t);
}

/* Code points beyond a table's last range have no class, as a tag and a variation selector. */
static void check_ends(void)
{
    static const uint32_t none[] = { 0xe0000, 0xe0067, 0xe0100, 0xe01f0, 0x10ffff };
    for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++)
        CHECK(unicode_class(none[i]) == UNICODE_OTHER);
    CHECK(unicode_class(0x323af) == UNICODE_LETTER && unicode_class(0x323b0) == UNICODE_OTHER);
    CHECK(unicode_class(0x1fbf9) == UNICODE_NUMBER && unicode_class(0x1fbfa) == UNICODE_OTHER);
    CHECK(unicode_sure_nfc("x\xf3\xa0\x81\xa7y", 6));
    CHECK(unicode_sure_nfc("\xf3\xa0\x84\x80\xf4\x8f\xbf\xbf", 8));
}

static const char path[] = "weights/milli/vocabulary.gguf";
static const char hard_text[] =
    "Question: Where would you find a hilava?\xff\n<|endoftext|>e\xcc\x81 12345";

static int open_once(const void *arg)
{
    struct tokenizer *t;
    int rc = tokenizer_open_path(&t, path, NULL);
    (void)arg;
    CHECK((rc == OK) == (t != NULL));
    tokenizer_close(t);
    return rc;
}

static int encode_once(const void *t)
{
    uint32_t *ids;
    size_t count;
    int rc = tokenizer_encode(t, &ids, &count, hard_text, strlen(hard_text), true, NULL);
    CHECK(rc != OK || count > 10);
    if (rc == OK)
        free(ids);
    return rc;
}

/* While each allocation fails in turn, the demo's tokenizer gives ERR_NOMEM and leaks nothing. */
static void check_memory(void)
{
    struct tokenizer *t;
    if (access(path, R_OK) != 0) {
        printf("SKIP: no %s\n", path);
        return;
    }
    torture_each(open_once, NULL);
    CHECK(tokenizer_open_path(&t, path, NULL) == OK);
    torture_each(encode_once, t);
    tokenizer_close(t);
}

int main(void)
{
    struct err err;
    struct tokenizer *t;
    check_added();
    check_ends();
    check_memory();
    if (access(test_data("tokenizer/qwen2.5-0.5b-instruct/vocab.json"), R_OK))
        SKIP("no tokenizer data");
    CHECK_MSG(tokenizer_open_path(&t, test_data("tokenizer/qwen2.5-0.5b-instruct"), &err) == OK &&
                  t,
              "%s", err.msg);
    uint32_t id;
    CHECK(tokenizer_size(t) == 151665 && tokenizer_nmerges(t) == 151387);
    CHECK(tokenizer_special(t, "<|im_end|>", &id) && id == 151645 && tokenizer_is_eog(t, id));
    CHECK(tokenizer_is_control(t, id) && !tokenizer_is_control(t, 100));
    CHECK(tokenizer_eos(t, &id) && id == 151645);
    size_t bad = check_lines(t);
    check_round_trips(t);
    tokenizer_close(t);
    return bad != 0;
}
