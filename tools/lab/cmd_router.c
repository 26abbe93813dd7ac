/* cmd_router.c - `mizzle router`: the commands on routers; here the one that applies one. */
#include <errno.h>
#include <inttypes.h>
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

static const char *router_path, *hidden_path, *logits_path, *tokens_path, *embedding_path;
static const char *out_path;
static bool raw;

static const struct option_group file_opts = {
    "Files",
    (const struct option[]){
        { "--router", NULL, OPTION_STR, &router_path, "FILE", "Apply this router" },
        { "--hidden", NULL, OPTION_STR, &hidden_path, "FILE",
          "Read hidden states from this file, raw little-endian f32 [n][dim]" },
        { "--logits", NULL, OPTION_STR, &logits_path, "FILE",
          "R2R: read logits from this file, f32 [n][ids], as mizzle logits writes them, or the "
          "largest in descending order, f32 [n][as many as it reads], which a router of logits "
          "alone "
          "needs" },
        { "--ids", NULL, OPTION_STR, &tokens_path, "FILE",
          "R2R: read the small model's own tokens from this file, u32 [n]" },
        { "--embedding", NULL, OPTION_STR, &embedding_path, "FILE",
          "R2R: read the small model's embedding from this file, f32 [ids][dim]" },
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

enum { HIDDEN, LOGITS, TOKENS, EMBEDDING, FILES };

/* What is scored: a row of each file that the router needs, and of the embedding that of its token.
 */
struct scoring {
    const struct router *r;
    FILE *f[FILES];
    size_t dim, width, ids; /* of the hidden state, of a row of logits; of the embedding, or 0 */
    size_t k;               /* the logits that the router reads */
    float *x, *logits, *extra, *scratch;
    uint32_t token;
};

static const char *score_path(size_t file)
{
    const char *const paths[FILES] = { hidden_path, logits_path, tokens_path, embedding_path };
    return paths[file];
}

/* Return the bytes of a file, which is read from its beginning afterwards; 0: unknown. */
static size_t score_bytes(FILE *f)
{
    off_t n = fseeko(f, 0, SEEK_END) == 0 ? ftello(f) : 0;
    rewind(f);
    return n > 0 ? (size_t)n : 0;
}

/* Refuse files that the router does not read, and open those that it does. */
static int score_files(struct scoring *s, bool token, struct err *err)
{
    const bool needed[FILES] = { s->dim > 0, s->k > 0, token, token };
    static const char *const options[FILES] = { "--hidden", "--logits", "--ids", "--embedding" };
    for (size_t i = 0; i < FILES; i++)
        if (needed[i] ? !score_path(i) : score_path(i) != NULL)
            return err_set(err, ERR_ARG, "%s: the router %s %s it", options[i], router_path,
                           needed[i] ? "needs" : "does not read");
    int rc = differs(out_path, router_path, err);
    for (size_t i = 0; rc == OK && i < FILES; i++) {
        rc = differs(out_path, score_path(i), err);
        if (rc == OK && needed[i] && !(s->f[i] = fopen(score_path(i), "rb")))
            rc = err_set(err, ERR_IO, "%s: %s", score_path(i), strerror(errno));
    }
    return rc;
}

/* Find how many ids the embedding has. */
static int score_embedding(struct scoring *s, struct err *err)
{
    size_t row = s->dim * sizeof(float), bytes = score_bytes(s->f[EMBEDDING]);
    s->ids = bytes / row;
    return bytes && bytes % row == 0
               ? OK
               : err_set(err, ERR_FORMAT, "%s: expected rows of %zu bytes, found %zu bytes",
                         embedding_path, row, bytes);
}

/* Find how long a row of logits is: the rows of another file tell. */
static int score_width(struct scoring *s, struct err *err)
{
    size_t size = sizeof(float), has = score_bytes(s->f[LOGITS]), n;
    char want[120];
    if (s->dim) {
        n = s->f[TOKENS] ? score_bytes(s->f[TOKENS]) / sizeof(s->token)
                         : score_bytes(s->f[HIDDEN]) / (s->dim * size);
        s->width = n ? has / size / n : s->k;
    } else {
        s->width = s->k;
        n = has / size / s->width;
    }
    if (s->dim && s->ids)
        snprintf(want, sizeof(want), "%zu rows of %zu logits or of all %zu", n, s->k, s->ids);
    else if (s->dim)
        snprintf(want, sizeof(want), "%zu rows of %zu logits or more", n, s->k);
    else
        snprintf(want, sizeof(want), "rows of %zu logits", s->width);
    bool fits = !s->dim || !s->ids || s->width == s->k || s->width == s->ids;
    return fits && s->width >= s->k && has == n * s->width * size
               ? OK
               : err_set(err, ERR_FORMAT, "%s: expected %s, found %zu bytes", logits_path, want,
                         has);
}

/* Refuse files of which one has more rows than another, if their sizes tell. */
static int score_count(struct scoring *s, struct err *err)
{
    const size_t row[EMBEDDING] = { s->dim * sizeof(float), s->width * sizeof(float),
                                    sizeof(s->token) };
    size_t rows = 0, of = 0;
    for (size_t i = 0; i < EMBEDDING; i++) {
        size_t n = s->f[i] ? score_bytes(s->f[i]) / row[i] : 0;
        if (n && rows && n != rows)
            return err_set(err, ERR_FORMAT, "%s: expected %zu rows, as in %s, found %zu",
                           score_path(i), rows, score_path(of), n);
        of = n ? i : of;
        rows = n ? n : rows;
    }
    return OK;
}

/* Open what the router needs. */
static int score_open(struct scoring *s, struct err *err)
{
    size_t extra = router_extra(s->r);
    s->k = router_logits(s->r);
    s->dim = router_dim(s->r) - extra;
    if (extra && !router_net(s->r).deep)
        return err_set(err, ERR_ARG,
                       "%s: expected a router that reads hidden states alone, or R2R's, found one "
                       "that reads features of a text",
                       router_path);
    int rc = score_files(s, extra > s->k, err);
    if (rc == OK && s->f[EMBEDDING])
        rc = score_embedding(s, err);
    if (rc == OK && s->k)
        rc = score_width(s, err);
    if (rc == OK)
        rc = score_count(s, err);
    if (rc != OK)
        return rc;
    s->x = calloc(s->dim + 1, sizeof(*s->x));
    s->logits = calloc(s->width + 1, sizeof(*s->logits));
    s->extra = calloc(extra + 1, sizeof(*s->extra));
    s->scratch = calloc(router_scratch(s->r), sizeof(*s->scratch));
    return s->x && s->logits && s->extra && s->scratch ? OK
                                                       : err_set(err, ERR_NOMEM, "out of memory");
}

static void score_close(struct scoring *s)
{
    for (size_t i = 0; i < FILES; i++)
        if (s->f[i])
            fclose(s->f[i]);
    free(s->x);
    free(s->logits);
    free(s->extra);
    free(s->scratch);
}

/* Read the next row of a file, if it is read at all. *more becomes false at its end. */
static int score_read(struct scoring *s, size_t file, void *to, size_t bytes, bool *more,
                      struct err *err)
{
    size_t n = s->f[file] ? fread(to, 1, bytes, s->f[file]) : bytes;
    if (n == bytes)
        return OK;
    *more = false;
    if (ferror(s->f[file]))
        return err_set(err, ERR_IO, "%s: cannot be read", score_path(file));
    return n ? err_set(err, ERR_FORMAT, "%s: expected rows of %zu bytes, found %zu bytes over",
                       score_path(file), bytes, n)
             : OK;
}

/* Check a row, and read the embedding of its token. */
static int score_look(struct scoring *s, struct err *err)
{
    float *embedding = s->extra + s->k;
    size_t bytes = s->dim * sizeof(*embedding);
    for (size_t i = 1; s->width == s->k && s->width != s->ids && i < s->k; i++)
        if (!(s->logits[i] <= s->logits[i - 1]))
            return err_set(err, ERR_FORMAT,
                           "%s: expected rows of %zu logits in descending order, found %g after %g",
                           logits_path, s->k, (double)s->logits[i], (double)s->logits[i - 1]);
    if (!s->f[TOKENS])
        return OK;
    if (s->token >= s->ids)
        return err_set(err, ERR_FORMAT, "%s: expected ids below %zu, found %" PRIu32, tokens_path,
                       s->ids, s->token);
    return fseeko(s->f[EMBEDDING], (off_t)(s->token * bytes), SEEK_SET) == 0 &&
                   fread(embedding, bytes, 1, s->f[EMBEDDING]) == 1
               ? OK
               : err_set(err, ERR_IO, "%s: cannot be read", embedding_path);
}

/* Read the next rows; all files must end with the same one. */
static int score_next(struct scoring *s, bool *more, struct err *err)
{
    bool has[EMBEDDING] = { true, true, true };
    void *const to[EMBEDDING] = { s->x, s->logits, &s->token };
    const size_t bytes[EMBEDDING] = { s->dim * sizeof(float), s->width * sizeof(float),
                                      sizeof(s->token) };
    int rc = OK;
    *more = true;
    for (size_t i = 0; i < EMBEDDING && rc == OK; i++)
        rc = score_read(s, i, to[i], bytes[i], &has[i], err);
    for (size_t i = 0; i < EMBEDDING && rc == OK; i++)
        *more = *more && has[i];
    for (size_t i = 0; i < EMBEDDING && rc == OK && !*more; i++)
        if (s->f[i] && has[i])
            rc = err_set(err, ERR_FORMAT, "%s: expected as many rows as the others, found more",
                         score_path(i));
    return rc == OK && *more ? score_look(s, err) : rc;
}

/* Score all rows, of which there must be one. Without a file they are printed. */
static int score_rows(struct scoring *s, FILE *to, struct err *err)
{
    bool more;
    size_t n = 0;
    int rc = score_next(s, &more, err);
    for (; rc == OK && more; rc = score_next(s, &more, err), n++) {
        router_largest(s->r, s->extra, s->logits, s->width);
        float y = router_score(s->r, router_inputs(s->r, s->x, s->extra, s->scratch), s->scratch);
        y = !raw ? y : router_net(s->r).gain ? 1 - 2 * y : router_net(s->r).high ? 1 - y : y;
        if (to ? fwrite(&y, sizeof(y), 1, to) != 1 : printf("%.9g\n", (double)y) < 0)
            return err_set(err, ERR_IO, "%s: %s", to ? out_path : "stdout", strerror(errno));
    }
    if (rc == OK && !n)
        return err_set(err, ERR_FORMAT, "%s: expected rows, found none",
                       score_path(s->dim ? HIDDEN : LOGITS));
    return rc != OK || to || fflush(stdout) == 0
               ? rc
               : err_set(err, ERR_IO, "the output cannot be written");
}

/* Open the router and the files, then score all rows. */
static int cmd_router_score_main(int n, char **args, struct err *err)
{
    struct kernels k;
    struct router *r = NULL;
    (void)n, (void)args;
    int rc = router_path ? setup_kernels(&k, err)
                         : err_set(err, ERR_ARG, "expected --router, found none");
    if (rc == OK)
        rc = router_open(&r, router_path, &k, err);
    if (rc == OK && router_is_table(r))
        rc = err_set(err, ERR_ARG, "%s: expected a network, found a table, which reads ids",
                     router_path);
    struct scoring s = { .r = r };
    struct output_file to = { .f = NULL };
    if (rc == OK)
        rc = score_open(&s, err);
    if (rc == OK)
        rc = output_file_open(&to, out_path, err);
    if (rc == OK)
        rc = score_rows(&s, to.f, err);
    int closed = output_file_close(&to, rc == OK, rc == OK ? err : NULL);
    score_close(&s);
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
        "Applies a router to rows of hidden states, as written by mizzle logits --hidden. R2R's "
        "read logits, tokens and their embeddings, too.\n\n"
        "  mizzle router score --router router.safetensors --hidden x.f32 -o y.f32\n"
        "  mizzle router score --router r2r.safetensors --hidden x.f32 --logits all.f32",
    .groups = score_groups,
    .run = cmd_router_score_main,
};
