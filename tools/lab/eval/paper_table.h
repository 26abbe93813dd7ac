/* paper_table.h - the columns of the paper's Table 1: what 100 tokens cost at each threshold.
 *
 * Source: She et al., arXiv 2504.07878: Qwen2.5-0.5B on the processor of an M1, without a KV cache,
 * and Qwen2.5-32B behind SGLang, 170 ms away. The answers are to 100 questions of CommonsenseQA and
 * have at most 100 tokens. The printed rows (router/results/paper.csv) follow two rules, which
 * paper_row_make also uses: TBT is the small model's time divided by the tokens that it
 * contributed, and the overall time is the small model's plus the rest, except at threshold 0.60,
 * where the rest is not in the sum. */
#ifndef TOOLS_LAB_EVAL_PAPER_TABLE_H
#define TOOLS_LAB_EVAL_PAPER_TABLE_H

#include <stddef.h>

enum { PAPER_ROWS = 8 };
extern const double paper_thresholds[PAPER_ROWS];

struct paper_row {    /* seconds are for 100 tokens */
    double threshold; /* the paper's scale; its demo compares scores with half of it */
    double routed;    /* tokens of 100 that the cloud wrote */
    double edge_s;    /* time of the small model */
    double ttft_s;    /* to the first token of an answer */
    double tbt_s;     /* edge_s by token of the small model; NaN: it wrote none */
    double cloud_s;   /* communication and large model: what the small model's time leaves */
    double overall_s;
};

/* Return the row of answers of `tokens` tokens in all, cloud <= tokens of them from the cloud, that
 * took ms in all, edge_ms <= ms of it in the small model, and ttft_ms to the first token of a
 * typical one. Without any tokens ms counts as the time of one. */
struct paper_row paper_row_make(double threshold, size_t tokens, size_t cloud, double edge_ms,
                                double ttft_ms, double ms);

#endif
