#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "tools/demo/router_training.h"
#include "tools/demo/world.h"

/* Even numbers are training streams; the models themselves were trained on another one. */
enum { TRAIN_STREAM = 1000, CALIBRATE_SEED = 1 };
enum { CONTEXT = 1024, MAX_ANSWER = 96 };

void router_training_defaults(struct router_training_options *o)
{
    *o = (struct router_training_options){ .world = WORLD_SEED,
                                           .questions = 3000,
                                           .calibration = 1000,
                                           .tap = TAP_FINAL,
                                           .most = (double)TEACH_MOST,
                                           .cover = (double)TEACH_COVER,
                                           .seed = 1 };
}

/* The models and the world that samples come from. */
struct teacher {
    const struct engine *edge, *cloud;
    struct session *session, *writer; /* of edge; of cloud, or NULL */
    struct world *world;
    const struct router_training_options *o;
};

/* Return the context to open sessions with: the model's, at most CONTEXT. */
static size_t context_of(const struct model *m)
{
    size_t n = model_config(m)->context;
    return n < CONTEXT ? n : CONTEXT;
}

/* Open world and sessions; both models must share one vocabulary. The caller calls teacher_close
 * after an error, too. */
static int teacher_open(struct teacher *t, struct err *err)
{
    int rc = world_open(&t->world, t->o->world, err);
    if (rc == OK)
        rc = session_open(&t->session, t->edge->model, t->edge->pool, context_of(t->edge->model),
                          KVCACHE_F32, err);
    if (rc == OK && t->cloud) {
        if (tokenizer_fingerprint(t->cloud->tokenizer) != tokenizer_fingerprint(t->edge->tokenizer))
            return err_set(err, ERR_ARG,
                           "router train: expected both models to have one vocabulary, found two");
        rc = session_open(&t->writer, t->cloud->model, t->cloud->pool, context_of(t->cloud->model),
                          KVCACHE_F32, err);
    }
    return rc;
}

static void teacher_close(struct teacher *t)
{
    session_close(t->session);
    session_close(t->writer);
    world_close(t->world);
}

/* Let the cloud model answer the prompt greedily, end-of-text included. */
static int router_training_write_answer(uint32_t answer[MAX_ANSWER], size_t *m, struct teacher *t,
                                        const uint32_t *prompt, size_t n, struct err *err)
{
    const struct engine *e = t->cloud;
    session_rewind(t->writer, 0);
    int rc = session_eval(t->writer, prompt, n, &interrupted, err);
    for (*m = 0; rc == OK && *m < MAX_ANSWER;) {
        uint32_t id = (uint32_t)e->kernels.argmax_f32(session_logits(t->writer, 0),
                                                      tokenizer_size(e->tokenizer));
        answer[(*m)++] = id;
        if (tokenizer_is_eog(e->tokenizer, id))
            break;
        rc = session_eval(t->writer, &id, 1, &interrupted, err);
    }
    return rc;
}

/* Set answer to the world's answer and end-of-text. */
static int router_training_read_answer(uint32_t answer[MAX_ANSWER], size_t *m,
                                       const struct teacher *t, const struct world_question *q,
                                       struct err *err)
{
    uint32_t *ids, eos;
    const struct tokenizer *tok = t->edge->tokenizer;
    if (!tokenizer_eos(tok, &eos))
        return err_set(err, ERR_ARG, "router train: the model names no end-of-text token");
    int rc = tokenizer_encode(tok, &ids, m, q->answer, strlen(q->answer), false, err);
    if (rc != OK)
        return rc;
    if (*m < MAX_ANSWER) {
        memcpy(answer, ids, *m * sizeof(*ids));
        answer[(*m)++] = eos;
    } else {
        rc = err_set(err, ERR_ARG, "router train: expected an answer below %d tokens, found %zu",
                     MAX_ANSWER, *m);
    }
    free(ids);
    return rc;
}

