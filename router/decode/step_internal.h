/* step_internal.h - state of the decoding loop, for step*.c alone. */
#ifndef ROUTER_DECODE_STEP_INTERNAL_H
#define ROUTER_DECODE_STEP_INTERNAL_H

#include "kernels/sys/base.h"
#include "net/cloud_port.h"
#include "router/decode/ahead.h"
#include "router/decode/draft.h"
#include "router/decode/step.h"
#include "router/decode/stops.h"
#include "router/decode/view.h"

struct kernels;

struct step;

struct step_asked { /* what is wanted */
    const uint32_t *ids;
    uint32_t some[VIEW_ROWS]; /* room for ids */
    size_t nids, rows[VIEW_ROWS], nrows;
};

struct step_drafts {
    struct draft draft;
    size_t drafted;   /* ids of the draft in the latest pass */
    uint64_t pass_ns; /* time of the latest pass; 0: not known */
    uint64_t until;   /* when to go on without the draft that is coming; 0: none is awaited */
    size_t late;      /* waits in a row that did not bring it in time */
};

struct step {
    struct step_text text;
    const struct decode_options *o;
    struct decode_stats *stats;
    struct gate *gate, own;
    struct gate_text its; /* this text's part of the gate */
    struct cloud_tally tally;
    size_t size; /* number of ids in use */
    struct view view;
    const uint32_t *ids; /* of the text, and of a draft after it: the session's, or lazy */
    uint32_t *lazy;      /* the ids of a text that the session need not have; NULL: it has them */
    enum step_want want; /* 0: nothing */
    uint64_t since;      /* when it was said */
    struct step_asked asked;
    struct step_drafts drafts;
    int rc; /* the error that has ended the text, with err */
    struct err err;
    bool reading; /* the prompt is being evaluated */
    struct ahead ahead;
    struct ahead_token next; /* the token after the written ones, while it is scored */
    bool halted;             /* the written text ends with end-of-text or a stop string */
    uint32_t last;           /* the newest token written */
    struct stops stops;      /* stop strings found in the decided text */
    struct stops tail;       /* and in all text, tentative tokens included */
    struct err fault;        /* why the cloud did not answer */
    uint64_t begun;          /* when the text was opened */
    uint64_t clock;          /* when the previous token was decided */
    bool ended;
    bool counted; /* its counts are complete */
    size_t end;   /* length of the prefix before the last token */
};

/* Functions that return int return OK or an error that ends the text. Where they need something
 * first, they set s->want and return OK; what they have changed until then does not matter when
 * they are called again. */

/* step.c */

/* Return the milliseconds since *since, which becomes now. */
double step_lap(uint64_t *since);
/* Begin to write, as the prompt has been read. */
void step_start(struct step *s);
/* True when the text ends with this token. */
bool step_is_last(const struct step *s, uint32_t id);
/* Add the token's bytes; true when the text now ends with a stop string. */
bool step_stopped(const struct step *s, struct stops *stops, uint32_t id);

/* Drop the call in flight, the oldest token's, and complete the counts of the text, once. */
void step_count(struct step *s);

/* step_verdict.c */

/* Keep what the router reads, besides the hidden state, of the token after the first n ids. */
void step_look(const struct step *s, struct view_row *row, size_t n, const float *logits);

/* Score the token after the first `at` ids, if nothing but ids is needed for that. */
bool step_score_ids(const struct step *s, size_t at, float *score);
/* True when a token with this score goes to the cloud. */
bool step_routes(const struct step *s, float score, size_t at);

/* step_draft.c */

/* Write the ids to evaluate together with s->last, at most VIEW_ROWS - 1, and return how many. */
size_t step_draft(struct step *s, uint32_t *out);
/* Begin, continue or end the wait for a draft for the next pass. True: go on waiting. */
bool step_draft_await(struct step *s);
/* Count what stood of the latest draft, before its rows become void. */
void step_draft_end(struct step *s);

#endif
