#include "router/learn/form_save.h"
#include "tools/lab/learn/training.h"

#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "kernels/kernels.h"
#include "kernels/sys/base.h"
#include "kernels/sys/pool.h"
#include "router/learn/sample_files.h"
#include "tools/cli/json_report.h"
#include "tools/cli/output_file.h"
#include "tools/cli/setup.h"

enum { PATH = 4096 };

/* Callback of fit_router: print the losses of an epoch. */
static void training_epoch(const struct fit_epoch *e)
{
    fprintf(stderr, "router: epoch %zu: loss %.4f, held out %.4f%s\n", e->epoch, e->loss,
            e->held_loss, e->best ? " (best)" : "");
}

/* Read all folders. */
static int training_read(struct samples *s, struct sample_meta *meta,
                         const struct training_options *o, struct err *err)
{
    int rc = OK;
    for (size_t i = 0; rc == OK && o->samples[i]; i++)
        rc = sample_files_read(s, meta, o->samples[i], err);
    if (rc == OK && fit_head_gains(o->fit.head) && strcmp(meta->labels, "gain") != 0)
        rc = err_set(err, ERR_ARG, "--head %s: expected samples of labels gain, found %s in %s",
                     fit_head_name(o->fit.head), meta->labels, meta->dir);
    return rc;
}

/* Say in the router what it was made from, and set its threshold. */
static void training_sign(struct router_form *f, const struct fit_report *r,
                          const struct sample_meta *m)
{
    taps_parse(&f->taps, m->tap);
    f->has_threshold = true;
    f->threshold = r->cut.threshold;
    f->about.has_model = true;
    f->about.model = m->model;
    snprintf(f->about.name, sizeof(f->about.name), "%s", m->edge);
    snprintf(f->about.weights, sizeof(f->about.weights), "%s", m->weights);
    snprintf(f->about.task, sizeof(f->about.task), "%s", m->task);
    /* One that learnt several tasks has no task to be calibrated on, so it says its share. */
    f->about.has_share = strchr(m->task, '+') != NULL;
    f->about.share = f->about.has_share ? (float)r->cut.routed : 0;
}

/* Print the report for people. */
static void training_print(const struct fit_report *r, const struct samples *s,
                           const struct sample_meta *m, const struct training_options *how)
{
    const struct fit_options *o = &how->fit;
    const struct measures *q = &r->measures;
    printf("samples         %zu tokens of %s, labels %s, tap %s, from %s (%s)\n", s->n, m->task,
           m->labels, m->tap, m->edge, m->weights);
    printf("trained on      %zu tokens (%zu wrong), %zu held out (%zu wrong)", r->trained,
           r->trained_wrong, r->held, r->held_wrong);
    if (r->epochs)
        printf("; best of %zu epochs: %zu", r->epochs, r->best);
    if (o->members > 1)
        printf(", of the last of %zu members", o->members);
    printf("\nhead            %s%s\n", fit_head_name(o->head),
           o->shuffle_labels ? ", labels shuffled" : "");
    printf("loss            %.4f, held out %.4f\n", r->loss, r->held_loss);
    printf("held-out AUC    %.4f\n", q->auc);
    if (fit_head_gains(o->head))
        printf("of what mends   AUC %.4f where the models differ, %.4f against what spoils (%zu "
               "tokens, %zu held out)\nrecall          %.2f %% of what mends, at %.1f %% of the "
               "tokens\n",
               r->differ_auc, r->spoils_auc, r->trained_spoils, r->held_spoils, 100 * r->recall,
               100 * FIT_RECALL_AT);
    if (q->context_pairs > 0)
        printf("  equal context %.4f (%.0f pairs that share their last two ids)\n", q->context_auc,
               q->context_pairs);
    if (!fit_head_gains(o->head)) /* whose score is no probability */
        printf("held-out ECE    %.4f (%d bins of equal width)\n", q->ece, MEASURES_BINS);
    printf("held-out score      wrong     right\n");
    for (size_t b = 0; b < MEASURES_BINS; b++)
        printf("  %.1f to %.1f  %12zu  %8zu\n", (double)b / MEASURES_BINS,
               (double)(b + 1) / MEASURES_BINS, q->wrong[b], q->right[b]);
    printf("threshold       %.6f, provisional; router calibrate sets it\n",
           (double)r->cut.threshold);
    printf("routed          %.2f %% of the held-out tokens\n", 100 * r->cut.routed);
    printf("errors caught   %.2f %%\n", 100 * r->cut.caught);
    printf("written to      %s\n", how->out);
}

