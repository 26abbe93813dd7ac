/* 12_ahead.c - exercise 12: decoding ahead of the cloud, in thirty lines.
 *
 * Source    router/README.md, "Ahead of the cloud"; guessing and rolling back as in Leviathan et
 *           al., Fast Inference from Transformers via Speculative Decoding (arXiv 2211.17192).
 *
 * Formula   Every token from t->n to t->total is the cloud's. Ask for the token after each prefix
 *           (port->ask, one token a call, the prefix being what t->edge holds), go on after the
 *           edge's own guess (session_logits, sampler_pick, session_eval), and have at most
 *           t->window requests in flight. Take the answers in order (port->take), and commit each
 *           (port->commit). If one is not the guess: drop all later calls (port->drop), roll
 *           t->edge back (session_rewind) and go on after the answer. At the end no call is left,
 *           and the text is that of asking and waiting for each token. `ask` counts what a call
 *           moves in a struct cloud_tally, which starts as { 0 }.
 *
 * Measure   The time on the cloud's own clock with 1, 2, 4 and 8 requests, if it agrees with the
 *           edge always, in 60 of 100 tokens, never; and how many calls are wasted.
 *
 * Solution  ahead.c and step.c in router/decode/; the stage is tests/support/sim.c. */
#include "tests/exercises/exercise.h"

static void write_ahead(const struct ahead_text *t)
{
    UNWRITTEN();
}

const struct exercise exercise = { .ahead = write_ahead };
