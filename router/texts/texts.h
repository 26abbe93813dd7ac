/* texts.h - many texts at once: one engine thread over the batched pass (model/batch.h) and the
 * stepper (step.h).
 *
 * Texts wait in one queue, first in, first out, for a slot, which is a session. All texts that have
 * one are computed in the same passes, a token (with its draft) or a piece of a prompt each. A text
 * that waits for the cloud costs the others nothing. Each text has the ids, scores and logprobs
 * that it has alone, whatever else is in progress.
 *
 * A prompt that begins like a text of any slot, a busy one too, gets a copy of that part. Of
 * several texts with the same beginning, the first one reads it, and the others wait for that and
 * copy it. While others write, a prompt is read in pieces, so that their tokens do not wait.
 *
 * Any thread may call these functions; callbacks may call those that do not wait, which are
 * text_look, text_events, text_cancel and the counts. */
#ifndef ROUTER_TEXTS_H
#define ROUTER_TEXTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/kv.h"
#include "kernels/sys/base.h"
#include "model/sample.h"
#include "router/decode/decode.h"

struct engine;
struct router;
struct routing;
struct turn;
struct text; /* one text; belongs to the caller until text_drop */
struct texts;

enum { TEXTS_SLOTS = 64 }; /* the most slots */
enum { TEXTS_TOP = 20 };   /* the most alternatives of a token */

struct texts_options {
    struct engine *engine;   /* borrowed */
    struct routing *routing; /* or NULL: no cloud, and no router. Borrowed */
    size_t slots;            /* 1 to TEXTS_SLOTS; a slot takes the memory that its texts need */
    size_t keep;    /* while fewer than this have been used, none that has a text is used again
                       (what it holds may be the beginning of a later text); 0: 8 */
    size_t queue;   /* most texts that wait for a slot */
    size_t context; /* positions of a text, at most */
    enum kvcache kv;
    unsigned piece_ms; /* most time of a pass with a piece of a prompt while others write; 0: 40 */
    /* Shared with other engines of this process, which compute one at a time; NULL: the routing's,
     * if its cloud is in this process, else none. Borrowed. */
    struct turn *turn;
    unsigned again_ms; /* ask a cloud that refused (401, 403, 404) again after this; 0: 600,000 */
    const _Atomic int *stop; /* once it is nonzero, text_wait calls texts_stop; or NULL */
};

/* Set *out to the slots, 1 to TEXTS_SLOTS, whose keys and values for texts of `context` positions
 * an eighth of the machine's memory holds. Errors of session_size. */
int texts_fit(size_t *out, const struct engine *e, size_t context, enum kvcache kv,
              struct err *err);
/* Start the engine thread, which from now on is the only one that may use engine and routing. The
 * cloud's port must be able to notify. ERR_ARG, ERR_NOMEM. On error *out is NULL. */
int texts_open(struct texts **out, const struct texts_options *o, struct err *err);
/* End every text, present or future, with ERR_STOP. */
void texts_stop(struct texts *e);
/* Forget what the slots hold, so that no later text finds its beginning there. No text is in
 * flight. */
void texts_forget(struct texts *e);
/* Stop, and free everything; all texts must have been dropped. NULL is fine. */
void texts_close(struct texts *e);

/* Who writes: small model and cloud as the policy says, or one of them alone. */
enum text_model { TEXT_ROUTED, TEXT_EDGE, TEXT_CLOUD };

struct text_routing { /* as the fields of struct routing and of decode_options */
    enum policy policy;
    const struct router *router; /* borrowed; NULL: that of the options' routing */
    float threshold, tie;
    float max_routed;
    bool ahead;
    uint64_t max_cloud_tokens; /* of this text; UINT64_MAX: no limit but those of the gate */
};

/* What a text is made with. Everything is copied, except the two functions' arguments. */
struct text_wish {
    const uint32_t *prompt; /* [n], n >= 1 */
    size_t n;
    size_t answer; /* the prompt's first id that belongs to the answer already; 0: n */
    size_t max;    /* most tokens to write; fewer if the context ends. 0 only with `score` */
    struct sample_params sample; /* its seed is also that of policy random */
    const char *const *stops;    /* NULL-terminated stop strings, or NULL */
    const uint32_t *stop_ids;    /* [nstop_ids]: ids that end the text, as the last token of it */
    size_t nstop_ids;
    bool ignore_eos; /* end-of-text is a token like any other */
    /* Nothing that becomes of other texts changes this one: it has a breaker of its own, and no
     * limits but its own. */
    bool apart;
    enum text_model model;
    bool required; /* as cloud_required of decode_options; with that of the options' routing */
    bool alone;    /* as cloud_alone */
    const struct text_routing *routing; /* of TEXT_ROUTED; NULL: as the options' routing says */
    const char *patterns; /* lines of patterns (private.h) that this text adds, or NULL */
    bool edges;           /* as in decode_options */
    bool events;          /* keep what happens meanwhile for text_events */
    /* Logprobs of each token: the log-softmax of the small model's logits, over all rows of its
     * head and before temperature and penalties, for the cloud's tokens too. */
    bool logprobs;
    size_t top; /* with logprobs or score: as many of the likeliest ids, at most TEXTS_TOP */
    /* Give the prompt's tokens from this number on logprobs as well; 1: all that can have one, 0:
     * none. The small model writes alone, and only what stands before may be copied. */
    size_t score;
    long slot; /* take this slot if there is one; -1: any */
    /* Called for each head that is read: row of b's latest pass follows ids[n]. The last call with
     * this n has the ids of the text. By the engine thread. May be NULL. */
    void (*row)(void *arg, const uint32_t *ids, size_t n, const struct batch *b, size_t row);
    void *row_arg;
    /* Called when text_look has more to tell, by a thread of the texts; must not block. Once
     * text_drop has returned, it is not called again. May be NULL. */
    void (*news)(void *arg);
    void *news_arg;
};

