/* fleet_device.h - when a device of a simulated fleet asks its cloud for a token.
 *
 * A device is idle, then writes an answer of `tokens` tokens after a prompt of `prompt` tokens, and
 * is idle again. Each step of its small model takes edge_ms. Each token is routed with probability
 * `routed`, independently of the others. Idle times are exponential.
 *
 * In step (ahead 0) the device waits for each call. With one call in flight (ahead 1) it continues
 * after its own guess, as router/decode/decode.c does. The cloud agrees with the guess with
 * probability `agree`; otherwise the text after the guess is dropped when the step in progress
 * ends. Waiting begins where the next routed token or the end of the answer is reached. The time is
 * that of ahead_model.h, which a test compares.
 *
 * With routed = 1 the cloud writes each answer alone, in one call without an edge.
 *
 * Not modeled: reading the prompt on the device, more than one call in flight, deadlines, retries
 * and limits on the share. Times are in ms. Everything is a function of the seed and of the times
 * at which answers arrive, so real clients can follow the same script (bench/fleet_clients.h). */
#ifndef TOOLS_CLOCK_FLEET_DEVICE_H
#define TOOLS_CLOCK_FLEET_DEVICE_H

#include <stddef.h>
#include <stdint.h>

/* What all devices have in common. */
struct fleet_habits {
    double idle_ms; /* mean time between two answers */
    double edge_ms;
    double routed; /* above 0, at most 1 */
    double agree;  /* 0 to 1 */
    size_t prompt, tokens, ahead;
    uint64_t seed;
};

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
void fleet_device_open(struct fleet_device *d, const struct fleet_habits *h, size_t number,
                       struct fleet_answers *ended);

/* Return the number of tokens that the call asks for. */
size_t fleet_device_wants(const struct fleet_habits *h);

/* Take the last token of the call at time `now` >= d->asked, and set the device to its next call,
 * which is not made before now. Answers that end are added to *ended. */
void fleet_device_hear(struct fleet_device *d, const struct fleet_habits *h, double now,
                       struct fleet_answers *ended);

#endif
