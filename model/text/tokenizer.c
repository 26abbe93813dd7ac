#include <stdlib.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "kernels/math.h"
#include "kernels/sys/os.h"
#include "model/text/tokenizer_internal.h"

enum {
    ASK = 32,          /* texts whose places in memory are asked for together */
    MOST_MERGED = 1024 /* bytes of the longest piece that merging may give */
};

/* A text that is looked up among the pieces. */
struct look {
    struct str s;
    uint64_t hash;
};

/* FNV-1a, for fingerprints, with the high bits folded down. */
static uint64_t hash_text(const char *p, size_t n)
{
    uint64_t h = 0xcbf29ce484222325u;
    for (size_t i = 0; i < n; i++)
        h = (h ^ (unsigned char)p[i]) * 0x100000001b3u;
    return h ^ (h >> 29);
}

/* Multiplicative hashing of eight bytes at a time, for tables in memory: it depends on the order of
 * bytes in a word. The high bits are folded down because the tables use the low ones. */
static uint64_t hash_piece(struct str s)
{
    uint64_t h = s.n, word;
    for (; s.n >= sizeof(word); s.p += sizeof(word), s.n -= sizeof(word)) {
        memcpy(&word, s.p, sizeof(word));
        h = (h ^ word) * 0x9e3779b97f4a7c15u;
        h ^= h >> 32;
    }
    word = 0;
    for (size_t i = 0; i < s.n; i++)
        word = word << 8 | (unsigned char)s.p[i];
    h = (h ^ word) * 0x9e3779b97f4a7c15u;
    return h ^ (h >> 32);
}

/* Multiplicative hashing, with the high bits folded down. */
static uint64_t hash_pair(uint32_t left, uint32_t right)
{
    uint64_t h = (((uint64_t)left << 32) | right) * 0x9e3779b97f4a7c15u;
    return h ^ (h >> 31);
}

/* Return a power of two that keeps a hash table at most half full. */
static size_t tokenizer_table_size(size_t n)
{
    size_t size = 16;
    while (size < 2 * n)
        size *= 2;
    return size;
}

/* Fill in the hashes and ask for what find_text will read: a slot, a piece and its text. Each of
 * them is a miss of the near caches; together they are waited for once. */
static void ask_texts(const struct tokenizer *t, struct look *l, size_t n)
{
    const uint32_t *ids = t->by_text;
    for (size_t i = 0; i < n; i++) {
        l[i].hash = hash_piece(l[i].s);
        __builtin_prefetch(&ids[l[i].hash & t->text_mask]);
    }
    for (size_t i = 0; i < n; i++)
        if (ids[l[i].hash & t->text_mask])
            __builtin_prefetch(&t->pieces[ids[l[i].hash & t->text_mask] - 1].raw);
    for (size_t i = 0; i < n; i++)
        if (ids[l[i].hash & t->text_mask])
            __builtin_prefetch(t->pieces[ids[l[i].hash & t->text_mask] - 1].raw.p);
}

/* Return the id of the normal piece with this raw text, or NO_ID. */
static int64_t find_text(const struct tokenizer *t, const struct look *l)
{
    for (size_t i = l->hash & t->text_mask; t->by_text[i]; i = (i + 1) & t->text_mask) {
        const struct str *s = &t->pieces[t->by_text[i] - 1].raw;
        if (s->n == l->s.n && !memcmp(s->p, l->s.p, s->n))
            return t->by_text[i] - 1;
    }
    return NO_ID;
}

/* Return the byte of a GPT-2 letter, or -1 if c is none: printable bytes stand for themselves, the
 * others for U+0100 and up. */
static int byte_of_letter(uint32_t c)
{
    if ((c >= 33 && c <= 126) || (c >= 161 && c <= 172) || (c >= 174 && c <= 255))
        return (int)c;
    if (c < 256 || c > 256 + 67)
        return -1;
    uint32_t k = c - 256;
    return k <= 32 ? (int)k : k <= 66 ? (int)(127 + (k - 33)) : 173;
}

