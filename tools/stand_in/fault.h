/* fault.h - what a server, or something in front of it, can do to an answer. */
#ifndef TOOLS_STAND_IN_FAULT_H
#define TOOLS_STAND_IN_FAULT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/http/buf.h"
#include "tools/stand_in/question.h"

struct err;

enum stand_in_way {
    WAY_WHOLE,
    WAY_CLOSE,  /* the connection is closed without an answer */
    WAY_RESET,  /* the same with RST */
    WAY_SILENT, /* no answer, the connection stays open */
    WAY_LATE,   /* LATE_MS later */
    WAY_CUT,    /* closed in the middle of the body */
    WAY_STALL,  /* silent from the middle of the body on */
    WAY_SLOW,   /* a byte each SLOW_MS */
    WAY_BYTES,  /* a byte a chunk */
    WAY_HUGE,   /* 100 MB of blanks in front */
};

enum { STAND_IN_LATE_MS = 30000, STAND_IN_SLOW_MS = 20 };

/* Events of a stream. */
enum stand_in_events { EVENTS_FINE, EVENTS_NO_DONE, EVENTS_TWICE, EVENTS_COMMENTS, EVENTS_ERROR };

struct stand_in_case { /* what is being answered */
    const struct stand_in_question *ask;
    size_t vocab;
    uint32_t other; /* an id in use */
};

struct stand_in_fault {
    const char *name, *help;
    unsigned status;            /* instead of an answer; 0: the answer's */
    const char *header, *value; /* added, or NULL */
    const char *type;           /* Content-Type, or NULL: as it should be */
    const char *body;           /* of the status; NULL: the server's own error form */
    bool (*json)(json_t **reply, const struct stand_in_case *c); /* edits an answer or event */
    bool (*text)(struct buf *text);                              /* edits its JSON text */
    enum stand_in_way way;
    bool no_length; /* sent in chunks */
    enum stand_in_events events;
};

extern const struct stand_in_fault stand_in_fault_table[]; /* ended by a row without name */

enum { STAND_IN_FAULTS = 16 };

struct stand_in_faults {
    size_t n;
    struct {
        const struct stand_in_fault *fault;
        double rate;
    } at[STAND_IN_FAULTS];
};

/* spec: "name" or "name:rate", rate in (0, 1]. ERR_ARG. */
int stand_in_fault_add(struct stand_in_faults *f, const char *spec, struct err *err);
/* The first of them that the key's chance picks, or NULL. */
const struct stand_in_fault *stand_in_fault_draw(const struct stand_in_faults *f, uint64_t key);

#endif
