/* cmd_router_train.c - `mizzle router train`: train a router. */
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "kernels/kernels.h"
#include "kernels/sys/base.h"
#include "kernels/sys/pool.h"
#include "router/learn/fit.h"
#include "router/learn/form_save.h"
#include "router/learn/sample_files.h"
#include "tools/command.h"
#include "tools/cli/json_report.h"
#include "tools/cli/output_file.h"
#include "tools/cli/setup.h"

static struct fit_options fit;
static struct option_list folders;
static const char *labels = "own", *head_name, *out;
static size_t repeats = 1, epochs = SIZE_MAX; /* SIZE_MAX: not given */
static bool json, quiet;

static const struct option_group sample_opts = {
    "Samples and machine",
    (const struct option[]){
        { "--samples", NULL, OPTION_LIST, &folders, "DIR",
          "Train on the samples in this folder, as router collect writes them; required, can be "
          "repeated" },
        OPTION_ROW_THREADS,
        OPTION_ROW_ISA("the best"),
        OPTION_END,
    },
};

static const struct option_group train_opts = {
    "Training",
    (const struct option[]){
        { "--output", "-o", OPTION_STR, &out, "FILE",
          "Write the router to this file, as safetensors" },
        { "--head", NULL, OPTION_STR, &head_name, "NAME",
          "Train an mlp on the hidden state (mlp), a table of the last two ids (context), an mlp "
          "on that table and the model's confidence (combined), an mlp on all of these (mix), or "
          "an mlp that judges the whole answer at its first token (query); for labels gain an mlp "
          "for the chances to mend and to spoil the answer (gain), or this without the hidden "
          "state (gain-none) (default: mlp)" },
        { "--share", NULL, OPTION_FLOAT, &fit.most, "X",
          "Route at most this share of the tokens (default: 0.05)" },
        { "--width", NULL, OPTION_COUNT, &fit.width, "N",
          "Give the hidden layer N units; not for context (default: twice the number of its "
          "inputs)" },
        { "--seed", "-s", OPTION_U64, &fit.seed, "N",
          "Seed for the held-out split, the initial weights and the training order (default: 1)" },
        { "--repeats", NULL, OPTION_COUNT, &repeats, "N",
          "Train N routers, FILE.1 to FILE.N, with seeds from --seed on. Each draws its own "
          "subjects of the samples, as many as there are, with replacement. `mizzle eval` takes "
          "each by its name, tools/lab/study/table.py takes all (default: 1, which writes FILE "
          "from all subjects)" },
        { "--members", NULL, OPTION_COUNT, &fit.members, "N",
          "Train N networks as one router, at most 16, whose score is their mean. Each draws its "
          "own subjects, as with --repeats; all hold out the same subjects. The file has at most 4 "
          "MB, so --width must be small (default: 1)" },
        { "--epochs", NULL, OPTION_SIZE, &epochs, "N",
          "Make at most N passes; training ends 5 passes after the best one (default: 40)" },
        { "--labels", NULL, OPTION_STR, &labels, "KIND",
          "Train on the samples' own labels, or shuffled as a control: the AUC must be near 0.5 "
          "(default: own)" },
        { "--json", NULL, OPTION_FLAG, &json, NULL, "Print the report as one JSON object" },
        OPTION_ROW_QUIET(&quiet),
        OPTION_END,
    },
};

static const struct option_group *const groups[] = { &train_opts, &sample_opts, NULL };

/* Return what is wrong with the options, or NULL. Reads the names that options have. */
static const char *cmd_router_train_check(void)
{
    if (!out || !folders.n)
        return "expected -o FILE and --samples DIR";
    if (!(fit.most >= 0 && fit.most <= 1))
        return "--share: expected 0 to 1";
    if (head_name && !fit_head_parse(&fit.head, head_name))
        return "--head: expected mlp, context, combined, mix, query, gain or gain-none";
    if (fit.width && fit.head == FIT_CONTEXT)
        return "--width: expected another --head than context";
    if (fit.members > ROUTER_MEMBERS || (fit.members > 1 && fit.head == FIT_CONTEXT))
        return "--members: expected 1 to 16, and another --head than context";
    if (strcmp(labels, "own") != 0 && strcmp(labels, "shuffled") != 0)
        return "--labels: expected own or shuffled";
    fit.shuffle_labels = strcmp(labels, "shuffled") == 0;
    if (!epochs)
        return "--epochs: expected at least 1, found 0";
    if (epochs != SIZE_MAX && fit.head == FIT_CONTEXT)
        return "--epochs: expected another --head than context, which is counted";
    fit.epochs = epochs != SIZE_MAX ? epochs : fit.epochs;
    return NULL;
}

