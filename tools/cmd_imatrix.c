/* cmd_imatrix.c - `mizzle imatrix -m MODEL -f TEXT -o FILE`: measure how much each input of each
 * matrix matters, for `mizzle convert --imatrix`. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "kernels/sys/os.h"
#include "kernels/sys/text.h"
#include "model/model.h"
#include "model/session.h"
#include "tools/command.h"
#include "tools/cli/output_file.h"
#include "tools/cli/progress.h"
#include "tools/cli/setup.h"
#include "tools/run/prompt_input.h"
#include "weights/find.h"
#include "weights/imatrix.h"
#include "weights/weights.h"

enum { NAME_ROOM = 48, MOST_NAMES = 3 };

static const char *text_path, *out_path;
static size_t context = 512;

static const struct option_group own = {
    "Importance",
    (const struct option[]){
        { "--file", "-f", OPTION_STR, &text_path, "FILE",
          "Read the text from this file; - reads standard input (required)" },
        { "--output", "-o", OPTION_STR, &out_path, "FILE",
          "Write the importance matrix to this file (required)" },
        { "--context", "-c", OPTION_COUNT, &context, "N",
          "Evaluate the text in pieces of N tokens (default: 512)" },
        { NULL, NULL, OPTION_FLAG, NULL, NULL, NULL },
    },
};

static const struct option_group *const groups[] = { &own, &engine_option_rows, NULL };

/* The matrices that share an input, as GGUF names them. */
static const char *const names[][MOST_NAMES] = {
    [INPUT_QKV] = { "attn_q", "attn_k", "attn_v" },
    [INPUT_O] = { "attn_output" },
    [INPUT_FFN] = { "ffn_gate", "ffn_up" },
    [INPUT_DOWN] = { "ffn_down" },
};

/* The sums of squares of one input. */
struct input {
    double *squares; /* [cols] */
    size_t cols;
};

struct measure {
    const struct model_config *config;
    struct input *inputs;     /* [layers][INPUT_HEAD], then that of the head */
    double *squares;          /* their memory */
    struct imatrix_sums *out; /* for the file: one row for each matrix */
    char (*names)[NAME_ROOM];
    float *floats;
    size_t rows, chunks, tokens;
};

/* Add the squares of n rows; has the type of `see` in struct batch_watch. */
static void cmd_imatrix_see(void *arg, size_t layer, enum batch_value value, const float *x,
                            size_t ld, size_t cols, size_t n)
{
    const struct measure *m = arg;
    if (value > INPUT_HEAD)
        return;
    size_t at = layer < m->config->layers ? layer * INPUT_HEAD + value : layer * INPUT_HEAD;
    double *sum = m->inputs[at].squares;
    for (size_t t = 0; t < n; t++)
        for (size_t i = 0; i < cols; i++)
            sum[i] += (double)x[t * ld + i] * (double)x[t * ld + i];
}

/* Give every input its memory. The sizes are below those of the model, which is loaded. */
static int measure_open(struct measure *m, const struct model_config *c, struct err *err)
{
    size_t cols[] = { c->hidden, c->heads * c->head_dim, c->hidden, c->ffn }, each = 0, at = 0;
    for (size_t k = 0; k < INPUT_HEAD; k++)
        each += cols[k];
    size_t count = c->layers * INPUT_HEAD + 1, all = c->layers * each + c->hidden;
    *m = (struct measure){ .config = c, .rows = c->layers * 7 + 1 };
    m->inputs = calloc(count, sizeof(*m->inputs));
    m->squares = calloc(all, sizeof(*m->squares));
    m->floats = calloc(all, sizeof(*m->floats));
    m->out = calloc(m->rows, sizeof(*m->out));
    m->names = calloc(m->rows, sizeof(*m->names));
    if (!m->inputs || !m->squares || !m->floats || !m->out || !m->names)
        return err_set(err, ERR_NOMEM, "out of memory");
    for (size_t i = 0; i < count; i++) {
        m->inputs[i] =
            (struct input){ m->squares + at, i + 1 < count ? cols[i % INPUT_HEAD] : c->hidden };
        at += m->inputs[i].cols;
    }
    return OK;
}

