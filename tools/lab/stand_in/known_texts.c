#include "tools/lab/stand_in/known_texts.h"

#include <stdlib.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "kernels/sys/buf.h"
#include "kernels/sys/text.h"
#include "model/text/tokenizer.h"
#include "net/http/json_input.h"
#include "tools/cli/input_file.h"

enum { FILE_MAX = 256 << 20 };

/* A prompt and what follows it, in one string. */
struct known_text {
    char *bytes; /* [n] */
    size_t prompt, n;
    uint64_t hash;         /* of the prompt */
    uint32_t *ids, *start; /* [count]: the tokens after the prompt and where in bytes each starts */
    size_t count, line;
};

struct known_texts {
    const struct tokenizer *tokenizer;
    struct known_text *at;
    size_t n, room;
    size_t *table, mask; /* open addressing by hash; 0: empty, else 1 + index in `at` */
    unsigned char *ends; /* [longest + 1] 1: a prompt has this length */
    size_t longest;
    uint32_t eos;
    uint32_t byte[256]; /* the token of a single byte, or UINT32_MAX */
};

/* FNV-1a, which can be continued byte by byte. */
static const uint64_t fnv_start = UINT64_C(0xcbf29ce484222325);

static uint64_t known_texts_hash(uint64_t h, unsigned char byte)
{
    return (h ^ byte) * UINT64_C(0x100000001b3);
}

static size_t known_texts_slot(const struct known_texts *k, uint64_t hash)
{
    return (size_t)(hash ^ hash >> 32) & k->mask;
}

/* Append text[n] to out in NFC, as the tokens of a client give it. False: no memory. */
static bool known_texts_normal(struct buf *out, const struct tokenizer *t, const char *text,
                               size_t n)
{
    uint32_t *ids;
    size_t count, len;
    struct err err;
    if (text_ascii(text, n) == n)
        return buf_add(out, text, n);
    if (tokenizer_encode(t, &ids, &count, text, n, false, &err))
        return false;
    bool fine = true;
    for (size_t i = 0; fine && i < count; i++) {
        const char *piece = tokenizer_bytes(t, ids[i], &len);
        fine = buf_add(out, piece, len);
    }
    free(ids);
    return fine;
}

/* Encode what follows the prompt and note where each token starts. */
static bool known_texts_cut(struct known_text *x, const struct tokenizer *t)
{
    struct err err;
    size_t at = x->prompt, len;
    if (tokenizer_encode(t, &x->ids, &x->count, x->bytes + at, x->n - at, false, &err))
        return false;
    x->start = calloc(x->count, sizeof(*x->start));
    for (size_t i = 0; x->start && i < x->count; i++, at += len) {
        x->start[i] = (uint32_t)at;
        tokenizer_bytes(t, x->ids[i], &len);
    }
    return x->start != NULL;
}

/* Take the fields of one line. *x is filled as far as it gets; the caller frees it. */
static int known_texts_take(struct known_text *x, const struct tokenizer *t, const json_t *line,
                            const char *where, struct err *err)
{
    const json_t *prompt = json_object_get(line, "prompt"), *text = json_object_get(line, "cot");
    const char *field = text || !json_object_get(line, "text") ? "cot" : "text";
    if (!json_is_object(line))
        return err_set(err, ERR_FORMAT, "%s: expected an object, found %s", where,
                       json_input_type(line));
    text = json_object_get(line, field);
    const json_t *bad = !json_string_length(prompt) ? prompt : text;
    if (!json_string_length(prompt) || !json_string_length(text))
        return err_set(err, ERR_FORMAT, "%s: %s: expected a text, found %s", where,
                       !json_string_length(prompt) ? "prompt" : field,
                       json_is_string(bad) ? "an empty one" : json_input_type(bad));
    struct buf b = { .max = UINT32_MAX };
    bool fine = known_texts_normal(&b, t, json_string_value(prompt), json_string_length(prompt));
    x->prompt = b.n;
    fine = fine && buf_str(&b, " ") &&
           known_texts_normal(&b, t, json_string_value(text), json_string_length(text));
    x->bytes = b.p;
    x->n = b.n;
    if (!fine || !known_texts_cut(x, t))
        return err_set(err, ERR_NOMEM, "%s: out of memory", where);
    x->hash = fnv_start;
    for (size_t i = 0; i < x->prompt; i++)
        x->hash = known_texts_hash(x->hash, (unsigned char)x->bytes[i]);
    return OK;
}

