/* figures.h - what a text counts, as lists of names. The loop's statistics are declared and added
 * up from them, the library's are filled, and the JSON of `run` and `serve` is written, so
 * that a number has one name in all of these. Names in _ms are milliseconds, all others whole
 * numbers. */
#ifndef ROUTER_DECODE_FIGURES_H
#define ROUTER_DECODE_FIGURES_H

/* Tokens of the answer; of these, written by the cloud, and by the local model in its place; of
 * the cloud's, those that memory and file knew without a call. calls = committed (the text
 * continues with their answer) + failed (the local model's token stands), and one more if the text
 * was interrupted in it. Tokens of the prompt; evaluations after it; ids of drafts that were
 * evaluated; of these, those that were used, if only until a roll-back. */
#define FIGURES_COUNTS(X) \
    X(tokens)             \
    X(cloud)              \
    X(fallback)           \
    X(memo)               \
    X(store)              \
    X(calls) X(committed) X(failed) X(prompt_tokens) X(passes) X(drafted) X(accepted)

/* Until the prompt was read (0: a token came first), until the first token and the end; evaluating
 * the model, scoring, waiting for the cloud. */
#define FIGURES_TIMES(X) X(prompt_ms) X(ttft_ms) X(total_ms) X(edge_ms) X(router_ms) X(cloud_ms)

#endif
