/* cmd_router.c - `mizzle router`: the commands on routers; here those that apply one or convert it.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/kernels.h"
#include "kernels/sys/base.h"
#include "router/router.h"
#include "tools/command.h"
#include "tools/cli/output_file.h"
#include "tools/cli/setup.h"

static const char *router_path, *hidden_path, *out_path;

static const struct option_group file_opts = {
    "Files",
    (const struct option[]){
        { "--router", NULL, OPTION_STR, &router_path, "FILE", "Apply this router" },
        { "--hidden", NULL, OPTION_STR, &hidden_path, "FILE",
          "Read hidden states from this file, raw little-endian f32 [n][dim]" },
        { "--output", "-o", OPTION_STR, &out_path, "FILE",
          "Write the scores to this file, raw f32 [n]" },
        OPTION_END,
    },
};

static const struct option_group *const no_groups[] = { NULL };
static const struct option_group *const score_groups[] = { &file_opts, &engine_option_rows, NULL };

static int cmd_router_import_main(int n, char **args, struct err *err)
{
    return n == 2 ? router_import(args[0], args[1], err)
                  : err_set(err, ERR_ARG, "expected IN.pth and OUT.safetensors");
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

/* Open the router and both files, then score all rows. */
static int cmd_router_score_main(int n, char **args, struct err *err)
{
    struct kernels k;
    struct router *r = NULL;
    (void)n, (void)args;
    int rc = !router_path || !hidden_path || !out_path
                 ? err_set(err, ERR_ARG, "expected --router, --hidden and -o")
                 : setup_kernels(&k, err);
    if (rc == OK)
        rc = router_open(&r, router_path, &k, err);
    if (rc == OK && router_is_table(r)) {
        rc = err_set(err, ERR_ARG, "%s: expected a network, found a table, which reads ids",
                     router_path);
        router_close(r);
    }
    if (rc != OK)
        return rc;
    FILE *from = fopen(hidden_path, "rb");
    struct output_file to = { .f = NULL };
    rc = from ? output_file_open(&to, out_path, err)
              : err_set(err, ERR_IO, "%s: %s", hidden_path, strerror(errno));
    if (rc == OK)
        rc = score_rows(to.f, from, r, err);
    int closed = output_file_close(&to, rc == OK, rc == OK ? err : NULL);
    rc = rc == OK ? closed : rc;
    if (from)
        fclose(from);
    router_close(r);
    return rc;
}

static int cmd_router_main(int n, char **args, struct err *err)
{
    (void)n, (void)args;
    return err_set(err, ERR_ARG, "expected a command; see mizzle router --help");
}

const struct command cmd_router = {
    .name = "router",
    .summary = "make or apply the router that decides token by token",
    .args = "COMMAND",
    .description = "Has these commands, each with its own --help:\n\n"
                   "  mizzle router collect    collects samples from a pair of models and a task\n"
                   "  mizzle router train      trains a router on samples\n"
                   "  mizzle router calibrate  sets a router's threshold\n"
                   "  mizzle router import     converts a PyTorch checkpoint of CITER\n"
                   "  mizzle router score      applies a router to hidden states",
    .groups = no_groups,
    .run = cmd_router_main,
    .most = COMMAND_ANY,
};

const struct command cmd_router_import = {
    .name = "router import",
    .summary = "convert a PyTorch checkpoint of CITER to safetensors",
    .args = "IN.pth OUT.safetensors",
    .description = "Converts CITER's PyTorch checkpoint to safetensors. It runs no code from the "
                   "checkpoint and folds its layers into two.\n\n"
                   "  mizzle router import router.pth router.safetensors",
    .groups = no_groups,
    .run = cmd_router_import_main,
    .most = 2,
};

const struct command cmd_router_score = {
    .name = "router score",
    .summary = "apply a router to hidden states",
    .description = "Applies a router (safetensors or .pth) to rows of hidden states, as written by "
                   "mizzle logits --hidden.\n\n"
                   "  mizzle router score --router router.safetensors --hidden x.f32 -o y.f32",
    .groups = score_groups,
    .run = cmd_router_score_main,
};