/* Decode a normal piece into the bytes that it stands for; false when it contains a character that
 * is not a letter of the map. */
static bool decode_piece(char *out, size_t *n, struct str raw)
{
    size_t at = 0;
    for (size_t i = 0; i < raw.n; i++) {
        unsigned char c = (unsigned char)raw.p[i];
        if (c < 0x80) { /* stands for itself */
            if (c <= ' ' || c == 0x7f)
                return false;
            out[at++] = (char)c;
            continue;
        }
        /* All other letters have two bytes in UTF-8. */
        unsigned char d = i + 1 < raw.n ? (unsigned char)raw.p[++i] : 0;
        int b = c >= 0xc2 && c < 0xe0 && (d & 0xc0) == 0x80
                    ? byte_of_letter((c & 0x1fu) << 6 | (d & 0x3fu))
                    : -1;
        if (b < 0)
            return false;
        out[at++] = (char)b;
    }
    *n = at;
    return true;
}

/* Check the counts, and compute in *bytes how large the arena of strings must be. */
static int check_sizes(const struct vocabulary *v, size_t *bytes, struct err *err)
{
    if (v->count == 0 || v->count > MAX_PIECES || v->nmerges > MAX_PIECES)
        return err_set(err, ERR_FORMAT, "%s: vocabulary: expected 1 to %d pieces, found %zu",
                       v->path, MAX_PIECES, v->count);
    *bytes = 1;
    for (size_t i = 0; i < v->count; i++)
        if (!size_add(bytes, *bytes, 2 * v->pieces[i].n))
            return err_set(err, ERR_FORMAT, "%s: vocabulary too large", v->path);
    return OK;
}

/* Copy a string into the arena. */
static struct str tokenizer_keep(char **at, const char *p, size_t n)
{
    struct str s = { *at, n };
    if (n)
        memcpy(*at, p, n);
    *at += n;
    return s;
}

/* Copy and decode a normal piece and index it. */
static int add_normal(struct tokenizer *t, const struct vocabulary *v, size_t i,
                      const struct look *l, char **at, struct err *err)
{
    struct piece *p = &t->pieces[i];
    if (!p->raw.n || !decode_piece(*at, &p->bytes.n, p->raw))
        return err_set(err, ERR_FORMAT,
                       "%s: piece %zu: expected letters of GPT-2's byte map, found \"%.*s\"",
                       v->path, i, (int)(p->raw.n < 40 ? p->raw.n : 40), p->raw.p);
    if (p->bytes.n == p->raw.n)
        p->bytes.p = p->raw.p; /* they are the same */
    else
        *at += p->bytes.n;
    if (find_text(t, l) != NO_ID)
        return err_set(err, ERR_FORMAT, "%s: piece %zu: \"%.*s\" is there twice", v->path, i,
                       (int)(p->raw.n < 40 ? p->raw.n : 40), p->raw.p);
    size_t slot = l->hash & t->text_mask;
    while (t->by_text[slot])
        slot = (slot + 1) & t->text_mask;
    t->by_text[slot] = (uint32_t)i + 1;
    return OK;
}

/* Copy a piece into the arena. */
static int add_piece(struct tokenizer *t, const struct vocabulary *v, size_t i,
                     const struct look *l, char **at, struct err *err)
{
    struct piece *p = &t->pieces[i];
    struct str s = v->pieces[i];
    p->type = s.p ? v->types[i] & 15 : 0;
    p->flags = v->types[i] & ~15;
    if (!p->type)
        return OK;
    p->raw = tokenizer_keep(at, s.p, s.n);
    if (p->type == PIECE_UNUSED)
        return OK;
    t->size = i + 1;
    p->bytes = (struct str){ *at, 0 };
    if (p->type == PIECE_NORMAL)
        return add_normal(t, v, i, l, at, err);
    if (!s.n)
        return err_set(err, ERR_FORMAT, "%s: piece %zu: an added token is empty", v->path, i);
    p->bytes = tokenizer_keep(at, s.p, s.n);
    return OK;
}

