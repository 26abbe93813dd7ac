/* cmd_logits.c - `mizzle logits`: write raw logits and hidden states, to compare with other
 * engines. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/model.h"
#include "model/session.h"
#include "model/text/tokenizer.h"
#include "router/engine.h"
#include "tools/command.h"
#include "tools/cli/json_report.h"
#include "tools/cli/output_file.h"
#include "tools/cli/setup.h"
#include "tools/run/likeliest.h"

enum { MOST_TOP = 100 };

static const char *prompt, *ids_text, *out_path, *hidden_path;
static size_t top;

static const struct option_group own = {
    "Logits",
    (const struct option[]){
        { "--prompt", "-p", OPTION_STR, &prompt, "TEXT", "Evaluate the tokens of this text" },
        { "--ids", NULL, OPTION_STR, &ids_text, "IDS",
          "Evaluate these token ids, separated by commas or blanks" },
        { "--top-k", NULL, OPTION_SIZE, &top, "N",
          "Print the ids, and after each of them the N likeliest next tokens, 1 to 100, with their "
          "probabilities and texts (default: none)" },
        { "--output", "-o", OPTION_STR, &out_path, "FILE",
          "Write logits as raw little-endian f32 [ids][vocab]; - writes to stdout" },
        { "--hidden", NULL, OPTION_STR, &hidden_path, "FILE",
          "Write hidden states as raw little-endian f32 [ids][hidden]; - writes to stdout" },
        OPTION_END,
    },
};

#define BLANKS " \t\r\n"

/* Parse the ids in text into *out, *n of them, at least one. The caller frees *out in any case. */
static int parse_ids(uint32_t **out, size_t *n, const char *text, struct err *err)
{
    uint32_t *ids = *out = calloc(strlen(text) / 2 + 1, sizeof(*ids));
    *n = 0;
    if (!ids)
        return err_set(err, ERR_NOMEM, "out of memory");
    for (text += strspn(text, BLANKS); *text; text += strspn(text, BLANKS)) {
        char *end;
        errno = 0;
        unsigned long long id = strtoull(text, &end, 10);
        if (end == text || *text == '-' || *text == '+' || errno || id > UINT32_MAX ||
            !strchr("," BLANKS, *end))
            return err_set(err, ERR_ARG, "ids: expected numbers, found %.20s", text);
        ids[(*n)++] = (uint32_t)id;
        text = end + strspn(end, BLANKS);
        text += *text == ',';
    }
    return *n ? OK : err_set(err, ERR_ARG, "ids: expected at least one");
}

struct outputs {
    const struct engine *engine;
    struct output_file logits, hidden;
};

/* Print a token's text, if the model has a tokenizer. */
static void print_piece(const struct engine *e, uint32_t id)
{
    size_t n = 0;
    const char *s = e->tokenizer ? tokenizer_bytes(e->tokenizer, id, &n) : NULL;
    if (!s)
        return;
    fputs(" \"", stdout);
    escaped_put(s, n);
    putchar('"');
}

/* Print the likeliest tokens after an id. */
static void print_top(const struct engine *e, uint32_t id, const float *logits)
{
    struct likeliest guess[MOST_TOP];
    size_t size = e->tokenizer ? tokenizer_size(e->tokenizer) : e->model->config.vocab;
    size_t n = top < size ? top : size;
    likeliest_ids(guess, n, logits, size);
    printf("%u", (unsigned)id);
    print_piece(e, id);
    for (size_t i = 0; i < n; i++) {
        printf("%s %.6f %u", i ? "," : ":", (double)guess[i].p, (unsigned)guess[i].id);
        print_piece(e, guess[i].id);
    }
    putchar('\n');
}

/* Write what is asked for of the id `back` places before the last. */
static int write_row(const struct outputs *to, struct session *s, uint32_t id, size_t back,
                     struct err *err)
{
    const struct model_config *c = &session_model(s)->config;
    const float *logits = to->logits.f || top ? session_logits(s, back) : NULL;
    if (to->logits.f && fwrite(logits, sizeof(float), c->vocab, to->logits.f) != c->vocab)
        return err_set(err, ERR_IO, "%s: %s", out_path, strerror(errno));
    if (top)
        print_top(to->engine, id, logits);
    if (to->hidden.f &&
        fwrite(session_hidden(s, back), sizeof(float), c->hidden, to->hidden.f) != c->hidden)
        return err_set(err, ERR_IO, "%s: %s", hidden_path, strerror(errno));
    return interrupted ? err_set(err, ERR_STOP, "interrupted") : OK;
}

/* Evaluate the ids, teacher-forced, in chunks of the size for which the session keeps hidden
 * states, and write one row for each id. */
