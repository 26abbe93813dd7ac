/* tokenizer_encode.c - text to ids: added tokens, NFC, the split into words, merges. */
#include <stdlib.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "kernels/sys/text.h"
#include "model/text/tokenizer_internal.h"
#include "model/text/unicode.h"

/* A possible merge of the symbol at `at` with its right neighbour. */
struct merge {
    uint32_t rank, at, left, right;
};

struct symbol {
    uint32_t id;
    int32_t prev, next; /* NO_ID at the ends */
};

/* One encoding in progress. The arrays grow to the longest word. */
struct encoder {
    const struct tokenizer *t;
    uint32_t *ids;
    size_t count, room;
    struct symbol *symbols;
    struct merge *heap;
    size_t nheap, word_room;
};

static int push_id(struct encoder *e, uint32_t id, struct err *err)
{
    if (e->count == e->room) {
        uint32_t *ids = array_grow(e->ids, &e->room, e->count, sizeof(*ids));
        if (!ids)
            return err_set(err, ERR_NOMEM, "tokenizer: out of memory");
        e->ids = ids;
    }
    e->ids[e->count++] = id;
    return OK;
}

/* The order of merges: by rank, then from left to right. */
static bool tokenizer_encode_before(const struct merge *a, const struct merge *b)
{
    return a->rank != b->rank ? a->rank < b->rank : a->at < b->at;
}

/* The heap holds the possible merges of a word, the next one to apply at the top. */
static void heap_push(struct encoder *e, struct merge m)
{
    size_t i = e->nheap++;
    for (; i && tokenizer_encode_before(&m, &e->heap[(i - 1) / 2]); i = (i - 1) / 2)
        e->heap[i] = e->heap[(i - 1) / 2];
    e->heap[i] = m;
}

static struct merge heap_pop(struct encoder *e)
{
    struct merge top = e->heap[0], last = e->heap[--e->nheap];
    size_t i = 0;
    for (size_t c = 1; c < e->nheap; c = 2 * i + 1) {
        if (c + 1 < e->nheap && tokenizer_encode_before(&e->heap[c + 1], &e->heap[c]))
            c++;
        if (!tokenizer_encode_before(&e->heap[c], &last))
            break;
        e->heap[i] = e->heap[c];
        i = c;
    }
    e->heap[i] = last;
    return top;
}

/* Push the merge of the symbol at `at` with its right neighbour, if the vocabulary has it. */
static void tokenizer_encode_offer(struct encoder *e, int32_t at)
{
    if (at == NO_ID || e->symbols[at].next == NO_ID)
        return;
    uint32_t left = e->symbols[at].id, right = e->symbols[e->symbols[at].next].id, rank;
    if (tokenizer_rank(e->t, left, right, &rank))
        heap_push(e, (struct merge){ rank, (uint32_t)at, left, right });
}

/* Make room for a word of n bytes. */
static int tokenizer_encode_grow(struct encoder *e, size_t n, struct err *err)
{
    if (n <= e->word_room)
        return OK;
    free(e->symbols);
    free(e->heap);
    e->word_room = 0;
    e->symbols = malloc(n * sizeof(*e->symbols));
    e->heap = malloc(3 * n * sizeof(*e->heap)); /* n - 1 at first, then at most two per merge */
    if (!e->symbols || !e->heap)
        return err_set(err, ERR_NOMEM, "tokenizer: out of memory");
    e->word_room = n;
    return OK;
}

/* Encode one word: the pair of lowest rank merges first, the leftmost of equals. */
static int encode_word(struct encoder *e, const char *p, size_t n, struct err *err)
{
    int rc = n > INT32_MAX / 4 ? err_set(err, ERR_NOMEM, "tokenizer: text too long")
                               : tokenizer_encode_grow(e, n < 64 ? 64 : n, err);
    if (rc)
        return rc;
    for (size_t i = 0; i < n; i++)
        e->symbols[i] = (struct symbol){ e->t->byte_id[(unsigned char)p[i]], (int32_t)i - 1,
                                         i + 1 < n ? (int32_t)i + 1 : NO_ID };
    e->nheap = 0;
    for (size_t i = 0; i + 1 < n; i++)
        tokenizer_encode_offer(e, (int32_t)i);
    while (e->nheap) {
        struct merge m = heap_pop(e);
        struct symbol *s = &e->symbols[m.at];
        if (s->id != m.left || s->next == NO_ID || e->symbols[s->next].id != m.right)
            continue; /* stale: one of the two has merged meanwhile */
        struct symbol *gone = &e->symbols[s->next];
        s->id = e->t->merges[m.rank].merged;
        s->next = gone->next;
        gone->id = UINT32_MAX;
        if (s->next != NO_ID)
            e->symbols[s->next].prev = (int32_t)m.at;
        tokenizer_encode_offer(e, s->prev);
        tokenizer_encode_offer(e, (int32_t)m.at);
    }
    for (int32_t i = 0; !rc && i != NO_ID; i = e->symbols[i].next)
        rc = push_id(e, e->symbols[i].id, err);
    return rc;
}

static bool tokenizer_encode_newline(uint32_t c)
{
    return c == '\r' || c == '\n';
}

/* One character of valid text; n is 0 at the end. */
struct ch {
    uint32_t c;
    size_t n;
    enum unicode_class class;
};

/* Decode the character at p. */
static struct ch ch_at(const char *p, size_t n)
{
    struct ch r = { 0, 0, UNICODE_OTHER };
    if (n) {
        r.n = text_decode(&r.c, p, n, NULL);
        r.class = unicode_class(r.c);
    }
    return r;
}

