/* cmd_router_calibrate.c - `mizzle router calibrate`: set a router's threshold. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/kv.h"
#include "kernels/sys/base.h"
#include "router/learn/form_save.h"
#include "router/router.h"
#include "tools/cli/output_file.h"
#include "tools/cli/progress.h"
#include "tools/cli/setup.h"
#include "tools/command.h"
#include "tools/lab/eval/eval_calibrate.h"
#include "tools/lab/eval/statistics.h"
#include "tools/lab/tasks/task_options.h"

enum { QUESTIONS = 400 };

static const char *out_path;
static size_t questions, max_tokens; /* 0: not given */
static float target_routed = NAN;
static bool quiet;

static const struct option_group calibrate_opts = {
    "Calibration",
    (const struct option[]){
        { "--router", NULL, OPTION_STR, &shared_options.router, "FILE",
          "Set the threshold of this router; required" },
        { "--output", "-o", OPTION_STR, &out_path, "FILE",
          "Write the router to this file (default: replace that of --router)" },
        { "--target-routed", NULL, OPTION_FLOAT, &target_routed, "X",
          "Route this share of the tokens, 0 to 1; required" },
        { "--questions", NULL, OPTION_COUNT, &questions, "N",
          "Ask N questions, of a file spread evenly (default: 400, or all if there are fewer)" },
        { "--n-predict", "-n", OPTION_COUNT, &max_tokens, "N",
          "Limit each answer to N tokens (default: 512; milli: 96)" },
        OPTION_ROW_PARALLEL,
        OPTION_ROW_QUIET(&quiet),
        OPTION_END,
    },
};

static const struct option_group *const groups[] = { &calibrate_opts,      &task_option_rows,
                                                     &chat_option_rows,    &engine_option_rows,
                                                     &cloud_option_rows,   &cloud_call_option_rows,
                                                     &answers_option_rows, NULL };

/* Everything that one calibration needs and finds. */
struct calibrating {
    struct asking asking;
    struct eval_items items;
    struct eval_calibration run;
    struct calibration *calibration;
    struct progress *progress;
    struct eval_entry router; /* the router's policy */
    struct calibrate_result edge, found;
};

/* Refuse what contradicts itself or is out of range; read the form of prompts. */
static int cmd_router_calibrate_check(struct err *err)
{
    if (!shared_options.router || isnan(target_routed))
        return err_set(err, ERR_ARG, "expected --router FILE and --target-routed X");
    if (!(target_routed >= 0 && target_routed <= 1))
        return err_set(err, ERR_ARG, "--target-routed: expected 0 to 1, found %g",
                       (double)target_routed);
    if (strcmp(shared_options.cloud, "required") != 0)
        return err_set(err, ERR_ARG, "--cloud: expected required, found %s", shared_options.cloud);
    shared_task.stream = TASK_CALIBRATE;
    return task_form_parse(&shared_task, shared_task.prompt, err);
}

/* Choose n items of the task, spread evenly. */
static int choose_items(struct eval_items *items, struct err *err)
{
    size_t size = task_size(items->task), n = items->n;
    if (n > size)
        return err_set(err, ERR_ARG, "--questions: expected at most %zu, as %s has, found %zu",
                       size, shared_task.data, n);
    items->at = calloc(n, sizeof(*items->at));
    if (!items->at)
        return err_set(err, ERR_NOMEM, "out of memory");
    /* This is i * size / n, written so that the product cannot overflow. */
    for (size_t i = 0; i < n; i++)
        items->at[i] = size == SIZE_MAX ? i : i * (size / n) + i * (size % n) / n;
    return OK;
}

/* Open task, models and calibration. A failing cloud ends the calibration. */
static int cmd_router_calibrate_open(struct calibrating *c, struct err *err)
{
    struct eval_items *items = &c->items;
    int rc = task_open(&items->task, &shared_task, err);
    if (rc != OK)
        return rc;
    size_t most = task_size(items->task) < QUESTIONS ? task_size(items->task) : QUESTIONS;
    items->n = questions ? questions : most;
    rc = choose_items(items, err);
    if (rc == OK)
        rc = asking_open(&c->asking, NULL, max_tokens, shared_task.seed, err);
    if (rc != OK)
        return rc;
    if (!routing_port(&c->asking.routing))
        return err_set(err, ERR_NET, "calibration needs a cloud: give --cloud-url");
    c->progress = quiet ? NULL : progress_begin("reading", "the questions");
    c->run = (struct eval_calibration){
        .asking = &c->asking, .items = items, .progress = c->progress, .number = 1, .all = 1
    };
    c->router = (struct eval_entry){ .policy = c->asking.routing.how.policy, .label = "router" };
    return asking_prepare(&c->asking, items->task, items->at, items->n, err);
}

static void cmd_router_calibrate_close(struct calibrating *c)
{
    calibrate_close(c->calibration);
    progress_end(c->progress);
    asking_close(&c->asking);
    task_close(c->items.task);
    free(c->items.at);
}

/* Find the threshold, and what the edge reaches alone. */
static int find_threshold(struct calibrating *c, struct err *err)
{
    const struct calibrate_source source = eval_calibration_source(&c->run, &c->router);
    int rc = calibrate_open(&c->calibration, &source, err);
    if (rc == OK)
        rc = calibrate_find(&c->found, c->calibration, (double)target_routed, err);
    if (rc == OK)
        rc = calibrate_at(&c->edge, c->calibration, 0, err);
    progress_end(c->progress);
    c->progress = NULL;
    if (rc != ERR_NET && rc != ERR_REMOTE)
        return rc;
    const struct err why = *err;
    return err_set(err, rc,
                   "%.300s; a token was not given, after %zu of %zu answers of a pass; the same "
                   "command begins again, and with --answers FILE asks for nothing twice",
                   why.msg, c->run.answered, c->items.n);
}

