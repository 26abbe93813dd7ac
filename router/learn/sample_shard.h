/* sample_shard.h - one file of a collection: the samples of a fixed range of texts.
 *
 * A shard is a safetensors file. Its tensors are hidden F32 [n][dim]; label and way U8 [n]; edge,
 * cloud, gold and text I32 [n]; before I32 [n][2]; subject U32 [n]; features F32 [n][8], in the
 * order of features.h. Its metadata holds the range of texts, the counts, and the checksum of the
 * collection that it belongs to. */
#ifndef ROUTER_LEARN_SAMPLE_SHARD_H
#define ROUTER_LEARN_SAMPLE_SHARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "router/features.h"

struct err;

/* How a label came about. */
enum sample_way {
    SAMPLE_EDGE_RIGHT,  /* the edge's token is the reference answer's: 1 */
    SAMPLE_EDGE_WRONG,  /* it is not, and nothing else was asked: 0 */
    SAMPLE_CLOUD_RIGHT, /* the cloud's token is the reference answer's, the edge's is not: 0 */
    SAMPLE_AGREED,      /* the cloud says the same as the edge: 1 */
    SAMPLE_ROLLOUT,     /* the answer was written to its end */
    SAMPLE_WAYS
};

enum { SAMPLE_NOT_ASKED = -1 }; /* the cloud's token; also an id before the text's first */

struct sample_row {
    int32_t edge, cloud, gold;       /* ids */
    int32_t before[2];               /* the id before the last one, the last one */
    int32_t text;                    /* number of the text in its task */
    uint32_t subject;                /* hash of what the text asks about */
    float features[FEATURE_CONTEXT]; /* all but that of the table, which training makes */
    uint8_t label, way;
};

struct sample_counts {
    uint64_t texts;          /* that gave samples */
    uint64_t too_long;       /* texts left out because they are longer than the context */
    uint64_t refused;        /* texts left out because the cloud refused them */
    uint64_t written;        /* texts without a reference answer, for which the cloud wrote one */
    uint64_t samples, right; /* samples; those with label 1 */
    uint64_t rollouts;       /* samples whose answer was written to its end */
    uint64_t left_out;       /* tokens left out because their rollout was not drawn */
};

/* The counts by name, as files hold them, ended by NULL. */
struct sample_count_name {
    const char *name;
    size_t at; /* offset in struct sample_counts */
};
extern const struct sample_count_name sample_count_names[];
/* Add b to a. */
void sample_counts_add(struct sample_counts *a, const struct sample_counts *b);

struct sample_shard { /* all zero with dim set is an empty one */
    size_t dim, n, room;
    float *hidden; /* [n][dim] */
    struct sample_row *rows;
    size_t first, ntexts; /* range of texts */
    struct sample_counts counts;
};

/* Append a row with its hidden state [dim]; both are copied. ERR_NOMEM. */
int sample_shard_add(struct sample_shard *s, const float *hidden, const struct sample_row *row,
                     struct err *err);
void sample_shard_close(struct sample_shard *s);

/* Write a shard. collection is the checksum that binds it to its collection. ERR_IO, ERR_NOMEM; the
 * file is complete or not there. */
int sample_shard_write(const char *path, const struct sample_shard *s, uint32_t collection,
                       struct err *err);

/* What a shard that is read must agree with. */
struct sample_shard_want {
    uint32_t collection;
    size_t dim, vocab, first, ntexts;
};
/* Read a shard into *out, which sample_shard_close frees. ERR_FORMAT names file, tensor or count,
 * expected and found: a file that is cut or of another collection, values that are not finite, ids
 * that are not below vocab, labels other than 0 and 1, texts out of range or out of order, counts
 * that contradict the rows. ERR_IO, ERR_NOMEM. */
int sample_shard_read(struct sample_shard *out, const char *path,
                      const struct sample_shard_want *want, struct err *err);

#endif
