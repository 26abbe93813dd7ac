/* t_malformed_tokenizer.c - tokenizers that are wrong in one way each, in every form that they
 * have: tokenizer.json, vocab.json with merges.txt, and the keys of a GGUF file. The JSON files are
 * cut and changed at every byte, too. */
#include <sys/stat.h>

#include "model/text/tokenizer.h"
#include "tests/support/test.h"
#include "tests/support/letters.h"
#include "tests/support/malformed.h"

enum { ROOM = 1 << 16, BYTES = 256 };

static const char *folder;

/* Return the text of a part: k's, or the usual one. */
static const char *part(const struct malformed_kind *k, const char *what, const char *usual)
{
    return strcmp(k->what, what) == 0 ? k->to : usual;
}

/* Write {"!":0, ...} with all bytes, some as escapes, then `more`, into out; return its length. */
static size_t vocabulary(char *out, const char *more)
{
    char c[8];
    size_t at = 0;
    for (unsigned b = 0; b < BYTES; b++) {
        if (letter_of(c, b) && (*c == '"' || *c == '\\' || b % 3 == 0))
            snprintf(c, sizeof(c), "\\u%04X", (unsigned)letter_code(b));
        at += (size_t)snprintf(out + at, ROOM - at, b ? " , \"%s\":%u" : "{\"%s\": %u", c, b);
    }
    return at + (size_t)snprintf(out + at, ROOM - at, "%s}", more);
}

/* The vocabulary has the pieces ab = 256 and abc = 257. */
#define PIECES ",\"ab\":256,\"abc\":257"
#define ADDED  "[{\"id\":258,\"content\":\"<|im_end|>\",\"special\":true}]"

static void write_json(const struct malformed_kind *k)
{
    static char vocab[ROOM], text[2 * ROOM];
    const char *more = part(k, "vocab", PIECES), *merges = part(k, "merges", "[\"a b\",\"ab c\"]");
    const char *added = part(k, "added", ADDED), *type = part(k, "type", "\"BPE\"");
    const char *whole = part(k, "file", text);
    if (more && *more != '!')
        vocabulary(vocab, more);
    else
        snprintf(vocab, sizeof(vocab), "%s", more ? more + 1 : "null");
    snprintf(text, sizeof(text), "{\"model\":{\"type\":%s,\"vocab\":%s,\"merges\":%s}%s%s}",
             type ? type : "null", vocab, merges ? merges : "null",
             added ? ",\"added_tokens\":" : "", added ? added : "");
    if (whole)
        spill(in_scratch("tokenizer.json"), whole, strlen(whole));
}

