/* oracle_cloud.h - a cloud for measurements that holds no model: a stand-in server of this process
 * whose tokens a function says, and a client of it.
 *
 * Its vocabulary is synthetic, because models that are only a shape have none. It holds 256 bytes,
 * then "aaaa", "aaab", and so on (English has 4.5 bytes in a token). No id ends a text. */
#ifndef TOOLS_LAB_BENCH_ORACLE_CLOUD_H
#define TOOLS_LAB_BENCH_ORACLE_CLOUD_H

#include <stddef.h>
#include <stdint.h>

struct cloud;
struct err;
struct stand_in;
struct stand_in_net;
struct tokenizer;

struct oracle_cloud {
    struct tokenizer *vocab;
    struct stand_in *server;
    struct cloud *cloud; /* connected; calls are not given up for ten minutes */
};

/* Open all three, for ids 0 to vocab - 1 (or fewer: tokenizer_size says how many) and texts of up
 * to `context` tokens. next returns the token after ids[n]; any thread may call it, and it may take
 * its time. ERR_ARG for fewer than 256 ids; ERR_NOMEM; errors of stand_in_open and cloud_open. The
 * caller calls oracle_cloud_close after an error, too. */
int oracle_cloud_open(struct oracle_cloud *out, size_t vocab, size_t context,
                      const struct stand_in_net *net,
                      uint32_t (*next)(void *arg, const uint32_t *ids, size_t n), void *arg,
                      struct err *err);
void oracle_cloud_close(struct oracle_cloud *c); /* an all-zero *c is fine */

#endif
