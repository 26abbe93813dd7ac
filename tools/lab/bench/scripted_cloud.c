#include "tools/lab/bench/scripted_cloud.h"

#include <math.h>
#include <stdlib.h>
#include <time.h>

#include "kernels/math.h"
#include "kernels/sys/base.h"
#include "kernels/sys/os.h"
#include "model/sample.h"
#include "model/session.h"
#include "router/policy.h"
#include "tools/lab/clock/ahead_model.h"
#include "tools/lab/bench/synthetic_vocab.h"

enum { FOR_ID = 1, TEN = 10, SEEDS = 1000 };

uint64_t scripted_cloud_hash(uint64_t hash, uint32_t id)
{
    return rand_u64(hash, id);
}

static uint64_t hash_of(const uint32_t *ids, size_t n)
{
    uint64_t h = 0;
    for (size_t i = 0; i < n; i++)
        h = scripted_cloud_hash(h, ids[i]);
    return h;
}

/* Return an id derived from the prefix, if possible none of the single bytes, which might be half a
 * character. */
static uint32_t any_id(const struct scripted_cloud *t, uint64_t prefix)
{
    size_t from = t->vocab > 2 * SYNTHETIC_VOCAB_WORDS ? SYNTHETIC_VOCAB_WORDS : 0;
    return (uint32_t)(from + rand_below(prefix, FOR_ID, t->vocab - from));
}

uint32_t scripted_cloud_next(void *arg, const uint32_t *ids, size_t n)
{
    const struct scripted_cloud *t = arg;
    const struct timespec step = { t->step_ms / 1000, (long)(t->step_ms % 1000) * 1000000 };
    uint64_t prefix = hash_of(ids, n);
    if (t->step_ms)
        nanosleep(&step, NULL);
    if (n >= t->prompt && n - t->prompt < t->n) {
        const struct bench_answer *a = &t->answers[n - t->prompt];
        if (a->prefix == prefix)
            return a->id;
    }
    return any_id(t, prefix);
}

/* True if the next routed token agrees. Draws without replacement: the chance is the number of
 * tokens of this ten that must still agree over the number left. */
static bool scripted_cloud_agrees(struct scripted_cloud *t, uint64_t prefix)
{
    size_t block = t->routed / TEN, place = t->routed % TEN, taken = 0;
    size_t quota = (size_t)((double)(block + 1) * TEN * t->agree + 0.5) -
                   (size_t)((double)block * TEN * t->agree + 0.5);
    bool yes = false;
    if (!place)
        t->ten = prefix;
    for (size_t i = 0; i <= place; i++) {
        yes = rand_below(t->ten, i, TEN - i) < quota - taken;
        taken += yes;
    }
    return yes;
}

uint64_t scripted_cloud_seed(uint64_t from, float share, size_t prompt, size_t n)
{
    uint64_t best = from;
    double least = (double)INFINITY;
    for (uint64_t seed = from; seed < from + SEEDS && least > 0.5; seed++) {
        size_t routed = 0;
        for (size_t i = 0; i < n; i++)
            routed += policy_score_random(seed, prompt + i) < share;
        double off = fabs((double)routed - (double)share * (double)n);
        if (off < least) {
            least = off;
            best = seed;
        }
    }
    return best;
}

/* Return what the cloud answers where the edge guesses this, and note whether they agree. */
static uint32_t scripted_cloud_answer(struct scripted_cloud *t, size_t i, uint64_t prefix,
                                      uint32_t guess)
{
    t->marks[i] = AHEAD_MODEL_ROUTED;
    bool agrees = scripted_cloud_agrees(t, prefix);
    t->routed++;
    if (agrees) {
        t->marks[i] |= AHEAD_MODEL_AGREES;
        t->agreed++;
        return guess;
    }
    uint32_t id = any_id(t, prefix);
    return id != guess ? id : (uint32_t)((guess + (size_t)1) % t->vocab);
}

/* Write the answer to the prompt that the session holds. */
static int scripted_cloud_write(struct scripted_cloud *t, struct session *s,
                                struct sampler *sampler, float share, uint64_t seed,
                                const _Atomic int *stop, struct err *err)
{
    uint64_t prefix = hash_of(session_ids(s), t->prompt), start = 0;
    for (size_t i = 0; i < t->n; i++) {
        uint32_t id = sampler_pick(sampler, session_logits(s, 0), session_ids(s), t->prompt + i);
        if (policy_score_random(seed, t->prompt + i) < share)
            id = scripted_cloud_answer(t, i, prefix, id);
        t->answers[i] = (struct bench_answer){ prefix, id };
        prefix = scripted_cloud_hash(prefix, id);
        if (!i)
            start = os_now_ns();
        int rc = i + 1 < t->n ? session_eval(s, &id, 1, stop, err) : OK;
        if (rc)
            return rc;
    }
    t->ms = (double)(os_now_ns() - start) / 1e6 / (double)(t->n - 1);
    return OK;
}

int scripted_cloud_rehearse(struct scripted_cloud *t, struct session *s, struct sampler *sampler,
                            const uint32_t *prompt, size_t prompt_tokens, size_t n, float share,
                            uint64_t seed, const _Atomic int *stop, struct err *err)
{
    scripted_cloud_close(t);
    t->answers = calloc(n, sizeof(*t->answers));
    t->marks = calloc(n, 1);
    if (!t->answers || !t->marks)
        return err_set(err, ERR_NOMEM, "bench: out of memory");
    t->prompt = prompt_tokens;
    t->n = n;
    session_rewind(s, 0);
    int rc = session_eval(s, prompt, prompt_tokens, stop, err);
    return rc ? rc : scripted_cloud_write(t, s, sampler, share, seed, stop, err);
}

void scripted_cloud_close(struct scripted_cloud *t)
{
    free(t->answers);
    free(t->marks);
    t->answers = NULL;
    t->marks = NULL;
    t->n = t->routed = t->agreed = 0;
}