static const struct malformed_kind jsons[] = {
    { "file", "~{\"model\":{~{\"\xe9\":1}~{\"a\":[[[[[[[[[[", "tokenizer.json" },
    { "file", "\xef\xbb\xbf[]", "line 1: expected a JSON object: found a" },
    { "file", "{}", "" },
    { "file", "version https://git-lfs.github.com/spec/v1\noid",
      "tokenizer.json: expected the file itself, found a Git LFS pointer" },
    { "type", "\"WordPiece\"~\"Unigram\"", "BPE" },
    { "vocab", "-~![]", "vocab" },
    { "vocab", "!{}~!{\"a\":0,\"b\":1,\"ab\":2}", "" },
    { "vocab", /* an id that is text, real, below 0 or huge; a piece of a blank, of Chinese, empty
                */
      PIECES ",\"z z\":\"300\"~" PIECES ",\"zz\":300.5~" PIECES ",\"zz\":-1~" PIECES
             ",\"zz\":1099511627776~" PIECES ",\"z z\":259~" PIECES ",\"\xe4\xbd\xa0\":259~" PIECES
             ",\"\":259",
      "" },
    { "vocab", PIECES ",\"zz\":257", "257" },
    { "vocab", PIECES ",\"\\ud800\":259", "expected a JSON object" },
    { "vocab", PIECES ",\"a\nb\":259", "line" },
    { "vocab", PIECES ",\"ab\":259", "\"ab\" is there twice" },
    { "vocab", PIECES ",\"ab\":256", "id 256 is there twice" },
    { "vocab", PIECES "},\"vocab\":{\"a\":1", "a second vocabulary" },
    { "merges", "-~{}", "merges" },
    { "merges",
      "[1]~[\"ab\"]~[\"\"]~[\" \"]~[\"a b c\"]~[[\"a\",\"b\",\"c\"]]~[[\"ab\"]]~[[1,2]]~[\"a zz\"]~"
      "[\"c a\"]",
      "merge" },
    { "added", ADDED ",\"added_tokens\":[]",
      "tokenizer.json: line 1: expected a JSON object: duplicate object key near "
      "'\"added_tokens\"'" },
    { "added", "[{\"id\":258,\"content\":\"<x>\",\"single_word\":true}]",
      "tokenizer.json: added token \"<x>\": single_word: expected false, found true" },
    { "added", "[{\"id\":258,\"content\":\"e\\u0301\",\"normalized\":true}]",
      "normalized, though its text is perhaps no NFC: expected false, found true" },
    { "added", ADDED ",\"post_processor\":{\"single\":[{\"SpecialToken\":{}}]}", "add_bos_token" },
    { "added",
      "[{\"content\":\"<x>\"}]~[{\"id\":\"x\",\"content\":\"y\"}]~[{\"id\":258}]~[\"<x>\"]",
      "added token" },
    { "added", "[{\"id\":99999999,\"content\":\"<x>\"}]", "id" },
    { "added",
      "[{\"id\":258,\"content\":\"\"}]~[{\"id\":-1,\"content\":\"<x>\"}]~"
      "[{\"id\":1125899906842624,\"content\":\"<x>\"}]",
      "" },
};

static const struct malformed_kind vocabs[] = {
    { "vocab.json", "~[]~\"a\"", NULL },
    { "vocab.json", "{}~{\"a\":0}~{\"a\":{\"b\":1}}", "" },
    { "merges.txt", "-", NULL },
    { "merges.txt",
      "#version: 0.2\nab\n~x yz\n~a b c\n~ e\n~h \n~a b\n# comment\n~a b\r\nab c\r\n~a \x01\n",
      "merge" },
    { "tokenizer_config.json", "[]~{\"a\":", NULL },
    { "tokenizer_config.json", "{\"a\":1,\"a\":2}",
      "tokenizer_config.json: line 1: expected a JSON object: duplicate object key near '\"a\"'" },
    { "tokenizer_config.json", "{\"add_bos_token\":true}",
      "add_bos_token is true: expected the id of a token" },
    { "tokenizer_config.json", "{\"add_bos_token\":true,\"bos_token\":\"<s>\"}",
      "add_bos_token is true" },
    { "tokenizer_config.json",
      "{\"added_tokens_decoder\":{\"258\":{\"content\":\"<x>\",\"single_word\":true}}}",
      "tokenizer_config.json: added token \"<x>\": single_word" },
    { "generation_config.json", "{\"eos_token_id\":1,\"eos_token_id\":2}",
      "generation_config.json: line 1: expected a JSON object: duplicate" },
    { "tokenizer_config.json",
      "{\"added_tokens_decoder\":{\"x\":{\"content\":\"<x>\"}}}~"
      "{\"added_tokens_decoder\":{\"-5\":{\"content\":\"<x>\"}}}",
      "" },
    { "tokenizer_config.json", "{\"added_tokens_decoder\":{\"258\":1}}", "added token" },
};

static void write_vocab(const struct malformed_kind *k)
{
    static char usual[ROOM];
    static const char *const files[] = { "vocab.json", "merges.txt", "tokenizer_config.json",
                                         "generation_config.json" };
    vocabulary(usual, PIECES);
    const char *texts[] = { usual, "#version: 0.2\na b\nab c\n",
                            "{\"added_tokens_decoder\":{\"258\":{\"content\":\"<|im_end|>\","
                            "\"special\":true}}}",
                            "{}" };
    for (size_t i = 0; i < 4; i++) {
        const char *text = part(k, files[i], texts[i]);
        if (text)
            spill(in_scratch(files[i]), text, strlen(text));
        else
            CHECK(unlink(in_scratch(files[i])) == 0);
    }
}

