/* mini.c - one token's way through a language model, in one file.
 *
 * It does what `mizzle run` does, and no more: it reads a small model, writes a text with it, token
 * by token, and asks a large model behind HTTP for those tokens with which a router (page 10) does
 * not trust the small one. It is for reading: one thread, plain loops, no line for speed. And yet
 * its ids, scores (page 10) and logits (page 9) are to the last bit those of the engine, mizzle, as
 * this file adds in the order that kernels/scalar.c defines. `make test` compares them.
 *
 *     cc -O2 -ffp-contract=off mini.c -o mini -lm -lcurl
 *
 * -ffp-contract=off, because a * b + c in one instruction is rounded once instead of twice, which
 * gives another number. Here only fmaf and fma are; -O3 -march=native change no bit.
 *
 * A token is a piece of text, its id its number in the vocabulary. Pages, as a token meets them:
 *
 *     1 Odds and ends                          7 A layer's parts: norm, RoPE, attention
 *     2 The file: names, numbers, matrices     8 The layers: an id becomes a hidden state
 *     3 Text becomes ids                       9 The head: a hidden state becomes an id
 *     4 The same number on every machine      10 The router: a hidden state becomes a score
 *     5 Sums                                  11 The cloud: ids go up, one id comes down
 *     6 A matrix times a vector               12 The loop */
#define _POSIX_C_SOURCE 200809L
#include <ctype.h>
#include <curl/curl.h>
#include <getopt.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* 1. Odds and ends. A broken file ends the program with one line; memory is zeroed and kept. */
#define die(...) (fprintf(stderr, "mini: " __VA_ARGS__), fputc('\n', stderr), exit(1))

static void *make(size_t n, size_t size)
{
    void *p = calloc(n + 1, size);
    if (!p)
        die("out of memory");
    return p;
}

/* For --time: lap(X), called after some work of kind X, charges it the time since the last call. */
enum part { EMBED, NORM, QKV, ATTENTION, O, FFN, DOWN, HEAD, ROUTER, CLOUD, PARTS };
static double spent[PARTS]; /* in milliseconds */

