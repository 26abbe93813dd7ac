#include "tools/lab/bench/synthetic_vocab.h"

#include <stdlib.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "kernels/sys/text.h"
#include "model/text/vocabulary.h"

enum { LETTERS = 26, DEPTH = 4, RAW = 8, LINE = 8 };

/* The vocabulary under construction. */
struct made {
    struct vocabulary v;
    struct str *pieces; /* of v */
    int *types;
    char *text; /* RAW + LINE bytes for each id */
};

/* Add the single bytes in GPT-2's alphabet: printable bytes stand for themselves, the others are
 * mapped to U+0100 and up. */
static void add_bytes(struct made *m)
{
    uint32_t next = 256;
    for (uint32_t b = 0; b < SYNTHETIC_VOCAB_WORDS; b++) {
        bool self = (b >= 0x21 && b <= 0x7e) || (b >= 0xa1 && b <= 0xac) || b >= 0xae;
        char *at = m->text + b * (RAW + LINE);
        m->pieces[b] = (struct str){ at, text_encode(at, self ? b : next++) };
    }
}

/* Make the word `id` from the word `before` and one letter, and add the merge that builds it. */
static void add_word(struct made *m, struct str *merges, size_t id, size_t before, char letter)
{
    char *raw = m->text + id * (RAW + LINE), *line = raw + RAW;
    struct str shorter = m->pieces[before];
    memcpy(raw, shorter.p, shorter.n);
    raw[shorter.n] = letter;
    memcpy(line, shorter.p, shorter.n);
    line[shorter.n] = ' ';
    line[shorter.n + 1] = letter;
    m->pieces[id] = (struct str){ raw, shorter.n + 1 };
    merges[m->v.nmerges++] = (struct str){ line, shorter.n + 2 };
}

/* Return the number of ids with words of up to DEPTH letters. */
static size_t synthetic_vocab_most(void)
{
    size_t n = SYNTHETIC_VOCAB_WORDS, words = 1;
    for (size_t i = 0; i < DEPTH; i++)
        n += words *= LETTERS;
    return n;
}

int synthetic_vocab_open(struct tokenizer **out, size_t size, struct err *err)
{
    struct made m = { .v.path = "the benchmark's" };
    size_t n = size < synthetic_vocab_most() ? size : synthetic_vocab_most();
    int rc = OK;
    *out = NULL;
    if (n < SYNTHETIC_VOCAB_WORDS)
        return err_set(err, ERR_ARG, "vocabulary: expected at least %d ids, found %zu",
                       SYNTHETIC_VOCAB_WORDS, n);
    m.text = calloc(n, RAW + LINE);
    m.v.pieces = m.pieces = calloc(n, sizeof(*m.pieces));
    m.v.types = m.types = calloc(n, sizeof(*m.types));
    struct str *merges = calloc(n, sizeof(*merges));
    if (!m.text || !m.pieces || !m.types || !merges)
        rc = err_set(err, ERR_NOMEM, "vocabulary: out of memory");
    if (rc == OK) {
        m.v.count = n;
        m.v.merges = merges;
        add_bytes(&m);
        /* Words are in order of length, so each is a letter longer than word 256, 257, ... */
        for (size_t id = SYNTHETIC_VOCAB_WORDS; id < n; id++) {
            size_t k = id - SYNTHETIC_VOCAB_WORDS;
            add_word(&m, merges, id, k < LETTERS ? ' ' : SYNTHETIC_VOCAB_WORDS + k / LETTERS - 1,
                     (char)('a' + k % LETTERS));
        }
        for (size_t id = 0; id < n; id++)
            m.types[id] = PIECE_NORMAL;
        rc = tokenizer_build(out, &m.v, err);
    }
    free(merges);
    free(m.types);
    free(m.pieces);
    free(m.text);
    return rc;
}
