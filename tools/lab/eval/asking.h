/* asking.h - asks the items of a task end to end: the small model writes, the policy decides, the
 * cloud is asked, and the answer is judged. Answers are texts of router/texts, several at once;
 * they are the same one after the other, and are taken in the order in which they were sent. Used
 * by one thread. */
#ifndef TOOLS_LAB_EVAL_ASKING_H
#define TOOLS_LAB_EVAL_ASKING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/sys/buf.h"
#include "router/decode/decode.h"
#include "router/engine.h"
#include "router/routing.h"
#include "tools/lab/eval/eval_list.h"
#include "tools/lab/tasks/task.h"

struct err;
struct asking_sent;
struct text;
struct text_token;
struct texts;

/* Models, routing and texts. The caller opens and closes the routers that it names in
 * asking_how; routing.router, the one of --router or beside the model, is here. */
struct asking { /* must not move */
    struct engine engine;
    struct routing routing;
    size_t parallel, window; /* answers written at once; in flight; set by asking_prepare */
    size_t context;          /* of each text; 0 before asking_prepare */
    struct texts *texts;
    struct asking_sent *sent; /* [window], a ring: `flying` from `oldest` on */
    size_t oldest, flying;
    uint64_t taken_ns, busy_ns; /* when the latest answer was taken; busy_ns of texts then */
    enum kvcache kv;            /* type of the small model's keys and values */
    size_t max_tokens;          /* limit of one answer; 0: the task's default, before it is known */
    uint64_t seed;              /* for policy random: item i draws from rand_u64(seed, i) */
    struct text *taken;         /* the latest answer; or NULL */
    struct buf text, scores;    /* its text, and a float of each token */
};

/* Open engine and routing from the shared options (setup.h), and the routers of l. The cloud is
 * opened if a policy of l may need it; NULL: routing.router decides, that of the options.
 * max_tokens 0: 96 for milli, 512 for a file. Each answer has a breaker of its own and no limits
 * but max_tokens, so it does not depend on those before it. On error *a is all zero. Returns the
 * errors of setup_engine, eval_list_open and routed_open. */
int asking_open(struct asking *a, struct eval_list *l, size_t max_tokens, uint64_t seed,
                struct err *err);
/* Close all parts, after the notes for the user; all zero is fine. */
void asking_close(struct asking *a);

/* Return a hash of what the item is about. */
uint64_t asking_subject(const struct task_item *item);
/* Settle the form of the task's prompts for e, and print once what is to be said of it. */
void asking_form(struct task *t, const struct engine *e);
/* Make room in the texts for the longest of items[n] and its answer, or for the model's context
 * if that is smaller. Call it for every list of items that will be asked, while none is in flight;
 * the room only grows. An item whose prompt is longer than the context will be left out. ERR_ARG,
 * ERR_NOMEM, or an error of the task. */
int asking_prepare(struct asking *a, struct task *t, const size_t *items, size_t n,
                   struct err *err);

/* Begin another series of answers; none is in flight. What it costs must not depend on what was
 * asked before: what is kept in memory is forgotten. If it is timed, the models also forget what
 * they have read. */
void asking_begin(struct asking *a, bool timed);

struct asking_how {                 /* what decides about one token */
    const struct eval_entry *entry; /* borrowed; without a router of its own, routing.router */
    float threshold, tie;           /* as in decode_options; NaN for policies that have none */
};

/* What the cloud's model has computed for an answer, in ids, if nothing but its prefix cache
 * remembers anything: counted from the decided tokens alone, so memo, store and calls made ahead do
 * not matter. The cache holds what was sent before in the text. Before an answer it holds the part
 * of the prompt that the previous item's prompt shares. */
struct asked_work {
    size_t calls, prefilled, cached, decoded;
};

struct asked {         /* one answer */
    bool left_out;     /* longer than the context; but for id and subject, nothing else is set */
    bool right, citer; /* by the task's rule, and by CITER's */
    bool truncated;    /* at the limit of tokens */
    /* The prompt has those of slot, too, and edge_ms is also that of the router. If others are
     * written at the same time, total_ms is since the answer before it was taken, so that a sum is
     * the time of all. */
    struct decode_stats stats;
    struct asked_work work;
    uint64_t hash;            /* over ids and sources of the tokens in order; 0: not known */
    const char *id;           /* of the item, as in struct task_item; as long as that */
    uint64_t subject;         /* of the item; not of an answer from a journal */
    char answer[TASK_ANSWER]; /* what was extracted; "": nothing */
    /* The tokens in order and the text, borrowed until the next asking_take. */
    const struct text_token *trace; /* [tokens] */
    const float *scores;            /* [tokens]; NaN: the policy has none */
    const char *text;
};

/* True when another answer can be sent. */
bool asking_has_room(const struct asking *a);
/* Begin to ask item i of t in this way; t is borrowed until the answer has been taken. Returns the
 * errors of task and texts_ask. */
int asking_send(struct asking *a, struct task *t, size_t i, const struct asking_how *how,
                struct err *err);
/* Wait for the answer that was sent first of those in flight, and take it. Returns the errors of
 * task and decode_run; ERR_STOP after an interrupt. */
int asking_take(struct asked *out, struct asking *a, struct err *err);

#endif