/* Queue a text and return at once. ERR_ARG: the wish is impossible (empty, does not fit into the
 * context, an id or a parameter out of range); ERR_NET: the queue is full; ERR_STOP; ERR_NOMEM;
 * errors of private_open. On error *out is NULL. */
int texts_ask(struct texts *e, struct text **out, const struct text_wish *wish, struct err *err);

struct text_top {
    uint32_t id;
    double logprob;
};

struct text_token {
    /* As the loop decided it; its fault is owned by the text, and the first one's ms begins when
     * the text got its slot. */
    struct decode_token t;
    bool memo;           /* the cloud's, without a call of its own */
    double call_ms;      /* what its own call took; 0: it had none */
    struct traffic call; /* decode_event.moved of that call */
    uint64_t at;         /* os_now_ns() when it was decided */
    double logprob;      /* NaN: was not asked for */
};

/* What a text is so far. Arrays only grow, their elements stay as they are, and they live as long
 * as the text. A text whose last token is here is finished. The alternatives of a token are
 * `top` in a row, the likeliest first, the lower id of equals. */
struct text_view {
    const uint32_t *ids;             /* [prompt_n + n] */
    const struct text_token *tokens; /* [n] */
    const struct text_top *tops;     /* with `logprobs`: [n][top] */
    size_t n;
    const double *scores; /* with `score`: [nscores] of the prompt, void before it; [0] is NaN */
    const struct text_top *score_tops; /* [nscores][top], likewise */
    size_t nscores, top;
    bool waiting;    /* for a slot */
    bool finished;   /* nothing more will come */
    bool ended;      /* by end-of-text, a stop id or a stop string */
    int rc;          /* of a finished text: OK, ERR_STOP, errors of decode_run */
    const char *why; /* the error in one line, or "" */
    size_t prompt_n; /* ids of the prompt */
    size_t read;     /* evaluated or copied so far, of these */
    size_t cached;   /* those copied or found in the slot */
    size_t slot, nevents;
    double queue_ms;           /* waited for the slot */
    double prompt_ms, text_ms; /* from then to the first token; from there on */
    struct decode_stats stats; /* the ledger; complete when finished */
};

/* Return a consistent copy of what there is. Never waits for a pass. */
struct text_view text_look(struct text *t);
/* Wait until there are more than `have` tokens or the text is finished, and return what there is
 * then. */
struct text_view text_wait(struct text *t, size_t have);
/* Copy the events from number `from` on, at most `room`, and return how many. */
size_t text_events(struct text *t, size_t from, struct decode_event *out, size_t room);
/* End the text with ERR_STOP. Its slot is free when the pass in progress is over; a pass of this
 * text alone is cut short. May be called from any callback. */
void text_cancel(struct text *t);
/* Cancel and free it. NULL is fine. */
void text_drop(struct text *t);

/* Return the routing that a text has without `routing` of its own. */
struct text_routing texts_routing(const struct texts *e);

/* Counts since texts_open, for /metrics and for tests. */
struct texts_counts {
    size_t slots, busy, waiting; /* slots that could be opened; with a text; texts in the queue */
    uint64_t asked, finished, stopped, failed; /* texts; failed: ended by any other error */
    uint64_t passes, rows;                     /* of the model */
    uint64_t busy_ns;                          /* the engine thread had something to do */
    uint64_t prompt_tokens, cached_tokens;     /* read; copied or found */
    uint64_t tokens, cloud_tokens, fallback_tokens;
    uint64_t calls;
    bool refused;   /* the cloud is switched off, as it refused */
    uint64_t again; /* then: when it is asked again, as os_now_ns() says it */
    bool paused;    /* it is left alone for some tokens after several faults (gate.h) */
    bool lost;      /* one of these, or never reached, and no call has been answered since */
    struct err why; /* its latest fault, or "" */
};
struct texts_counts texts_count(struct texts *e);
/* True while slot i has a text. */
bool texts_busy(struct texts *e, size_t i);

#endif
