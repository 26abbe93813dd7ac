/* paper_baseline.h - writes an answer the way the paper's published demo does, with any of its
 * habits alone, to measure what each one costs.
 *
 * Source: She et al., arXiv 2504.07878, and its demo. It evaluates the whole text for each token.
 * Each call opens a connection, sends the text, requests 16 tokens, splits the reply into tokens
 * and uses the first. Nothing happens during a call. */
#ifndef TOOLS_LAB_BENCH_PAPER_BASELINE_H
#define TOOLS_LAB_BENCH_PAPER_BASELINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct sampler;
struct session;
struct tokenizer;

struct paper_baseline {
    struct session *session;
    const struct tokenizer *tok;
    struct sampler *sampler;
    const uint32_t *prompt; /* [n] */
    size_t n, tokens;       /* tokens: of the answer */
    float share;            /* tokens routed by policy random */
    uint64_t seed;
    const char *url; /* of a server with SGLang's /generate */
    const _Atomic int *stop;
    bool no_cache; /* evaluate the whole text for each token */
    bool connect;  /* open a connection for each call; else one, opened before the clock runs */
    bool text;     /* send and receive text and split it into tokens again each time */
    size_t want;   /* tokens requested by a call; the first is used */
};

struct paper_baseline_cost {
    double ms, edge_ms, cloud_ms; /* for the answer, prompt included */
    size_t calls;
    uint64_t up, down; /* bytes, headers included */
    uint64_t text;     /* hash of the answer's ids (scripted_cloud_hash) */
};

/* Write one answer and set *out to what it cost. ERR_NET if a call fails, because there is no
 * fallback; ERR_STOP, ERR_NOMEM, ERR_ARG. */
int paper_baseline_run(struct paper_baseline_cost *out, const struct paper_baseline *p,
                       struct err *err);

#endif
