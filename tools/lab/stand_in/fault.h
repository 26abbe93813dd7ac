/* fault.h - the faults that a server, or something in front of it, can inflict on an answer. */
#ifndef TOOLS_LAB_STAND_IN_FAULT_H
#define TOOLS_LAB_STAND_IN_FAULT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;
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

/* What an edit may know about the request. */
struct stand_in_facts {
    const uint32_t *prompt; /* [n] */
    size_t n, vocab;
};

/* One fault: any combination of the changes below. */
struct stand_in_fault {
    const char *name, *help;
    /* Instead of the answer. */
    unsigned status;            /* 0: the answer's own */
    const char *header, *value; /* added, or NULL; header alone: a value of 100 KB */
    const char *type;           /* Content-Type; NULL: the correct one */
    const char *body;           /* sent with status; NULL: the server's own error form */
    size_t zeros;               /* as many, compressed, in place of body */
    /* Edits of the answer's JSON, or of each event's. */
    const char *ids;    /* words for the list of ids: H all but the last, L the last, P the end of
                           the prompt, O another id, V one beyond the vocabulary, or JSON. Without H
                           or P the whole list, in JSON; "": no list */
    const char *reason; /* why the text ended: "stop", "length" or "abort" */
    bool at_end;        /* only where the text ended at end-of-text */
    const char *member, *with; /* names of members, and the text that they get */
    const char *count;         /* names of numbers */
    int by;                    /* what is added to these */
    /* Edits of its text, or of the first event's. */
    const char *front, *behind; /* front: one with '{' takes the place of the answer's */
    size_t cut;                 /* bytes off the end */
    const char *fill;           /* 100,000 times in place of the answer */
    bool gzip;
    /* How it is sent. */
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

/* Return the fault with the name name[n], or NULL. */
const struct stand_in_fault *stand_in_fault_find(const char *name, size_t n);
/* Add a fault; spec is "name" or "name:rate" with a rate in (0, 1]. ERR_ARG. */
int stand_in_fault_add(struct stand_in_faults *f, const char *spec, struct err *err);
/* Random events of requests. They depend on the seed, a request's prefix and how often that prefix
 * was asked before, never on the order in which requests arrive. Any thread may use it. */
struct stand_in_chance;
struct stand_in_chance *stand_in_chance_open(uint64_t seed); /* NULL: out of memory */
void stand_in_chance_close(struct stand_in_chance *d);
/* Count one more attempt for ids[n], and return the key of everything that is drawn for it.
 * Attempts are counted for the latest quarter of a million prefixes. */
uint64_t stand_in_chance_key(struct stand_in_chance *d, const uint32_t *ids, size_t n);
/* Return the first of the faults that is drawn for this key, or NULL. */
const struct stand_in_fault *stand_in_fault_draw(const struct stand_in_faults *f, uint64_t key);

/* Edit the JSON text of an answer or of an event; first: it is the answer, or the first event.
 * False: out of memory. */
bool stand_in_fault_edit(struct buf *text, const struct stand_in_fault *f,
                         const struct stand_in_facts *at, bool first);
bool stand_in_fault_edits_json(const struct stand_in_fault *f);
bool stand_in_fault_edits_text(const struct stand_in_fault *f);
/* Append what is sent with f->status; f->body is not NULL. False: out of memory. */
bool stand_in_fault_body(struct buf *out, const struct stand_in_fault *f);

#endif
