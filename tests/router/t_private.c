/* t_private.c - tests what must not be sent: by hand, and against a plain search for random texts
 * and patterns, asked in any order. No prefix that may be sent holds a private span. */
#include "model/text/tokenizer.h"
#include "router/private.h"
#include "tests/support/test.h"
#include "tests/support/tiny.h"

static const char *path;
static struct tokenizer *tok;
static struct private_text state; /* of the filter that is open */
static struct err err;

/* Build a filter, from a file and from a text in turn. */
static struct private_filter *open_private(const char *patterns)
{
    static unsigned turn;
    struct private_filter *p;
    bool file = patterns && turn++ % 2;
    if (file)
        spill(path, patterns, strlen(patterns));
    CHECK_MSG(private_open(&p, file ? path : NULL, file ? NULL : patterns, tok, &err) == OK &&
                  (p || !patterns),
              "%s", err.msg);
    return p;
}

static void close_private(struct private_filter *p)
{
    private_text_end(&state);
    private_close(p);
}

/* Check the answer for a text and each of its prefixes: '#' is held, '.' is not. The tiny tokenizer
 * has one token per byte. */
static void expect(struct private_filter *p, const char *text, const char *held)
{
    uint32_t *ids;
    size_t n;
    CHECK(tokenizer_encode(tok, &ids, &n, text, strlen(text), false, &err) == OK);
    CHECK(n == strlen(held));
    for (size_t i = 1; i <= n; i++) {
        bool holds = private_holds(p, &state, ids, i);
        CHECK_MSG(holds == (held[i - 1] == '#'), "%s: after %zu bytes", text, i);
    }
    free(ids);
}

static void test_by_hand(void)
{
    struct private_filter *p = open_private("sesame-12\r\n# a comment\n\n  \\d\\d-\\w\\s\\\\  \n");
    CHECK(!private_holds(p, &state, NULL, 0));
    expect(p, "abc", "...");
    expect(p, "a sesam", "......#"); /* 5 of 9 bytes of the pattern */
    expect(p, "a sesamy", "......#.");
    expect(p, "sesame-12 b", "....#######");
    expect(p, "in 19 and 42-a \\ b", "............######");
    expect(p, "42-a \\", "..####");
    expect(p, "# a comment", "...........");
    close_private(p);

    /* E with acute, composed or not, in pattern and text. */
    p = open_private("caf\xc3\xa9!");
    expect(p, "cafe\xcc\x81!", "..####"); /* the tokenizer composes what is typed */
    close_private(p);
    p = open_private("cafe\xcc\x81!");
    expect(p, "caf\xc3\xa9!", "..####");
    static const uint32_t typed[] = { 'c', 'a', 'f', 'e', 0xcc, 0x81, '!' };
    uint32_t ids[7];
    for (size_t i = 0; i < 7; i++) { /* and as a model may write it */
        size_t n;
        const char *bytes;
        for (ids[i] = 0; ids[i] < 256; ids[i]++)
            if ((bytes = tokenizer_bytes(tok, ids[i], &n)) && (unsigned char)*bytes == typed[i])
                break;
    }
    CHECK(private_holds(p, &state, ids, 7));
    close_private(p);

    CHECK(!open_private(NULL));
    CHECK(!private_holds(NULL, &state, ids, 7));
}

/* private_open refuses the options. */
static void refused(const char *patterns, size_t n, const char *what)
{
    struct private_filter *p;
    spill(path, patterns, n);
    CHECK(private_open(&p, path, NULL, tok, &err) == ERR_FORMAT && !p);
    CHECK_MSG(strstr(err.msg, what) && !strchr(err.msg, '\n'), "expected %s, found %s", what,
              err.msg);
}

static void test_refused(void)
{
    char text[5200];
    memset(text, 'a', sizeof(text));
    refused("\xff\n", 2, "UTF-8");
    refused("# nothing\n", 10, "found none");
    refused("", 0, "found none");
    refused("ok\n\\x\n", 6, "line 2: expected a backslash");
    refused("ok\\", 3, "line 1: expected a backslash");
    refused("a\n\xc3\n", 4, "line 2");
    refused("a\0b\n", 4, "line 1");
    refused("a\n \xef\xbb\xbf#b\n", 9, "line 2: expected a pattern, found a byte order mark");
    refused("\xef\xbb\xbf\xef\xbb\xbfz", 7, "line 1: expected a pattern");
    refused("a\rb\n", 4, "line 1: expected one line");
    refused(text, sizeof(text), "line 1");
    refused(text, 256, "at most 255");
    for (size_t i = 100; i < sizeof(text); i += 101)
        text[i] = '\n';
    refused(text, sizeof(text), "4,096");
    struct private_filter *p; /* only a file may begin with a mark */
    CHECK(private_open(&p, NULL, "\xef\xbb\xbfzz", tok, &err) == ERR_FORMAT && !p);
    spill(path, "\xef\xbb\xbfzz", 5);
    CHECK(private_open(&p, path, NULL, tok, &err) == OK);
    expect(p, "a zz", "..##");
    close_private(p);
    CHECK(private_open(&p, "build/no-such-file", NULL, tok, &err) == ERR_IO && !p);
}

static bool ends(const char *text, size_t n, const char *what, size_t len)
{
    return len <= n && memcmp(text + n - len, what, len) == 0;
}

