/* samples.h - tokens to learn from: hidden states, and whether the local model's token was
 * right. */
#ifndef ROUTER_LEARN_SAMPLES_H
#define ROUTER_LEARN_SAMPLES_H

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

enum { SAMPLE_NOT_ASKED = -1 };  /* the cloud's token */
enum { SAMPLE_AGREED_FOR = 10 }; /* labels gain: tokens that a sample of SAMPLE_AGREED stands for */
#define SAMPLES_NONE UINT32_MAX  /* an id before the text's first */

struct sample_row {
    int32_t edge, cloud, gold; /* ids */
    uint32_t before[2];        /* the id before the last one, the last one */
    uint32_t text;             /* number of the text in its task */
    uint32_t subject;          /* hash of what the text asks about; a subject is never split */
    float features[FEATURE_CONTEXT]; /* all but that of the table, which training makes */
    uint8_t label;                   /* 1: the edge's token may stand; 0: it may not */
    uint8_t way;
    int8_t gain;   /* labels gain: 1 the cloud's token mends the answer, -1 it spoils it, else 0 */
    uint8_t right; /* labels gain: the answer that has `gold` here is right; else 0 */
};

struct samples { /* all zero with dim set is an empty one */
    size_t dim, n, room;
    float *x;                /* [n][dim] hidden states */
    struct sample_row *rows; /* [n] */
};

/* Make room for n more samples, so that the arrays can be filled beyond s->n. ERR_NOMEM. */
int samples_reserve(struct samples *s, size_t n, struct err *err);
/* Append a sample; x [dim] and the row are copied. ERR_FORMAT:
 * x is not finite; ERR_NOMEM. */
int samples_add(struct samples *s, const float *x, const struct sample_row *row, struct err *err);
/* Append more samples of the same dim, whose texts are numbered from base on. ERR_NOMEM. */
int samples_append(struct samples *s, const struct samples *more, uint32_t base, struct err *err);
/* Check every number of samples that were read from the file `name`: labels are 0 or 1, gains -1 to
 * 1 and 1 only with label 0, ids below vocab, texts of [first, end) and in order, and floats
 * finite. ERR_FORMAT. */
int samples_check(const struct samples *s, size_t vocab, uint32_t first, uint32_t end,
                  const char *name, struct err *err);
void samples_close(struct samples *s);
/* Make *out, which is all zero, the sample of each text's first token, right if all of its samples
 * are. A text whose first token was left out is, too. ERR_NOMEM; *out is the caller's to close
 * then, too. */
int samples_of_texts(struct samples *out, const struct samples *s, struct err *err);

#endif
