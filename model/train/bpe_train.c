#include <stdlib.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "model/text/tokenizer.h"
#include "model/train/bpe_train.h"

enum { BYTES = 256, CONTROLS = 3, NONE = -1 };

static const char *const controls[CONTROLS] = { "<|endoftext|>", "<|im_start|>", "<|im_end|>" };

struct word { /* one distinct pre-token */
    const char *text;
    size_t n, count, at; /* at: its first symbol in the symbol array */
};

struct trainer {
    struct word *words;
    size_t nwords;
    int32_t *symbols;   /* of all words; a word that shrank ends in NONE */
    size_t *counts;     /* [pieces][pieces] */
    size_t pieces;      /* rows of counts */
    int32_t (*pair)[2]; /* the two parts of each piece above the bytes */
};

static int by_text(const void *pa, const void *pb)
{
    const struct word *a = pa, *b = pb;
    int c = memcmp(a->text, b->text, a->n < b->n ? a->n : b->n);
    return c ? c : (a->n > b->n) - (a->n < b->n);
}

/* Fill in GPT-2's order of bytes, printable ones first: the byte of each id, and the code point of
 * its letter. */
static void byte_letters(unsigned char byte[BYTES], uint32_t letter_of[BYTES])
{
    size_t n = 0;
    uint32_t next = 256;
    for (int hidden = 0; hidden < 2; hidden++)
        for (unsigned b = 0; b < BYTES; b++) {
            bool shown = (b >= 33 && b <= 126) || (b >= 161 && b != 173);
            if (shown == hidden)
                continue;
            byte[n] = (unsigned char)b;
            letter_of[n++] = shown ? b : next++;
        }
}

/* Collect the distinct pre-tokens with their counts, and the symbols of each. */
static int count_words(struct trainer *t, const char *text, size_t n)
{
    size_t words = 0, at = 0, symbols = 0;
    for (size_t i = 0; i < n; i += tokenizer_word(text + i, n - i))
        words++;
    t->words = calloc(words + 1, sizeof(*t->words));
    t->symbols = calloc(n + 1, sizeof(*t->symbols));
    if (!t->words || !t->symbols)
        return ERR_NOMEM;
    for (size_t i = 0; i < n; i += t->words[at++].n)
        t->words[at] = (struct word){ text + i, tokenizer_word(text + i, n - i), 1, 0 };
    qsort(t->words, words, sizeof(*t->words), by_text);
    for (size_t i = 0; i < words; i++) {
        struct word *last = t->nwords ? &t->words[t->nwords - 1] : NULL;
        if (last && by_text(last, &t->words[i]) == 0)
            last->count++;
        else
            t->words[t->nwords++] = t->words[i];
    }
    unsigned char byte[BYTES];
    uint32_t letter_of[BYTES];
    int32_t id[BYTES];
    byte_letters(byte, letter_of);
    for (int i = 0; i < BYTES; i++)
        id[byte[i]] = i;
    for (size_t i = 0; i < t->nwords; i++) {
        t->words[i].at = symbols;
        for (size_t j = 0; j < t->words[i].n; j++)
            t->symbols[symbols++] = id[(unsigned char)t->words[i].text[j]];
    }
    return OK;
}

/* Find the most frequent pair; false when none occurs twice. */
static bool best_pair(struct trainer *t, int32_t pair[2], size_t pieces)
{
    memset(t->counts, 0, t->pieces * t->pieces * sizeof(*t->counts));
    for (size_t i = 0; i < t->nwords; i++) {
        const int32_t *s = t->symbols + t->words[i].at;
        for (size_t j = 1; j < t->words[i].n && s[j] != NONE; j++)
            t->counts[(size_t)s[j - 1] * t->pieces + (size_t)s[j]] += t->words[i].count;
    }
    size_t best = 1;
    for (size_t a = 0; a < pieces; a++)
        for (size_t b = 0; b < pieces; b++)
            if (t->counts[a * t->pieces + b] > best) {
                best = t->counts[a * t->pieces + b];
                pair[0] = (int32_t)a;
                pair[1] = (int32_t)b;
            }
    return best > 1;
}

/* Replace the pair by its new piece in every word. */
static void bpe_train_apply(struct trainer *t, const int32_t pair[2], int32_t piece)
{
    for (size_t i = 0; i < t->nwords; i++) {
        int32_t *s = t->symbols + t->words[i].at;
        size_t n = t->words[i].n, to = 0;
        for (size_t j = 0; j < n; j++) {
            if (j + 1 < n && s[j] == pair[0] && s[j + 1] == pair[1]) {
                s[to++] = piece;
                j++;
            } else {
                s[to++] = s[j];
            }
        }
        while (to < n)
            s[to++] = NONE;
    }
}

