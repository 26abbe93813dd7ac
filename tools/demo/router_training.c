#include "tools/demo/router_training.h"

#include <stdlib.h>

#include "kernels/sys/base.h"
#include "tools/cli/setup.h"
#include "tools/demo/world.h"
#include "tools/learn/collecting.h"
#include "tools/learn/training.h"

/* Seeds of the questions; `router collect` has others by default. */
enum { TRAIN_SEED = 1, CALIBRATE_SEED = 1 };

void router_training_defaults(struct router_training_options *o)
{
    *o = (struct router_training_options){
        .world = WORLD_SEED, .questions = 3000, .calibration = 1000, .tap = TAP_FINAL
    };
}

void router_training_fit_defaults(struct fit_options *o)
{
    fit_defaults(o);
    o->most = (double)TEACH_MOST;
    o->cover = (double)TEACH_COVER;
}

/* Collect the samples of one stream. */
static int router_training_collect(struct samples *out, struct sample_meta *meta,
                                   const struct router_training_options *o, enum task_stream stream,
                                   uint64_t seed, size_t questions, struct err *err)
{
    const struct collecting_options c = {
        .task = { .name = "milli", .stream = stream, .seed = seed, .world = o->world },
        .prompt = "citer",
        .labels = COLLECT_DIVERGENT,
        .tap = o->tap,
        .questions = questions,
        .max_tokens = SIZE_MAX,
        .rollouts = SAMPLE_FILES_NO_LIMIT,
        .round = 1,
        .quiet = o->quiet
    };
    /* Only the stand-in of this process gives the same samples everywhere. */
    cloud_option_values.url = "";
    cloud_option_values.model = o->cloud;
    cloud_option_values.tokens = 0; /* as collecting likes it */
    return collecting_samples(out, meta, &c, err);
}

int router_training_open(struct router_training *t, const struct router_training_options *o,
                         struct err *err)
{
    struct sample_meta meta;
    *t = (struct router_training){ .train = { .dim = 0 } };
    if (!o->questions || !o->calibration)
        return err_set(err, ERR_ARG, "router train: expected at least one question of each kind");
    int rc =
        router_training_collect(&t->train, &t->meta, o, TASK_TRAIN, TRAIN_SEED, o->questions, err);
    if (rc == OK)
        rc = router_training_collect(&t->calibration, &meta, o, TASK_CALIBRATE, CALIBRATE_SEED,
                                     o->calibration, err);
    return rc;
}

void router_training_close(struct router_training *t)
{
    samples_close(&t->train);
    samples_close(&t->calibration);
}

/* Set the threshold on questions that were not used for training. */
static int router_training_calibrate(struct router_form *f, struct router_training_report *report,
                                     const struct samples *s, const struct fit_options *o,
                                     const struct kernels *k, struct err *err)
{
    struct router *r = NULL;
    float *score = calloc(s->n + 1, sizeof(*score));
    int rc = score ? OK : err_set(err, ERR_NOMEM, "router train: out of memory");
    if (rc == OK)
        rc = router_make(&r, f, "trained router", k, err);
    if (rc == OK)
        rc = samples_score(score, s, r, err);
    if (rc == OK)
        rc = samples_auc(&report->auc, score, s->label, s->n, err);
    if (rc == OK)
        rc = samples_calibrate(&report->cut, score, s->label, s->n, o->most, o->cover, err);
    report->tokens = s->n;
    for (size_t i = 0; i < s->n; i++)
        report->wrong += !s->label[i];
    f->threshold = report->cut.threshold;
    free(score);
    router_close(r);
    return rc;
}

int router_training_run(struct router_form *out, struct router_training_report *report,
                        const struct router_training *t, const struct fit_options *o,
                        const struct kernels *k, struct pool *pool, struct err *err)
{
    *out = (struct router_form){ 0 };
    *report = (struct router_training_report){ 0 };
    int rc = fit_router(out, &report->fit, &t->train, o, k, pool, err);
    if (rc == OK) {
        training_sign(out, &report->fit, &t->meta);
        rc = router_training_calibrate(out, report, &t->calibration, o, k, err);
    }
    if (rc != OK)
        router_form_close(out);
    return rc;
}
