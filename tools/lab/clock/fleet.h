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
 * Network: half of the latency each way, no limit on bytes, no losses.
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

/* Most devices; the bins of a histogram. */
enum { FLEET_MOST = 1000000, FLEET_BINS = 1 << 16 };

struct fleet_options {
    double idle;   /* mean seconds between two answers */
    double routed; /* above 0, at most 1 */
    double agree;  /* 0 to 1 */
    double edge_ms;
    double prefill, decode; /* tokens per second, above 0 */
    double step_ms;
    size_t prompt, tokens;
    size_t latency; /* ms of a round trip */
    size_t batch;   /* most calls at a time; 0: no limit */
    size_t chunk;   /* most tokens read in a pass; 0: no limit */
    size_t kv;      /* tokens that fit, at least those of an answer; 0: no limit */
    bool no_cache;
};

/* A device, and what the server knows of it. All that a device does is a function of its number and
 * of the times at which answers arrive, so real clients can follow the same script. */
struct fleet_device {
    uint64_t key, drawn;   /* random numbers: seed of this device, number drawn */
    uint64_t answer;       /* number of the present answer, from 1 */
    double start, asked;   /* when the present answer began, and its present call was made */
    size_t token;          /* the call is for this token of the answer, from 0 */
    double told;           /* when its last token came, or the call was made */
    uint64_t text;         /* the answer whose text is held */
    size_t held, read;     /* places taken by it; it has been read up to `read` */
    size_t left, wants;    /* of the call: tokens to read and to write */
    uint32_t older, newer; /* list of texts by last use */
};

struct fleet {
    const struct fleet_options *o;
    size_t n;
    uint32_t *heap;   /* [n] devices whose calls are not admitted, soonest first */
    uint32_t *active; /* [n] admitted, in order of admission */
    size_t nheap, nactive;
    size_t used, unread; /* places taken; tokens that the admitted calls have yet to read */
    double now, since;
    struct {
        uint32_t bins[2][FLEET_BINS]; /* times of first tokens of calls, and of later ones */
        size_t told[2];
        size_t answers, calls, passes, joined, read;
        double answers_ms, work, busy;
    } count;                       /* since `since` */
    struct fleet_device devices[]; /* [n + 1]; the last is head and end of the list of texts */
};

/* Make n devices, 1 to FLEET_MOST, that are about to make their first calls. o is borrowed; the
 * caller frees *out. ERR_NOMEM. */
int fleet_open(struct fleet **out, const struct fleet_options *o, size_t n, struct err *err);

/* Simulate the steady state: counting begins after max(10,000, 4 n) answers and as many calls, and
 * ends after as many more. So each device writes some four answers before and four while it is
 * counted, in overload, too, where an answer takes much longer than the time between two calls of
 * the fleet. The work thus grows with n x (1 + calls of an answer). Progress in answers is shown if
 * `shown` is not NULL. ERR_STOP: `interrupted` (cli/setup.h) was set. */
int fleet_run(struct fleet *f, struct progress_count *shown, struct err *err);

/* The parts of a simulation, of which real clients and a real server are made, too: count from now
 * on; count a pass of n calls and return the ms it takes; count a token that reaches its device at
 * `now`; take the last token of a call at `now` >= asked, and set the device to its next call,
 * which is not made before now. */
void fleet_count(struct fleet *f);
double fleet_work(struct fleet *f, size_t n, size_t read, size_t written);
void fleet_tell(struct fleet *f, struct fleet_device *d, size_t later, double now);
void fleet_hear(struct fleet *f, struct fleet_device *d, double now);

/* Return the ms below which this share of the times lies that tokens took: since their calls, or,
 * those after the first of a call, since the one before. It is the larger of both quantiles, exact
 * to 0.1 %; 0 if there are none. */
double fleet_quantile(const struct fleet *f, double share);

#endif
