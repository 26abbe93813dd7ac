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
    enum kvcache kv;               /* of both */
    uint32_t *ids, *text;
    float *scores;            /* [length] of the latest text */
    struct agree_part *texts; /* [ntexts] the lines of the file */
    struct agree_part *prompts;
    uint32_t *truth; /* [nprompts][length] what the large model writes alone */
    float *scratch;  /* of routers */
    size_t nids, ntexts, nprompts, length, context, room;
    size_t size; /* ids that may be chosen */
    uint64_t seed;
};

struct agree_how {               /* what scores the tokens */
    enum policy policy;          /* not oracle */
    const struct router *router; /* of mlp and context; else NULL */
};

struct agree_options {
    const char *cloud, *data; /* paths: the large model; lines of token ids separated by blanks */
    size_t prompts, length;   /* beginnings of the texts, and the tokens of an answer; at least 1 */
    uint64_t seed;            /* of policy random */
};

/* Open the small model, that of -m, and the large one, and read the texts. The prompts are
 * beginnings of them, evenly spaced from the first id on. ERR_ARG: the large model has fewer ids;
 * ERR_FORMAT: names file, line, expected and found; errors of setup_engine, ERR_NOMEM. The caller
 * closes *a, also after an error. */
int agree_open(struct agree *a, const struct agree_options *o, struct err *err);
void agree_close(struct agree *a);
/* Make room to score with a router. ERR_NOMEM. */
int agree_prepare(struct agree *a, const struct router *r, struct err *err);

enum { AGREE_SCORES = 32 };

struct agree_teacher {
    size_t tokens, same;
    double auc[AGREE_SCORES]; /* of each score, for "the same"; NaN if all or none are */
};
/* Run both models over all texts, teacher-forced, and count the tokens that are the same; hows[n],
 * n <= AGREE_SCORES, all have scores. Errors of session_eval, ERR_NOMEM. */
int agree_teacher(struct agree_teacher *out, struct agree *a, const struct agree_how *hows,
                  size_t n, struct err *err);

struct agree_answer {
    size_t tokens, cloud, equal; /* equal: to the large model's own text, place by place */
    double nats;                 /* -ln p of all tokens under the large model */
};
/* Write answer i. Tokens that score below the threshold come from the large model, and all of them
 * under policy always. The scores are in a->scores. Errors of session_eval. */
int agree_write(struct agree_answer *out, struct agree *a, size_t i, const struct agree_how *how,
                float threshold, struct err *err);

#endif