/* Add all pieces, and require one for every byte. */
static int add_pieces(struct tokenizer *t, const struct vocabulary *v, char **at, struct err *err)
{
    struct look l[ASK];
    for (size_t i = 0; i < v->count; i++) {
        size_t left = v->count - i < ASK ? v->count - i : ASK;
        for (size_t j = 0; i % ASK == 0 && j < left; j++)
            l[j].s = v->pieces[i + j];
        if (i % ASK == 0)
            ask_texts(t, l, left);
        int rc = add_piece(t, v, i, &l[i % ASK], at, err);
        if (rc)
            return rc;
    }
    bool have[256] = { false };
    for (size_t i = 0; i < t->size; i++)
        if (t->pieces[i].type == PIECE_NORMAL && t->pieces[i].bytes.n == 1) {
            unsigned char b = (unsigned char)t->pieces[i].bytes.p[0];
            t->byte_id[b] = (uint32_t)i;
            have[b] = true;
        }
    for (size_t b = 0; b < 256; b++)
        if (!have[b])
            return err_set(err, ERR_FORMAT, "%s: vocabulary: no piece for byte 0x%02zx", v->path,
                           b);
    return OK;
}

/* Return the piece that a and b give together, or NO_ID. Vocabularies list pieces in the order of
 * their merges, so it is mostly the next one, `guess`, and needs no look into the table. */
static int64_t find_merged(const struct tokenizer *t, struct str a, struct str b, size_t guess)
{
    char both[MOST_MERGED];
    const struct piece *p = &t->pieces[guess];
    if (guess < t->count && p->type == PIECE_NORMAL && p->raw.n == a.n + b.n &&
        !memcmp(p->raw.p, a.p, a.n) && !memcmp(p->raw.p + a.n, b.p, b.n))
        return (int64_t)guess;
    memcpy(both, a.p, a.n);
    memcpy(both + a.n, b.p, b.n);
    struct look l = { .s = { both, a.n + b.n } };
    l.hash = hash_piece(l.s);
    return find_text(t, &l);
}

/* Resolve merge r, whose parts are l[0] and l[1], to ids. */
static int add_merge(struct tokenizer *t, const struct vocabulary *v, size_t r,
                     const struct look *l, struct err *err)
{
    struct str line = v->merges[r];
    if (!l[0].s.n || !l[1].s.n || l[0].s.n + l[1].s.n > MOST_MERGED)
        return err_set(err, ERR_FORMAT, "%s: merge %zu: expected \"a b\", found \"%.*s\"", v->path,
                       r, (int)(line.n < 60 ? line.n : 60), line.p);
    int64_t left = find_text(t, &l[0]), right = find_text(t, &l[1]);
    int64_t merged = find_merged(t, l[0].s, l[1].s, r ? t->merges[r - 1].merged + (size_t)1 : 256);
    if (left < 0 || right < 0 || merged < 0)
        return err_set(err, ERR_FORMAT,
                       "%s: merge %zu: expected pieces of the vocabulary, found \"%.*s\"", v->path,
                       r, (int)(line.n < 60 ? line.n : 60), line.p);
    t->merges[r] = (struct pair){ (uint32_t)left, (uint32_t)right, (uint32_t)merged };
    __builtin_prefetch(&t->by_pair[hash_pair((uint32_t)left, (uint32_t)right) & t->pair_mask]);
    return OK;
}

/* Index merge r by its pair; the first of equal merges counts. */
static void index_merge(struct tokenizer *t, size_t r)
{
    const struct pair *p = &t->merges[r];
    size_t slot = hash_pair(p->left, p->right) & t->pair_mask;
    for (; t->by_pair[slot]; slot = (slot + 1) & t->pair_mask) {
        const struct pair *q = &t->merges[t->by_pair[slot] - 1];
        if (q->left == p->left && q->right == p->right)
            return;
    }
    t->by_pair[slot] = (uint32_t)r + 1;
}