/* Collect one sample for each answer token of the questions of a stream. */
static int router_training_collect(struct samples *s, struct teacher *t, uint64_t stream,
                                   size_t questions, struct err *err)
{
    const struct engine *e = t->edge;
    int rc = OK;
    for (size_t i = 0; rc == OK && i < questions; i++) {
        struct world_question q;
        uint32_t *prompt, answer[MAX_ANSWER];
        size_t n, m = 0;
        world_question(&q, t->world, (struct world_filter){ WORLD_TOPICS, WORLD_WORDINGS }, stream,
                       i);
        rc = tokenizer_encode(e->tokenizer, &prompt, &n, q.prompt, strlen(q.prompt), false, err);
        if (rc != OK)
            break;
        rc = t->writer ? router_training_write_answer(answer, &m, t, prompt, n, err)
                       : router_training_read_answer(answer, &m, t, &q, err);
        if (rc == OK)
            rc = samples_collect(s, t->session, t->o->tap, prompt, n, answer, m,
                                 tokenizer_size(e->tokenizer), (uint32_t)i, &e->kernels,
                                 &interrupted, err);
        free(prompt);
        if (!t->o->quiet && ((i + 1) % 500 == 0 || i + 1 == questions))
            fprintf(stderr, "router: %zu of %zu questions read\n", i + 1, questions);
    }
    return rc;
}

/* Callback of fit_router: print the losses of an epoch. */
static void show_epoch(void *arg, const struct fit_epoch *e)
{
    (void)arg;
    fprintf(stderr, "router: epoch %zu: loss %.4f, held out %.4f%s\n", e->epoch, e->loss,
            e->held_loss, e->best ? " (best)" : "");
}

/* Set the threshold on questions that were not used for training. */
static int calibrate(struct router_form *f, struct router_training_report *report,
                     struct teacher *t, struct err *err)
{
    struct samples s = { .dim = model_config(t->edge->model)->hidden };
    struct router *r = NULL;
    float *score = NULL;
    int rc = router_training_collect(&s, t, world_calibration_stream(CALIBRATE_SEED),
                                     t->o->calibration, err);
    if (rc == OK)
        rc = router_make(&r, f, "trained router", &t->edge->kernels, err);
    if (rc == OK && !(score = calloc(s.n + 1, sizeof(*score))))
        rc = err_set(err, ERR_NOMEM, "router train: out of memory");
    if (rc == OK)
        rc = samples_score(score, &s, r, err);
    if (rc == OK)
        rc = samples_auc(&report->auc, score, s.label, s.n, err);
    if (rc == OK)
        rc = samples_calibrate(&report->cut, score, s.label, s.n, t->o->most, t->o->cover, err);
    report->tokens = s.n;
    for (size_t i = 0; i < s.n; i++)
        report->wrong += !s.label[i];
    f->has_threshold = rc == OK;
    f->threshold = report->cut.threshold;
    free(score);
    router_close(r);
    samples_close(&s);
    return rc;
}

int router_training_run(struct router_form *out, struct router_training_report *report,
                        const struct engine *edge, const struct engine *cloud,
                        const struct router_training_options *o, struct err *err)
{
    struct teacher t = { .edge = edge, .cloud = cloud, .o = o };
    struct samples s = { .dim = model_config(edge->model)->hidden };
    struct fit_options fit;
    fit_defaults(&fit);
    fit.head = o->head;
    fit.width = o->width;
    fit.seed = o->seed;
    fit.stop = &interrupted;
    fit.progress = o->quiet ? NULL : show_epoch;
    *out = (struct router_form){ 0 };
    *report = (struct router_training_report){ 0 };
    int rc =
        o->questions && o->calibration
            ? teacher_open(&t, err)
            : err_set(err, ERR_ARG, "router train: expected at least one question of each kind");
    if (rc == OK)
        rc = router_training_collect(&s, &t, TRAIN_STREAM, o->questions, err);
    if (rc == OK)
        rc = fit_router(out, &report->fit, &s, &fit, &edge->kernels, edge->pool, err);
    samples_close(&s);
    if (rc == OK) {
        out->tap = o->tap;
        engine_sign(&out->about, edge);
        snprintf(out->about.task, sizeof(out->about.task), "milli");
        rc = calibrate(out, report, &t, err);
    }
    teacher_close(&t);
    if (rc != OK)
        router_form_close(out);
    return rc;
}