/* Write the router with its threshold and what it was calibrated for. */
static int save_router(const struct calibrating *c, struct err *err)
{
    const struct engine *e = &c->asking.engine;
    struct router_form form;
    int rc = router_form_read(&form, shared_options.router, err);
    if (rc != OK)
        return rc;
    form.has_threshold = form.about.has_share = true;
    form.threshold = c->found.threshold;
    form.about.share = (float)c->found.share;
    form.about.has_model = true;
    form.about.model = model_fingerprint(e->model, e->tokenizer);
    snprintf(form.about.name, sizeof(form.about.name), "%s", e->name);
    snprintf(form.about.weights, sizeof(form.about.weights), "%s", e->weights ? e->weights : "");
    if (!strchr(form.about.task, '+')) /* one that learnt several tasks goes on to say so */
        snprintf(form.about.task, sizeof(form.about.task), "%s", task_name(c->items.task));
    rc = form_save(out_path ? out_path : shared_options.router, &form, err);
    router_form_close(&form);
    return rc;
}

/* Print "NAME  X %   (95 %: LOW - HIGH)". */
static void print_accuracy(const char *name, size_t right, size_t answers)
{
    if (!answers)
        return;
    struct statistics_interval i = statistics_wilson(right, answers);
    printf("%-15s %.2f %% (95 %% interval: %.2f - %.2f %%)\n", name,
           100 * (double)right / (double)answers, 100 * i.low, 100 * i.high);
}

/* Say how far the share of other questions may be from this one. */
static void print_share(const struct calibrate_result *r)
{
    double half = 1.959964 * r->share_error, low = r->share - half, high = r->share + half;
    if (r->share_error > 0)
        printf("%-15s %.2f - %.2f %% of the tokens of other questions like these (95 %% interval); "
               "closed loop: edge, router and cloud wrote the answers together\n",
               "expect", 100 * (low > 0 ? low : 0), 100 * (high < 1 ? high : 1));
}

static void print_found(const struct calibrating *c)
{
    const struct calibrate_result *r = &c->found;
    printf("%-15s %s, %zu answers, %zu left out, %zu tokens\n", "calibrated on",
           task_name(c->items.task), r->answers, c->items.n - r->answers, r->tokens);
    printf("%-15s %s, keys and values in %s\n", "model", c->asking.engine.name,
           kvcache_name(c->asking.kv));
    printf("%-15s %.6f\n", "threshold", (double)r->threshold);
    printf("%-15s %.2f %% of the tokens%s\n", "routed", 100 * r->share,
           r->reached ? "" : ", the nearest share below the target");
    print_share(r);
    print_accuracy("accuracy", r->right, r->answers);
    print_accuracy("edge alone", c->edge.right, c->edge.answers);
    printf("%-15s %s\n", "written to", out_path ? out_path : shared_options.router);
}

/* Calibrate with checked options; *status is what the command ends with if the result is OK. */
static int cmd_router_calibrate_run(struct calibrating *c, int *status, struct err *err)
{
    int rc = output_file_check(out_path ? out_path : shared_options.router, err);
    if (rc == OK)
        rc = cmd_router_calibrate_open(c, err);
    if (rc == OK)
        rc = find_threshold(c, err);
    if (rc != OK)
        return rc;
    const struct calibrate_result *r = &c->found;
    if (!r->reached && (r->share <= 0 || r->share > (double)target_routed)) {
        fprintf(stderr,
                "mizzle router calibrate: --target-routed %g: the scores do not tell the tokens "
                "apart: any threshold routes none of them or far more\n",
                (double)target_routed);
        *status = EXIT_FAILED;
        return OK;
    }
    rc = save_router(c, err);
    if (rc == OK)
        print_found(c);
    return rc;
}

static void cmd_router_calibrate_begin(void)
{
    shared_options.cloud = "required";
}

static int cmd_router_calibrate_main(int n, char **args, struct err *err)
{
    struct calibrating c = { .found = { 0 } };
    (void)n, (void)args;
    int rc = cmd_router_calibrate_check(err);
    if (rc != OK)
        return rc;
    setup_catch_interrupts();
    int status = EXIT_FINE;
    rc = cmd_router_calibrate_run(&c, &status, err);
    cmd_router_calibrate_close(&c);
    return rc == OK ? status : rc;
}

const struct command cmd_router_calibrate = {
    .name = "router calibrate",
    .summary = "set a router's threshold for a share of the tokens",
    .description =
        "Runs edge, router and cloud on the calibration questions and finds the threshold for a "
        "share of the tokens. Every figure is measured on answers written at the threshold, "
        "because cloud tokens change the text and so the scores. The router file gets "
        "threshold, share, task and the model's fingerprint; with another model it is refused "
        "(status 3).\n\n"
        "If the share cannot be met, one line says so, the status is 1, and no file is written.\n\n"
        "  mizzle router calibrate --router r.safetensors --target-routed 0.05",
    .groups = groups,
    .begin = cmd_router_calibrate_begin,
    .run = cmd_router_calibrate_main,
};
