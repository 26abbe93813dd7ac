/* oracle_cloud.h - a cloud for measurements that holds no model: a server of this process whose
 * tokens a function says, and a client of it. It knows SGLang's /generate.
 *
 * Its vocabulary is synthetic, because models that are only a shape have none. It holds 256 bytes,
 * then "aaaa", "aaab", and so on (English has 4.5 bytes in a token). No id ends a text. */
#ifndef TOOLS_LAB_BENCH_ORACLE_CLOUD_H
#define TOOLS_LAB_BENCH_ORACLE_CLOUD_H

#include <stddef.h>
#include <stdint.h>

struct cloud;
struct err;
struct oracle_server;
struct tokenizer;

struct oracle_cloud_answers {
    /* Return the token after ids[n]; any thread may call it, and it may take its time. */
    uint32_t (*next)(void *arg, const uint32_t *ids, size_t n);
    void *arg;
    unsigned latency_ms; /* of a round trip */
    unsigned trips;      /* that a new connection costs before its first completion */
};

struct oracle_cloud {
    struct tokenizer *vocab;
    struct oracle_server *server;
    struct cloud *cloud; /* connected; calls are not given up for ten minutes */
};

/* Open all, for ids 0 to vocab - 1 (or fewer: tokenizer_size says how many). ERR_ARG for fewer than
 * 256 ids; ERR_NOMEM; errors of server_open and cloud_open. The caller calls oracle_cloud_close
 * after an error, too. */
int oracle_cloud_open(struct oracle_cloud *out, size_t vocab,
                      const struct oracle_cloud_answers *answers, struct err *err);
const char *oracle_cloud_url(const struct oracle_cloud *c); /* "http://127.0.0.1:PORT" */
void oracle_cloud_close(struct oracle_cloud *c);            /* an all-zero *c is fine */

#endif