/* Split "a b" at its first blank; a is empty if there is none. */
static void split_merge(struct look *l, struct str s)
{
    size_t gap = 0;
    while (gap < s.n && s.p[gap] != ' ')
        gap++;
    l[0].s = (struct str){ s.p, gap < s.n ? gap : 0 };
    l[1].s = (struct str){ s.p + (gap < s.n) + l[0].s.n, gap < s.n ? s.n - gap - 1 : 0 };
}

/* Resolve all merges to ids and index them by pair. */
static int add_merges(struct tokenizer *t, const struct vocabulary *v, struct err *err)
{
    struct look l[2 * ASK];
    for (size_t r = 0; r < v->nmerges; r += ASK) {
        size_t n = v->nmerges - r < ASK ? v->nmerges - r : ASK;
        for (size_t i = 0; i < n; i++)
            split_merge(&l[2 * i], v->merges[r + i]);
        ask_texts(t, l, 2 * n);
        for (size_t i = 0; i < n; i++) {
            int rc = add_merge(t, v, r + i, &l[2 * i], err);
            if (rc)
                return rc;
        }
        for (size_t i = 0; i < n; i++)
            index_merge(t, r + i);
    }
    return OK;
}

/* List the added tokens, longest text first, so that the longest match wins. */
static void add_added(struct tokenizer *t)
{
    for (size_t i = 0; i < t->size; i++) {
        const struct piece *p = &t->pieces[i];
        if ((p->type != PIECE_CONTROL && p->type != PIECE_USER) || !p->bytes.n)
            continue;
        size_t at = t->nadded++;
        for (; at && t->pieces[t->added[at - 1]].bytes.n < p->bytes.n; at--)
            t->added[at] = t->added[at - 1];
        t->added[at] = (uint32_t)i;
        t->added_first[(unsigned char)p->bytes.p[0]] = 1;
        t->normalized = t->normalized || p->flags & ADDED_NORMALIZED;
    }
}

static int add_template(struct tokenizer *t, const struct vocabulary *v, struct err *err)
{
    struct str s = v->template;
    const char *zero = s.p ? memchr(s.p, 0, s.n) : NULL;
    if (!s.p)
        return OK;
    if (zero)
        return err_set(err, ERR_FORMAT,
                       "%s: chat template: expected text, found a zero byte at %zu", v->path,
                       (size_t)(zero - s.p));
    t->template = malloc(s.n + 1);
    if (!t->template)
        return err_set(err, ERR_NOMEM, "tokenizer: out of memory");
    memcpy(t->template, s.p, s.n);
    t->template[s.n] = 0;
    return OK;
}

/* Collect the ids that end an answer: those of the file, then the usual names. */
static void add_ends(struct tokenizer *t, const struct vocabulary *v)
{
    static const char *const names[] = { "<|im_end|>", "<|endoftext|>" };
    for (size_t i = 0; i < v->neog; i++)
        if (v->eog[i] < t->size)
            t->eog[t->neog++] = v->eog[i];
    t->has_eos = t->neog > 0;
    for (size_t i = 0; i < 2; i++) {
        uint32_t id;
        if (tokenizer_special(t, names[i], &id) && !tokenizer_is_eog(t, id) && t->neog < 16)
            t->eog[t->neog++] = id;
    }
}

/* Reserve n elements at *at, which is then aligned for any of them; NULL while base is NULL. */
static void *tokenizer_take(char *base, size_t *at, size_t n, size_t size)
{
    void *p = base ? base + *at : NULL;
    *at += (n * size + 7) / 8 * 8;
    return p;
}

/* Place all arrays in one block and return its size. One block of big pages costs the system a
 * few faults, several arrays thousands. */
