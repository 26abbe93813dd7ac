#include <stdlib.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "kernels/math.h"
#include "kernels/sys/text.h"
#include "model/text/tokenizer_internal.h"

/* FNV-1a, with the high bits folded down because the tables use the low ones. */
static uint64_t hash_text(const char *p, size_t n)
{
    uint64_t h = 0xcbf29ce484222325u;
    for (size_t i = 0; i < n; i++)
        h = (h ^ (unsigned char)p[i]) * 0x100000001b3u;
    return h ^ (h >> 29);
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

/* Return the id of the normal piece with this raw text, or NO_ID. */
static int64_t find_text(const struct tokenizer *t, const char *p, size_t n)
{
    for (size_t i = hash_text(p, n) & t->text_mask; t->by_text[i]; i = (i + 1) & t->text_mask) {
        const struct str *s = &t->pieces[t->by_text[i] - 1].raw;
        if (s->n == n && !memcmp(s->p, p, n))
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
    *n = 0;
    for (size_t i = 0; i < raw.n;) {
        uint32_t c;
        bool ok;
        i += text_decode(&c, raw.p + i, raw.n - i, &ok);
        int b = ok ? byte_of_letter(c) : -1;
        if (b < 0)
            return false;
        out[(*n)++] = (char)b;
    }
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
    for (size_t i = 0; i < v->nmerges; i++)
        if (!size_add(bytes, *bytes, v->merges[i].n))
            return err_set(err, ERR_FORMAT, "%s: merges too large", v->path);
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

/* Copy and decode all pieces, index the normal ones, and require a piece for every byte. */
static int add_pieces(struct tokenizer *t, const struct vocabulary *v, char **at, struct err *err)
{
    for (size_t i = 0; i < v->count; i++) {
        struct piece *p = &t->pieces[i];
        struct str s = v->pieces[i];
        p->type = s.p ? v->types[i] : 0;
        if (!p->type)
            continue;
        p->raw = tokenizer_keep(at, s.p, s.n);
        if (p->type == PIECE_UNUSED)
            continue;
        t->size = i + 1;
        p->bytes = (struct str){ *at, 0 };
        if (p->type != PIECE_NORMAL && !s.n)
            return err_set(err, ERR_FORMAT, "%s: piece %zu: an added token is empty", v->path, i);
        if (p->type != PIECE_NORMAL) {
            p->bytes = tokenizer_keep(at, s.p, s.n);
            continue;
        }
        if (!s.n || !decode_piece(*at, &p->bytes.n, s))
            return err_set(err, ERR_FORMAT,
                           "%s: piece %zu: expected letters of GPT-2's byte map, found \"%.*s\"",
                           v->path, i, (int)(s.n < 40 ? s.n : 40), s.p);
        *at += p->bytes.n;
        if (find_text(t, p->raw.p, p->raw.n) != NO_ID)
            return err_set(err, ERR_FORMAT, "%s: piece %zu: \"%.*s\" is there twice", v->path, i,
                           (int)(s.n < 40 ? s.n : 40), s.p);
        size_t slot = hash_text(p->raw.p, p->raw.n) & t->text_mask;
        while (t->by_text[slot])
            slot = (slot + 1) & t->text_mask;
        t->by_text[slot] = (uint32_t)i + 1;
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

/* Resolve all merges to ids and index them by pair. */
static int add_merges(struct tokenizer *t, const struct vocabulary *v, char **at, struct err *err)
{
    for (size_t r = 0; r < v->nmerges; r++) {
        struct str line = t->lines[r] = tokenizer_keep(at, v->merges[r].p, v->merges[r].n);
        const char *gap = line.n ? memchr(line.p, ' ', line.n) : NULL;
        size_t n = gap ? (size_t)(gap - line.p) : 0, m = gap ? line.n - n - 1 : 0;
        char both[1024];
        if (!n || !m || n + m > sizeof(both))
            return err_set(err, ERR_FORMAT, "%s: merge %zu: expected \"a b\", found \"%.*s\"",
                           v->path, r, (int)(line.n < 60 ? line.n : 60), line.p);
        memcpy(both, line.p, n);
        memcpy(both + n, gap + 1, m);
        int64_t left = find_text(t, line.p, n), right = find_text(t, gap + 1, m);
        int64_t merged = find_text(t, both, n + m);
        if (left < 0 || right < 0 || merged < 0)
            return err_set(err, ERR_FORMAT,
                           "%s: merge %zu: expected pieces of the vocabulary, found \"%.*s\"",
                           v->path, r, (int)(line.n < 60 ? line.n : 60), line.p);
        t->merges[r] = (struct pair){ (uint32_t)left, (uint32_t)right, (uint32_t)merged };
        uint32_t seen;
        if (tokenizer_rank(t, (uint32_t)left, (uint32_t)right, &seen))
            continue; /* the first of equal merges counts */
        size_t slot = hash_pair((uint32_t)left, (uint32_t)right) & t->pair_mask;
        while (t->by_pair[slot])
            slot = (slot + 1) & t->pair_mask;
        t->by_pair[slot] = (uint32_t)r + 1;
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
    }
}

static int add_template(struct tokenizer *t, struct str s, struct err *err)
{
    if (!s.p)
        return OK;
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

int tokenizer_build(struct tokenizer **out, const struct vocabulary *v, struct err *err)
{
    size_t bytes, added = 0;
    *out = NULL;
    int rc = check_sizes(v, &bytes, err);
    if (rc)
        return rc;
    for (size_t i = 0; i < v->count; i++)
        added += v->types[i] == PIECE_CONTROL || v->types[i] == PIECE_USER;
    if (added > 4096)
        return err_set(err, ERR_FORMAT, "%s: added tokens: expected at most 4096, found %zu",
                       v->path, added);
    struct tokenizer *t = calloc(1, sizeof(*t));
    if (!t)
        return err_set(err, ERR_NOMEM, "tokenizer: out of memory");
    size_t texts = tokenizer_table_size(v->count), pairs = tokenizer_table_size(v->nmerges);
    t->count = v->count;
    t->nmerges = v->nmerges;
    t->text_mask = texts - 1;
    t->pair_mask = pairs - 1;
    t->pieces = calloc(v->count, sizeof(*t->pieces));
    t->arena = malloc(bytes);
    t->by_text = calloc(texts, sizeof(*t->by_text));
    t->by_pair = calloc(pairs, sizeof(*t->by_pair));
    t->merges = calloc(v->nmerges + 1, sizeof(*t->merges));
    t->lines = calloc(v->nmerges + 1, sizeof(*t->lines));
    t->added = calloc(added + 1, sizeof(*t->added));
    rc = ERR_NOMEM;
    if (!t->pieces || !t->arena || !t->by_text || !t->by_pair || !t->merges || !t->lines ||
        !t->added) {
        err_set(err, ERR_NOMEM, "tokenizer: out of memory");
        goto fail;
    }
    char *at = t->arena;
    rc = add_pieces(t, v, &at, err);
    if (!rc)
        rc = add_merges(t, v, &at, err);
    if (!rc)
        rc = add_template(t, v->template, err);
    if (rc)
        goto fail;
    add_added(t);
    add_ends(t, v);
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
    free(t->pieces);
    free(t->arena);
    free(t->by_text);
    free(t->by_pair);
    free(t->merges);
    free(t->lines);
    free(t->added);
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

size_t tokenizer_size(const struct tokenizer *t)
{
    return t->size;
}

const char *tokenizer_bytes(const struct tokenizer *t, uint32_t id, size_t *n)
{
    *n = 0;
    if (id >= t->size || !t->pieces[id].bytes.p)
        return NULL;
    *n = t->pieces[id].bytes.n;
    return t->pieces[id].bytes.p;
}

bool tokenizer_special(const struct tokenizer *t, const char *text, uint32_t *id)
{
    size_t n = strlen(text);
    for (size_t i = 0; i < t->nadded; i++) {
        const struct str *s = &t->pieces[t->added[i]].bytes;
        if (s->n == n && !memcmp(s->p, text, n)) {
            *id = t->added[i];
            return true;
        }
    }
    return false;
}

bool tokenizer_is_control(const struct tokenizer *t, uint32_t id)
{
    return id < t->size && t->pieces[id].type == PIECE_CONTROL;
}

bool tokenizer_is_eog(const struct tokenizer *t, uint32_t id)
{
    for (size_t i = 0; i < t->neog; i++)
        if (t->eog[i] == id)
            return true;
    return false;
}

bool tokenizer_eos(const struct tokenizer *t, uint32_t *id)
{
    if (t->has_eos)
        *id = t->eog[0];
    return t->has_eos;
}

const char *tokenizer_template(const struct tokenizer *t)
{
    return t->template;
}

uint64_t tokenizer_fingerprint(const struct tokenizer *t)
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

size_t tokenizer_npieces(const struct tokenizer *t)
{
    return t->count;
}

void tokenizer_piece(const struct tokenizer *t, uint32_t id, struct str *piece, int *type)
{
    *piece = t->pieces[id].raw;
    *type = t->pieces[id].type ? t->pieces[id].type : PIECE_UNUSED;
}

size_t tokenizer_nmerges(const struct tokenizer *t)
{
    return t->nmerges;
}

void tokenizer_merge(const struct tokenizer *t, size_t i, struct str *merge)
{
    *merge = t->lines[i];
}
