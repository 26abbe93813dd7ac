/* agree.h - two models side by side on texts of ids: where the small one's token is the large
 * one's, and what they write together. Both run in this process; there is no server and no
 * tokenizer. */
#ifndef TOOLS_EVAL_AGREE_H
#define TOOLS_EVAL_AGREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "router/engine.h"
#include "router/policy.h"

struct err;
struct router;
struct session;

struct agree_part { /* a part of the ids */
    size_t at, n;
};

struct agree { /* all zero is closed; must not move */
    struct engine edge, cloud;
    struct session *small, *large; /* one text each */
    struct router *router;         /* or NULL */
    float *scratch;
    uint32_t *ids, *text;
    float *scores;            /* [length] of the latest text */
    struct agree_part *texts; /* [ntexts] the lines of the file */
    struct agree_part *prompts;
    uint32_t *truth; /* [nprompts][length] what the large model writes alone */
    size_t nids, ntexts, nprompts, length, context;
    size_t size; /* ids that may be chosen */
    uint64_t seed;
};

/* Open the edge of -m and the cloud, a path, both as models of this process, and read the texts:
 * lines of token ids separated by blanks. There will be n prompts: beginnings of the lines, evenly
 * spaced from the first id on. length: of an answer. ERR_ARG: the models do not share the ids;
 * ERR_FORMAT: names file, line, expected and found; errors of setup_engine, ERR_NOMEM. The caller
 * closes *a, also after an error. */
int agree_open(struct agree *a, const char *cloud, const char *data, size_t n, size_t length,
               struct err *err);
void agree_close(struct agree *a);

enum { AGREE_POLICIES = POLICY_NEVER + 1 };

/* Both models over all texts, teacher-forced. */
struct agree_teacher {
    size_t n, same;             /* tokens; of these, edge and cloud have the same */
    double auc[AGREE_POLICIES]; /* of each policy's score for "the same"; NaN: none */
};
int agree_teacher(struct agree_teacher *out, struct agree *a, struct err *err);

struct agree_answer {
    size_t tokens, cloud, equal; /* equal: to the large model's own text, place by place */
    double nats;                 /* -ln p of all tokens under the large model */
};
/* Write answer i. Tokens that score below the threshold come from the large model, and all of them
 * under policy always. The scores are in a->scores. */
int agree_write(struct agree_answer *out, struct agree *a, size_t i, enum policy policy,
                float threshold, struct err *err);

#endif
