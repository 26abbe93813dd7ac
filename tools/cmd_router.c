/* cmd_router.c - `mizzle router`: import, apply or train a router. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "tools/command.h"
#include "tools/cli/output_file.h"
#include "tools/cli/setup.h"
#include "tools/demo/router_training.h"

static const char *router_path, *hidden_path, *out_path, *cloud_path, *tap_name = "final";
static size_t questions = SIZE_MAX, calibration = SIZE_MAX, width; /* SIZE_MAX: not given */
static uint64_t seed = 1;
static bool quiet;
static float most = TEACH_MOST, cover = TEACH_COVER;

static const struct option_group file_opts = {
    "Files",
    (const struct option[]){
        { "--router", NULL, OPTION_STR, &router_path, "FILE", "score: apply this router" },
        { "--hidden", NULL, OPTION_STR, &hidden_path, "FILE",
          "score: read hidden states from this file, raw little-endian f32 [n][dim]" },
        { "--output", "-o", OPTION_STR, &out_path, "FILE",
          "score: write the scores as raw f32 [n]; train: write the router as safetensors" },
        { NULL, NULL, OPTION_FLAG, NULL, NULL, NULL },
    },
};

static const struct option_group train_opts = {
    "Training",
    (const struct option[]){
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

static const struct option_group *const groups[] = { &file_opts, &train_opts, &engine_option_rows,
                                                     NULL };

/* Report wrong usage and return the status. */
static int cmd_router_usage(const char *what)
{
    struct err err;
    return command_fail("router", err_set(&err, ERR_ARG, "%s; see mizzle router --help", what),
                        &err);
}

/* `mizzle router import`: convert a checkpoint. */
static int cmd_router_import(int nargs, char **args)
{
    struct err err = { "" };
    if (nargs != 2)
        return cmd_router_usage("import: expected IN.pth and OUT.safetensors");
    int rc = router_import(args[0], args[1], &err);
    return rc == OK ? EXIT_FINE : command_fail("router", rc, &err);
}

/* Score each row of the open file `from` and write the score to `to`. */
static int score_rows(FILE *to, FILE *from, const struct router *r, struct err *err)
{
    size_t dim = router_dim(r), n = 0;
    float *x = malloc(dim * sizeof(*x)), *scratch = malloc(router_scratch(r) * sizeof(*scratch));
    int rc = x && scratch ? OK : err_set(err, ERR_NOMEM, "out of memory");
    while (rc == OK && (n = fread(x, 1, dim * sizeof(*x), from)) == dim * sizeof(*x)) {
        float y = router_score(r, x, scratch);
        if (fwrite(&y, sizeof(y), 1, to) != 1)
            rc = err_set(err, ERR_IO, "%s: %s", out_path, strerror(errno));
    }
    if (rc == OK && ferror(from))
        rc = err_set(err, ERR_IO, "%s: cannot be read", hidden_path);
    else if (rc == OK && n)
        rc = err_set(err, ERR_FORMAT, "%s: expected rows of %zu f32 values, found %zu bytes over",
                     hidden_path, dim, n);
    free(x);
    free(scratch);
    return rc;
}

/* `mizzle router score`: open the router and both files, then score all rows. */
static int cmd_router_score(int nargs)
{
    struct err err = { "" };
    struct kernels k;
    struct router *r = NULL;
    if (nargs || !router_path || !hidden_path || !out_path)
        return cmd_router_usage("score: expected --router, --hidden and -o");
    int rc = setup_kernels(&k, &err);
    if (rc == OK)
        rc = router_open(&r, router_path, &k, &err);
    if (rc != OK)
        return command_fail("router", rc, &err);
    FILE *from = fopen(hidden_path, "rb");
    struct output_file to = { .f = NULL };
    rc = from ? output_file_open(&to, out_path, &err)
              : err_set(&err, ERR_IO, "%s: %s", hidden_path, strerror(errno));
    if (rc == OK)
        rc = score_rows(to.f, from, r, &err);
    int closed = output_file_close(&to, rc == OK, rc == OK ? &err : NULL);
    rc = rc == OK ? closed : rc;
    if (from)
        fclose(from);
    router_close(r);
    return rc == OK ? EXIT_FINE : command_fail("router", rc, &err);
}

/* Print the results of training. */
static void print_report(const struct router_training_report *r)
{
    printf("trained on      %zu tokens, %zu held out; best of %zu epochs: %zu\n", r->fit.trained,
           r->fit.held, r->fit.epochs, r->fit.best);
    printf("held-out AUC    %.4f\n", r->fit.held_auc);
    printf("calibrated on   %zu tokens, %zu wrong at the edge; AUC %.4f\n", r->tokens, r->wrong,
           r->auc);
    printf("threshold       %.6f\n", (double)r->cut.threshold);
    printf("routed          %.2f %% of the tokens\n", 100 * r->cut.routed);
    printf("errors caught   %.2f %%\n", 100 * r->cut.caught);
}

/* Train with checked options: open the models, train, save the router, print the report. The output
 * path is checked first, because training takes minutes. */
static int cmd_router_teach(struct router_training_options *o)
{
    struct err err = { "" };
    struct engine edge, cloud;
    struct router_form form = { 0 };
    struct router_training_report report;
    int rc = output_file_check(out_path, &err);
    if (rc == OK)
        rc = setup_engine(&edge, NULL, true, &err);
    if (rc != OK)
        return command_fail("router", rc, &err);
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
        return command_fail("router", rc, &err);
    print_report(&report);
    return EXIT_FINE;
}

/* `mizzle router train`: check the options and train. */
static int cmd_router_train(int nargs)
{
    struct router_training_options o;
    if (nargs || !out_path)
        return cmd_router_usage("train: expected -o");
    router_training_defaults(&o);
    if (!strcmp(tap_name, router_tap_name(TAP_POST_ATTN)))
        o.tap = TAP_POST_ATTN;
    else if (strcmp(tap_name, router_tap_name(TAP_FINAL)) != 0)
        return cmd_router_usage("--tap: expected final or post_attn");
    if (!(most >= 0 && most <= 1 && cover >= 0 && cover <= 1))
        return cmd_router_usage("--share, --cover: expected 0 to 1");
    o.questions = questions != SIZE_MAX ? questions : o.questions;
    o.calibration = calibration != SIZE_MAX ? calibration : o.calibration;
    o.width = width;
    o.most = (double)most;
    o.cover = (double)cover;
    o.seed = seed;
    o.quiet = quiet;
    setup_catch_interrupts();
    return cmd_router_teach(&o);
}

static int cmd_router_main(int argc, char **argv)
{
    int nargs = 0, status = options_parse(&cmd_router, argc, argv, &nargs);
    if (status >= 0)
        return status;
    if (nargs && !strcmp(argv[1], "import"))
        return cmd_router_import(nargs - 1, argv + 2);
    if (nargs && !strcmp(argv[1], "score"))
        return cmd_router_score(nargs - 1);
    if (nargs && !strcmp(argv[1], "train"))
        return cmd_router_train(nargs - 1);
    return cmd_router_usage("expected import, score or train");
}

const struct command cmd_router = {
    .name = "router",
    .summary = "import, apply or train the router that decides token by token",
    .args = "import IN.pth OUT.safetensors | score | train",
    .description =
        "import converts CITER's PyTorch checkpoint to safetensors. It runs no code from the "
        "checkpoint and folds its layers into two.\n\n"
        "score applies a router (safetensors or .pth) to rows of hidden states, as written by "
        "mizzle logits --hidden.\n\n"
        "train runs the small model over answers from the training questions of the demo world "
        "and collects its hidden states. It learns where the model's own next token would be "
        "wrong, sets the threshold on other questions, and prints the share of routed tokens "
        "and of errors caught. Without -m it trains for the demo's small model.\n\n"
        "  mizzle router import router.pth router.safetensors\n"
        "  mizzle router score --router router.safetensors --hidden x.f32 -o y.f32\n"
        "  mizzle router train -m edge.gguf -o edge.router.safetensors",
    .groups = groups,
    .run = cmd_router_main,
};