/* Add the text of one line of the file. */
static int known_texts_add(struct known_texts *k, const char *line, size_t n, const char *where,
                           size_t number, struct err *err)
{
    json_t *json;
    struct err why;
    int rc = json_input_parse(&json, line, n, &why);
    if (rc)
        return err_set(err, rc, "%s: %s", where, why.msg);
    struct known_text *more = array_grow(k->at, &k->room, k->n, sizeof(*more));
    if (!more) {
        json_decref(json);
        return err_set(err, ERR_NOMEM, "%s: out of memory", where);
    }
    k->at = more;
    struct known_text *x = &k->at[k->n++];
    *x = (struct known_text){ .line = number };
    rc = known_texts_take(x, k->tokenizer, json, where, err);
    if (x->prompt > k->longest)
        k->longest = x->prompt;
    json_decref(json);
    return rc;
}

/* Add the texts of all lines; those that are blank are skipped. */
static int known_texts_lines(struct known_texts *k, const char *all, size_t size, const char *path,
                             struct err *err)
{
    int rc = OK;
    size_t number = 1;
    for (size_t at = 0, n; rc == OK && at < size; at += n + 1, number++) {
        const char *line = all + at, *end = memchr(line, '\n', size - at);
        size_t blank = 0;
        struct err where;
        n = end ? (size_t)(end - line) : size - at;
        while (blank < n && (line[blank] == ' ' || line[blank] == '\t' || line[blank] == '\r'))
            blank++;
        err_set(&where, OK, "%s: line %zu", path, number);
        if (blank < n)
            rc = known_texts_add(k, line, n, where.msg, number, err);
    }
    if (rc == OK && !k->n)
        rc = err_set(err, ERR_FORMAT, "%s: expected JSON lines with prompt and cot, found none",
                     path);
    return rc;
}

/* Read the file. */
static int known_texts_read(struct known_texts *k, const char *path, struct err *err)
{
    char *all;
    size_t n;
    int rc = input_file_read(&all, &n, path, FILE_MAX, err);
    if (rc == OK)
        rc = known_texts_lines(k, all, n, path, err);
    free(all);
    return rc;
}

/* Return the text whose prompt has this length and hash, or NULL. */
static const struct known_text *known_texts_find(const struct known_texts *k, uint64_t hash,
                                                 size_t prompt)
{
    for (size_t i = known_texts_slot(k, hash); k->table[i]; i = (i + 1) & k->mask) {
        const struct known_text *x = &k->at[k->table[i] - 1];
        if (x->hash == hash && x->prompt == prompt)
            return x;
    }
    return NULL;
}

/* Fill the table, which stays at most half full, and the lengths of the prompts. */
static int known_texts_index(struct known_texts *k, const char *path, struct err *err)
{
    size_t size = 16;
    while (size < 2 * k->n)
        size *= 2;
    k->mask = size - 1;
    k->table = calloc(size, sizeof(*k->table));
    k->ends = calloc(k->longest + 1, 1);
    if (!k->table || !k->ends)
        return err_set(err, ERR_NOMEM, "%s: out of memory", path);
    for (size_t j = 0; j < k->n; j++) {
        const struct known_text *x = &k->at[j];
        const struct known_text *same = known_texts_find(k, x->hash, x->prompt);
        if (same && (same->n != x->n || memcmp(same->bytes, x->bytes, x->n) != 0))
            return err_set(err, ERR_FORMAT,
                           "%s: line %zu: prompt: expected one text for it, found another than in "
                           "line %zu",
                           path, x->line, same->line);
        size_t i = known_texts_slot(k, x->hash);
        while (!same && k->table[i])
            i = (i + 1) & k->mask;
        if (!same)
            k->table[i] = j + 1;
        k->ends[x->prompt] = 1;
    }
    return OK;
}

