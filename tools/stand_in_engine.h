/* stand_in_engine.h - the model behind the stand-in: greedy, and it remembers the last prefixes.
 *
 * Several sessions are kept; the one that shares most with a prompt goes on from there, so a
 * growing prefix costs its new tokens only. Any thread may ask; one at a time is served. */
#ifndef TOOLS_STAND_IN_ENGINE_H
#define TOOLS_STAND_IN_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct stand_in_engine;
struct tokenizer;

struct stand_in_options;

/* o: its isa, kv, threads and context count here. ERR_FORMAT where the model has no tokenizer. */
int stand_in_engine_open(struct stand_in_engine **out, const char *path,
                         const struct stand_in_options *o, struct err *err);
void stand_in_engine_close(struct stand_in_engine *e);

size_t stand_in_engine_vocab(const struct stand_in_engine *e);
size_t stand_in_engine_context(const struct stand_in_engine *e);
size_t stand_in_engine_slots(const struct stand_in_engine *e);
const struct tokenizer *stand_in_engine_tokenizer(const struct stand_in_engine *e);
/* Let generate end with ERR_STOP from now on. */
void stand_in_engine_stop(struct stand_in_engine *e);

struct stand_in_text {
    uint32_t *ids; /* [n], malloc'ed: the caller frees it; end-of-text included */
    size_t n;
    bool ended;    /* by end-of-text */
    size_t cached; /* tokens of the prompt that were not computed again */
    double prompt_ms, text_ms;
};

/* At most max >= 1 tokens after prompt[n]; n + max - 1 <= context, ids below vocab. go_on: past
 * end-of-text. ERR_STOP, ERR_NOMEM, ERR_ARG; out->ids is NULL then. */
int stand_in_engine_generate(struct stand_in_engine *e, struct stand_in_text *out,
                             const uint32_t *prompt, size_t n, size_t max, bool go_on,
                             struct err *err);

#endif
