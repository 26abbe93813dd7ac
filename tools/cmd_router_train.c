/* cmd_router_train.c - `mizzle router train`: train a router. */
#include <stdio.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "tools/command.h"
#include "tools/cli/output_file.h"
#include "tools/cli/setup.h"
#include "tools/demo/router_training.h"

static const char *out_path, *cloud_path, *tap_name = "final";
static size_t questions = SIZE_MAX, calibration = SIZE_MAX, width; /* SIZE_MAX: not given */
static uint64_t seed = 1;
static bool quiet;
static float most = TEACH_MOST, cover = TEACH_COVER;

static const struct option_group train_opts = {
    "Training",
    (const struct option[]){
        { "--output", "-o", OPTION_STR, &out_path, "FILE",
          "Write the router to this file, as safetensors" },
        { "--cloud-model", NULL, OPTION_STR, &cloud_path, "FILE",
          "Train on texts that this model writes (default: on the reference answers of the demo "
          "world)" },
        { "--questions", NULL, OPTION_SIZE, &questions, "N",
          "Train on N questions, a fifth of them held out (default: 3000)" },
        { "--calibration", NULL, OPTION_SIZE, &calibration, "N",
          "Set the threshold on N other questions (default: 1000)" },
        { "--share", NULL, OPTION_FLOAT, &most, "X",
          "Route at most this share of the tokens (default: 0.05)" },
        { "--cover", NULL, OPTION_FLOAT, &cover, "X",
          "Route no more than needed to catch this share of the errors (default: 0.995)" },
        { "--width", NULL, OPTION_SIZE, &width, "N",
          "Give the hidden layer of the MLP N units (default: twice the hidden size)" },
        { "--tap", NULL, OPTION_STR, &tap_name, "NAME",
          "Read this hidden state: final or post_attn (default: final)" },
        { "--seed", "-s", OPTION_U64, &seed, "N",
          "Seed for the held-out split, the initial weights and the training order (default: 1)" },
        { "--quiet", "-q", OPTION_FLAG, &quiet, NULL, "Show no progress on stderr" },
        { NULL, NULL, OPTION_FLAG, NULL, NULL, NULL },
    },
};

static const struct option_group *const groups[] = { &train_opts, &engine_option_rows, NULL };

/* Report wrong usage and return the status. */
static int cmd_router_train_usage(const char *what)
{
    struct err err;
    return command_fail("router train",
                        err_set(&err, ERR_ARG, "%s; see mizzle router train --help", what), &err);
}

/* Print the results of training. */
static void print_report(const struct router_training_report *r)
{
    printf("trained on      %zu tokens, %zu held out; best of %zu epochs: %zu\n", r->fit.trained,
           r->fit.held, r->fit.epochs, r->fit.best);
    printf("held-out AUC    %.4f\n", r->fit.measures.auc);
    printf("calibrated on   %zu tokens, %zu wrong at the edge; AUC %.4f\n", r->tokens, r->wrong,
           r->auc);
    printf("threshold       %.6f\n", (double)r->cut.threshold);
    printf("routed          %.2f %% of the tokens\n", 100 * r->cut.routed);
    printf("errors caught   %.2f %%\n", 100 * r->cut.caught);
}

/* Train with checked options: open the models, train, save the router, print the report. The output
 * path is checked first, because training takes minutes. */
static int cmd_router_train_run(struct router_training_options *o)
{
    struct err err = { "" };
    struct engine edge, cloud;
    struct router_form form = { 0 };
    struct router_training_report report;
    int rc = output_file_check(out_path, &err);
    if (rc == OK)
        rc = setup_engine(&edge, NULL, true, &err);
    if (rc != OK)
        return command_fail("router train", rc, &err);
    rc = cloud_path ? setup_engine(&cloud, cloud_path, true, &err) : OK;
    if (rc == OK) {
        rc = router_training_run(&form, &report, &edge, cloud_path ? &cloud : NULL, o, &err);
        if (cloud_path)
            engine_close(&cloud);
    }
    if (rc == OK)
        rc = router_form_save(out_path, &form, &err);
    router_form_close(&form);
    engine_close(&edge);
    if (rc != OK)
        return command_fail("router train", rc, &err);
    print_report(&report);
    return EXIT_FINE;
}

static int cmd_router_train_main(int argc, char **argv)
{
    struct router_training_options o;
    int nargs = 0, status = options_parse(&cmd_router_train, argc, argv, &nargs);
    if (status >= 0)
        return status;
    if (nargs || !out_path)
        return cmd_router_train_usage("expected -o and no arguments");
    router_training_defaults(&o);
    if (!strcmp(tap_name, router_tap_name(TAP_POST_ATTN)))
        o.tap = TAP_POST_ATTN;
    else if (strcmp(tap_name, router_tap_name(TAP_FINAL)) != 0)
        return cmd_router_train_usage("--tap: expected final or post_attn");
    if (!(most >= 0 && most <= 1 && cover >= 0 && cover <= 1))
        return cmd_router_train_usage("--share, --cover: expected 0 to 1");
    o.questions = questions != SIZE_MAX ? questions : o.questions;
    o.calibration = calibration != SIZE_MAX ? calibration : o.calibration;
    o.width = width;
    o.most = (double)most;
    o.cover = (double)cover;
    o.seed = seed;
    o.quiet = quiet;
    setup_catch_interrupts();
    return cmd_router_train_run(&o);
}

const struct command cmd_router_train = {
    .name = "router train",
    .summary = "train a router for a small model",
    .args = "",
    .description =
        "Runs the small model over answers from the training questions of the demo world and "
        "collects its hidden states. It learns where the model's own next token would be "
        "wrong, sets the threshold on other questions, and prints the share of routed tokens "
        "and of errors caught. Without -m it trains for the demo's small model.\n\n"
        "  mizzle router train -m edge.gguf -o edge.router.safetensors",
    .groups = groups,
    .run = cmd_router_train_main,
};