/* Append a key: its words, or those of k. */
static size_t gguf_key(unsigned char *out, size_t room, const struct malformed_kind *k,
                       const char *key, const char *usual, size_t *count)
{
    static char words[ROOM];
    const char *value = part(k, key, usual);
    if (!value)
        return 0;
    CHECK(snprintf(words, sizeof(words), "s'tokenizer.%s%s' %s",
                   strcmp(key, "chat_template") ? "ggml." : "", key, value) < (int)sizeof(words));
    (*count)++;
    return malformed_assemble(out, room, words);
}

static void write_gguf(const struct malformed_kind *k)
{
    static unsigned char p[ROOM];
    static char tokens[ROOM], types[ROOM];
    char c[8];
    size_t at = 24, n = 0, count = 0;
    size_t to = (size_t)snprintf(tokens, sizeof(tokens), "4:9 4:8 8:259");
    size_t ty = (size_t)snprintf(types, sizeof(types), "4:9 4:5 8:259");
    for (unsigned b = 0; b < BYTES; b++) {
        size_t len = letter_of(c, b);
        to += (size_t)snprintf(tokens + to, sizeof(tokens) - to, " 8:%zu", len);
        for (size_t i = 0; i < len; i++) /* as numbers, for one of them is a quote */
            to += (size_t)snprintf(tokens + to, sizeof(tokens) - to, " 1:%u", (unsigned char)c[i]);
    }
    snprintf(tokens + to, sizeof(tokens) - to, " s'ab' s'abc' s'<|im_end|>'");
    for (unsigned i = 0; i < 259; i++)
        ty += (size_t)snprintf(types + ty, sizeof(types) - ty, " 4:%d", i < 258 ? 1 : 3);
    at += gguf_key(p + at, ROOM - at, k, "model", "4:8 s'gpt2'", &count);
    at += gguf_key(p + at, ROOM - at, k, "pre", "4:8 s'qwen2'", &count);
    at += gguf_key(p + at, ROOM - at, k, "tokens", tokens, &count);
    at += gguf_key(p + at, ROOM - at, k, "token_type", types, &count);
    at += gguf_key(p + at, ROOM - at, k, "merges", "4:9 4:8 8:2 s'a b' s'ab c'", &count);
    at += gguf_key(p + at, ROOM - at, k, "chat_template", NULL, &count);
    at += gguf_key(p + at, ROOM - at, k, "add_bos_token", NULL, &count);
    at += gguf_key(p + at, ROOM - at, k, "eot_token_id", NULL, &count);
    snprintf(tokens, sizeof(tokens), "'GGUF' 4:3 8:0 8:%zu", count);
    n = malformed_assemble(p, 24, tokens);
    CHECK(n == 24);
    spill(in_scratch("a.gguf"), p, at);
}

static const struct malformed_kind ggufs[] = {
    { "model", "-~4:4 4:1", "tokenizer.ggml.model" },
    { "model", "4:8 s'llama'", "\"llama\"" }, /* SentencePiece */
    { "pre", "-", "tokenizer.ggml.pre" },
    { "pre", "4:8 s'llama-bpe'", "\"llama-bpe\"" },
    { "tokens", "-", "tokenizer.ggml.tokens" },
    { "tokens", "4:9 4:4 8:1 4:1~4:8 s'abc'", NULL },
    { "tokens", "4:9 4:8 8:0~4:9 4:8 8:3 s'a' s'b' s'c'", "" },
    { "token_type", "4:9 4:5 8:3 4:1 4:1 4:1~4:9 4:11 8:1 8:1~4:5 4:1", NULL },
    { "token_type", "4:9 4:5 8:259 z:1036", "found 0" },
    { "merges", "-~4:9 4:4 8:1 4:1", NULL },
    { "merges", "4:9 4:8 8:1 s'ab'~4:9 4:8 8:1 s''~4:9 4:8 8:1 8:3 'a ' 1:0", "merge 0" },
    { "merges", "4:9 4:8 8:2 s'a b' s'q zz'", "merge 1" },
    { "add_bos_token", "4:7 1:1", "add_bos_token is true" },
    { "chat_template", "4:8 8:3 'a' 1:0 'b'", "zero byte at 1" },
};

