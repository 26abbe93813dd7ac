/* scripted_cloud.h - a cloud for benchmarks that costs no processor time: for a given share of the
 * prefixes it answers with the edge's own guess, for the others with another token. A call for more
 * tokens continues with the text.
 *
 * The prefix decides which: of each ten routed tokens of a text, as many agree as the share says,
 * and a hash of the first one's prefix shuffles them. So even a short text has the requested share.
 *
 * A rehearsal writes the text once, in step, and notes its tokens. Then any number of measurements
 * ask a server (tools/lab/stand_in/stand_in.h) whose oracle looks them up. A prefix that is not in
 * the text, because it was requested ahead after a wrong guess, gets a token derived from its hash.
 */
#ifndef TOOLS_LAB_BENCH_SCRIPTED_CLOUD_H
#define TOOLS_LAB_BENCH_SCRIPTED_CLOUD_H

#include <stddef.h>
#include <stdint.h>

struct err;
struct sampler;
struct session;

/* A token of the text, noted in the rehearsal. */
struct bench_answer {
    uint64_t prefix; /* hash of the prefix */
    uint32_t id;
};

struct scripted_cloud {
    double agree;     /* share of routed tokens that agree */
    unsigned step_ms; /* time per token of the cloud */
    size_t vocab;
    size_t prompt, n;             /* tokens of prompt and answer */
    struct bench_answer *answers; /* [n] */
    unsigned char *marks;         /* [n], as in ahead_model.h */
    size_t routed, agreed;
    double ms;    /* per token of the edge alone, with its output head */
    uint64_t ten; /* hash of the prefix of the first of the current ten routed tokens */
};

/* Write the answer of n >= 2 tokens to prompt[prompt_tokens] in step, with this share of the tokens
 * routed at random, and note it in place of any earlier one. s and sampler remain the caller's.
 * Errors of session_eval. */
int scripted_cloud_rehearse(struct scripted_cloud *t, struct session *s, struct sampler *sampler,
                            const uint32_t *prompt, size_t prompt_tokens, size_t n, float share,
                            uint64_t seed, const _Atomic int *stop, struct err *err);
void scripted_cloud_close(struct scripted_cloud *t); /* an all-zero *t is fine */

/* Return the seed, from `from` on, with which policy random routes closest to that share of the n
 * tokens that follow `prompt` tokens. */
uint64_t scripted_cloud_seed(uint64_t from, float share, size_t prompt, size_t n);

/* Return the token after ids[n]; arg is a const struct scripted_cloud *. Any thread may call it. */
uint32_t scripted_cloud_next(void *arg, const uint32_t *ids, size_t n);

/* Return the hash of a text from its hash so far, initially 0, and its next id. */
uint64_t scripted_cloud_hash(uint64_t hash, uint32_t id);

#endif
