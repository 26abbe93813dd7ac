/* cmd_tokenize.c - `mizzle tokenize`: text to ids and back. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "model/tokenizer.h"
#include "tools/cmd.h"
#include "tools/setting.h"

static bool special, decode, show;
static const char *prompt;

static const struct opt_group own = {
    "Tokenize",
    (const struct opt[]){
        { "--special", NULL, OPT_FLAG, &special, NULL, "parse special tokens in the text" },
        { "--decode", NULL, OPT_FLAG, &decode, NULL, "ids on stdin to text on stdout" },
        { "--show", NULL, OPT_FLAG, &show, NULL, "one id and its quoted bytes a line" },
        { "--prompt", "-p", OPT_STR, &prompt, "TEXT", "the text (default: stdin)" },
        { NULL, NULL, OPT_FLAG, NULL, NULL, NULL },
    },
};

static const struct opt_group *const groups[] = { &own, &opt_engine, NULL };

static int read_stdin(char **out, size_t *n, struct err *err)
{
    size_t room = 1 << 16;
    char *text = malloc(room);
    *n = 0;
    while (text) {
        *n += fread(text + *n, 1, room - *n, stdin);
        if (*n < room)
            break;
        char *more = room > SIZE_MAX / 4 ? NULL : realloc(text, room *= 2);
        if (!more)
            free(text);
        text = more;
    }
    *out = text;
    if (!text)
        return err_set(err, ERR_NOMEM, "out of memory");
    if (!ferror(stdin))
        return OK;
    free(text);
    return err_set(err, ERR_IO, "stdin: %s", strerror(errno));
}

static void quote(const char *p, size_t n)
{
    putchar('"');
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)p[i];
        if (c >= 32 && c < 127 && c != '"' && c != '\\')
            putchar(c);
        else
            printf("\\x%02x", c);
    }
    putchar('"');
}

static int encode(const struct tokenizer *t, const char *text, size_t n, struct err *err)
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
            putchar(' ');
            quote(p, len);
            putchar('\n');
        }
    }
    if (!show)
        putchar('\n');
    free(ids);
    return OK;
}

/* Bytes of the ids in text. A terminal is spared control characters. */
static int decode_all(const struct tokenizer *t, char *text, struct err *err)
{
    bool terminal = isatty(STDOUT_FILENO);
    while (*(text += strspn(text, ", \t\r\n"))) {
        char *end;
        errno = 0;
        unsigned long long id = strtoull(text, &end, 10);
        if (end == text || *text == '-' || *text == '+' || !strchr(", \t\r\n", *end))
            return err_set(err, ERR_ARG, "expected ids, found %.20s", text);
        size_t n;
        const char *p =
            errno || id >= tokenizer_size(t) ? NULL : tokenizer_bytes(t, (uint32_t)id, &n);
        if (!p)
            return err_set(err, ERR_ARG, "id %.20s: expected one in use, below %zu", text,
                           tokenizer_size(t));
        for (size_t i = 0; i < n; i++) {
            unsigned char c = (unsigned char)p[i];
            if (terminal && (c < 32 || c == 127) && c != '\n' && c != '\t')
                printf("\\x%02x", c);
            else
                putchar(c);
        }
        text = end;
    }
    return OK;
}

static int tokenize(struct err *err)
{
    const char *path = engine_opts.model ? engine_opts.model : demo_path("edge-0.5.gguf");
    if (!path)
        return err_set(err, ERR_ARG, "the demo pair is not found; name a model or folder with -m");
    struct tokenizer *t;
    char *text = NULL, *ids = NULL;
    size_t n = 0;
    int rc = tokenizer_open_path(&t, path, err);
    if (rc)
        return rc;
    if (!prompt)
        rc = read_stdin(&text, &n, err);
    const char *p = prompt ? prompt : text;
    n = prompt ? strlen(prompt) : n;
    if (!rc && decode) {
        ids = calloc(1, n + 1);
        if (ids)
            memcpy(ids, p, n);
        rc = ids ? decode_all(t, ids, err) : err_set(err, ERR_NOMEM, "out of memory");
    } else if (!rc) {
        rc = encode(t, p, n, err);
    }
    if (fflush(stdout) && !rc)
        rc = err_set(err, ERR_IO, "stdout: %s", strerror(errno));
    free(ids);
    free(text);
    tokenizer_close(t);
    return rc;
}

static int run(int argc, char **argv)
{
    struct err err = { "" };
    int nargs = 0, status = opt_parse(&cmd_tokenize, argc, argv, &nargs);
    if (status >= 0)
        return status;
    int rc = nargs ? err_set(&err, ERR_ARG, "unexpected argument %s", argv[1]) : tokenize(&err);
    return cmd_fail("tokenize", rc, &err);
}

const struct command cmd_tokenize = {
    .name = "tokenize",
    .summary = "text to token ids and back",
    .args = "",
    .description = "Reads a text and prints its token ids, separated by blanks, as the model's own "
                   "tokenizer cuts it. -m may name a model file, a model folder, or a folder that "
                   "holds a tokenizer alone.\n\n"
                   "  echo -n 'Hello' | mizzle tokenize -m model.gguf\n"
                   "  echo 9707 | mizzle tokenize -m model.gguf --decode",
    .groups = groups,
    .run = run,
};