/* Find end-of-text and the tokens of single bytes. */
static int known_texts_tokens(struct known_texts *k, const char *path, struct err *err)
{
    size_t len;
    const struct tokenizer *t = k->tokenizer;
    bool ends = tokenizer_eos(t, &k->eos) || tokenizer_special(t, "<|im_end|>", &k->eos) ||
                tokenizer_special(t, "<|endoftext|>", &k->eos);
    if (!ends)
        return err_set(err, ERR_FORMAT, "%s: the tokenizer has no end-of-text", path);
    memset(k->byte, 0xff, sizeof(k->byte));
    for (size_t id = 0; id < tokenizer_size(t); id++) {
        const char *piece = tokenizer_bytes(t, (uint32_t)id, &len);
        if (piece && len == 1 && !tokenizer_is_control(t, (uint32_t)id))
            k->byte[(unsigned char)*piece] = (uint32_t)id;
    }
    return OK;
}

int known_texts_open(struct known_texts **out, const char *path, const struct tokenizer *t,
                     struct err *err)
{
    *out = NULL;
    struct known_texts *k = calloc(1, sizeof(*k));
    if (!k)
        return err_set(err, ERR_NOMEM, "%s: out of memory", path);
    k->tokenizer = t;
    int rc = known_texts_tokens(k, path, err);
    if (rc == OK)
        rc = known_texts_read(k, path, err);
    if (rc == OK)
        rc = known_texts_index(k, path, err);
    if (rc == OK)
        *out = k;
    else
        known_texts_close(k);
    return rc;
}

void known_texts_close(struct known_texts *k)
{
    if (!k)
        return;
    for (size_t i = 0; i < k->n; i++) {
        free(k->at[i].bytes);
        free(k->at[i].ids);
        free(k->at[i].start);
    }
    free(k->at);
    free(k->table);
    free(k->ends);
    free(k);
}

/* Return the text of the longest prompt with which the prefix begins, or NULL. Lengths and hashes
 * alone are compared. */
static const struct known_text *known_texts_match(const struct known_texts *k, const uint32_t *ids,
                                                  size_t n)
{
    const struct known_text *best = NULL;
    uint64_t hash = fnv_start;
    size_t at = 0, len;
    for (size_t i = 0; i < n && at < k->longest; i++) {
        const char *piece = tokenizer_bytes(k->tokenizer, ids[i], &len);
        for (size_t b = 0; b < len && at < k->longest; b++) {
            hash = known_texts_hash(hash, (unsigned char)piece[b]);
            const struct known_text *x = k->ends[++at] ? known_texts_find(k, hash, at) : NULL;
            best = x ? x : best;
        }
    }
    return best;
}

/* Set *at to the length of the prefix's text; false unless x begins with it. */
static bool known_texts_follows(size_t *at, const struct known_texts *k, const struct known_text *x,
                                const uint32_t *ids, size_t n)
{
    size_t len;
    *at = 0;
    for (size_t i = 0; i < n; i++, *at += len) {
        const char *piece = tokenizer_bytes(k->tokenizer, ids[i], &len);
        if (!piece || len > x->n - *at || memcmp(piece, x->bytes + *at, len) != 0)
            return false;
    }
    return true;
}

int known_texts_next(uint32_t *next, const struct known_texts *k, const uint32_t *ids, size_t n)
{
    size_t at, low = 0;
    const struct known_text *x = known_texts_match(k, ids, n);
    if (!x || !known_texts_follows(&at, k, x, ids, n))
        return ERR_TEXT;
    *next = k->eos;
    if (at == x->n)
        return OK;
    for (size_t high = x->count; high - low > 1;) { /* the last token that starts at or before */
        size_t middle = low + (high - low) / 2;
        *(x->start[middle] <= at ? &low : &high) = middle;
    }
    unsigned char byte = (unsigned char)x->bytes[at];
    *next = x->ids[low];
    if (x->start[low] == at)
        return OK;
    *next = k->byte[byte];
    if ((byte & 0xc0) == 0x80 && *next != UINT32_MAX) /* inside a character */
        return OK;
    uint32_t *rest;
    size_t count;
    struct err err;
    int rc = tokenizer_encode(k->tokenizer, &rest, &count, x->bytes + at, x->n - at, false, &err);
    if (rc == OK)
        *next = rest[0];
    free(rest);
    return rc;
}
