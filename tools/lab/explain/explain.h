/* explain.h - what happened in a text: every number that a learner or a writer of kernels asks for.
 *
 * The text is written first, in step and without drafts, with a watch that reads the clock and does
 * nothing else. Then its ids are evaluated once more, in small passes, with a watch that looks at
 * everything. Both give the same bits (model/README.md), so what is seen is what happened, and the
 * times are those of a text that nobody looks at. */
#ifndef TOOLS_LAB_EXPLAIN_EXPLAIN_H
#define TOOLS_LAB_EXPLAIN_EXPLAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "kernels/sys/base.h"
#include "router/decode/decode.h"
#include "router/engine.h"
#include "router/routing.h"
#include "tools/lab/bench/doubt.h"
#include "tools/lab/machine/op_times.h"
#include "tools/run/likeliest.h"

enum {
    EXPLAIN_LENS = 3,     /* guesses kept of each layer */
    EXPLAIN_TOP = 5,      /* and of the head */
    EXPLAIN_LOOKS = 3,    /* positions kept of each head */
    EXPLAIN_UNITS = 4,    /* hidden units of the router kept of each sign */
    EXPLAIN_MOST_MB = 256 /* memory that may be kept */
};

struct explain_range {
    size_t from, to; /* both included */
};

struct explain_options {
    const char *prompt; /* borrowed, as is reference */
    size_t max_tokens;
    bool chat;                   /* the prompt is a message in the model's chat template */
    size_t at;                   /* a position that the text must reach; SIZE_MAX: none */
    const char *reference;       /* the right answer to a question, or NULL */
    struct explain_range layers; /* whose attention is kept whole; from SIZE_MAX: the last alone */
    const char *span_of;         /* a part of the text, attention to which is summed; NULL */
    uint64_t seed;               /* of the policy random */
    bool measured;               /* the machine is measured, for the operations */
};

/* What a head looks at from one position: the positions with the largest weights, and the sum of
 * all others. */
struct explain_head {
    uint32_t pos[EXPLAIN_LOOKS];
    float weight[EXPLAIN_LOOKS];
    uint32_t n; /* how many there are */
    float rest;
    float span; /* the sum of those of the span's tokens */
};

/* Euclidean norms of the residual stream around a layer, and what the lens makes of `out`. */
struct explain_layer {
    float in, attention, middle, mlp, out; /* in + attention = middle, middle + mlp = out, as
                                            * vectors */
    struct likeliest lens[EXPLAIN_LENS];   /* among the ids in use, as in top */
};

/* A hidden unit of the router, and what it adds to the sum under the sigmoid. */
struct explain_unit {
    uint32_t unit;
    float adds;
};

/* One evaluated position, after whose token the next one is foreseen. */
struct explain_position {
    struct likeliest top[EXPLAIN_TOP]; /* of the head: what the small model would write */
    float score;                       /* NaN: the policy has none */
    float threshold;                   /* that it is compared with */
    bool routed;                       /* the verdict: the next token is the cloud's */
    struct explain_unit up[EXPLAIN_UNITS], down[EXPLAIN_UNITS]; /* largest first; for and against */
    size_t nup, ndown;
    float others; /* what all other units add together */
};

enum explain_source { EXPLAIN_EDGE, EXPLAIN_CLOUD, EXPLAIN_FALLBACK, EXPLAIN_PROMPT };

struct explain_token {
    uint32_t id;
    enum explain_source source;
    float score;                         /* NaN: none */
    bool in_span;                        /* whether a place of o.span_of is in it */
    const char *reason;                  /* why it is a fallback, as gate_name says it; else NULL */
    char *fault;                         /* the same as one line, owned; else NULL */
    double ms;                           /* since the token before; the first: since the start */
    double router_ms, edge_ms, cloud_ms; /* parts of it: scoring, the small model, waiting */
};

/* A pass of the text: rows [at, at + rows). The head is counted where it was read after the
 * pass. */
struct explain_pass {
    size_t at, rows;
    uint64_t ns[BATCH_OPS];
};

/* All of it. Position p is that of ids[p]; all but the last token written were evaluated. Arrays
 * are [positions], [positions][layers], [positions][layers][heads]. */