static void cmd_router_train_begin(void)
{
    fit_defaults(&fit);
}

enum { PATH = 4096 };

/* Callback of fit_router: print the losses of an epoch. */
static void training_epoch(const struct fit_epoch *e)
{
    fprintf(stderr, "router: epoch %zu: loss %.4f, held out %.4f%s\n", e->epoch, e->loss,
            e->held_loss, e->best ? " (best)" : "");
}

/* Read all folders. */
static int training_read(struct samples *s, struct sample_meta *meta, struct err *err)
{
    int rc = OK;
    for (size_t i = 0; rc == OK && folders.at[i]; i++)
        rc = sample_files_read(s, meta, folders.at[i], err);
    if (rc == OK && fit_head_gains(fit.head) && strcmp(meta->labels, "gain") != 0)
        rc = err_set(err, ERR_ARG, "--head %s: expected samples of labels gain, found %s in %s",
                     fit_head_name(fit.head), meta->labels, meta->dir);
    return rc;
}

/* Say in the router what it was made from, and set its threshold. */
static void training_sign(struct router_form *f, const struct fit_report *r,
                          const struct sample_meta *m)
{
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
                           const struct sample_meta *m, const char *file)
{
    const struct measures *q = &r->measures;
    printf("samples         %zu tokens of %s, labels %s, tap %s, from %s (%s)\n", s->n, m->task,
           m->labels, m->tap, m->edge, m->weights);
    printf("trained on      %zu tokens (%zu wrong), %zu held out (%zu wrong)", r->trained,
           r->trained_wrong, r->held, r->held_wrong);
    if (r->epochs)
        printf("; best of %zu epochs: %zu", r->epochs, r->best);
    if (fit.members > 1)
        printf(", of the last of %zu members", fit.members);
    printf("\nhead            %s%s\n", fit_head_name(fit.head),
           fit.shuffle_labels ? ", labels shuffled" : "");
    printf("loss            %.4f, held out %.4f\n", r->loss, r->held_loss);
    printf("held-out AUC    %.4f\n", q->auc);
    if (fit_head_gains(fit.head))
        printf("of what mends   AUC %.4f where the models differ, %.4f against what spoils (%zu "
               "tokens, %zu held out)\nrecall          %.2f %% of what mends, at %.1f %% of the "
               "tokens\n",
               r->differ_auc, r->spoils_auc, r->trained_spoils, r->held_spoils, 100 * r->recall,
               100 * FIT_RECALL_AT);
    if (q->context_pairs > 0)
        printf("  equal context %.4f (%.0f pairs that share their last two ids)\n", q->context_auc,
               q->context_pairs);
    if (!fit_head_gains(fit.head)) /* whose score is no probability */
        printf("held-out ECE    %.4f (%d bins of equal width)\n", q->ece, MEASURES_BINS);
    printf("held-out score      wrong     right\n");
    for (size_t b = 0; b < MEASURES_BINS; b++)
        printf("  %.1f to %.1f  %12zu  %8zu\n", (double)b / MEASURES_BINS,
               (double)(b + 1) / MEASURES_BINS, q->wrong[b], q->right[b]);
    printf("threshold       %.6f, provisional; router calibrate sets it\n",
           (double)r->cut.threshold);
    printf("routed          %.2f %% of the held-out tokens\n", 100 * r->cut.routed);
    printf("errors caught   %.2f %%\n", 100 * r->cut.caught);
    printf("written to      %s\n", file);
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
                         const struct sample_meta *m, struct err *err)
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
        { "ece", fit_head_gains(fit.head) ? (double)NAN : q->ece },
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
        "head", fit_head_name(fit.head), "task", m->task, "labels", m->labels, "tap", m->tap,
        "model", model, "model_name", m->edge, "weights", m->weights, "shuffled",
        (int)fit.shuffle_labels, "samples", (json_int_t)s->n, "trained", (json_int_t)r->trained,
        "trained_wrong", (json_int_t)r->trained_wrong, "held", (json_int_t)r->held, "held_wrong",
        (json_int_t)r->held_wrong, "epochs", (json_int_t)r->epochs, "best", (json_int_t)r->best,
        "members", (json_int_t)fit.members, "trained_spoils", (json_int_t)r->trained_spoils,
        "held_spoils", (json_int_t)r->held_spoils);
    for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
        json_report_set(&root, numbers[i].key, json_report_real(numbers[i].value));
    json_report_set(&root, "histogram_wrong", training_bins(q->wrong));
    json_report_set(&root, "histogram_right", training_bins(q->right));
    return json_report_print("router train", root, JSON_COMPACT | JSON_REAL_PRECISION(9), "", "",
                             err);
}