static size_t tokenizer_lay_out(struct tokenizer *t, char *base, size_t added)
{
    size_t at = 0;
    t->pieces = tokenizer_take(base, &at, t->count, sizeof(*t->pieces));
    t->by_text = tokenizer_take(base, &at, t->text_mask + 1, sizeof(*t->by_text));
    t->by_pair = tokenizer_take(base, &at, t->pair_mask + 1, sizeof(*t->by_pair));
    t->merges = tokenizer_take(base, &at, t->nmerges, sizeof(*t->merges));
    t->added = tokenizer_take(base, &at, added, sizeof(*t->added));
    t->arena = tokenizer_take(base, &at, 0, 1);
    return at;
}

/* Hash what makes a vocabulary: texts, types and merges. */
static uint64_t tokenizer_hash(const struct tokenizer *t)
{
    uint64_t h = 1;
    for (size_t i = 0; i < t->size; i++)
        h = rand_u64(
            h, hash_text(t->pieces[i].bytes.p ? t->pieces[i].bytes.p : "", t->pieces[i].bytes.n) +
                   (uint64_t)(t->pieces[i].type == PIECE_NORMAL));
    for (size_t r = 0; r < t->nmerges; r++)
        h = rand_u64(h, hash_pair(t->merges[r].left, t->merges[r].right));
    return h;
}

int tokenizer_build(struct tokenizer **out, const struct vocabulary *v, struct err *err)
{
    size_t bytes, added = 0;
    *out = NULL;
    int rc = check_sizes(v, &bytes, err);
    if (rc)
        return rc;
    for (size_t i = 0; i < v->count; i++)
        added += (v->types[i] & 15) == PIECE_CONTROL || (v->types[i] & 15) == PIECE_USER;
    if (added > 4096)
        return err_set(err, ERR_FORMAT, "%s: added tokens: expected at most 4096, found %zu",
                       v->path, added);
    struct tokenizer *t = calloc(1, sizeof(*t));
    if (!t)
        return err_set(err, ERR_NOMEM, "tokenizer: out of memory");
    t->count = v->count;
    t->nmerges = v->nmerges;
    t->text_mask = tokenizer_table_size(v->count) - 1;
    t->pair_mask = tokenizer_table_size(v->nmerges) - 1;
    if (!size_add(&t->bytes, bytes, tokenizer_lay_out(t, NULL, added)) ||
        !(t->memory = os_alloc(t->bytes))) {
        rc = err_set(err, ERR_NOMEM, "tokenizer: out of memory");
        goto fail;
    }
    tokenizer_lay_out(t, t->memory, added);
    char *at = t->arena;
    rc = add_pieces(t, v, &at, err);
    if (!rc)
        rc = add_merges(t, v, err);
    if (!rc)
        rc = add_template(t, v, err);
    if (!rc && v->add_bos && (v->bos >= t->size || !t->pieces[v->bos].bytes.p))
        rc = err_set(err, ERR_FORMAT,
                     "%s: add_bos_token is true: expected the id of a token as bos_token", v->path);
    if (rc)
        goto fail;
    t->add_bos = v->add_bos;
    t->bos = v->bos;
    add_added(t);
    add_ends(t, v);
    t->fingerprint = tokenizer_hash(t);
    *out = t;
    return OK;

fail:
    tokenizer_close(t);
    return rc;
}

void tokenizer_close(struct tokenizer *t)
{
    if (!t)
        return;
    os_free(t->memory, t->bytes);
    free(t->template);
    free(t);
}

bool tokenizer_rank(const struct tokenizer *t, uint32_t left, uint32_t right, uint32_t *rank)
{
    for (size_t i = hash_pair(left, right) & t->pair_mask; t->by_pair[i];
         i = (i + 1) & t->pair_mask) {
        const struct pair *p = &t->merges[t->by_pair[i] - 1];
        if (p->left == left && p->right == right) {
            *rank = t->by_pair[i] - 1;
            return true;
        }
    }
    return false;
}

uint64_t tokenizer_fingerprint(const struct tokenizer *t)
{
    return t->fingerprint;
}
