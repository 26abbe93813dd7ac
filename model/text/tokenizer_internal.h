/* tokenizer_internal.h - struct tokenizer, for tokenizer*.c only. */
#ifndef MODEL_TEXT_TOKENIZER_INTERNAL_H
#define MODEL_TEXT_TOKENIZER_INTERNAL_H

#include "kernels/sys/buf.h"
#include "model/text/tokenizer.h"
#include "model/text/vocabulary.h"

enum { MAX_PIECES = 1 << 22, NO_ID = -1 };

struct piece {
    struct str raw;   /* as files store it: bytes as letters */
    struct str bytes; /* the bytes that it stands for */
    int type;         /* 0: no piece has this id */
    int flags;        /* ADDED_* */
};

struct pair {
    uint32_t left, right, merged;
};

struct tokenizer {
    void *memory; /* the block of all arrays and strings */
    size_t bytes;
    struct piece *pieces; /* [count] */
    size_t count, size;   /* size: the highest id in use, plus one */
    char *arena;          /* all strings */
    uint32_t *by_text;    /* hash table, open addressing: id + 1 of normal pieces by raw text */
    struct pair *merges;  /* [nmerges] in rank order */
    size_t nmerges;
    uint32_t *by_pair; /* hash table, open addressing: rank + 1 by pair */
    size_t text_mask, pair_mask;
    uint32_t byte_id[256];
    uint32_t *added; /* ids of control and user pieces, longest text first */
    size_t nadded;
    unsigned char added_first[256]; /* 1: an added token begins with this byte */
    bool normalized;                /* an added token has ADDED_NORMALIZED */
    bool add_bos;                   /* a text begins with bos */
    uint32_t bos;
    uint32_t eog[16];
    size_t neog; /* eog[0] is the file's eos if has_eos */
    bool has_eos;
    uint64_t fingerprint;
    char *template; /* the chat template, or NULL */
};

/* tokenizer_json.c: pieces and merges of a folder's JSON files. Zero at first; the caller frees
 * pieces, types and merges, and keeps the text that these point into. */
struct json_pieces {
    struct str *pieces; /* [room], as are the types; p NULL: none; pieces NULL: no vocabulary */
    int *types;
    size_t room, top, n; /* top: the highest id plus one; n: how many there are */
    struct str *merges;  /* [nmerges] "a b"; NULL: no list */
    size_t nmerges;
};

/* Make room for ids below count. ERR_NOMEM. */
int tokenizer_json_room(struct json_pieces *o, size_t count, struct err *err);
/* Read text[n], all of which is a vocabulary: {"piece": id}. text[n] is 0, and the text is changed.
 * ERR_FORMAT, ERR_NOMEM. */
int tokenizer_json_vocab(struct json_pieces *out, char *text, size_t n, const char *path,
                         struct err *err);

/* Read model.vocab and model.merges of tokenizer.json, and leave the rest to be parsed, with 0 for
 * the two and all its lines. As above; the caller frees rest in any case. */
int tokenizer_json_split(struct json_pieces *out, struct buf *rest, char *text, size_t n,
                         const char *path, struct err *err);

/* An added token in a text: what it takes, [begin, end), and where the search for others goes on:
 * behind the token itself, even if it takes white space there. The one before may leave it nothing:
 * then it does not count. */
struct added {
    size_t begin, end, next;
    uint32_t id;
};

/* Find the next one, of those that are looked for in raw or in normalized text; *a is the one
 * before, zero at first. False: there is none, and it begins at n. */
bool tokenizer_added(const struct tokenizer *t, struct added *a, const char *p, size_t n,
                     bool normalized);

/* Find the rank of merging two pieces; false when they do not merge. */
bool tokenizer_rank(const struct tokenizer *t, uint32_t left, uint32_t right, uint32_t *rank);

#endif