/* Return the counts of a histogram. */
static json_t *training_bins(const size_t *count)
{
    json_t *list = json_array();
    for (size_t b = 0; b < MEASURES_BINS; b++)
        json_report_add(&list, json_integer((json_int_t)count[b]));
    return list;
}

/* Print the report as one JSON object. */
static int training_json(const struct fit_report *r, const struct samples *s,
                         const struct sample_meta *m, const struct fit_options *o, struct err *err)
{
    const struct measures *q = &r->measures;
    const struct {
        const char *key;
        double value;
    } numbers[] = {
        { "loss", r->loss },
        { "held_loss", r->held_loss },
        { "auc", q->auc },
        { "context_auc", q->context_auc },
        { "context_pairs", q->context_pairs },
        { "ece", fit_head_gains(o->head) ? (double)NAN : q->ece },
        { "differ_auc", r->differ_auc },
        { "spoils_auc", r->spoils_auc },
        { "recall", r->recall },
        { "threshold", (double)r->cut.threshold },
        { "routed", r->cut.routed },
        { "caught", r->cut.caught },
    };
    char model[17];
    snprintf(model, sizeof(model), "%016" PRIx64, m->model);
    json_t *root = json_pack(
        "{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:b, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, "
        "s:I}",
        "head", fit_head_name(o->head), "task", m->task, "labels", m->labels, "tap", m->tap,
        "model", model, "model_name", m->edge, "weights", m->weights, "shuffled",
        (int)o->shuffle_labels, "samples", (json_int_t)s->n, "trained", (json_int_t)r->trained,
        "trained_wrong", (json_int_t)r->trained_wrong, "held", (json_int_t)r->held, "held_wrong",
        (json_int_t)r->held_wrong, "epochs", (json_int_t)r->epochs, "best", (json_int_t)r->best,
        "members", (json_int_t)o->members, "trained_spoils", (json_int_t)r->trained_spoils,
        "held_spoils", (json_int_t)r->held_spoils);
    for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
        json_report_set(&root, numbers[i].key, json_report_real(numbers[i].value));
    json_report_set(&root, "histogram_wrong", training_bins(q->wrong));
    json_report_set(&root, "histogram_right", training_bins(q->right));
    return json_report_print("router train", root, JSON_COMPACT | JSON_REAL_PRECISION(9), "", "",
                             err);
}

/* Train once and save the router. */
static int training_fit(struct fit_report *report, const struct training_options *o,
                        const struct samples *s, const struct sample_meta *m,
                        const struct kernels *k, struct pool *pool, struct err *err)
{
    struct router_form f = { 0 };
    struct fit_options fit = o->fit;
    fit.stop = &interrupted;
    fit.progress = o->quiet ? NULL : training_epoch;
    int rc = fit_router(&f, report, s, &fit, k, pool, err);
    if (rc == OK) {
        training_sign(&f, report, m);
        rc = form_save(o->out, &f, err);
    }
    router_form_close(&f);
    return rc;
}

/* Train as often as is asked for, and report each time. */
static int training_all(struct training_options o, const struct samples *s,
                        const struct sample_meta *m, const struct kernels *k, struct pool *pool,
                        struct err *err)
{
    char out[PATH];
    const char *file = o.out;
    bool several = o.fit.resample = o.repeats > 1;
    int rc = OK;
    for (size_t i = 1; rc == OK && i <= o.repeats; i++, o.fit.seed += o.fit.members) {
        struct fit_report report;
        if (several && (size_t)snprintf(out, sizeof(out), "%s.%zu", file, i) >= sizeof(out))
            return err_set(err, ERR_ARG, "-o %s: the path is too long", file);
        o.out = several ? out : file;
        rc = training_fit(&report, &o, s, m, k, pool, err);
        if (rc == OK && o.json)
            rc = training_json(&report, s, m, &o.fit, err);
        else if (rc == OK)
            training_print(&report, s, m, &o);
    }
    return rc;
}

int training_run(const struct training_options *o, struct err *err)
{
    struct samples s = { 0 };
    struct sample_meta meta = { 0 };
    struct kernels k;
    struct pool *pool = NULL;
    int rc = output_file_check(o->out, err); /* before training, which takes a while */
    if (rc == OK)
        rc = training_read(&s, &meta, o, err);
    if (rc == OK)
        rc = setup_kernels(&k, err);
    if (rc == OK)
        rc = pool_open(&pool, shared_options.engine.threads, err);
    if (rc == OK)
        rc = training_all(*o, &s, &meta, &k, pool, err);
    pool_close(pool);
    samples_close(&s);
    return rc;
}
