#include "router/decode/decode.h"

#include <stdlib.h>

#include "kernels/sys/base.h"
#include "kernels/sys/os.h"
#include "router/decode/step.h"
#include "router/router.h"

const char *source_name(enum source s)
{
    static const char *const names[] = { "edge", "cloud", "fallback" };
    return names[s];
}

const char *finish_name(enum finish f)
{
    static const char *const names[] = { "eos", "length", "stop", "error" };
    return names[f];
}

void decode_stats_add(struct decode_stats *sum, const struct decode_stats *one)
{
#define X(name) sum->name += one->name;
    FIGURES_COUNTS(X)
    FIGURES_TIMES(X)
#undef X
    for (size_t i = 0; i < GATE_REASONS; i++)
        sum->reasons[i] += one->reasons[i];
    traffic_add(&sum->traffic, &one->traffic);
}

/* The one text of decode_run. */
struct decode {
    const struct step_text *text;
    const struct decode_options *o;
    struct step *step;
    float *scratch; /* of the router */
    size_t n;       /* ids of the latest pass */
};

/* Evaluate the ids that are wanted, and take at least step_ns for it. The prompt is read in pieces
 * if somebody wants to see how it goes on. */
static void decode_evaluate(struct decode *d)
{
    struct err err = { "" };
    const uint32_t *ids = step_ids(d->step, &d->n);
    uint64_t clock = os_now_ns();
    if (d->o->reading && d->n > BATCH_ROWS)
        d->n = BATCH_ROWS;
    int rc = session_eval(d->text->session, ids, d->n, d->o->stop, &err);
    uint64_t took = os_now_ns() - clock;
    if (took < d->o->step_ns)
        os_nap(d->o->step_ns - took);
    if (rc == OK)
        step_give_rows(d->step, d->n);
    else
        step_fail(d->step, rc, &err);
}

/* Return the batch's row of the first id of the latest pass, which may have been several passes of
 * the batch; the rows that are wanted are in its last one. False: somebody else has used it. */
static bool decode_first_row(struct decode *d, const struct batch *b, size_t *first)
{
    *first = batch_rows(b) - d->n; /* may wrap around */
    bool there = session_hidden(d->text->session, TAP_FINAL, 0) != NULL;
    if (!there)
        step_lose_rows(d->step);
    return there;
}

/* Score the rows that are wanted. */
static void decode_score(struct decode *d)
{
    size_t n, first;
    const struct router *r = d->text->router;
    const struct batch *b = session_batch(d->text->session);
    const size_t *rows = step_rows(d->step, &n);
    if (!decode_first_row(d, b, &first))
        return;
    for (size_t i = 0; i < n; i++) {
        const float *hidden = router_hidden(r, b, first + rows[i], d->scratch);
        const float *x = router_inputs(r, hidden, step_extra(d->step, rows[i]), d->scratch);
        float score = router_score(r, x, d->scratch);
        step_give_score(d->step, rows[i], score);
    }
}

/* Read the head for the rows that are wanted. */
static void decode_head(struct decode *d)
{
    struct err err = { "" };
    size_t n, first, at[BATCH_ROWS];
    struct batch *b = session_batch(d->text->session);
    const size_t *rows = step_rows(d->step, &n);
    if (!decode_first_row(d, b, &first))
        return;
    for (size_t i = 0; i < n; i++)
        at[i] = first + rows[i];
    int rc = batch_logits(b, at, n, &err);
    for (size_t i = 0; i < n && rc == OK; i++)
        step_give_head(d->step, rows[i], batch_logits_at(b, at[i]));
    if (rc != OK)
        step_fail(d->step, rc, &err);
}

int decode_run(struct decode_stats *stats, struct session *s, const struct tokenizer *tok,
               struct sampler *sampler, const struct router *router, const struct cloud_port *cloud,
               const uint32_t *prompt, size_t n, const struct decode_options *o, struct err *err)
{
    const struct step_text text = { .session = s,
                                    .tok = tok,
                                    .sampler = sampler,
                                    .router = router,
                                    .cloud = cloud,
                                    .prompt = prompt,
                                    .n = n };
    struct decode d = { .text = &text, .o = o };
    int rc = step_open(&d.step, &text, o, stats, err);
    if (rc != OK)
        return rc;
    if (policy_reads_network(o->policy) &&
        !(d.scratch = malloc(router_scratch(router) * sizeof(float))))
        step_fail(d.step, ERR_NOMEM, &(struct err){ "decode: out of memory" });
    for (enum step_want want; (want = step_next(d.step)) != STEP_DONE;) {
        if (want == STEP_ROWS)
            decode_evaluate(&d);
        else if (want == STEP_SCORE)
            decode_score(&d);
        else if (want == STEP_HEAD)
            decode_head(&d);
        else
            step_wait(d.step); /* STEP_CLOUD */
    }
    rc = step_close(d.step, err);
    free(d.scratch);
    return rc;
}
