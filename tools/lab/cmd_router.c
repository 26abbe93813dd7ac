/* cmd_router.c - `mizzle router`: the commands on routers; here the one that applies one. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "kernels/kernels.h"
#include "kernels/sys/base.h"
#include "router/router.h"
#include "tools/command.h"
#include "tools/cli/output_file.h"
#include "tools/cli/setup.h"

static const char *router_path, *rows_path, *out_path;
static bool raw;

static const struct option_group file_opts = {
    "Files",
    (const struct option[]){
        { "--router", NULL, OPTION_STR, &router_path, "FILE", "Apply this router" },
        { "--hidden", NULL, OPTION_STR, &rows_path, "FILE",
          "Read rows of all that the router reads, raw little-endian f32: the hidden state, and "
          "behind it the features (router/features.h), or R2R's logits, the largest first, and "
          "the embedding of the token" },
        { "--output", "-o", OPTION_STR, &out_path, "FILE",
          "Write the scores to this file, raw f32 [n] (default: print them, one a line)" },
        { "--raw", NULL, OPTION_FLAG, &raw, NULL,
          "Write the network's own values: R2R's and llama-route's are high for critical tokens; "
          "of a gain router P(mends) less P(spoils)" },
        OPTION_END,
    },
};

static const struct option_group machine_opts = {
    "Machine",
    (const struct option[]){ OPTION_ROW_ISA("the best"), OPTION_END },
};

static const struct option_group *const no_groups[] = { NULL };
static const struct option_group *const score_groups[] = { &file_opts, &machine_opts, NULL };

/* Refuse an output that is a file which is read, too. NULL is no file. */
static int differs(const char *path, const char *from, struct err *err)
{
    struct stat to, st;
    if (!path || !from || stat(path, &to) != 0 || stat(from, &st) != 0 || !S_ISREG(to.st_mode) ||
        to.st_dev != st.st_dev || to.st_ino != st.st_ino)
        return OK;
    return err_set(err, ERR_ARG, "%s: input and output are the same file", path);
}

/* Score all rows, of which there must be one. Without a file they are printed. */
static int score_rows(const struct router *r, FILE *from, FILE *to, struct err *err)
{
    size_t dim = router_dim(r), n = 0, have;
    float *x = calloc(dim, sizeof(*x)), *scratch = calloc(router_scratch(r), sizeof(*scratch));
    int rc = x && scratch ? OK : err_set(err, ERR_NOMEM, "out of memory");
    for (; rc == OK && (have = fread(x, 1, dim * sizeof(*x), from)) == dim * sizeof(*x); n++) {
        float y = router_score(r, x, scratch);
        y = !raw ? y : router_net(r).gain ? 1 - 2 * y : router_net(r).high ? 1 - y : y;
        if (to ? fwrite(&y, sizeof(y), 1, to) != 1 : printf("%.9g\n", (double)y) < 0)
            rc = err_set(err, ERR_IO, "%s: %s", to ? out_path : "stdout", strerror(errno));
    }
    free(x);
    free(scratch);
    if (rc == OK && ferror(from))
        rc = err_set(err, ERR_IO, "%s: cannot be read", rows_path);
    else if (rc == OK && (have || !n))
        rc =
            err_set(err, ERR_FORMAT, "%s: expected rows of %zu bytes, found %zu and %zu bytes over",
                    rows_path, dim * sizeof(*x), n, have);
    return rc != OK || to || fflush(stdout) == 0
               ? rc
               : err_set(err, ERR_IO, "the output cannot be written");
}

/* Open the router, which borrows *k, and its rows. */
static int score_open(struct router **r, FILE **from, struct kernels *k, struct err *err)
{
    int rc = router_path && rows_path
                 ? setup_kernels(k, err)
                 : err_set(err, ERR_ARG, "expected --router and --hidden, found %s",
                           router_path || rows_path ? "one" : "none");
    if (rc == OK)
        rc = router_open(r, router_path, k, err);
    if (rc == OK && router_is_table(*r))
        rc = err_set(err, ERR_ARG, "%s: expected a network, found a table, which reads ids",
                     router_path);
    if (rc == OK)
        rc = differs(out_path, router_path, err);
    if (rc == OK)
        rc = differs(out_path, rows_path, err);
    if (rc == OK && !(*from = fopen(rows_path, "rb")))
        rc = err_set(err, ERR_IO, "%s: %s", rows_path, strerror(errno));
    return rc;
}

static int cmd_router_score_main(int n, char **args, struct err *err)
{
    struct router *r = NULL;
    struct output_file to = { .f = NULL };
    FILE *from = NULL;
    struct kernels k;
    (void)n, (void)args;
    int rc = score_open(&r, &from, &k, err);
    if (rc == OK)
        rc = output_file_open(&to, out_path, err);
    if (rc == OK)
        rc = score_rows(r, from, to.f, err);
    int closed = output_file_close(&to, rc == OK, rc == OK ? err : NULL);
    if (from)
        fclose(from);
    router_close(r);
    return rc == OK ? closed : rc;
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
                   "  mizzle router score      applies a router to hidden states\n\n"
                   "Routers of CITER, R2R and llama-route become safetensors with a program of the "
                   "sources:\n\n"
                   "  python3 tools/lab/import_router.py router.pth router.safetensors",
    .groups = no_groups,
    .run = cmd_router_main,
    .most = COMMAND_ANY,
};

const struct command cmd_router_score = {
    .name = "router score",
    .summary = "apply a router to hidden states",
    .description =
        "Applies a router to rows of hidden states, as written by mizzle logits --hidden.\n\n"
        "  mizzle router score --router router.safetensors --hidden x.f32 -o y.f32",
    .groups = score_groups,
    .run = cmd_router_score_main,
};
