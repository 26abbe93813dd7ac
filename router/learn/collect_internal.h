/* collect_internal.h - the parts of collect.c: calls in flight, and answers written to their end.
 */
#ifndef ROUTER_LEARN_COLLECT_INTERNAL_H
#define ROUTER_LEARN_COLLECT_INTERNAL_H

#include "router/learn/collect.h"

enum { SAMPLE_UNDECIDED = SAMPLE_WAYS, SAMPLE_UNDRAWN };

/* Questions for one token each, in the order of the texts. */
struct collect_window {
    struct {
        size_t row;
        void *call;
    } at[COLLECT_CALLS];
    size_t first, n;
};

/* True when two ids are equal or both end the text. */
bool collect_same(const struct collect *c, uint32_t a, uint32_t b);

/* Ask for the cloud's token of a row, which follows ids[n]. The answer enters the row now or
 * later. */
int collect_window_add(struct collect_window *w, struct collect *c, struct sample_shard *s,
                       struct collect_text *texts, size_t row, const uint32_t *ids, size_t n,
                       struct err *err);
/* Wait for all answers. */
int collect_window_finish(struct collect_window *w, struct collect *c, struct sample_shard *s,
                          struct collect_text *texts, struct err *err);
/* Drop all calls after an error. */
void collect_window_drop(struct collect_window *w, const struct collect *c);

/* A text that the cloud continues to its end. */
struct collect_chain {
    uint32_t *ids; /* [most] */
    size_t n, most;
    size_t row; /* for the caller */
    void *call;
    bool refused; /* the cloud refuses this text */
};

/* Make a chain of ids[n] and, if last is not NULL, one more id. It ends with end-of-text or after
 * more further tokens, or at the end of the context. */
int collect_chain_open(struct collect_chain *chain, const struct collect *c, const uint32_t *ids,
                       size_t n, const uint32_t *last, size_t more, struct err *err);
void collect_chain_close(struct collect_chain *chain);
/* Let the cloud continue all chains, up to COLLECT_CALLS at once. */
int collect_chains_run(struct collect_chain *chains, size_t n, struct collect *c, struct err *err);

/* Decide the undecided rows of one text, whose answers of the cloud are known, for labels citer:
 * mark those that are not drawn, and let the edge write to the end from the others. The session
 * holds the text. drawn counts the rollouts so far. */
int collect_roll_edge(struct sample_shard *s, struct collect *c, struct collect_text *text,
                      size_t first_row, size_t number, uint64_t *drawn, struct err *err);
/* The same for all texts and labels divergent. */
int collect_roll_cloud(struct sample_shard *s, struct collect *c, struct collect_text *texts,
                       uint64_t *drawn, struct err *err);

#endif