static int cmd_logits_write_all(const struct outputs *to, struct session *s, const uint32_t *ids,
                                size_t n, struct err *err)
{
    for (size_t at = 0; at < n;) {
        size_t some = n - at < BATCH_ROWS ? n - at : BATCH_ROWS;
        int rc = session_eval(s, ids + at, some, &interrupted, err);
        for (size_t i = 0; rc == OK && top && !at && i < n; i++) /* none was refused */
            printf("%s%u%s", i ? "," : "ids: ", (unsigned)ids[i], i + 1 < n ? "" : "\n");
        for (size_t i = 0; rc == OK && i < some; i++)
            rc = write_row(to, s, ids[at + i], some - 1 - i, err);
        if (rc != OK)
            return rc;
        at += some;
    }
    return fflush(stdout) == 0 ? OK : err_set(err, ERR_IO, "the output cannot be written");
}

/* Run the ids on an open engine. The outputs appear only if all went well. */
static int cmd_logits_run(struct engine *e, const uint32_t *ids, size_t n, struct err *err)
{
    enum kvcache kv;
    struct session *s = NULL;
    struct outputs to = { .engine = e };
    int rc = setup_kv(&kv, KVCACHE_F32, err);
    if (!rc)
        rc = session_open(&s, e->batch, n, kv, err);
    if (!rc)
        rc = output_file_open(&to.logits, out_path, err);
    if (!rc)
        rc = output_file_open(&to.hidden, hidden_path, err);
    if (!rc) {
        fprintf(stderr, "mizzle logits: keys and values in %s\n", kvcache_name(kv));
        rc = cmd_logits_write_all(&to, s, ids, n, err);
    }
    int closed = output_file_close(&to.logits, !rc, rc ? NULL : err);
    int closed2 = output_file_close(&to.hidden, !rc && !closed, rc || closed ? NULL : err);
    session_close(s);
    return rc ? rc : closed ? closed : closed2;
}

/* Reject what cannot be written, or not together. */
static int cmd_logits_check(struct err *err)
{
    bool shares =
        (out_path && !strcmp(out_path, "-")) || (hidden_path && !strcmp(hidden_path, "-"));
    enum kvcache kv;
    if (!out_path && !hidden_path && !top)
        return err_set(err, ERR_ARG,
                       "nothing to write: expected -o FILE, --hidden FILE or --top-k");
    if (top > MOST_TOP)
        return err_set(err, ERR_ARG, "--top-k: expected 1 to %d, found %zu", MOST_TOP, top);
    if (top && shares)
        return err_set(err, ERR_ARG, "--top-k writes to stdout: name a file instead of -");
    return setup_kv(&kv, KVCACHE_F32, err);
}

static int cmd_logits_main(int nargs, char **args, struct err *err)
{
    struct engine e = { 0 };
    uint32_t *ids = NULL;
    size_t n = 0;
    (void)nargs, (void)args;
    setup_catch_interrupts();
    int rc = OK;
    if (!prompt == !ids_text)
        rc = err_set(err, ERR_ARG, "expected -p or --ids, found %s", prompt ? "both" : "none");
    else if (!prompt)
        rc = parse_ids(&ids, &n, ids_text, err);
    if (!rc)
        rc = cmd_logits_check(err);
    if (!rc)
        rc = setup_engine(&e, prompt != NULL, err);
    if (!rc && prompt)
        rc = tokenizer_encode(e.tokenizer, &ids, &n, prompt, strlen(prompt), true, err);
    if (!rc && !n)
        rc = err_set(err, ERR_ARG, "the prompt is empty");
    if (!rc)
        rc = cmd_logits_run(&e, ids, n, err);
    free(ids);
    engine_close(&e);
    return rc;
}

const struct command cmd_logits = {
    .name = "logits",
    .summary = "write logits and hidden states, raw, or print the likeliest tokens",
    .description =
        "Evaluates the given ids or a text, teacher-forced, and writes the logits after each id "
        "and, on request, the hidden states, as raw little-endian f32. Logits of padding rows of "
        "the vocabulary are not masked.\n\n"
        "With --top-k, the first line of the output has the ids, as --ids takes them, and each "
        "line after it an id with its text, then probability, id and text of what may follow.\n\n"
        "Keys and values are kept in f32 unless --kv says otherwise, and a line on stderr names "
        "the type; mizzle run keeps them in f16.\n\n"
        "  mizzle logits -m model.gguf --ids 1,2,3 -o logits.f32 --hidden hidden.f32\n"
        "  mizzle logits -p \"A hilava is a kind of\" --top-k 3",
    .groups = (const struct option_group *const[]){ &own, &engine_option_rows, NULL },
    .run = cmd_logits_main,
};
