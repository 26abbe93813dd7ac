/* texts_internal.h - struct texts and struct text, for texts*.c alone.
 *
 * Locking: the lock guards what the comments say. Everything else of a text belongs to the engine
 * thread once it has a slot, which publishes results by raising a count with the lock held. It
 * does not hold the lock while it computes, and the cloud's lock is above this one: its
 * notification takes this one. */
#ifndef ROUTER_TEXTS_INTERNAL_H
#define ROUTER_TEXTS_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "kernels/sys/base.h"
#include "model/batch.h"
#include "model/session.h"
#include "router/decode/step.h"
#include "router/texts/texts.h"

struct private_filter;

enum {
    TEXTS_HEADS = 32,      /* rows of which the head is read at once: each has logits in memory */
    TEXTS_DRAFTED = 16,    /* rows of a pass that drafts may fill up: beyond, each costs time */
    TEXTS_WORTH = 32,      /* ids that another text is reading and that are worth waiting for */
    TEXTS_EVENTS = 1 << 16 /* most events of a text that are kept */
};

enum text_state {
    TEXT_QUEUED, /* in the queue for a slot */
    TEXT_HELD,   /* has a slot, and waits while another text reads the same beginning */
    TEXT_OPEN,   /* has a slot and a stepper */
    TEXT_FINISHED
};

/* The text of a slot stays in its session when it has ended. */
struct texts_slot {
    struct session *session; /* NULL until first used */
    /* With the lock. */
    uint64_t used;     /* time of last use, in uses of any slot; 0: never */
    struct text *text; /* NULL: free */
};

/* The line of a fault, as long as the text lives. */
struct text_fault {
    struct text_fault *next;
    char line[];
};

struct text {
    struct texts *texts;
    /* The wish. */
    struct text_wish wish; /* what it points to may be gone */
    struct text_routing routing;
    size_t n, max;
    uint32_t *ids, *stop_ids; /* ids: [n + max], prompt and text */
    struct sample_bias *bias;
    char **stops;
    struct private_filter *patterns; /* of the wish, or NULL */
    struct gate gate;                /* of a text that is apart */
    /* With the lock. */
    enum text_state state;
    struct text *next; /* in the queue */
    bool dropped;
    bool fresh;            /* there is news to tell */
    size_t shown;          /* tokens that text_look shows of a text that is not finished */
    struct text_view view; /* what text_look returns */
    struct err err;        /* view.why */
    struct decode_event *events;
    size_t events_cap;
    uint64_t asked_at, slot_at, first_at;
    uint64_t age; /* order of admission */
    pthread_cond_t news;
    /* Of the engine thread. */
    _Atomic int stop; /* of any thread */
    struct texts_slot *slot;
    struct decode_options options;
    struct step *step;
    const struct step_need *need;
    struct decode_stats stats;
    size_t reads;              /* ids that the stepper reads before it writes */
    size_t row, before, rows;  /* in the latest pass: its first row, ids before it, their number */
    struct text_token *tokens; /* [max] */
    struct text_top *tops;     /* [max][top] */
    double *lse;               /* [max], log of the sum of e^logit; NULL: no logprobs */
    /* [hidden_cap][hidden]: the hidden states of the tokens that are not decided yet, token pos at
     * pos % hidden_cap. The cloud may choose any id, whose logit is computed from it then. */
    float *hidden;
    size_t hidden_cap;
    double *scores;              /* [n] */
    struct text_top *score_tops; /* [n][top] */
    size_t called_at;            /* length of the prefix of the latest call that was answered */
    double call_ms;              /* what it took */
    struct traffic call;
    struct text_fault *faults; /* the latest one first */
};

struct texts {
    struct engine *engine;
    struct routing *routing;
    const struct cloud_port *port; /* or NULL */
    struct batch *batch;
    struct sampler *sampler; /* set for each text in turn */
    size_t size, vocab, context, limit, keep;
    struct turn *turn; /* or NULL */
    enum kvcache kv;
    uint64_t piece_ns, again_ns;
    const _Atomic int *stop;
    uint64_t refused_at; /* when the cloud was found to refuse; 0: it does not */
    double row_ns;       /* time of a row in recent passes with a piece of a prompt; 0: unknown */
    pthread_mutex_t lock;
    pthread_cond_t work; /* for the engine thread */
    pthread_cond_t told; /* a callback has returned */
    /* With the lock. */
    size_t nslots;
    struct texts_slot slot[TEXTS_SLOTS];
    struct text *queue, **queue_end;
    uint64_t clock, ages;
    bool woken, stopped, closing, forgets;
    const struct text *telling; /* whose news is being told */
    struct text *single;        /* the only text of the pass in progress, or NULL */
    struct texts_counts count;
    /* Set once. */
    bool runs;
    pthread_t thread;
    _Atomic int halt; /* ends the pass in progress */
};

/* texts.c */

/* Take the text out of the queue. With the lock. */
void texts_take_out(struct texts *e, struct text *t);
/* Mark the text finished, and free its slot. With the lock. */
void texts_finish(struct text *t, int rc, const char *why);
/* Tell the caller if there is news of the text. With the lock, which is released for a while: if
 * the text is finished, it may be gone afterwards. */
void texts_tell(struct text *t);

/* texts_text.c */

/* Make a text; errors of texts_ask. */
int texts_make(struct text **out, struct texts *e, const struct text_wish *wish, struct err *err);
void texts_free(struct text *t);
/* Return the router of the text, or NULL. */
const struct router *texts_router(const struct text *t);
/* Open the stepper over the session of its slot. Returns its errors. */
int texts_begin(struct text *t, struct err *err);
/* Show the caller the counts so far. With the lock. */
void texts_show_stats(struct text *t);

/* texts_slots.c */

/* Give slots to texts of the queue, in its order. With the lock. */
void texts_admit(struct texts *e);
/* True when t should wait while an older text reads what t begins with, too. */
bool texts_waits(const struct texts *e, const struct text *t);
/* Make the session of t's slot hold the longest beginning of its ids that any session has, a busy
 * one, too, and return its length, which is less than that of all. */
size_t texts_enter(const struct texts *e, const struct text *t);

/* texts_pass.c */

/* Evaluate what the n texts, the oldest first, want in one pass. False: none wants any. */
bool texts_pass(struct texts *e, struct text *const *list, size_t n);

/* texts_run.c */

/* Thread function of the engine thread. */
void *texts_run(void *texts);

/* texts_logprobs.c */

/* Note logits and hidden state of the prefix of `at` ids. ERR_NOMEM. */
int texts_note_head(struct text *t, size_t at, const float *logits, const float *hidden,
                    struct err *err);
/* Return the logprob of this id as token pos, which is decided now. */
double texts_logprob(const struct text *t, size_t pos, uint32_t id);
/* Give those ids of prompts logprobs that follow a row of the latest pass, for the texts that want
 * them. */
void texts_score(struct texts *e, struct text *const *list, size_t n);

#endif
