/* scripted_cloud.h - a cloud for benchmarks that costs no processor time: after a prefix it says
 * what the edge would say, a given share of the time, else another token.
 *
 * Which of the two is a function of the prefix: of each ten routed tokens of a text as many agree
 * as the share says, and a hash of the prefix of the first of them shuffles which. So a short text
 * has the share that was asked for.
 *
 * A rehearsal writes the text once in step and keeps what was answered; then any number of
 * measurements ask a server (tools/stand_in/stand_in.h) whose oracle looks it up. A prefix that is
 * not in the text (asked for ahead, behind a wrong guess) gets a token by its hash. */
#ifndef TOOLS_BENCH_SCRIPTED_CLOUD_H
#define TOOLS_BENCH_SCRIPTED_CLOUD_H

#include <stddef.h>
#include <stdint.h>

struct decode_options;
struct err;
struct sampler;
struct session;
struct tokenizer;

struct bench_answer {
    uint64_t prefix; /* its hash */
    uint32_t id;
};

struct scripted_cloud {
    double agree;
    unsigned step_ms; /* a token of the cloud takes so long */
    size_t vocab;
    size_t prompt, n;             /* tokens of prompt and answer */
    struct bench_answer *answers; /* [n] */
    unsigned char *marks;         /* [n] of ahead_model.h */
    size_t routed, agreed;
    uint64_t text; /* hash of the answer's ids */
    double ms;     /* of the edge alone a token, the head read each time */
    /* During the rehearsal. */
    uint64_t ten; /* hash of the prefix of the first of the present ten */
    struct session *session;
    struct sampler *sampler;
};

/* Write the answer to prompt[n] as o asks (its tokens, policy, threshold, seed, step_ns), in step,
 * and note it; what was noted before is forgotten. session and sampler are the caller's. The
 * errors of decode_run. */
int scripted_cloud_rehearse(struct scripted_cloud *t, struct session *s,
                            const struct tokenizer *tok, struct sampler *sampler,
                            const uint32_t *prompt, size_t n, const struct decode_options *o,
                            struct err *err);
void scripted_cloud_close(struct scripted_cloud *t); /* all zero is fine */

/* The seed, from `from` on, whose random policy routes nearest to that share of the n tokens after
 * prompt tokens. */
uint64_t scripted_cloud_seed(uint64_t from, float share, size_t prompt, size_t n);

/* The token after ids[n]; arg: a const struct scripted_cloud *. Any thread. */
uint32_t scripted_cloud_next(void *arg, const uint32_t *ids, size_t n);

/* Hash of a text from its hash so far and its next id; begins at 0. */
uint64_t scripted_cloud_hash(uint64_t hash, uint32_t id);

#endif
