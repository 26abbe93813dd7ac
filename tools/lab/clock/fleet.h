/* fleet.h - the load that a fleet of devices puts on one server, by discrete-event simulation under
 * a virtual clock. Times are in ms.
 *
 * A device is idle, then writes an answer of `tokens` tokens after a prompt of `prompt` tokens, and
 * is idle again. Each step of its small model takes edge_ms. Each token is routed with probability
 * `routed`, independently of the others. Idle times are exponential. While one call is in flight
 * the device continues after its own guess, as router/decode/decode.c does. The cloud agrees with
 * the guess with probability `agree`; otherwise the text after the guess is dropped when the step
 * in progress ends. Waiting begins where the next routed token or the end of the answer is reached.
 * The time is that of ahead_model.h, which a test compares. With routed = 1 the cloud writes each
 * answer alone, in one call without an edge.
 *
 * Network: half of latency_ms each way, no limit on bytes, no losses.
 *
 * The server computes in passes, as servers with continuous batching do. At the start of a pass,
 * calls that have arrived are admitted in their order, up to `batch` calls and as long as there are
 * fewer than `chunk` tokens to read. In a pass, each admitted call that has not been read yet reads
 * its tokens (all calls together at most `chunk`), and each other call writes one token. A call
 * gets its first token from the pass that reads its last token. A pass takes
 *
 *     max(step_ms, tokens read / prefill + tokens written / decode)
 *
 * where step_ms is the time to read all weights once. What a longer context costs is part of
 * the rates. A call that wants one token only reads, so `decode` matters for whole answers alone.
 *
 * Memory: a text takes one place per token, of `kv` in all. With the cache, a text stays after its
 * call, and the next call of the same answer reads only what is new. When there is no more room,
 * the texts that have been unused for longest are dropped, and are read again if needed. A text
 * also goes when its device begins another answer, so answers share nothing. Without the cache each
 * call reads its whole text. Calls wait while those admitted fill the memory.
 *
 * The fleet is a closed system: a device whose call is late asks less. So a server is never asked
 * for more than it can do; its queue grows at most to the number of devices. With few calls of each
 * device and batch 1 it is the M/D/1 queue (test).
 *
 * Not modeled: reading the prompt on the device, more than one call in flight, deadlines, retries
 * and limits on the share. */
#ifndef TOOLS_LAB_CLOCK_FLEET_H
#define TOOLS_LAB_CLOCK_FLEET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct progress_count;

enum { FLEET_MOST = 1000000 }; /* most devices */

struct fleet_options {
    double idle_ms; /* mean time between two answers */
    double edge_ms;
    double routed; /* above 0, at most 1 */
    double agree;  /* 0 to 1 */
    size_t prompt, tokens;
    double latency_ms;      /* of a round trip */
    double prefill, decode; /* tokens per second, above 0 */
    double step_ms;
    size_t batch; /* most calls at a time; 0: no limit */
    size_t chunk; /* most tokens read in a pass; 0: no limit */
    size_t kv;    /* tokens that fit; 0: no limit */
    bool cache;
};

/* A device. Everything it does is a function of its number and of the times at which answers
 * arrive, so real clients can follow the same script (cmd_fleet.c). */
struct fleet_device {
    uint64_t key, drawn; /* random numbers: seed of this device, number drawn */
    uint64_t answer;     /* number of the present answer, from 1 */
    double start;        /* of the present answer */
    double asked;        /* when the present call is made */
    size_t token;        /* the call is for this token of the answer, from 0 */
};

/* Answers that ended. */
struct fleet_answers {
    size_t n;
    double ms; /* sum of their durations, from the first step to the last token */
};

/* Set the device to the first call it makes. Answers without a call are added to *ended. */
void fleet_device(struct fleet_device *d, const struct fleet_options *o, size_t number,
                  struct fleet_answers *ended);
/* Take the last token of the call at time `now` >= d->asked, and set the device to its next call,
 * which is not made before now. Answers that end are added to *ended. */
void fleet_hear(struct fleet_device *d, const struct fleet_options *o, double now,
                struct fleet_answers *ended);

struct fleet_load {
    double load;      /* work over time: share of the rates that is used */
    double busy;      /* share of the time in which a pass runs */
    double calls;     /* calls per second */
    double batch;     /* calls per pass */
    double read;      /* tokens read per call */
    double p50, p95;  /* ms from the call to its first token, which is all it asks for unless the
                         cloud writes whole answers. Their later tokens count from the one before;
                         this is the larger of both quantiles. Exact to 0.1 %. */
    double mean;      /* of all these times, ms */
    double answers;   /* answers per second */
    double answer_ms; /* mean duration of an answer */
};

/* Simulate n devices, 1 to FLEET_MOST, and describe the steady state: counting begins after
 * max(10,000, 4 n) answers and as many calls, and ends after as many more. So each device writes
 * some four answers before and four while it is counted, in overload, too, where an answer takes
 * much longer than the time between two calls of the fleet. The work thus grows with
 * n x (1 + calls of an answer). Progress in answers is shown if `shown` is not NULL. ERR_ARG: an
 * answer does not fit into kv; ERR_STOP: `interrupted` (cli/setup.h) was set; ERR_NOMEM. */
int fleet_run(struct fleet_load *out, const struct fleet_options *o, size_t n,
              struct progress_count *shown, struct err *err);

/* Find the largest fleet whose p95 is at most p95_ms, to within 1 %; 0 if one device is too many,
 * FLEET_MOST if that many or more are not. Errors as above. */
int fleet_carries(size_t *devices, const struct fleet_options *o, double p95_ms,
                  struct progress_count *shown, struct err *err);

#endif
