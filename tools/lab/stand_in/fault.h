/* fault.h - the faults that a server, or something in front of it, can inflict on an answer. */
#ifndef TOOLS_LAB_STAND_IN_FAULT_H
#define TOOLS_LAB_STAND_IN_FAULT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/sys/buf.h"
#include "tools/lab/stand_in/question.h"

struct err;

/* How the answer is sent. */
enum stand_in_way {
    WAY_WHOLE,
    WAY_CLOSE,  /* the connection is closed without an answer */
    WAY_RESET,  /* the same with RST */
    WAY_SILENT, /* no answer, the connection stays open */
    WAY_LATE,   /* STAND_IN_LATE_MS later */
    WAY_CUT,    /* closed in the middle of the body */
    WAY_STALL,  /* silent from the middle of the body on */
    WAY_SLOW,   /* one byte every STAND_IN_SLOW_MS */
    WAY_BYTES,  /* one byte per chunk */
    WAY_HUGE,   /* 100 MB of blanks before the answer */
};

enum { STAND_IN_LATE_MS = 30000, STAND_IN_SLOW_MS = 20 };

/* Faults in the events of a stream. */
enum stand_in_events { EVENTS_FINE, EVENTS_NO_DONE, EVENTS_TWICE, EVENTS_COMMENTS, EVENTS_ERROR };

/* What an edit may know about the answer. */
struct stand_in_case {
    const struct stand_in_fault *fault;
    const struct stand_in_question *ask;
    size_t vocab;
    uint32_t other; /* an id in use */
};

/* One fault: any combination of the changes below. */
struct stand_in_fault {
    const char *name, *help;
    unsigned status;            /* sent instead of an answer; 0: the answer's own */
    const char *header, *value; /* added, or NULL */
    const char *type;           /* Content-Type; NULL: the correct one */
    const char *body;           /* sent with status; NULL: the server's own error form */
    bool (*json)(json_t **reply, const struct stand_in_case *c); /* edits an answer or event */
    bool (*text)(struct buf *text, const char *with);            /* edits its JSON text */
    const char *with;                                            /* what an edit puts there */
    enum stand_in_way way;
    bool no_length; /* send in chunks */
    enum stand_in_events events;
};

extern const struct stand_in_fault stand_in_fault_table[]; /* ends with a row without a name */

enum { STAND_IN_FAULTS = 16 };

struct stand_in_faults {
    size_t n;
    struct {
        const struct stand_in_fault *fault;
        double rate;
    } at[STAND_IN_FAULTS];
};

/* Add a fault; spec is "name" or "name:rate" with a rate in (0, 1]. ERR_ARG. */
int stand_in_fault_add(struct stand_in_faults *f, const char *spec, struct err *err);
/* Return the first of the faults that is drawn for this key, or NULL. */
const struct stand_in_fault *stand_in_fault_draw(const struct stand_in_faults *f, uint64_t key);

#endif
