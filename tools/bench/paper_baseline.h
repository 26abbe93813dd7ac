/* paper_baseline.h - an answer written the way the paper's published demo writes it, each of its
 * habits by itself: to see what each one costs.
 *
 * Source: She et al., arXiv 2504.07878, and its demo: the whole text is evaluated for each token,
 * each call opens a connection, sends the text, asks for 16 tokens, cuts the reply into tokens and
 * uses the first; nothing happens meanwhile. */
#ifndef TOOLS_BENCH_PAPER_BASELINE_H
#define TOOLS_BENCH_PAPER_BASELINE_H

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
    float share;            /* policy random */
    uint64_t seed;
    const char *url; /* of a server that speaks SGLang's /generate */
    const _Atomic int *stop;
    bool no_cache; /* each token evaluates the whole text */
    bool connect; /* each call on a new connection; else one, which is open before the clock runs */
    bool text;    /* text up, text down, cut into tokens again each time */
    size_t want;  /* tokens asked for in a call; the first is used */
};

struct paper_baseline_cost {
    double ms, edge_ms, cloud_ms; /* of the answer, prompt included */
    size_t calls;
    uint64_t up, down; /* bytes, headers included */
    uint64_t text;     /* hash of the answer's ids (scripted_cloud_hash) */
};

/* ERR_NET where a call fails: there is no fallback. ERR_STOP, ERR_NOMEM, ERR_ARG. */
int paper_baseline_run(struct paper_baseline_cost *out, const struct paper_baseline *p,
                       struct err *err);

#endif