/* All keys of ends count, and so does another name of the pre-tokenizer. */
static void check_gguf_keys(const char *path)
{
    struct tokenizer *t;
    write_gguf(&(struct malformed_kind){ .what = "eot_token_id", .to = "4:4 4:65" });
    CHECK(tokenizer_open_path(&t, path, NULL) == OK && tokenizer_is_eog(t, 65));
    tokenizer_close(t);
    write_gguf(&(struct malformed_kind){ .what = "pre", .to = "4:8 s'deepseek-r1-qwen'" });
    malformed_opens("DeepSeek's pre-tokenizer", path, MALFORMED_TOKENIZER);
}

static int open_once(const void *arg)
{
    struct err err;
    struct tokenizer *t;
    int rc = tokenizer_open_path(&t, folder, &err);
    (void)arg;
    CHECK((rc == OK) == (t != NULL));
    CHECK(rc == OK || rc == ERR_NOMEM || (strstr(err.msg, folder) && !strchr(err.msg, '\n')));
    tokenizer_close(t);
    return rc;
}

/* Open the folder with p[n] as a new file: some file systems write out one that is truncated. */
static int open_with(const char *path, const char *p, size_t n)
{
    remove(path);
    spill(path, p, n);
    return open_once(NULL);
}

/* A file that is cut at any byte is refused, and one that has any byte changed is read or refused;
 * whole, it meets any failing allocation. */
static void check_damage(const char *path)
{
    size_t size, fine = 0;
    char *text = slurp_all(path, &size);
    CHECK(text);
    for (size_t i = 0; i < size; i++)
        CHECK(open_with(path, text, i) == ERR_FORMAT);
    for (size_t i = 0; i < size; i++)
        for (int bit = 0; bit < 8; bit += 1 + (int)(i % 3)) {
            text[i] = (char)(text[i] ^ (1 << bit));
            int rc = open_with(path, text, size);
            text[i] = (char)(text[i] ^ (1 << bit));
            CHECK(rc == OK || rc == ERR_FORMAT);
            fine += rc == OK;
        }
    CHECK(fine > 0 && fine < size && open_with(path, text, size) == OK);
    torture_some(open_once, NULL);
    free(text);
}

int main(void)
{
    static const struct malformed_kind none = { .what = "" };
    const char *gguf = in_scratch("a.gguf");
    folder = scratch_folder();
    malformed_refused("no file at all", folder, MALFORMED_TOKENIZER, "expected tokenizer.json");
    write_json(&none);
    malformed_opens("tokenizer.json", folder, MALFORMED_TOKENIZER);
    check_damage(in_scratch("tokenizer.json"));
    MALFORMED_EACH(jsons, write_json, folder, MALFORMED_TOKENIZER);
    CHECK(unlink(in_scratch("tokenizer.json")) == 0);
    CHECK(mkdir(in_scratch("tokenizer.json"), 0700) == 0);
    malformed_refused("tokenizer.json is a folder", folder, MALFORMED_TOKENIZER, "tokenizer.json");
    CHECK(rmdir(in_scratch("tokenizer.json")) == 0);
    write_vocab(&none);
    malformed_opens("vocab.json", folder, MALFORMED_TOKENIZER);
    check_damage(in_scratch("vocab.json"));
    MALFORMED_EACH(vocabs, write_vocab, folder, MALFORMED_TOKENIZER);
    write_gguf(&none);
    malformed_opens("GGUF", gguf, MALFORMED_TOKENIZER);
    MALFORMED_EACH(ggufs, write_gguf, gguf, MALFORMED_TOKENIZER);
    check_gguf_keys(gguf);
    malformed_count(79);
    return 0;
}
