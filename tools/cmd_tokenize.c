/* cmd_tokenize.c - `mizzle tokenize`: turn text into token ids and back. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernels/sys/text.h"
#include "model/text/tokenizer.h"
#include "kernels/sys/buf.h"
#include "tools/command.h"
#include "tools/cli/demo_files.h"
#include "tools/cli/input_file.h"
#include "tools/cli/setup.h"
#include "weights/find.h"

static bool special, decodes, show;
static const char *prompt;

static const struct option_group own = {
    "Tokenize",
    (const struct option[]){
        { "--special", NULL, OPTION_FLAG, &special, NULL,
          "Parse special tokens in the text (default: treat them as plain text)" },
        { "--decode", NULL, OPTION_FLAG, &decodes, NULL,
          "Read ids from stdin and write their text to stdout" },
        { "--show", NULL, OPTION_FLAG, &show, NULL, "Print one id and its quoted bytes per line" },
        { "--prompt", "-p", OPTION_STR, &prompt, "TEXT", "Tokenize this text (default: stdin)" },
        OPTION_END,
    },
};

/* Print p[n] with \xNN for bytes that could harm a terminal, except those in `lines`, and for the
 * characters in `quoted`. */
static void tokenize_show(const char *p, size_t n, const char *lines, const char *quoted)
{
    for (size_t i = 0; i < n;) {
        size_t len = text_shown(p + i, n - i);
        if (!len && p[i] && strchr(lines, p[i]))
            len = 1;
        if (!len || (p[i] && strchr(quoted, p[i])))
            printf("\\x%02x", (unsigned char)p[i++]);
        else
            i += fwrite(p + i, 1, len, stdout);
        if (ferror(stdout))
            return;
    }
}

/* Print the ids of text[n], on one line or as --show asks. */
static int cmd_tokenize_encode(const struct tokenizer *t, const char *text, size_t n,
                               struct err *err)
{
    uint32_t *ids;
    size_t count, len;
    int rc = tokenizer_encode(t, &ids, &count, text, n, special, err);
    if (rc)
        return rc;
    for (size_t i = 0; i < count; i++) {
        printf("%s%lu", i && !show ? " " : "", (unsigned long)ids[i]);
        if (show) {
            const char *p = tokenizer_bytes(t, ids[i], &len);
            fputs(" \"", stdout);
            tokenize_show(p, len, "", "\"\\");
            fputs("\"\n", stdout);
        }
    }
    if (!show)
        putchar('\n');
    free(ids);
    return OK;
}

/* Append the bytes of all ids in text. */
static int decode_all(struct buf *out, const struct tokenizer *t, const char *text, struct err *err)
{
    while (*(text += strspn(text, ", \t\r\n"))) {
        char *end;
        size_t some = 0, len = strcspn(text, ", \t\r\n");
        int said = (int)(len < 20 ? len : 20);
        errno = 0;
        unsigned long long id = strtoull(text, &end, 10);
        if (end != text + len || *text == '-' || *text == '+')
            return err_set(err, ERR_ARG, "expected ids, found %.*s", said, text);
        const char *p =
            errno || id >= tokenizer_size(t) ? NULL : tokenizer_bytes(t, (uint32_t)id, &some);
        if (!p)
            return err_set(err, ERR_ARG, "id %.*s: expected one in use, below %zu", said, text,
                           tokenizer_size(t));
        if (!buf_add(out, p, some))
            return err_set(err, ERR_NOMEM, "out of memory");
        text += len;
    }
    return OK;
}

/* Print the text of the ids. Bytes that could harm a terminal are escaped only on a terminal. */
static int cmd_tokenize_decode(const struct tokenizer *t, const char *ids, struct err *err)
{
    struct buf out = { 0 };
    int rc = decode_all(&out, t, ids, err);
    if (rc == OK && isatty(STDOUT_FILENO))
        tokenize_show(out.p, out.n, "\n\t", "");
    else if (rc == OK && out.n)
        fwrite(out.p, 1, out.n, stdout);
    buf_free(&out);
    return rc;
}

/* Open the tokenizer alone, without the weights, read the input and encode or decode it. */
static int cmd_tokenize_main(int nargs, char **args, struct err *err)
{
    (void)nargs, (void)args;
    const char *path = shared_options.engine.model ? shared_options.engine.model
                                                   : demo_files_path("edge-0.5.gguf");
    if (!path)
        return err_set(err, ERR_ARG, "the demo pair is not found; name a model or folder with -m");
    struct tokenizer *t;
    char *text = NULL;
    size_t n = 0;
    char found[FIND_PATH];
    int rc = find_model(found, path, err);
    if (rc == OK)
        rc = tokenizer_open_path(&t, found, err);
    if (rc)
        return rc;
    if (!prompt)
        rc = input_file_read(&text, &n, "-", SIZE_MAX, err);
    const char *p = prompt ? prompt : text;
    n = prompt ? strlen(prompt) : n;
    if (!rc)
        rc = decodes ? cmd_tokenize_decode(t, p, err) : cmd_tokenize_encode(t, p, n, err);
    if (fflush(stdout) && !rc)
        rc = err_set(err, ERR_IO, "stdout: %s", strerror(errno));
    free(text);
    tokenizer_close(t);
    return rc;
}

const struct command cmd_tokenize = {
    .name = "tokenize",
    .summary = "turn text into token ids and back",
    .description =
        "Reads a text and prints its token ids, separated by blanks, as the model's own "
        "tokenizer splits it. -m may name a model file, a model folder, or a folder that holds "
        "only a tokenizer. BOS comes first if the files ask for it; a byte order mark in front of "
        "the text is skipped.\n\n"
        "  echo -n 'Hello' | mizzle tokenize -m model.gguf\n"
        "  echo 9707 | mizzle tokenize -m model.gguf --decode",
    .groups = (const struct option_group *const[]){ &own, &engine_option_rows, NULL },
    .run = cmd_tokenize_main,
};