static void measure_close(struct measure *m)
{
    free(m->inputs);
    free(m->squares);
    free(m->floats);
    free(m->out);
    free(m->names);
}

/* Add a row for a matrix with this input. */
static void measure_row(struct measure *m, size_t *row, size_t input)
{
    m->out[*row] = (struct imatrix_sums){
        .name = m->names[*row],
        .squares = m->floats + (m->inputs[input].squares - m->squares),
        .n = m->inputs[input].cols,
        .count = (float)m->tokens,
    };
    ++*row;
}

/* Write the file: sums as f32, and a row for each matrix. */
static int measure_write(struct measure *m, struct err *err)
{
    size_t row = 0, heads = m->config->layers * INPUT_HEAD;
    size_t all = (size_t)(m->inputs[heads].squares - m->squares) + m->inputs[heads].cols;
    for (size_t i = 0; i < all; i++) {
        m->floats[i] = (float)m->squares[i];
        if (!isfinite(m->floats[i]))
            return err_set(err, ERR_FORMAT, "the model's hidden states are not finite");
    }
    for (size_t i = 0; i < heads; i++)
        for (size_t k = 0; k < MOST_NAMES && names[i % INPUT_HEAD][k]; k++) {
            snprintf(m->names[row], NAME_ROOM, "blk.%zu.%s.weight", i / INPUT_HEAD,
                     names[i % INPUT_HEAD][k]);
            measure_row(m, &row, i);
        }
    snprintf(m->names[row], NAME_ROOM, "%s",
             m->config->tied ? "token_embd.weight" : "output.weight");
    measure_row(m, &row, heads);
    return imatrix_write(out_path, m->out, row, text_path, (uint32_t)m->chunks, (uint32_t)context,
                         err);
}

/* Evaluate the text in pieces of `context` tokens; tokens left at the end are too few for one. */
static int measure_text(struct measure *m, struct session *s, const uint32_t *ids, size_t n,
                        struct err *err)
{
    struct progress_count shown = { .what = "measuring, tokens", .since = os_now_ns() };
    const struct batch_watch watch = { .see = cmd_imatrix_see, .arg = m };
    size_t chunks = n / context;
    int rc = OK;
    batch_watch(session_batch(s), &watch);
    for (; rc == OK && m->chunks < chunks; m->chunks += rc == OK) {
        session_rewind(s, 0);
        for (size_t at = 0, some; rc == OK && at < context; at += some) {
            some = context - at < BATCH_ROWS ? context - at : BATCH_ROWS;
            rc = session_eval(s, ids + m->chunks * context + at, some, &interrupted, err);
            progress_counted(&shown, m->chunks * context + at, chunks * context);
        }
    }
    progress_wipe(&shown);
    batch_watch(session_batch(s), NULL);
    m->tokens = m->chunks * context;
    return rc;
}

/* Read the text and encode it. Other files, such as a model, would give values of no use. */
static int cmd_imatrix_read(uint32_t **ids, size_t *n, const struct engine *e, struct err *err)
{
    char *text = NULL;
    size_t bytes;
    int rc = prompt_input_read(&text, &bytes, text_path, err);
    if (rc == OK && (!text_valid(text, bytes) || memchr(text, 0, bytes)))
        rc = err_set(err, ERR_FORMAT, "%s: expected a text in UTF-8, found %s", text_path,
                     memchr(text, 0, bytes) ? "a NUL byte" : "other bytes");
    if (rc == OK)
        rc = tokenizer_encode(e->tokenizer, ids, n, text, bytes, false, err);
    free(text);
    return rc;
}

/* Say what was measured, and what of the text was not. */
static void cmd_imatrix_say(const struct measure *m, size_t n)
{
    size_t rest = n - m->tokens;
    fprintf(stderr, "mizzle imatrix: %zu matrices, measured on %zu piece%s of %zu token%s", m->rows,
            m->chunks, m->chunks == 1 ? "" : "s", context, context == 1 ? "" : "s");
    if (rest)
        fprintf(stderr, "; left out: the last %zu token%s, too few for another piece", rest,
                rest == 1 ? "" : "s");
    fprintf(stderr, "\n");
}