/* Return the bytes of the characters of this class at the start of p[n]. */
static size_t run_of(const char *p, size_t n, enum unicode_class class)
{
    size_t i = 0;
    for (struct ch c = ch_at(p, n); c.n && c.class == class; c = ch_at(p + i, n - i))
        i += c.n;
    return i;
}

/* Return the bytes of an English ending after the apostrophe p[0], the apostrophe included, or 0.
 * Case is folded, so the long s (U+017F) counts as s. */
static size_t tokenizer_encode_ending(const char *p, size_t n)
{
    static const char *const two[] = { "re", "ve", "ll" };
    struct ch a = ch_at(p + 1, n - 1);
    struct ch b = ch_at(p + 1 + a.n, n - 1 - a.n);
    uint32_t x = a.c < 128 ? a.c | 32 : a.c == 0x17f ? 's' : 0, y = b.c < 128 ? b.c | 32 : 0;
    if (a.n && x && strchr("stmd", (int)x))
        return 1 + a.n;
    for (size_t i = 0; b.n && i < 3; i++)
        if (x == (unsigned char)two[i][0] && y == (unsigned char)two[i][1])
            return 1 + a.n + b.n;
    return 0;
}

/* Return the length of the white space at p that forms one word: up to the last newline of the run;
 * without a newline all of it, except the last blank before something else. */
static size_t tokenizer_encode_blanks(const char *p, size_t n)
{
    size_t i = 0, last = 0, line = 0;
    for (struct ch c = ch_at(p, n); c.n && c.class == UNICODE_SPACE; c = ch_at(p + i, n - i)) {
        last = i;
        i += c.n;
        if (tokenizer_encode_newline(c.c))
            line = i;
    }
    return line ? line : i == n || !last ? i : last;
}

/* Qwen2's expression is
 *   (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|
 *   \s*[\r\n]+|\s+(?!\S)|\s+ */
size_t tokenizer_word(const char *p, size_t n)
{
    struct ch c = ch_at(p, n), d = ch_at(p + c.n, n - c.n);
    size_t i = c.c == '\'' ? tokenizer_encode_ending(p, n) : 0;
    if (i)
        return i;
    if (c.class == UNICODE_LETTER)
        return run_of(p, n, UNICODE_LETTER);
    if (!tokenizer_encode_newline(c.c) && c.class != UNICODE_NUMBER && d.class == UNICODE_LETTER)
        return c.n + run_of(p + c.n, n - c.n, UNICODE_LETTER);
    if (c.class == UNICODE_NUMBER)
        return c.n;
    if (c.class == UNICODE_OTHER || (c.c == ' ' && d.n && d.class == UNICODE_OTHER)) {
        i = c.class == UNICODE_OTHER ? 0 : c.n;
        i += run_of(p + i, n - i, UNICODE_OTHER);
        while (i < n && tokenizer_encode_newline((unsigned char)p[i]))
            i++;
        return i;
    }
    return tokenizer_encode_blanks(p, n);
}

/* Encode text without added tokens; it is valid UTF-8 in NFC. */
static int encode_words(struct encoder *e, const char *p, size_t n, struct err *err)
{
    int rc = OK;
    while (!rc && n) {
        size_t len = tokenizer_word(p, n);
        rc = encode_word(e, p, len, err);
        p += len;
        n -= len;
    }
    return rc;
}

static int encode_cut(struct encoder *e, const char *p, size_t n, bool normalized, struct err *err);

/* Encode valid text without added tokens, but with those of normalized text if `special`. */
static int encode_nfc(struct encoder *e, const char *p, size_t n, bool special, struct err *err)
{
    char *nfc = NULL;
    int rc = OK;
    if (!unicode_sure_nfc(p, n)) {
        size_t len;
        rc = unicode_nfc(&nfc, &len, p, n, err);
        p = nfc;
        n = len;
    }
    if (!rc)
        rc = special && e->t->normalized ? encode_cut(e, p, n, true, err)
                                         : encode_words(e, p, n, err);
    free(nfc);
    return rc;
}

/* Encode text, cutting out the added tokens of raw or of normalized text. */
static int encode_cut(struct encoder *e, const char *p, size_t n, bool normalized, struct err *err)
{
    struct added a = { 0 };
    bool found = true;
    int rc = OK;
    for (size_t from = 0; !rc && found; from = a.end) {
        found = tokenizer_added(e->t, &a, p, n, normalized);
        if (a.begin > from)
            rc = normalized ? encode_words(e, p + from, a.begin - from, err)
                            : encode_nfc(e, p + from, a.begin - from, true, err);
        if (!rc && a.begin < a.end)
            rc = push_id(e, a.id, err);
    }
    return rc;
}

int tokenizer_encode(const struct tokenizer *t, uint32_t **ids, size_t *count, const char *text,
                     size_t n, bool special, struct err *err)
{
    struct encoder e = { .t = t };
    char *repaired = NULL;
    *ids = NULL;
    *count = 0;
    int rc = tokenizer_encode_grow(&e, 64, err);
    if (!rc && !text_valid(text, n)) {
        rc = unicode_repair(&repaired, &n, text, n, err);
        text = repaired;
    }
    if (!rc && !(e.ids = malloc((e.room = 64) * sizeof(*e.ids))))
        rc = err_set(err, ERR_NOMEM, "tokenizer: out of memory");
    if (!rc && t->add_bos)
        rc = push_id(&e, t->bos, err);
    if (!rc)
        rc = special ? encode_cut(&e, text, n, false, err) : encode_nfc(&e, text, n, false, err);
    free(repaired);
    free(e.symbols);
    free(e.heap);
    if (rc) {
        free(e.ids);
        return rc;
    }
    *ids = e.ids;
    *count = e.count;
    return OK;
}
