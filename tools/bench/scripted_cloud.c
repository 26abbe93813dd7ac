#include "tools/bench/scripted_cloud.h"

#include <math.h>
#include <stdlib.h>
#include <time.h>

#include "kernels/sys/base.h"
#include "kernels/math.h"
#include "model/sample.h"
#include "model/session.h"
#include "router/decode/decode.h"
#include "router/policy.h"
#include "router/cloud_port.h"
#include "tools/clock/ahead_model.h"
#include "tools/bench/synthetic_vocab.h"

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

/* The cloud port of the rehearsal: it has no memo, answers each call at once and costs nothing. */
static enum origin scripted_cloud_known(void *arg, const uint32_t *ids, size_t n, uint32_t *id)
{
    (void)arg, (void)ids, (void)n, (void)id;
    return ORIGIN_NONE;
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

/* Nothing is known about a prefix before it is requested. */
static enum cloud_sight scripted_cloud_peek(void *arg, const uint32_t *ids, size_t n, uint32_t *id)
{
    (void)arg, (void)ids, (void)n, (void)id;
    return CLOUD_UNKNOWN;
}

static size_t scripted_cloud_one(void *arg)
{
    (void)arg;
    return 1;
}

/* Decide and note the answer. Decoding is in step, so the session stands at the prefix and its
 * logits give the edge's guess. */
static int scripted_cloud_ask(void *arg, const uint32_t *ids, size_t n, size_t tokens,
                              struct cloud_tally *tally, void **call, struct err *err)
{
    struct scripted_cloud *t = arg;
    struct bench_answer *a = &t->answers[n - t->prompt];
    uint32_t guess = sampler_pick(t->sampler, session_logits(t->session, 0), ids, n);
    (void)tokens, (void)tally, (void)err;
    a->prefix = hash_of(ids, n);
    a->id = guess;
    t->marks[n - t->prompt] = AHEAD_MODEL_ROUTED;
    if (scripted_cloud_agrees(t, a->prefix)) {
        t->marks[n - t->prompt] |= AHEAD_MODEL_AGREES;
        t->agreed++;
    } else {
        a->id = any_id(t, a->prefix);
        if (a->id == guess)
            a->id = (uint32_t)((guess + (size_t)1) % t->vocab);
    }
    t->routed++;
    *call = a;
    return OK;
}

static bool scripted_cloud_done(const void *call)
{
    (void)call;
    return true;
}

static int scripted_cloud_take(void *call, uint32_t *id, struct err *err)
{
    (void)err;
    *id = ((const struct bench_answer *)call)->id;
    return OK;
}

static void scripted_cloud_end(void *call)
{
    (void)call;
}

static size_t scripted_cloud_bytes(void *arg, const uint32_t *ids, size_t n, size_t tokens)
{
    (void)arg, (void)ids, (void)n, (void)tokens;
    return 0;
}

static bool scripted_cloud_settled(void *arg)
{
    (void)arg;
    return true;
}

static struct traffic scripted_cloud_traffic(void *arg, const struct cloud_tally *tally)
{
    (void)arg;
    return tally->traffic;
}

static void scripted_cloud_end_tally(void *arg, struct cloud_tally *tally)
{
    (void)arg, (void)tally;
}

/* Callback of the decoding loop: note the token, and add it to the hash of the text. */
static bool scripted_cloud_on_token(void *arg, const struct decode_token *token)
{
    struct scripted_cloud *t = arg;
    t->answers[token->pos] = (struct bench_answer){ t->prefix, token->id };
    t->prefix = scripted_cloud_hash(t->prefix, token->id);
    t->text = scripted_cloud_hash(t->text, token->id);
    return true;
}

int scripted_cloud_rehearse(struct scripted_cloud *t, struct session *s,
                            const struct tokenizer *tok, struct sampler *sampler,
                            const uint32_t *prompt, size_t n, const struct decode_options *o,
                            struct err *err)
{
    const struct cloud_port port = { t,
                                     scripted_cloud_known,
                                     scripted_cloud_peek,
                                     scripted_cloud_one,
                                     scripted_cloud_ask,
                                     scripted_cloud_done,
                                     scripted_cloud_take,
                                     scripted_cloud_end,
                                     scripted_cloud_end,
                                     scripted_cloud_bytes,
                                     scripted_cloud_settled,
                                     scripted_cloud_traffic,
                                     scripted_cloud_end_tally,
                                     NULL,
                                     NULL,
                                     NULL,
                                     NULL,
                                     NULL };
    struct decode_options in_step = *o;
    struct decode_stats stats;
    scripted_cloud_close(t);
    t->answers = calloc(o->max_tokens, sizeof(*t->answers));
    t->marks = calloc(o->max_tokens, 1);
    if (!t->answers || !t->marks)
        return err_set(err, ERR_NOMEM, "bench: out of memory");
    t->prefix = hash_of(prompt, n);
    t->prompt = n;
    t->n = o->max_tokens;
    t->session = s;
    t->sampler = sampler;
    in_step.ahead = 0;
    in_step.emit = scripted_cloud_on_token;
    in_step.arg = t;
    int rc = decode_run(&stats, s, tok, sampler, NULL, &port, prompt, n, &in_step, err);
    if (rc == OK && stats.tokens > 1)
        t->ms = (stats.total_ms - stats.ttft_ms) / (double)(stats.tokens - 1);
    return rc;
}

void scripted_cloud_close(struct scripted_cloud *t)
{
    free(t->answers);
    free(t->marks);
    t->answers = NULL;
    t->marks = NULL;
    t->n = t->routed = t->agreed = 0;
    t->text = 0;
    t->ms = 0;
}