static void lap(enum part part)
{
    static double last;
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    double now = (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
    spent[part] += last > 0 ? now - last : 0;
    last = now;
}

/* 2. The file: names, numbers, matrices.
 *
 * A model in GGUF, the format of llama.cpp, is one file: counts of what follows; keys, which are
 * names with a value, or several (how many layers, the vocabulary); names, shapes and places of the
 * tensors; their data. Numbers begin with the lowest byte, as in this machine. Nobody knows where a
 * file has been: `take` lets nothing reach beyond its end. */
struct text { /* bytes of the file, without a zero at their end */
    char *p;
    size_t n;
};

struct array { /* a tensor, of which a vector is one row; or a key's values: cols of them */
    struct text name;
    uint64_t type;
    size_t rows, cols, row, offset; /* row: bytes of one */
    void *data;
};

struct file {
    const char *path;
    unsigned char *at, *end; /* at: what is read next */
};

enum { F32 = 0, Q8_0 = 8 << 8, GROUP = 32, BLOCK = 34, MOST = 1 << 18 }; /* MOST: columns, page 6 */
enum { KEY_I32 = 5, KEY_F32 = 6, KEY_TEXT = 8, KEY_ARRAY = 9 };          /* types of values */
static const unsigned char key_bytes[] = { 1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8 }; /* of a value */
static struct file file; /* the model, and all that is in it */
static struct array *arrays;
static size_t narrays;

/* Read a whole file. If there is none, the path in the result is NULL. */
static struct file read_file(const char *path)
{
    FILE *from = fopen(path, "rb");
    if (!from || fseek(from, 0, SEEK_END))
        return (struct file){ 0 };
    size_t n = (size_t)ftell(from);
    unsigned char *p = make(n, 1);
    rewind(from);
    if (fread(p, 1, n, from) != n)
        die("%s: cannot be read", path);
    fclose(from);
    return (struct file){ path, p, p + n };
}

/* Return the next n bytes, and step over them. */
static unsigned char *take(struct file *f, size_t n)
{
    if (n > (size_t)(f->end - f->at))
        die("%s: ends in the middle", f->path);
    f->at += n;
    return f->at - n;
}

static uint64_t take_number(struct file *f, size_t bytes)
{
    uint64_t v = 0;
    memcpy(&v, take(f, bytes), bytes);
    return v;
}

static struct text take_text(struct file *f)
{
    size_t n = take_number(f, 8);
    return (struct text){ (char *)take(f, n), n };
}

static bool same(struct text a, const char *p, size_t n)
{
    return a.n == n && !memcmp(a.p, p, n);
}

static struct array take_key(struct file *f)
{
    struct array k = { .name = take_text(f), .cols = 1 };
    if ((k.type = take_number(f, 4)) == KEY_ARRAY) {
        k.type = take_number(f, 4);
        k.cols = take_number(f, 8);
    }
    k.data = f->at;
    if (k.type >= sizeof(key_bytes) || k.cols > (size_t)(f->end - f->at))
        die("%s: key %.*s: unknown type, or too long", f->path, (int)k.name.n, k.name.p);
    take(f, k.cols * key_bytes[k.type]);
    for (size_t i = 0; k.type == KEY_TEXT && i < k.cols; i++)
        take_text(f);
    return k;
}

/* Return what has this name, in which %zu is the layer, or NULL. */
static const struct array *find(const char *name, size_t layer)
{
    char full[96];
    snprintf(full, sizeof(full), name, layer);
    for (size_t i = 0; i < narrays; i++)
        if (same(arrays[i].name, full, strlen(full)))
            return &arrays[i];
    return NULL;
}

/* Return the number that is the value of key OF.NAME, or 0. */
static double config(const char *of, const char *name)
{
    char key[96];
    float real;
    uint64_t whole = 0;
    snprintf(key, sizeof(key), "%s.%s", of, name);
    const struct array *k = find(key, 0);
    if (k && k->cols && k->type < sizeof(key_bytes)) /* a tensor may have the name, too */
        memcpy(&whole, k->data, key_bytes[k->type]);
    memcpy(&real, &whole, sizeof(real));
    return k && k->type == KEY_F32 ? (double)real : (double)whole;
}

static void read_gguf(const char *path)
{
    file = read_file(path);
    unsigned char *begin = file.at;
    size_t size = (size_t)(file.end - begin);
    if (!file.path || memcmp(take(&file, 4), "GGUF", 4) || take_number(&file, 4) > 3)
        die("%s: %s", path, file.path ? "not a GGUF file" : "cannot be opened");
    size_t tensors = take_number(&file, 8), keys = take_number(&file, 8);
    if (tensors > size || keys > size)
        die("%s: counts more than it can hold", path);
    arrays = make(keys + tensors, sizeof(*arrays));
    while (narrays < keys)
        arrays[narrays++] = take_key(&file);
    while (narrays < keys + tensors) { /* columns are counted first */
        struct array *t = &arrays[narrays++];
        t->name = take_text(&file);
        uint64_t dimensions = take_number(&file, 4);
        t->cols = take_number(&file, 8);
        for (t->rows = 1; --dimensions;)
            t->rows *= take_number(&file, 8);
        t->type = take_number(&file, 4) << 8; /* so that none but F32 is also a key's */
        t->row = t->type == F32 ? t->cols * sizeof(float) : t->cols / GROUP * BLOCK;
        t->offset = take_number(&file, 8);
    }
    size_t given = (size_t)config("general", "alignment"), align = given ? given : 32;
    size_t data = ((size_t)(file.at - begin) + align - 1) / align * align;
    for (struct array *t = arrays + keys; t < arrays + narrays; t++) {
        if (data > size || t->offset > size - data || t->offset % align || align % 4)
            die("%s: a tensor lies outside", path);
        t->data = begin + data + t->offset;
    }
}

/* 3. Text becomes ids.
 *
 * The vocabulary is one of byte pairs (BPE). A text is first cut into words. In a word, every byte
 * is a token at first. Then neighbours are joined, down a list of merges that was learnt by
 * counting: the pair that was met most often comes first. So " that" becomes one token, and a name
 * that nobody has heard remains several. */
enum { PIECE_NORMAL = 1, PIECE_CONTROL = 3, PIECE_USER = 4, PIECE_UNUSED = 5 };
static struct text (*merges)[2]; /* left and right */
static struct text *text;        /* of each id */
static int32_t *type;
static size_t vocabulary, nmerges; /* vocabulary: ids in use; the rest pads matrices */

/* The file writes letters instead of bytes, an idea of GPT-2's: printable bytes stand for
 * themselves, the 68 others for U+0100 and up; a blank is U+0120. Turn them back, in place. */
static struct text bytes_of(char *p, size_t n)
{
    size_t to = 0;
    for (size_t i = 0; i < n; i++) {
        unsigned c = (unsigned char)p[i];
        if (c >= 0xc0 && i + 1 < n) /* UTF-8: two bytes are one letter */
            c = (c & 31) << 6 | ((unsigned char)p[++i] & 63);
        if (c >= 256)
            c = c <= 256 + 32 ? c - 256 : c <= 256 + 66 ? c - 256 + 94 : 173;
        p[to++] = (char)c;
    }
    return (struct text){ p, to };
}

static void read_tokenizer(void)
{
    const struct array *pieces = find("tokenizer.ggml.tokens", 0);
    const struct array *types = find("tokenizer.ggml.token_type", 0);
    const struct array *pairs = find("tokenizer.ggml.merges", 0);
    if (!pieces || !types || !pairs || pieces->type != KEY_TEXT || pairs->type != KEY_TEXT ||
        types->type != KEY_I32 || types->cols != pieces->cols)
        die("%s: has no vocabulary of byte pairs", file.path);
    text = make(pieces->cols, sizeof(*text));
    merges = make(pairs->cols, sizeof(*merges));
    type = make(types->cols, sizeof(*type));
    memcpy(type, types->data, types->cols * sizeof(*type));
    struct file from = { file.path, pieces->data, file.end };
    for (size_t id = 0; id < pieces->cols; id++) {
        text[id] = take_text(&from);
        text[id] = type[id] == PIECE_NORMAL ? bytes_of(text[id].p, text[id].n) : text[id];
        vocabulary = type[id] == PIECE_UNUSED ? vocabulary : id + 1;
    }
    for (from.at = pairs->data; nmerges < pairs->cols; nmerges++) { /* "left right" */
        struct text line = take_text(&from);
        char *gap = memchr(line.p, ' ', line.n), *end = line.p + line.n;
        if (!gap)
            die("%s: expected merges of two", file.path);
        merges[nmerges][0] = bytes_of(line.p, (size_t)(gap - line.p));
        merges[nmerges][1] = bytes_of(gap + 1, (size_t)(end - gap - 1));
    }
}

/* Write the ids of a word over zeros and return how many. A merge only joins what those before it
 * have made, so one way down the list is enough; model/text/tokenizer_encode.c looks pairs up. */
static size_t encode_word(uint32_t *ids, char *word, size_t n)
{
    struct text *part = make(n, sizeof(*part));
    for (size_t i = 0; i < n; i++)
        part[i] = (struct text){ word + i, 1 };
    for (size_t rank = 0; rank < nmerges; rank++)
        for (size_t i = 0; i + 1 < n; i++)
            if (same(part[i], merges[rank][0].p, merges[rank][0].n) &&
                same(part[i + 1], merges[rank][1].p, merges[rank][1].n)) {
                part[i].n += part[i + 1].n;
                memmove(part + i + 1, part + i + 2, (--n - i - 1) * sizeof(*part));
            }
    for (size_t i = 0; i < n; i++)
        while (type[ids[i]] != PIECE_NORMAL || !same(text[ids[i]], part[i].p, part[i].n))
            if (++ids[i] == vocabulary)
                die("the vocabulary has no piece \"%.*s\"", (int)part[i].n, part[i].p);
    free(part);
    return n;
}

/* Write the id of the added token ("<|im_end|>") with which p begins; return its length, or 0. */
static size_t added_token(uint32_t *id, const char *p)
{
    size_t longest = 0;
    for (uint32_t i = 0; i < vocabulary; i++)
        if ((type[i] == PIECE_CONTROL || type[i] == PIECE_USER) && text[i].n > longest &&
            same(text[i], p, strnlen(p, text[i].n))) {
            longest = text[i].n;
            *id = i;
        }
    return longest;
}

/* Return the kind of a byte: 'a' a letter, '0' a digit, '\n' ends a line, ' ' other white space,
 * '.' all else; 0 at the end, or where an added token begins that begins like that, as "<|". */
static int kind(const char *p)
{
    uint32_t id;
    if (*p & 0x80)
        die("expected ASCII; the rest needs Unicode, see model/text/unicode.c and mizzle run");
    if (isalnum(*p))
        return isdigit(*p) ? '0' : 'a';
    if (isspace(*p))
        return *p == '\n' || *p == '\r' ? '\n' : ' ';
    return *p && !added_token(&id, p) ? '.' : 0;
}

static const char *skip(const char *p, int what)
{
    while (kind(p) == what)
        p++;
    return p;
}

/* Return the end of the first word, by Qwen2's regular expression as it applies to ASCII ([ ] is a
 * blank): (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}|[ ]?[^\s\p{L}\p{N}]+[\r\n]*|
 *   \s*[\r\n]+|\s+(?!\S)|\s+ */
static const char *word_end(const char *p)
{
    const char *line = NULL, *at = p;
    int first = kind(p), second = kind(p + 1), c = tolower(p[1]), d = c ? p[2] | 32 : 0;
    if (*p == '\'' && second == 'a' && strchr("stmd", c))
        return p + 2;
    if (*p == '\'' && ((d == 'e' && (c == 'r' || c == 'v')) || (d == 'l' && c == 'l')))
        return p + 3;
    if (first == 'a' || ((first == ' ' || first == '.') && second == 'a'))
        return skip(p + 1, 'a'); /* a word takes the blank before it */
    if (first == '0')
        return p + 1;
    if (first == '.' || (*p == ' ' && second == '.'))
        return skip(skip(p + 1, '.'), '\n');
    for (; kind(at) == ' ' || kind(at) == '\n'; at++)
        line = kind(at) == '\n' ? at + 1 : line;
    return line ? line : !kind(at) || at == p + 1 ? at : at - 1; /* a blank for the next word */
}

/* Write the ids of a text, at most as many as it has bytes, and return how many. */
static size_t encode(uint32_t *ids, char *p)
{
    size_t n = 0;
    while (*p) {
        size_t added = added_token(ids + n, p), word = added ? 0 : (size_t)(word_end(p) - p);
        n += added ? 1 : encode_word(ids + n, p, word);
        p += added + word;
    }
    return n;
}

/* 4. The same number on every machine.
 *
 * IEEE 754 fixes +, -, *, /, sqrt, fma and rounding to the last bit, but not the exponential, sine
 * and logarithm: those of libm differ between processors and versions. One different bit in a score
 * may become another token, so these three are written out here with what is fixed. All bring the
 * argument into a small range by exact steps, where a short polynomial is accurate. */

/* e^x = 2^n * e^r, with |r| at most ln(2) / 2. ln(2) is split into two floats, so that the first
 * difference is exact. The coefficients were fitted: within 2 units in the last place to x = 88. */
static float exp_f32(float x)
{
    static const float a[] = {
        0x1.6a21acp-10f, 0x1.123b6ap-7f, 0x1.5558fap-5f, 0x1.55549p-3f, 0x1.fffffcp-2f, 1, 1
    };
    float c = fmaxf(fminf(x, 88.0f), -87.0f), p = a[0];
    float n = rintf(c * 0x1.715476p+0f), r = fmaf(n, -0x1.62e43p-1f, c);
    r = fmaf(n, 0x1.05c61p-29f, r);
    for (size_t i = 1; i < sizeof(a) / sizeof(a[0]); i++)
        p = fmaf(p, r, a[i]);
    return x >= -87.0f ? p * ldexpf(1, (int)n) : 0.0f;
}

/* Return terms of the series of e^x, every step-th of them, beginning with 1/first!, in powers of
 * x. With step 2 the signs alternate: sine and cosine, in powers of their x squared. */
static double series(int first, int step, int terms, double x)
{
    double y = 0;
    for (int i = terms - 1; i >= 0; i--) {
        double factorial = 1;
        for (int k = 2; k <= first + i * step; k++)
            factorial *= k;
        y = y * x + (step == 2 && i % 2 ? -1 : 1) / factorial;
    }
    return y;
}

/* Return b^y as e^(y ln(b)). b = 2^e * m, and ln(m) = 2 (s + s^3/3 + s^5/5 + ...) with
 * s = (m - 1) / (m + 1). */
static double power(double b, double y)
{
    static const double ln2_high = 0x1.62e42fee00000p-1, ln2_low = 0x1.a39ef35793c76p-33;
    int e;
    double m = frexp(b, &e), sum = 0;
    if (m <= 0x1.6a09e667f3bcdp-1) /* sqrt(1/2) */
        m *= 2, e--;
    double s = (m - 1) / (m + 1);
    for (int i = 11; i >= 0; i--)
        sum = sum * (s * s) + 1. / (2 * i + 1);
    double x = y * (e * ln2_high + (e * ln2_low + 2 * s * sum)), n = rint(x * 0x1.71547652b82fep+0);
    return series(0, 1, 14, x - n * ln2_high - n * ln2_low) * ldexp(1, (int)n);
}

/* Reduce by pi / 2, given as two doubles; the quadrant swaps and negates sine and cosine. */
static void sincos_f64(double *sine, double *cosine, double x)
{
    double n = rint(x * 0x1.45f306dc9c883p-1), r = fma(-n, 0x1.921fb54442d18p+0, x);
    r = fma(-n, 0x1.1a62633145c07p-54, r);
    double s = r * series(1, 2, 9, r * r), c = series(0, 2, 10, r * r);
    int quadrant = (int)((int64_t)n & 3);
    *sine = (quadrant % 2 ? c : s) * (quadrant >= 2 ? -1 : 1);
    *cosine = (quadrant % 2 ? s : c) * (quadrant == 1 || quadrant == 2 ? -1 : 1);
}

/* 5. Sums.
 *
 * Addition of floats is not associative, so the order of a sum is a part of its definition. A fast
 * program has to add many numbers at once, and this is an order in which it can: along a vector,
 * element i goes to lane i % 16, and at the end the lanes are folded in halves. 16 lanes are one
 * register of AVX-512, two of AVX2, four of NEON. */
enum { LANES = 16, AT_ONCE = 64 }; /* AT_ONCE: positions in a block of attention, page 7 */

static float fold(float lane[LANES])
{
    for (size_t half = LANES / 2; half > 0; half /= 2)
        for (size_t l = 0; l < half; l++)
            lane[l] += lane[l + half];
    return lane[0];
}

static float dot(const float *a, const float *b, size_t n)
{
    float lane[LANES] = { 0 };
    for (size_t i = 0; i < n; i++)
        lane[i % LANES] = fmaf(a[i], b[i], lane[i % LANES]);
    return fold(lane);
}

/* 6. A matrix times a vector.
 *
 * Nearly all time goes here: for each token, nearly every weight of the model is read from memory,
 * multiplied once. So weights are stored in few bits. Q8_0 has blocks of 32 weights: a scale in 2
 * bytes, then 32 integers of 1 byte, 8.5 bits a weight where F32 has 32. The vector then becomes
 * integers, too, in groups of 32 with a scale each. The sum of a group is exact, so each processor
 * may add it as it likes; only the groups' sums are floats. They are added in order, not in lanes,
 * as in the engine's products the lanes are 16 rows (kernels/panels.h). */

/* Return a tensor of the file, which must have this shape. A vector (one row) is used as floats. */
static const struct array *tensor(const char *name, size_t layer, size_t rows, size_t cols)
{
    const struct array *t = find(name, layer);
    if (!t || t->rows != rows || t->cols != cols || !t->row || cols > MOST ||
        (t->type != F32 && (t->type != Q8_0 || cols % GROUP || rows == 1)) ||
        rows > (size_t)(file.end - (unsigned char *)t->data) / t->row)
        die("%s: tensor %s of layer %zu: expected %zu x %zu of F32 or Q8_0; mizzle convert --type "
            "q8_0 makes these of other types, which are in kernels/blocks.h",
            file.path, name, layer, rows, cols);
    return t;
}

/* Return a finite float of 16 bits. Its bits, moved to those of a float, mean 2^112 times less. */
static float half_at(const unsigned char *p)
{
    uint32_t bits = (p[1] & 0x80u) << 24 | (p[1] & 0x7fu) << 21 | (uint32_t)p[0] << 13;
    float f;
    memcpy(&f, &bits, sizeof(f));
    return f * 0x1p112f;
}

/* Copy a row of a matrix as floats. */
static void read_row(float *out, const struct array *w, size_t row)
{
    const unsigned char *p = (const unsigned char *)w->data + row * w->row;
    if (w->type == F32)
        memcpy(out, p, w->row);
    for (size_t i = 0; w->type == Q8_0 && i < w->cols; i++) {
        const unsigned char *block = p + i / GROUP * BLOCK;
        out[i] = (float)(int8_t)block[2 + i % GROUP] * half_at(block);
    }
}

/* Turn n floats into integers from -127 to 127, with a scale for each group. */
static void quantise(int8_t *q, float *scale, const float *x, size_t n)
{
    for (size_t g = 0; g < n / GROUP; g++, x += GROUP) {
        float most = 0;
        for (size_t i = 0; i < GROUP; i++)
            most = fmaxf(most, fabsf(x[i]));
        bool live = most > 0x1p-100f; /* else 127 / most might overflow */
        for (size_t i = 0; i < GROUP; i++) {
            float v = live ? x[i] * (127.0f / most) : 0;
            q[g * GROUP + i] = (int8_t)rintf(fminf(fmaxf(v, -127.0f), 127.0f));
        }
        scale[g] = live ? most / 127.0f : 0.0f;
    }
}

/* y[rows] = w x + more, which may be NULL, or y. */
static void multiply(float *y, const struct array *w, const float *x, const float *more)
{
    static int8_t q[MOST];
    static float scale[MOST / GROUP];
    if (w->type == Q8_0)
        quantise(q, scale, x, w->cols);
    for (size_t r = 0; r < w->rows; r++) {
        const unsigned char *p = (const unsigned char *)w->data + r * w->row;
        const float *row = (const void *)p;
        float sum = 0;
        for (size_t i = 0; w->type == F32 && i < w->cols; i++)
            sum = fmaf(row[i], x[i], sum);
        for (size_t g = 0; w->type == Q8_0 && g < w->cols / GROUP; g++, p += BLOCK) {
            const int8_t *weights = (const int8_t *)p + 2; /* gcc 12 errs at (int8_t)p[2 + i] */
            int32_t whole = 0;
            for (size_t i = 0; i < GROUP; i++)
                whole += weights[i] * q[g * GROUP + i];
            sum = fmaf((float)whole, half_at(p) * scale[g], sum);
        }
        y[r] = more ? sum + more[r] : sum;
    }
}

/* 7. A layer's parts: norm, RoPE, attention. Of each token's vector, page 8 makes a query (what it
 * looks for), a key (where it is found) and a value (what is found), for each of several heads. */
static struct { /* hidden, ffn: elements of x and inside the MLP, page 8; size: of a head */
    size_t layers, hidden, ffn, heads, kv_heads, size, room, rows; /* rows: of the embedding */
    float eps;
    double theta;
    const struct array *embedding, *head;
} m;

/* RMSNorm scales a vector so that the mean of its squares is 1 (eps: never divide by 0), then each
 * element by a weight that was learnt. Without it, numbers would grow from layer to layer. */
static void rmsnorm(float *y, const float *x, const float *w, size_t n)
{
    float inverse = 1.0f / sqrtf(dot(x, x, n) / (float)n + m.eps);
    for (size_t i = 0; i < n; i++)
        y[i] = x[i] * inverse * w[i];
}

/* RoPE tells a query or a key its place. Element i and element i + half are taken as a point of a
 * plane, which is turned by the angle position / theta^(2i / size): fast in the first plane, slowly
 * in the last one. The product of a query and a key turned in this way depends on their contents
 * and on the distance between them. */
static float sine[MOST], cosine[MOST];
static void rope_angles(size_t position)
{
    for (size_t i = 0; i < m.size / 2; i++) {
        double frequency = power(m.theta, -(double)(2 * i) / (double)m.size), s, c;
        sincos_f64(&s, &c, (double)position * frequency);
        sine[i] = (float)s;
        cosine[i] = (float)c;
    }
}

static void rope(float *x)
{
    for (size_t i = 0, half = m.size / 2; i < half; i++) {
        float a = x[i], b = x[i + half];
        x[i] = fmaf(a, cosine[i], -(b * sine[i]));
        x[i + half] = fmaf(b, cosine[i], a * sine[i]);
    }
}

/* Attention: the only place where a token sees those before it. A head takes the product of its
 * query and the key of each position so far, over sqrt(size), as longer vectors give larger ones;
 * softmax turns these scores into weights, which are positive and add up to 1: weight[j] =
 * e^score[j] / (e^score[0] + e^score[1] + ...); the result is the values' mean by these weights.
 *
 * As e^score might overflow, the largest score is subtracted from all, which changes no weight. A
 * long text comes in blocks of 64 positions, so that threads can share it: each block has a largest
 * score, a sum of e^score and a total of its values by those; both sides are scaled to the larger
 * score when it joins those before it. The division by the sum, for the mean, comes last. */
static void attend(float *out, const float *query, const float *keys, const float *values, size_t n)
{
    static float total[MOST];
    float most = -INFINITY, sum = 0, score[AT_ONCE], scale = 1.0f / sqrtf((float)m.size);
    memset(out, 0, m.size * sizeof(*out));
    for (size_t from = 0; from < n; from += AT_ONCE) {
        size_t some = n - from < AT_ONCE ? n - from : AT_ONCE;
        float here = -INFINITY, lane[LANES] = { 0 };
        for (size_t j = 0; j < some; j++) {
            score[j] = dot(query, keys + (from + j) * m.size, m.size) * scale;
            here = score[j] > here ? score[j] : here;
        }
        memset(total, 0, m.size * sizeof(*total));
        for (size_t j = 0; j < some; j++) {
            score[j] = exp_f32(score[j] - here); /* from here on e^score */
            lane[j % LANES] += score[j];
            for (size_t d = 0; d < m.size; d++)
                total[d] = fmaf(score[j], values[(from + j) * m.size + d], total[d]);
        }
        float larger = fmaxf(here, most);
        float old = exp_f32(most - larger), new = exp_f32(here - larger);
        sum = fmaf(fold(lane), new, sum * old);
        for (size_t d = 0; d < m.size; d++)
            out[d] = fmaf(total[d], new, out[d] * old);
        most = larger;
    }
    for (size_t d = 0; d < m.size; d++)
        out[d] *= 1.0f / sum;
}

/* 8. The layers: an id becomes a hidden state.
 *
 * A token is a vector, the residual stream x. It begins as a row of the embedding, a matrix that
 * has one for each id. Every layer adds to it twice: what attention finds in the text so far, and
 * what the MLP, matrices with a nonlinearity between them, makes of it. A last norm gives the
 * hidden state, in which the model's guess about the next token is. All matrices were learnt.
 *
 * Keys and values of earlier tokens never change, as no token sees a later one. So they are kept,
 * in the KV cache, and each token goes through the layers once. (Of a prompt the engine takes many
 * at once, since reading the weights is what costs.) Qwen2.5 adds biases to queries, keys and
 * values; Qwen3 norms each head's query and key instead. */
static size_t length;                 /* tokens in the cache, which has room for m.room */
static float *keys, *values;          /* [layers][kv_heads][room][size] the KV cache */
static float x[MOST];                 /* the residual stream of the token */
static float norm[MOST], state[MOST]; /* after a norm; after the last one, the hidden state */
static float q[MOST], k[MOST], v[MOST], found[MOST]; /* the heads' one behind the other */
static float gate[MOST], up[MOST];                   /* inside the MLP */
static float *logits;                                /* [rows] of the output head */
static FILE *raw;                                    /* gets them, for --logits */

static void read_model(void)
{
    static const char head[] = "output.weight"; /* if missing, the embedding is the head, too */
    const char *arch = find("qwen3.block_count", 0) ? "qwen3" : "qwen2";
    m.layers = (size_t)config(arch, "block_count");
    m.hidden = (size_t)config(arch, "embedding_length");
    m.ffn = (size_t)config(arch, "feed_forward_length");
    m.heads = (size_t)config(arch, "attention.head_count");
    m.kv_heads = (size_t)config(arch, "attention.head_count_kv");
    m.size = (size_t)config(arch, "attention.key_length");
    m.room = (size_t)fmax(0, fmin(config(arch, "context_length"), 4096));
    m.eps = (float)config(arch, "attention.layer_norm_rms_epsilon");
    m.theta = config(arch, "rope.freq_base");
    m.size = m.size || !m.heads ? m.size : m.hidden / m.heads;
    const struct array *words = find("token_embd.weight", 0);
    m.rows = words ? words->rows : 0;
    if (!m.layers || m.layers > 1024 || !m.heads || !m.kv_heads || m.heads % m.kv_heads ||
        !m.size || m.size % 2 || m.heads > MOST / m.size || m.ffn > MOST || !vocabulary ||
        vocabulary > m.rows || !(m.theta >= 1) || config(arch, "rope.scaling.factor") > 1)
        die("%s: expected a Qwen2.5 or Qwen3, and no stretched RoPE (model/rope.c)", file.path);
    m.embedding = tensor("token_embd.weight", 0, m.rows, m.hidden);
    m.head = tensor(find(head, 0) ? head : "token_embd.weight", 0, m.rows, m.hidden);
    keys = make(m.layers * m.kv_heads * m.room, m.size * sizeof(float));
    values = make(m.layers * m.kv_heads * m.room, m.size * sizeof(float));
    logits = make(m.rows, sizeof(float));
}

/* The first half of a layer. Of the state, three products make queries (what is looked for), keys
 * (where it is found) and values (what is found), for many heads at once, each of which looks for
 * something else. Several heads of queries share one of keys and values (GQA): a smaller cache. */
static void attention(size_t i)
{
    size_t nq = m.heads * m.size, nk = m.kv_heads * m.size, shared = m.heads / m.kv_heads;
    bool biases = find("blk.%zu.attn_q.bias", i), norms = find("blk.%zu.attn_q_norm.weight", i);
    rmsnorm(norm, x, tensor("blk.%zu.attn_norm.weight", i, 1, m.hidden)->data, m.hidden);
    lap(NORM);
    multiply(q, tensor("blk.%zu.attn_q.weight", i, nq, m.hidden), norm,
             biases ? tensor("blk.%zu.attn_q.bias", i, 1, nq)->data : NULL);
    multiply(k, tensor("blk.%zu.attn_k.weight", i, nk, m.hidden), norm,
             biases ? tensor("blk.%zu.attn_k.bias", i, 1, nk)->data : NULL);
    multiply(v, tensor("blk.%zu.attn_v.weight", i, nk, m.hidden), norm,
             biases ? tensor("blk.%zu.attn_v.bias", i, 1, nk)->data : NULL);
    lap(QKV);
    for (size_t h = 0; h < m.heads; h++) {
        size_t g = h / shared, cache = (i * m.kv_heads + g) * m.room * m.size;
        float *query = q + h * m.size, *key = keys + cache + length * m.size;
        if (h % shared == 0) { /* the first head of a group puts key and value into the cache */
            memcpy(key, k + g * m.size, m.size * sizeof(float));
            memcpy(values + cache + length * m.size, v + g * m.size, m.size * sizeof(float));
            if (norms)
                rmsnorm(key, key, tensor("blk.%zu.attn_k_norm.weight", i, 1, m.size)->data, m.size);
            rope(key);
        }
        if (norms)
            rmsnorm(query, query, tensor("blk.%zu.attn_q_norm.weight", i, 1, m.size)->data, m.size);
        rope(query);
        attend(found + h * m.size, query, keys + cache, values + cache, length + 1);
    }
    lap(ATTENTION);
    multiply(x, tensor("blk.%zu.attn_output.weight", i, m.hidden, nq), found, x);
    lap(O);
}

/* The second half: the MLP, in the form SwiGLU. `gate` says how much of `up` is let through, by
 * silu(gate) * up with silu(x) = x / (1 + e^-x). */
static void mlp(size_t i)
{
    rmsnorm(norm, x, tensor("blk.%zu.ffn_norm.weight", i, 1, m.hidden)->data, m.hidden);
    lap(NORM);
    multiply(gate, tensor("blk.%zu.ffn_gate.weight", i, m.ffn, m.hidden), norm, NULL);
    multiply(up, tensor("blk.%zu.ffn_up.weight", i, m.ffn, m.hidden), norm, NULL);
    for (size_t j = 0; j < m.ffn; j++)
        gate[j] = gate[j] / (1.0f + exp_f32(-gate[j])) * up[j];
    lap(FFN);
    multiply(x, tensor("blk.%zu.ffn_down.weight", i, m.hidden, m.ffn), gate, x);
    lap(DOWN);
}

/* Take one more token into the text. */
static void forward(uint32_t id)
{
    if (length == m.room)
        die("the text has more than %zu tokens, all that there is room for", m.room);
    read_row(x, m.embedding, id);
    rope_angles(length);
    lap(EMBED);
    for (size_t i = 0; i < m.layers; i++) {
        attention(i);
        mlp(i);
    }
    rmsnorm(state, x, tensor("output_norm.weight", 0, 1, m.hidden)->data, m.hidden);
    length++;
    lap(NORM);
}

/* 9. The head: a hidden state becomes an id.
 *
 * The head is one more matrix, with a row for each id of the vocabulary. The product of a row and
 * the hidden state is that id's logit: the higher, the likelier. In a small model it has up to half
 * of all weights, so it is left out where the token comes from the cloud. Greedy sampling takes the
 * highest logit, of equal ones that of the lower id; model/sample.c can also draw by chance. */
static uint32_t pick(void)
{
    float best = -INFINITY;
    uint32_t id = 0;
    multiply(logits, m.head, state, NULL);
    for (uint32_t i = 0; i < vocabulary; i++)
        if (logits[i] > best)
            best = logits[id = i];
    if (raw)
        fwrite(logits, sizeof(float), m.rows, raw);
    lap(HEAD);
    return id;
}

/* 10. The router: a hidden state becomes a score.
 *
 * The router is a network of two layers that has learnt, from the hidden states of many texts, at
 * which tokens the small model errs. Its score = sigmoid(w2 . max(0, w1 x + b1) + b2), from 0 to 1,
 * is how sure it is that the small model's next token can stand. Below a threshold the cloud writes
 * the token. NAME.router.safetensors, beside NAME.gguf: a header of JSON, then w1, b1, w2, b2. */
static struct {
    struct array w1, w2;
    const float *b1, *b2;
    float threshold;
} router = { .threshold = 0.5f };

static void read_router(const char *model)
{
    static const char w1[] = "\"router.w1\":{\"dtype\":\"F32\",\"shape\":[";
    size_t width = 0, cols = 0, end = 0;
    char path[4096], *header;
    snprintf(path, sizeof(path), "%.*s.router.safetensors", (int)strlen(model) - 5, model);
    struct file f = read_file(path);
    if (!f.path)
        return;
    size_t n = take_number(&f, 8);
    memcpy(header = make(n, 1), take(&f, n), n);
    const char *at = strstr(header, w1), *limit = strstr(header, "\"threshold\":");
    if (!at || n % 4 || strstr(header, "\"high\"") ||
        strstr(header, "\"tap\":") != strstr(header, "\"tap\":\"final\"") ||
        sscanf(at + strlen(w1), "%zu,%zu],\"data_offsets\":[0,%zu", &width, &cols, &end) != 3 ||
        cols != m.hidden || width > MOST || (size_t)(f.end - f.at) != 4 * (width * (cols + 2) + 1))
        die("%s: not a router of two layers for this model; see router/router_form.c", path);
    size_t row = cols * sizeof(float), column = width * sizeof(float);
    router.w1 = (struct array){ .rows = width, .cols = cols, .row = row, .data = f.at };
    router.b1 = (float *)(void *)(f.at + width * row);
    router.w2 = (struct array){ .rows = 1, .cols = width, .data = f.at + width * row + column };
    router.b2 = router.b1 + 2 * width;
    if (limit)
        sscanf(limit, "\"threshold\":\"%f", &router.threshold);
}

static float router_score(void)
{
    static float unit[MOST];
    float sum;
    multiply(unit, &router.w1, state, router.b1);
    for (size_t i = 0; i < router.w1.rows; i++)
        unit[i] = unit[i] < 0 ? 0 : unit[i];
    multiply(&sum, &router.w2, unit, router.b2);
    lap(ROUTER);
    return isnan(sum) ? 0 : 1.0f / (1.0f + exp_f32(-sum));
}

/* 11. The cloud: ids go up, one id comes down.
 *
 * The large model is a server that speaks OpenAI's API and, as vLLM does, ids: POST /v1/completions
 * with the ids of the whole text so far. Ids, not text, as a text can be cut into tokens in several
 * ways, and both models must mean the same one. Of the reply, in JSON, only "token_ids":[300] is of
 * interest. These characters cannot be in the text of the answer, since a quotation mark has a
 * backslash before it there. net/ has what others rely on: a key, retries, other servers. */
static bool ask(uint32_t *id, const char *url, const uint32_t *ids, size_t n)
{
    static CURL *http; /* keeps its connection from one call to the next */
    static char path[4096], reply[1 << 16];
    char *body = NULL;
    size_t size;
    FILE *out = open_memstream(&body, &size), *in = fmemopen(reply, sizeof(reply) - 1, "w");
    if (!http && (http = curl_easy_init())) {
        snprintf(path, sizeof(path), "%s/v1/completions", url);
        curl_easy_setopt(http, CURLOPT_URL, path);
        curl_easy_setopt(http, CURLOPT_HTTPHEADER,
                         curl_slist_append(NULL, "Content-Type: application/json"));
        curl_easy_setopt(http, CURLOPT_FAILONERROR, 1L);
        curl_easy_setopt(http, CURLOPT_TIMEOUT, 10L);
    }
    if (!out || !in || !http)
        die("out of memory");
    for (size_t i = 0; i < n; i++)
        fprintf(out, i ? ",%u" : "{\"prompt\":[%u", (unsigned)ids[i]);
    fputs("],\"max_tokens\":1,\"temperature\":0,\"top_p\":1,\"top_k\":1,\"min_p\":0,"
          "\"repetition_penalty\":1,\"return_token_ids\":true}",
          out);
    fclose(out);
    curl_easy_setopt(http, CURLOPT_POSTFIELDS, body);
    curl_easy_setopt(http, CURLOPT_WRITEDATA, (void *)in);
    CURLcode rc = curl_easy_perform(http);
    fclose(in);
    free(body);
    const char *at = rc ? NULL : strstr(reply, "\"token_ids\":[");
    bool fine = at && sscanf(at, "\"token_ids\":[%u", id) == 1 && *id < vocabulary;
    if (!fine)
        fprintf(stderr, "mini: cloud: %s\n", rc ? curl_easy_strerror(rc) : "no id in the reply");
    lap(CLOUD);
    return fine;
}

/* 12. The loop.
 *
 * Score, ask or pick, show, and take the token into the text. Without an answer of the cloud, the
 * small model's token stands (fallback): a fault never ends a text. */
static const char *url;
static size_t tokens = 256;
static int json, times;

/* Write the text behind ids[n], which have room for all. */
static void generate(uint32_t *ids, size_t n)
{
    bool ends = false, has_eos = find("tokenizer.ggml.eos_token_id", 0);
    size_t eos = has_eos ? (size_t)config("tokenizer", "ggml.eos_token_id") : SIZE_MAX;
    for (size_t made = 0; made < tokens && !ends; made++) {
        uint32_t id = 0;
        float score = router.b1 ? router_score() : 1;
        bool asked = url && router.b1 && score < router.threshold;
        bool told = asked && ask(&id, url, ids, n);
        const char *source = told ? "cloud" : asked ? "fallback" : "edge";
        if (!told)
            id = pick();
        ends = id == eos || same(text[id], "<|im_end|>", 10) || same(text[id], "<|endoftext|>", 13);
        if (json) /* nine digits tell any two floats apart */
            printf("{\"pos\":%zu,\"id\":%u,\"source\":\"%s\",\"score\":%.9g}\n", made, (unsigned)id,
                   source, (double)score);
        else if (!ends && type[id] != PIECE_CONTROL) /* %.0s shows nothing of source */
            printf(asked ? "[%s:%.*s]" : "%.0s%.*s", source, (int)text[id].n, text[id].p);
        fflush(stdout);
        ids[n++] = id;
        ends = ends || length == m.room;
        if (!ends)
            forward(id);
    }
    fputs(json ? "" : "\n", stdout);
}

int main(int argc, char **argv)
{
    static const char *const names[] = { "embed", "norm", "qkv",  "attention", "o",
                                         "ffn",   "down", "head", "router",    "cloud" };
    static const struct option options[] = {
        { "cloud-url", 1, NULL, 'c' }, { "tokens", 1, NULL, 'n' }, { "logits", 1, NULL, 'l' },
        { "json", 0, &json, 1 },       { "time", 0, &times, 1 },   { NULL, 0, NULL, 0 },
    };
    bool fine = true;
    for (int c; (c = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        url = c == 'c' ? optarg : url;
        tokens = c == 'n' ? strtoul(optarg, NULL, 10) : tokens;
        raw = c == 'l' ? fopen(optarg, "wb") : raw;
        fine = fine && c != '?' && (c != 'l' || raw);
    }
    if (!fine || optind + 2 != argc || !*argv[optind + 1] || tokens > 1 << 20)
        die("usage: mini [options] MODEL.gguf PROMPT\n"
            "  --cloud-url URL  ask this server for tokens that the model's router doubts\n"
            "  --tokens N       write at most N tokens (256)\n"
            "  --json           print id, source and score of each token\n"
            "  --logits FILE    write the logits for each token that the head gave, as raw f32\n"
            "  --time           say how long each part took, over all tokens, the prompt's, too");
    read_gguf(argv[optind]);
    read_tokenizer();
    read_model();
    read_router(argv[optind]);
    uint32_t *ids = make(strlen(argv[optind + 1]) + tokens, sizeof(*ids));
    size_t n = encode(ids, argv[optind + 1]);
    for (size_t i = 0; i < n; i++)
        forward(ids[i]);
    generate(ids, n);
    for (size_t i = 0; times && i < PARTS; i++)
        fprintf(stderr, "%-10s %9.3f ms a token\n", names[i], spent[i] / (double)length);
    return raw && fclose(raw) ? 1 : 0;
}
