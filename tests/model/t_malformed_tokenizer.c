/* t_malformed_tokenizer.c - tokenizers that are wrong in one way each, in every form that they
 * have: tokenizer.json, vocab.json with merges.txt, and the keys of a GGUF file. */
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kernels/sys/base.h"
#include "kernels/sys/text.h"
#include "model/text/tokenizer.h"
#include "tests/support/files.h"
#include "tests/support/malformed.h"

enum { ROOM = 1 << 16, BYTES = 256 };

static const char *folder;

/* Write the letter of a byte in GPT-2's map, terminated; return its length. */
static size_t letter(char *out, unsigned byte)
{
    static uint32_t map[BYTES];
    if (!map[0])
        for (uint32_t b = 0, next = 256; b < BYTES; b++) {
            bool plain = (b >= 33 && b <= 126) || (b >= 161 && b != 173);
            map[b] = plain ? b : next++;
        }
    size_t n = (size_t)text_encode(out, map[byte]);
    out[n] = '\0';
    return n;
}

/* Return the text of a part: k's, or the usual one. */
static const char *part(const struct malformed_kind *k, const char *what, const char *usual)
{
    return strcmp(k->what, what) == 0 ? k->to : usual;
}

/* Write {"!":0, ...} with all bytes, then `more`, into out; return its length. */
static size_t vocabulary(char *out, const char *more)
{
    char c[8];
    size_t at = 0;
    for (unsigned b = 0; b < BYTES; b++) {
        letter(c, b);
        at += (size_t)snprintf(out + at, ROOM - at, "%s\"%s%s\":%u", b ? "," : "{",
                               *c == '"' || *c == '\\' ? "\\" : "", c, b);
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
    { "empty tokenizer.json", "file", "", "tokenizer.json" },
    { "tokenizer.json is a list", "file", "\xef\xbb\xbf[]",
      "line 1: expected a JSON object: found a" },
    { "tokenizer.json without its end", "file", "{\"model\":{", "tokenizer.json" },
    { "tokenizer.json of nothing", "file", "{}", "" },
    { "tokenizer.json in Latin-1", "file", "{\"\xe9\":1}", "tokenizer.json" },
    { "tokenizer.json of brackets", "file", "{\"a\":[[[[[[[[[[", "tokenizer.json" },
    { "word pieces", "type", "\"WordPiece\"", "BPE" },
    { "unigrams", "type", "\"Unigram\"", "BPE" },
    { "no vocabulary", "vocab", NULL, "vocab" },
    { "vocabulary is a list", "vocab", "![]", "vocab" },
    { "vocabulary of nothing", "vocab", "!{}", "" },
    { "vocabulary without most bytes", "vocab", "!{\"a\":0,\"b\":1,\"ab\":2}", "" },
    { "id as text", "vocab", PIECES ",\"z z\":\"300\"", "" },
    { "id as a real", "vocab", PIECES ",\"zz\":300.5", "" },
    { "id below 0", "vocab", PIECES ",\"zz\":-1", "" },
    { "id of 2^40", "vocab", PIECES ",\"zz\":1099511627776", "" },
    { "id twice", "vocab", PIECES ",\"zz\":257", "257" },
    { "piece of half a character", "vocab", PIECES ",\"\\ud800\":259", "expected a JSON object" },
    { "piece with the end of a line", "vocab", PIECES ",\"a\nb\":259", "line" },
    { "piece of a blank", "vocab", PIECES ",\"z z\":259", "" },
    { "piece of Chinese", "vocab", PIECES ",\"\xe4\xbd\xa0\":259", "" },
    { "piece of nothing", "vocab", PIECES ",\"\":259", "" },
    { "no merges", "merges", NULL, "merges" },
    { "merges as an object", "merges", "{}", "merges" },
    { "merge as a number", "merges", "[1]", "merge" },
    { "merge of one piece", "merges", "[\"ab\"]", "merge" },
    { "merge of nothing", "merges", "[\"\"]", "merge" },
    { "merge of a blank", "merges", "[\" \"]", "merge" },
    { "merge of three pieces", "merges", "[\"a b c\"]", "merge" },
    { "merge as three in a list", "merges", "[[\"a\",\"b\",\"c\"]]", "merge" },
    { "merge as one in a list", "merges", "[[\"ab\"]]", "merge" },
    { "merge as numbers in a list", "merges", "[[1,2]]", "merge" },
    { "merge of an unknown piece", "merges", "[\"a zz\"]", "merge" },
    { "merge into an unknown piece", "merges", "[\"c a\"]", "merge" },
    { "piece twice", "vocab", PIECES ",\"ab\":259", "\"ab\" is there twice" },
    { "piece and id twice", "vocab", PIECES ",\"ab\":256", "id 256 is there twice" },
    { "vocabulary twice", "vocab", PIECES "},\"vocab\":{\"a\":1", "a second vocabulary" },
    { "member twice", "added", ADDED ",\"added_tokens\":[]",
      "tokenizer.json: line 1: expected a JSON object: duplicate object key near "
      "'\"added_tokens\"'" },
    { "a pointer", "file", "version https://git-lfs.github.com/spec/v1\noid",
      "tokenizer.json: expected the file itself, found a Git LFS pointer" },
    { "added token as a word", "added", "[{\"id\":258,\"content\":\"<x>\",\"single_word\":true}]",
      "tokenizer.json: added token \"<x>\": single_word: expected false, found true" },
    { "added token that NFC changes", "added",
      "[{\"id\":258,\"content\":\"e\\u0301\",\"normalized\":true}]",
      "normalized, though its text is perhaps no NFC: expected false, found true" },
    { "BOS without a token", "added",
      ADDED ",\"post_processor\":{\"single\":[{\"SpecialToken\":{}}]}", "add_bos_token" },
    { "added token without an id", "added", "[{\"content\":\"<x>\"}]", "added token" },
    { "added token with a text as id", "added", "[{\"id\":\"x\",\"content\":\"y\"}]",
      "added token" },
    { "added token without a text", "added", "[{\"id\":258}]", "added token" },
    { "added token of nothing", "added", "[{\"id\":258,\"content\":\"\"}]", "" },
    { "added token as text", "added", "[\"<x>\"]", "added token" },
    { "added token at -1", "added", "[{\"id\":-1,\"content\":\"<x>\"}]", "" },
    { "added token at 99999999", "added", "[{\"id\":99999999,\"content\":\"<x>\"}]", "id" },
    { "added token at 2^50", "added", "[{\"id\":1125899906842624,\"content\":\"<x>\"}]", "" },
};

static const struct malformed_kind vocabs[] = {
    { "empty vocab.json", "vocab.json", "", "vocab.json" },
    { "vocab.json is a list", "vocab.json", "[]", "vocab.json" },
    { "vocab.json is text", "vocab.json", "\"a\"", "vocab.json" },
    { "vocab.json of nothing", "vocab.json", "{}", "" },
    { "vocab.json without most bytes", "vocab.json", "{\"a\":0}", "" },
    { "vocab.json nested", "vocab.json", "{\"a\":{\"b\":1}}", "" },
    { "no merges.txt", "merges.txt", NULL, "merges.txt" },
    { "merges.txt of one word", "merges.txt", "#version: 0.2\nab\n", "merge" },
    { "merges.txt of unknown pieces", "merges.txt", "x yz\n", "merge" },
    { "merges.txt of three words", "merges.txt", "a b c\n", "merge" },
    { "merges.txt with a blank in front", "merges.txt", " e\n", "merge" },
    { "merges.txt with a blank behind", "merges.txt", "h \n", "merge" },
    { "merges.txt with a comment", "merges.txt", "a b\n# comment\n", "merge" },
    { "merges.txt with carriage returns", "merges.txt", "a b\r\nab c\r\n", "merge" },
    { "merges.txt with a zero byte", "merges.txt", "a \x01\n", "merge" },
    { "tokenizer_config.json is a list", "tokenizer_config.json", "[]", "tokenizer_config.json" },
    { "tokenizer_config.json without its end", "tokenizer_config.json", "{\"a\":", "config.json" },
    { "tokenizer_config.json with a member twice", "tokenizer_config.json", "{\"a\":1,\"a\":2}",
      "tokenizer_config.json: line 1: expected a JSON object: duplicate object key near '\"a\"'" },
    { "BOS without a token", "tokenizer_config.json", "{\"add_bos_token\":true}",
      "add_bos_token is true: expected the id of a token" },
    { "BOS that is no token", "tokenizer_config.json",
      "{\"add_bos_token\":true,\"bos_token\":\"<s>\"}", "add_bos_token is true" },
    { "added token as a word", "tokenizer_config.json",
      "{\"added_tokens_decoder\":{\"258\":{\"content\":\"<x>\",\"single_word\":true}}}",
      "tokenizer_config.json: added token \"<x>\": single_word" },
    { "generation_config.json with a member twice", "generation_config.json",
      "{\"eos_token_id\":1,\"eos_token_id\":2}",
      "generation_config.json: line 1: expected a JSON object: duplicate" },
    { "added token under a name", "tokenizer_config.json",
      "{\"added_tokens_decoder\":{\"x\":{\"content\":\"<x>\"}}}", "" },
    { "added token below 0", "tokenizer_config.json",
      "{\"added_tokens_decoder\":{\"-5\":{\"content\":\"<x>\"}}}", "" },
    { "added token as a number", "tokenizer_config.json", "{\"added_tokens_decoder\":{\"258\":1}}",
      "added token" },
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
        size_t len = letter(c, b);
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

#define ONES "4:9 4:5 8:259 z:1036"

static const struct malformed_kind ggufs[] = {
    { "no kind of tokenizer", "model", NULL, "tokenizer.ggml.model" },
    { "SentencePiece", "model", "4:8 s'llama'", "\"llama\"" },
    { "kind as a number", "model", "4:4 4:1", "tokenizer.ggml.model" },
    { "no pre-tokenizer", "pre", NULL, "tokenizer.ggml.pre" },
    { "another pre-tokenizer", "pre", "4:8 s'llama-bpe'", "\"llama-bpe\"" },
    { "no tokens", "tokens", NULL, "tokenizer.ggml.tokens" },
    { "tokens of numbers", "tokens", "4:9 4:4 8:1 4:1", "tokens" },
    { "tokens as one text", "tokens", "4:8 s'abc'", "tokens" },
    { "list of no tokens", "tokens", "4:9 4:8 8:0", "" },
    { "three tokens", "tokens", "4:9 4:8 8:3 s'a' s'b' s'c'", "" },
    { "types of three tokens", "token_type", "4:9 4:5 8:3 4:1 4:1 4:1", "token_type" },
    { "types in eight bytes", "token_type", "4:9 4:11 8:1 8:1", "token_type" },
    { "types as one number", "token_type", "4:5 4:1", "token_type" },
    { "types of 0", "token_type", ONES, "found 0" },
    { "no merges", "merges", NULL, "merges" },
    { "merges of numbers", "merges", "4:9 4:4 8:1 4:1", "merges" },
    { "merge of one piece", "merges", "4:9 4:8 8:1 s'ab'", "merge 0" },
    { "merge of nothing", "merges", "4:9 4:8 8:1 s''", "merge 0" },
    { "merge of an unknown piece", "merges", "4:9 4:8 8:2 s'a b' s'q zz'", "merge 1" },
    { "merge with a zero byte", "merges", "4:9 4:8 8:1 8:3 'a ' 1:0", "merge 0" },
    { "BOS without a token", "add_bos_token", "4:7 1:1", "add_bos_token is true" },
    { "chat template with a zero byte", "chat_template", "4:8 8:3 'a' 1:0 'b'", "zero byte at 1" },
};

/* All keys of ends count, and so does another name of the pre-tokenizer. */
static void check_gguf_keys(const char *path)
{
    struct tokenizer *t;
    struct err err;
    write_gguf(&(struct malformed_kind){ .what = "eot_token_id", .to = "4:4 4:65" });
    CHECK(tokenizer_open_path(&t, path, &err) == OK && tokenizer_is_eog(t, 65));
    tokenizer_close(t);
    write_gguf(&(struct malformed_kind){ .what = "pre", .to = "4:8 s'deepseek-r1-qwen'" });
    malformed_opens("DeepSeek's pre-tokenizer", path, MALFORMED_TOKENIZER);
}

int main(void)
{
    static const struct malformed_kind none = { .what = "" };
    const char *gguf = in_scratch("a.gguf");
    folder = scratch_folder();
    malformed_refused("no file at all", folder, MALFORMED_TOKENIZER, "expected tokenizer.json");
    write_json(&none);
    malformed_opens("tokenizer.json", folder, MALFORMED_TOKENIZER);
    MALFORMED_EACH(jsons, write_json, folder, MALFORMED_TOKENIZER);
    CHECK(unlink(in_scratch("tokenizer.json")) == 0);
    CHECK(mkdir(in_scratch("tokenizer.json"), 0700) == 0);
    malformed_refused("tokenizer.json is a folder", folder, MALFORMED_TOKENIZER, "tokenizer.json");
    CHECK(rmdir(in_scratch("tokenizer.json")) == 0);
    write_vocab(&none);
    malformed_opens("vocab.json", folder, MALFORMED_TOKENIZER);
    MALFORMED_EACH(vocabs, write_vocab, folder, MALFORMED_TOKENIZER);
    write_gguf(&none);
    malformed_opens("GGUF", gguf, MALFORMED_TOKENIZER);
    MALFORMED_EACH(ggufs, write_gguf, gguf, MALFORMED_TOKENIZER);
    check_gguf_keys(gguf);
    malformed_count(79);
    return 0;
}
