#include "router/decode/decode.h"

#include "kernels/sys/base.h"
#include "kernels/sys/os.h"
#include "router/decode/step.h"

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

/* Evaluate ids of the one text, and take at least step_ns for it. The prompt is read in pieces if
 * somebody wants to see how it goes on. */
static void decode_evaluate(struct step *step, struct session *s, const struct decode_options *o,
                            const struct step_need *need)
{
    struct err err = { "" };
    uint64_t clock = os_now_ns();
    size_t n = o->reading && need->n > BATCH_ROWS ? BATCH_ROWS : need->n;
    int rc = session_eval(s, need->ids, n, o->stop, &err);
    uint64_t took = os_now_ns() - clock;
    if (took < o->step_ns)
        os_nap(o->step_ns - took);
    if (rc == OK)
        step_give_rows(step, n);
    else
        step_fail(step, rc, &err);
}

/* Read its head for the rows that are wanted. */
static void decode_head(struct step *step, struct session *s, const struct step_need *need)
{
    struct err err = { "" };
    struct batch *b = session_batch(s);
    size_t rows[STEP_HEADS] = { 0 };
    for (size_t i = 0; i < need->n; i++)
        session_row(&rows[i], s, need->at[i]);
    int rc = batch_logits(b, rows, need->n, &err);
    for (size_t i = 0; i < need->n && rc == OK; i++) {
        const float *logits = batch_logits_at(b, rows[i]);
        step_give_head(step, need->at[i], logits);
    }
    if (rc != OK)
        step_fail(step, rc, &err);
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
    struct step *step;
    int rc = step_open(&step, &text, o, stats, err);
    if (rc != OK)
        return rc;
    for (const struct step_need *need; (need = step_next(step))->want != STEP_DONE;) {
        if (need->want == STEP_ROWS)
            decode_evaluate(step, s, o, need);
        else if (need->want == STEP_HEAD)
            decode_head(step, s, need);
        else
            step_wait(step);
    }
    return step_close(step, err);
}