static bool plainly_holds(const char *const *patterns, const char *text, size_t n)
{
    for (const char *const *p = patterns; *p; p++) {
        size_t len = strlen(*p);
        for (size_t e = len; e <= n; e++)
            if (ends(text, e, *p, len))
                return true;
        for (size_t k = (len + 1) / 2; k < len; k++)
            if (ends(text, n, *p, k))
                return true;
    }
    return false;
}

/* Return a piece of the text as a pattern, or NULL when it cannot be one. */
static const char *piece(char out[16], const char *text, size_t n, uint64_t r)
{
    size_t len = 1 + r % 9, at = (size_t)(r >> 8) % (n - len), k = 0;
    for (size_t i = 0; i < len; i++) {
        char c = text[at + i];
        if ((unsigned char)c >= 0x80 || (unsigned char)c < 0x20 || c == '\\' || (!k && c == '#') ||
            c == ' ')
            return NULL;
        out[k++] = c;
    }
    out[k] = 0;
    return out;
}

enum { TOKENS = 60, TEXT = 4096 };

struct text {
    uint32_t ids[TOKENS];
    size_t end[TOKENS + 1]; /* number of bytes after this many tokens */
    char bytes[TEXT];
};

/* Draw tokens from `from` on, out of `few`, so that pieces repeat. */
static void draw(struct text *t, uint64_t seed, uint64_t few, size_t from)
{
    for (size_t i = from; i < TOKENS; i++) {
        size_t n;
        uint64_t which = rand_u64(seed, i) % few;
        t->ids[i] = (uint32_t)(rand_u64(seed / 8, 1000 + which) % tokenizer_size(tok));
        const char *bytes = tokenizer_bytes(tok, t->ids[i], &n);
        CHECK(n < TEXT - t->end[i]);
        if (n) /* padding has no bytes */
            memcpy(t->bytes + t->end[i], bytes, n);
        t->end[i + 1] = t->end[i] + n;
    }
}

static size_t test_random(uint64_t seed)
{
    struct text text[2] = { { .end = { 0 } } };
    char pieces[3][16], file[1000] = "";
    const char *patterns[5] = { NULL };
    size_t npatterns = 0, held = 0;
    char filler[100] = ""; /* moves the others to any place in the words of the automaton */
    draw(&text[0], seed, 3 + seed % 20, 0);
    text[1] = text[0]; /* the two texts differ from the middle on */
    draw(&text[1], seed ^ 1, 3 + seed % 20, TOKENS / 2);
    for (size_t i = 0; seed % 3 && i < 3; i++) {
        const struct text *t = &text[i % 2];
        if (t->end[TOKENS] > 40 &&
            piece(pieces[i], t->bytes, t->end[TOKENS], rand_u64(seed, 3000 + i))) {
            patterns[npatterns++] = pieces[i];
            size_t used = strlen(file);
            snprintf(file + used, sizeof(file) - used, "%s\n", pieces[i]);
        }
    }
    if (npatterns && seed % 5) {
        memset(filler, '~', 40 + seed % 59);
        patterns[npatterns++] = filler;
        memmove(file + strlen(filler) + 1, file, strlen(file) + 1);
        memcpy(file, filler, strlen(filler));
        file[strlen(filler)] = '\n';
    }
    if (!npatterns)
        return 0;
    struct private_filter *p = open_private(file);
    struct private_text own[2] = { { .n = 0 } };
    for (uint64_t i = 0; i < 150; i++) {
        uint64_t r = rand_u64(seed, 5000 + i);
        const struct text *t = &text[r >> 32 & 1];
        size_t n = i < 100 ? i % (TOKENS + 1) : (size_t)(r % (TOKENS + 1));
        bool holds = private_holds(p, &state, t->ids, n);
        CHECK(holds == plainly_holds(patterns, t->bytes, t->end[n]));
        CHECK(holds == private_holds(p, &own[t - text], t->ids, n));
        held += holds;
    }
    private_text_end(&own[0]);
    private_text_end(&own[1]);
    close_private(p);
    return held;
}

static void test_memory(void)
{
    static const uint32_t ids[] = { 1, 2, 3 };
    long n = 0;
    int reached;
    spill(path, "caf\xc3\xa9\ncafe\xcc\x81\n", 13);
    do {
        struct private_filter *p;
        torture_begin(++n);
        int rc = private_open(&p, path, NULL, tok, &err);
        CHECK(rc == (p ? OK : ERR_NOMEM));
        bool holds =
            p && private_holds(p, &state, ids, 3); /* when memory runs out, nothing is sent */
        close_private(p);
        reached = torture_end();
        CHECK(torture_live() == 0 && holds == (p && reached));
    } while (reached);
    CHECK(n > 5);
}

int main(void)
{
    path = in_scratch("patterns");
    size_t held = 0;
    CHECK(tokenizer_open_path(&tok, tiny_make(), &err) == OK);
    test_by_hand();
    test_refused();
    test_memory();
    for (uint64_t seed = 0; seed < 300; seed++)
        held += test_random(seed);
    CHECK(held > 1000);
    tokenizer_close(tok);
    /* Tokens with several bytes. */
    if (access("weights/milli/edge-0.5.gguf", R_OK) == 0) {
        CHECK(tokenizer_open_path(&tok, "weights/milli/edge-0.5.gguf", &err) == OK);
        held = 0;
        for (uint64_t seed = 0; seed < 1000; seed++)
            held += test_random(seed);
        CHECK(held > 10000);
        tokenizer_close(tok);
    } else {
        printf("SKIP: no demo pair in weights/milli: only tokens of one byte\n");
    }
    return 0;
}