struct explain {
    struct engine engine;
    struct routing routing;
    struct session *session;
    enum kvcache kv;
    struct explain_options o;
    struct explain_range layers;  /* those of o, made definite */
    uint32_t *ids;                /* [prompt + max_tokens] */
    struct explain_token *tokens; /* [n], and as many as ids in all */
    size_t prompt, n, positions;
    struct explain_position *at;
    struct explain_layer *layer;
    struct explain_head *head;
    float *rows; /* whole rows: [position][chosen layer][head][position + 1] */
    struct explain_pass *passes;
    size_t npasses;
    float bias;                       /* of the router's sum */
    struct op_times reading, writing; /* of passes up to the first token; of those after it */
    struct op_limits limits;
    struct doubt_others others; /* programs that ran beside this one */
    struct decode_stats stats;
};

/* Open engine and routing from the shared options (setup.h), write the text, look at it, and
 * measure the machine. x must not move. ERR_ARG: what would be kept takes more than
 * EXPLAIN_MOST_MB, or the text does not reach o->at (found out before it is written if no text of
 * max_tokens can); and other errors of setup.h and decode_run. The caller calls explain_close in
 * any case. */
int explain_open(struct explain *x, const struct explain_options *o, struct err *err);
void explain_close(struct explain *x);

/* The parts of explain_open. The first writes the text: tokens, passes, stats; x->ids[prompt] is
 * the prompt. The second evaluates the text once more and keeps what is seen. */
int explain_write(struct explain *x, struct err *err);
int explain_look(struct explain *x, struct err *err);
/* Between these: find the tokens of o.span_of. ERR_ARG: the text has none. */
int explain_span(struct explain *x, struct err *err);

/* Return where the whole row of (pos, layer, head) begins in x->rows; for pos = positions and the
 * first head of the first chosen layer, how many floats there are. */
size_t explain_row_at(const struct explain *x, size_t pos, size_t layer, size_t head);

const struct explain_layer *explain_layer(const struct explain *x, size_t pos, size_t layer);
const struct explain_head *explain_head(const struct explain *x, size_t pos, size_t layer,
                                        size_t head);
/* Return the whole row [pos + 1] of a head, or NULL if its layer was not chosen. */
const float *explain_row(const struct explain *x, size_t pos, size_t layer, size_t head);

/* Return "prompt", "edge", "cloud" or "fallback". */
const char *explain_source_name(enum explain_source s);
/* Write why token pos is what it is, as one sentence without a full stop. */
enum { EXPLAIN_WHY = 256 };
void explain_why(char out[EXPLAIN_WHY], const struct explain *x, size_t pos);
/* Return the position that tells most of those before a token written, and set *why to the end of a
 * sentence that begins with it: of those where the cloud was asked, or else of all, the one with
 * the lowest score, or where the policy has none, where the small model was least sure. If nothing
 * was written it is the last of the prompt. */
size_t explain_telling(const struct explain *x, const char **why);
/* Return what the units add to, of a router of several sums, whose score is no sigmoid of it; of
 * any other NULL. */
const char *explain_sums(const struct explain *x);
/* Return what the threshold adds to the router's sum: with it, a sum below 0 is for the cloud. */
float explain_threshold(const struct explain_position *at);
/* Write which share of that sum is the largest for the verdict, as a sentence. False: the verdict
 * is not such a sum's, or a threshold of 0 or 1 decides alone. */
bool explain_decided(char out[EXPLAIN_WHY], const struct explain *x, size_t pos);
/* Write why the text was cut, as a sentence without its full stop. False: it ended by itself. */
bool explain_cut(char out[EXPLAIN_WHY], const struct explain *x);

/* A head, and how much of it looks at the span from one position. */
struct explain_share {
    size_t layer, head;
    float share;
};
/* Return all heads, those with the largest share first, to be freed; NULL: no memory. */
struct explain_share *explain_shares(const struct explain *x, size_t pos);
/* Return what a head that looks everywhere alike would give to the span. */
double explain_even(const struct explain *x, size_t pos);

/* What passes and tokens took: those of the prompt, up to the first token written, or all others.
 */
struct explain_times {
    const struct op_times *operations;
    size_t passes, rows, tokens;
    double ms, router_ms, cloud_ms; /* all, and two parts of it that are no operations */
};
struct explain_times explain_times(const struct explain *x, bool reading);

/* Write everything as one JSON object; tools/lab/explain/README.md describes it. False: no memory,
 * or the output cannot be written. */
bool explain_json(FILE *to, const struct explain *x);
/* Write everything as one HTML file that needs nothing else. False: as explain_json. */
bool explain_html(FILE *to, const struct explain *x);
/* Print the page of position o.at, or of the one that tells most. */
void explain_page(const struct explain *x);

#endif
