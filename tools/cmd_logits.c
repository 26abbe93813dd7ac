/* cmd_logits.c - `mizzle logits`: write raw logits and hidden states, to compare with other
 * engines. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/model.h"
#include "model/session.h"
#include "tools/command.h"
#include "tools/cli/output_file.h"
#include "tools/cli/setup.h"

static const char *ids_text, *ids_file, *out_path, *hidden_path, *tap_name = "final";

static const struct option_group own = {
    "Logits",
    (const struct option[]){
        { "--ids", NULL, OPTION_STR, &ids_text, "IDS",
          "Evaluate these token ids, separated by commas or blanks" },
        { "--ids-file", NULL, OPTION_STR, &ids_file, "FILE", "Read the token ids from this file" },
        { "--output", "-o", OPTION_STR, &out_path, "FILE",
          "Write logits as raw little-endian f32 [ids][vocab]; - writes to stdout" },
        { "--hidden", NULL, OPTION_STR, &hidden_path, "FILE",
          "Write hidden states as raw little-endian f32 [ids][hidden]; - writes to stdout" },
        { "--tap", NULL, OPTION_STR, &tap_name, "NAME",
          "Take hidden states at final or post_attn (default: final)" },
        { NULL, NULL, OPTION_FLAG, NULL, NULL, NULL },
    },
};

static const struct option_group *const groups[] = { &own, &engine_option_rows, NULL };

/* Parse the ids in text into *out, *n of them, at least one. The caller frees *out. */
static int parse_ids(uint32_t **out, size_t *n, const char *text, struct err *err)
{
    uint32_t *ids = calloc(strlen(text) / 2 + 1, sizeof(*ids));
    *n = 0;
    if (!ids)
        return err_set(err, ERR_NOMEM, "out of memory");
    while (*(text += strspn(text, ", \t\r\n"))) {
        char *end;
        errno = 0;
        unsigned long long id = strtoull(text, &end, 10);
        if (end == text || *text == '-' || *text == '+' || errno || id > UINT32_MAX ||
            !strchr(", \t\r\n", *end)) {
            free(ids);
            return err_set(err, ERR_ARG, "ids: expected numbers, found %.20s", text);
        }
        ids[(*n)++] = (uint32_t)id;
        text = end;
    }
    if (!*n) {
        free(ids);
        return err_set(err, ERR_ARG, "ids: expected at least one (--ids or --ids-file)");
    }
    *out = ids;
    return OK;
}

/* Get the ids from --ids or --ids-file. A file is limited to 4 MiB and must not hold NUL bytes. */
static int read_ids(uint32_t **ids, size_t *n, struct err *err)
{
    enum { MOST = 1 << 22 };
    if (!ids_file)
        return parse_ids(ids, n, ids_text ? ids_text : "", err);
    FILE *f = fopen(ids_file, "rb");
    char *text = f ? calloc(1, MOST + 1) : NULL;
    size_t got = text ? fread(text, 1, MOST, f) : 0;
    int rc;
    if (!f)
        rc = err_set(err, ERR_IO, "%s: %s", ids_file, strerror(errno));
    else if (!text)
        rc = err_set(err, ERR_NOMEM, "out of memory");
    else if (ferror(f) || got == MOST || strlen(text) != got)
        rc = err_set(err, ERR_FORMAT, "%s: expected a text of ids below 4 MiB", ids_file);
    else
        rc = parse_ids(ids, n, text, err);
    free(text);
    if (f)
        fclose(f);
    return rc;
}

/* Evaluate the ids, teacher-forced, in chunks of the size for which the session keeps hidden
 * states, and write one row for each id to each open file. */
static int cmd_logits_write_all(struct session *s, const uint32_t *ids, size_t n, enum tap tap,
                                FILE *logits, FILE *hidden, struct err *err)
{
    const struct model_config *c = model_config(session_model(s));
    for (size_t at = 0; at < n;) {
        size_t some = n - at < BATCH_ROWS ? n - at : BATCH_ROWS;
        int rc = session_eval(s, ids + at, some, &interrupted, err);
        if (rc)
            return rc;
        for (size_t back = some; back-- > 0;) {
            if (logits &&
                fwrite(session_logits(s, back), sizeof(float), c->vocab, logits) != c->vocab)
                return err_set(err, ERR_IO, "%s: %s", out_path, strerror(errno));
            if (hidden &&
                fwrite(session_hidden(s, tap, back), sizeof(float), c->hidden, hidden) != c->hidden)
                return err_set(err, ERR_IO, "%s: %s", hidden_path, strerror(errno));
            if (interrupted)
                return err_set(err, ERR_STOP, "interrupted");
        }
        at += some;
    }
    return OK;
}

/* Open engine, session and outputs, and run the ids. The outputs appear only if all went well. */
static int cmd_logits_logits(const uint32_t *ids, size_t n, struct err *err)
{
    enum tap tap = strcmp(tap_name, "post_attn") ? TAP_FINAL : TAP_POST_ATTN;
    if (tap == TAP_FINAL && strcmp(tap_name, "final"))
        return err_set(err, ERR_ARG, "--tap: expected final or post_attn, found %s", tap_name);
    if (!out_path && !hidden_path)
        return err_set(err, ERR_ARG, "nothing to write: expected -o FILE or --hidden FILE");
    enum kvcache kv;
    struct engine e;
    struct session *s = NULL;
    struct output_file to = { .f = NULL }, hidden = { .f = NULL };
    int rc = setup_kv(&kv, KVCACHE_F32, err);
    if (!rc)
        rc = setup_engine(&e, NULL, false, err);
    if (rc)
        return rc;
    rc = session_open(&s, e.batch, n, kv, err);
    if (!rc)
        rc = output_file_open(&to, out_path, err);
    if (!rc)
        rc = output_file_open(&hidden, hidden_path, err);
    if (!rc) {
        fprintf(stderr, "mizzle logits: keys and values in %s\n", kvcache_name(kv));
        rc = cmd_logits_write_all(s, ids, n, tap, to.f, hidden.f, err);
    }
    int closed = output_file_close(&to, !rc, rc ? NULL : err);
    int closed2 = output_file_close(&hidden, !rc && !closed, rc || closed ? NULL : err);
    session_close(s);
    engine_close(&e);
    return rc ? rc : closed ? closed : closed2;
}

static int cmd_logits_main(int argc, char **argv)
{
    struct err err = { "" };
    int nargs = 0, status = options_parse(&cmd_logits, argc, argv, &nargs);
    if (status >= 0)
        return status;
    uint32_t *ids = NULL;
    size_t n = 0;
    setup_catch_interrupts();
    int rc = nargs ? err_set(&err, ERR_ARG, "unexpected argument %s", argv[1])
                   : read_ids(&ids, &n, &err);
    if (!rc)
        rc = cmd_logits_logits(ids, n, &err);
    free(ids);
    return command_fail("logits", rc, &err);
}

const struct command cmd_logits = {
    .name = "logits",
    .summary = "write raw logits and hidden states for token ids",
    .args = "",
    .description =
        "Evaluates the given ids, teacher-forced, and writes the logits after each of them and, "
        "on request, the hidden states, as raw little-endian f32. Logits of padding rows of the "
        "vocabulary are not masked.\n\n"
        "Keys and values are kept in f32 unless --kv says otherwise, and a line on stderr names "
        "the type; mizzle run keeps them in f16.\n\n"
        "  mizzle logits -m model.gguf --ids 1,2,3 -o logits.f32 --hidden hidden.f32",
    .groups = groups,
    .run = cmd_logits_main,
};