/* Read and encode the text, measure, write. */
static int cmd_imatrix_measure(struct engine *e, struct err *err)
{
    struct measure m = { 0 };
    struct session *s = NULL;
    enum kvcache kv;
    uint32_t *ids = NULL;
    size_t n;
    int rc = setup_kv(&kv, engine_best_kv(e), err);
    if (rc == OK)
        rc = session_open(&s, e->batch, context, kv, err);
    if (rc == OK)
        rc = cmd_imatrix_read(&ids, &n, e, err);
    if (rc == OK && n < context)
        rc = err_set(err, ERR_FORMAT,
                     "%s: expected a text of at least %zu tokens (--context), found %zu", text_path,
                     context, n);
    if (rc == OK)
        rc = measure_open(&m, model_config(e->model), err);
    if (rc == OK)
        rc = measure_text(&m, s, ids, n, err);
    if (rc == OK)
        rc = measure_write(&m, err);
    if (rc == OK)
        cmd_imatrix_say(&m, n);
    measure_close(&m);
    free(ids);
    session_close(s);
    return rc;
}

/* Reject an output that cannot be written, or that is the model or the text. */
static int check_output(struct err *err)
{
    char path[FIND_PATH];
    struct stat text, out;
    struct weights *w = NULL;
    int rc = stat(out_path, &out) == 0 && !S_ISREG(out.st_mode)
                 ? err_set(err, ERR_IO, "%s: expected a regular file to replace", out_path)
                 : output_file_check(out_path, err);
    if (rc == OK && engine_options.model)
        rc = find_model(path, engine_options.model, err);
    if (rc == OK && engine_options.model)
        rc = weights_open_header(&w, path, err);
    bool same = stat(text_path, &text) == 0 && stat(out_path, &out) == 0 &&
                text.st_dev == out.st_dev && text.st_ino == out.st_ino;
    if (rc == OK && (same || (w && weights_reads(w, out_path))))
        rc = err_set(err, ERR_ARG, "%s: input and output are the same file", out_path);
    weights_close(w);
    return rc;
}

static int cmd_imatrix_main(int argc, char **argv)
{
    struct engine e;
    struct err err;
    int nargs, status = options_parse(&cmd_imatrix, argc, argv, &nargs);
    if (status >= 0)
        return status;
    if (nargs || !text_path || !out_path) {
        fprintf(stderr, "mizzle imatrix: expected -f TEXT -o FILE; see mizzle imatrix --help\n");
        return EXIT_USAGE;
    }
    setup_catch_interrupts();
    int rc = check_output(&err);
    if (rc == OK)
        rc = setup_engine(&e, NULL, true, &err);
    if (rc == OK) {
        rc = cmd_imatrix_measure(&e, &err);
        engine_close(&e);
    }
    return command_fail("imatrix", rc, &err);
}

const struct command cmd_imatrix = {
    .name = "imatrix",
    .summary = "measure on a text which inputs of the matrices matter",
    .args = "-f TEXT -o FILE",
    .description =
        "Runs the model over a text and writes, for each matrix, the sum of the squares of each of "
        "its inputs, in the GGUF form that llama.cpp's llama-imatrix writes. mizzle convert "
        "--imatrix reads it and puts errors where they matter least, and so does llama.cpp's "
        "llama-quantize from July 2025 on; older ones, and ik_llama.cpp's, know only the form "
        "before that (.dat), which convert reads too. The text should resemble "
        "what the model will be used for; special tokens in it are taken as plain text. The input "
        "of the output head is measured too.\n\n"
        "  mizzle imatrix -m qwen.gguf -f text.txt -o text.imatrix\n"
        "  mizzle convert qwen.gguf small.gguf --type q4_K_M --imatrix text.imatrix\n",
    .groups = groups,
    .run = cmd_imatrix_main,
};