/* Append the letters of a piece at `to`, and return how many bytes they take. */
static size_t bpe_train_spell(const struct trainer *t, char *to, int32_t piece,
                              const uint32_t letter_of[])
{
    if (piece >= BYTES) {
        size_t n = bpe_train_spell(t, to, t->pair[piece - BYTES][0], letter_of);
        return n + bpe_train_spell(t, to + n, t->pair[piece - BYTES][1], letter_of);
    }
    uint32_t c = letter_of[piece];
    if (c < 128) {
        to[0] = (char)c;
        return 1;
    }
    to[0] = (char)(0xc0 | c >> 6);
    to[1] = (char)(0x80 | (c & 63));
    return 2;
}

/* Return the length of a piece in letters. */
static size_t piece_length(const struct trainer *t, int32_t piece)
{
    if (piece < BYTES)
        return 1;
    return piece_length(t, t->pair[piece - BYTES][0]) + piece_length(t, t->pair[piece - BYTES][1]);
}

/* Write the pieces and merges as GGUF stores them. */
static int write_vocab(struct bpe_vocab *v, const struct trainer *t, size_t merges)
{
    unsigned char byte[BYTES];
    uint32_t letter_of[BYTES];
    byte_letters(byte, letter_of);
    size_t room = 2 * BYTES;
    for (size_t i = 0; i < merges; i++)
        room += 4 * piece_length(t, (int32_t)(BYTES + i)) + 1;
    v->npieces = BYTES + merges + CONTROLS;
    v->nmerges = merges;
    v->eot = (uint32_t)(BYTES + merges);
    v->pieces = calloc(v->npieces, sizeof(*v->pieces));
    v->merges = calloc(merges + 1, sizeof(*v->merges));
    v->types = calloc(v->npieces, sizeof(*v->types));
    v->letters = malloc(room);
    if (!v->pieces || !v->merges || !v->types || !v->letters)
        return ERR_NOMEM;
    char *to = v->letters;
    for (size_t i = 0; i < BYTES + merges; i++) {
        v->pieces[i] = (struct str){ to, bpe_train_spell(t, to, (int32_t)i, letter_of) };
        v->types[i] = 1;
        to += v->pieces[i].n;
    }
    for (size_t i = 0; i < merges; i++) {
        char *begin = to;
        to += bpe_train_spell(t, to, t->pair[i][0], letter_of);
        *to++ = ' ';
        to += bpe_train_spell(t, to, t->pair[i][1], letter_of);
        v->merges[i] = (struct str){ begin, (size_t)(to - begin) };
    }
    for (size_t i = 0; i < CONTROLS; i++) {
        v->pieces[BYTES + merges + i] = (struct str){ controls[i], strlen(controls[i]) };
        v->types[BYTES + merges + i] = 3;
    }
    return OK;
}

/* Count words, then merge the most frequent pair until there are enough pieces. */
static int bpe_train_learn(struct bpe_vocab *v, struct trainer *t, const char *text, size_t n)
{
    size_t wanted = t->pieces - BYTES - CONTROLS, merges = 0;
    t->counts = calloc(t->pieces * t->pieces, sizeof(*t->counts));
    t->pair = calloc(wanted + 1, sizeof(*t->pair));
    if (!t->counts || !t->pair || count_words(t, text, n))
        return ERR_NOMEM;
    for (; merges < wanted && best_pair(t, t->pair[merges], BYTES + merges); merges++)
        bpe_train_apply(t, t->pair[merges], (int32_t)(BYTES + merges));
    return write_vocab(v, t, merges);
}

int bpe_train(struct bpe_vocab **out, const char *text, size_t n, size_t pieces, struct err *err)
{
    *out = NULL;
    if (pieces < BPE_MIN || pieces > BPE_MAX)
        return err_set(err, ERR_ARG, "vocabulary: expected %d to %d pieces, found %zu", BPE_MIN,
                       BPE_MAX, pieces);
    for (size_t i = 0; i < n; i++)
        if (!text[i] || (unsigned char)text[i] > 127)
            return err_set(err, ERR_ARG, "vocabulary: text byte %zu: expected ASCII", i);
    struct trainer t = { .pieces = pieces };
    struct bpe_vocab *v = calloc(1, sizeof(*v));
    int rc = v ? bpe_train_learn(v, &t, text, n) : ERR_NOMEM;
    free(t.words);
    free(t.symbols);
    free(t.counts);
    free(t.pair);
    if (rc) {
        bpe_vocab_free(v);
        return err_set(err, rc, "vocabulary: out of memory");
    }
    *out = v;
    return OK;
}

void bpe_vocab_free(struct bpe_vocab *v)
{
    if (!v)
        return;
    free(v->pieces);
    free(v->merges);
    free(v->types);
    free(v->letters);
    free(v);
}