/* Train as often as is asked for; save the routers, and report each time. */
static int training_all(const struct samples *s, const struct sample_meta *m,
                        const struct kernels *k, struct pool *pool, struct err *err)
{
    char file[PATH];
    int rc = OK;
    fit.resample = repeats > 1;
    for (size_t i = 1; rc == OK && i <= repeats; i++, fit.seed += fit.members) {
        struct router_form f = { 0 };
        struct fit_report report;
        int n = repeats > 1 ? snprintf(file, sizeof(file), "%s.%zu", out, i)
                            : snprintf(file, sizeof(file), "%s", out);
        if ((size_t)n >= sizeof(file))
            return err_set(err, ERR_ARG, "-o %s: the path is too long", out);
        rc = fit_router(&f, &report, s, &fit, k, pool, err);
        if (rc == OK) {
            training_sign(&f, &report, m);
            rc = form_save(file, &f, err);
        }
        router_form_close(&f);
        if (rc == OK && json)
            rc = training_json(&report, s, m, err);
        else if (rc == OK)
            training_print(&report, s, m, file);
    }
    return rc;
}

static int cmd_router_train_main(int n, char **args, struct err *err)
{
    const char *bad = cmd_router_train_check();
    struct samples s = { 0 };
    struct sample_meta meta = { 0 };
    struct kernels k;
    struct pool *pool = NULL;
    (void)n, (void)args;
    int rc = bad ? err_set(err, ERR_ARG, "%s; see mizzle router train --help", bad)
                 : output_file_check(out, err); /* before training, which takes a while */
    setup_catch_interrupts();
    fit.stop = &interrupted;
    fit.progress = quiet ? NULL : training_epoch;
    if (rc == OK)
        rc = training_read(&s, &meta, err);
    if (rc == OK)
        rc = setup_kernels(&k, err);
    if (rc == OK)
        rc = pool_open(&pool, shared_options.engine.threads, err);
    if (rc == OK)
        rc = training_all(&s, &meta, &k, pool, err);
    pool_close(pool);
    samples_close(&s);
    return rc;
}

const struct command cmd_router_train = {
    .name = "router train",
    .summary = "train a router for a small model",
    .description =
        "Learns where the small model's next token is not acceptable, from the samples of router "
        "collect. One subject in five is held out. It prints losses; the AUC of the held-out "
        "tokens, and the same among tokens that share their last two ids; the expected calibration "
        "error (ECE) and a histogram of scores. The router names the model and the task of the "
        "samples. Its threshold is provisional: router calibrate sets it.\n\n"
        "The same samples and seed give the same bytes, with any number of threads.\n\n"
        "  mizzle router train --samples s -o edge.router.safetensors\n"
        "  mizzle router train --samples s --head context -o edge.context.safetensors",
    .groups = groups,
    .begin = cmd_router_train_begin,
    .run = cmd_router_train_main,
};
