/* 12_ahead.c - exercise 12: decoding ahead of the cloud, in thirty lines.
 *
 * Source    router/README.md, "Ahead"; guessing and rolling back as in Leviathan et
 *           al., Fast Inference from Transformers via Speculative Decoding (arXiv 2211.17192).
 * Formula   Write the tokens from t->n to t->total. One is the edge's own (session_logits,
 *           sampler_pick, session_eval) unless t->routed says that it is the cloud's. Then ask for
 *           it (port->ask, one token, the prefix being what t->edge holds) and go on after the
 *           edge's own guess, up to the next token that is the cloud's. There, or at the end, take
 *           its token 0 (port->take) and end the call (port->end, CLOUD_USE). If it is not the
 *           guess, roll t->edge back (session_rewind) and go on after the answer. At the end no
 *           call is left, and the text is that of asking and waiting for each token. `ask` counts
 *           what a call moves in a struct cloud_tally, which starts as { 0 }.
 * Measure   The time of a text in step and ahead, with steps of 40 ms and round trips of 0 to 500
 *           ms, if the cloud agrees with the edge never, in 60 of 100 tokens, always.
 * Solution  router/decode/step.c; the stage is tests/support/sim.c. */
#include "tests/exercises/exercise.h"

static void write_ahead(const struct ahead_text *t)
{
    UNWRITTEN();
}

const struct exercise exercise = { .ahead = write_ahead };
