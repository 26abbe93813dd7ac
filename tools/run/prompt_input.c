#include "tools/run/prompt_input.h"

#include <errno.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#ifdef HAVE_EDIT
#include <editline/readline.h>
#endif

#include "kernels/sys/base.h"
#include "tools/cli/setup.h"

/* Return the next line as getline does. Where a person writes on a terminal, it can be edited, and
 * those before can be had again. */
static ssize_t prompt_input_get(char **line, const char *sign)
{
    size_t cap = 0;
#ifdef HAVE_EDIT
    if (sign && isatty(STDIN_FILENO) && isatty(STDERR_FILENO)) {
        if (!setlocale(LC_CTYPE, "C.UTF-8")) /* else only ASCII could be typed */
            setlocale(LC_CTYPE, "");
        rl_outstream = stderr;
        *line = readline(sign);
        if (*line && **line)
            add_history(*line);
        return *line ? (ssize_t)strlen(*line) : -1;
    }
#endif
    if (sign)
        fputs(sign, stderr);
    return getline(line, &cap, stdin);
}

/* Append one line without its end to *out; false at the end of the input or without memory. */
static bool prompt_input_append_line(char **out, size_t *n, const char *sign, int *rc,
                                     struct err *err)
{
    char *line = NULL;
    errno = 0;
    ssize_t got = prompt_input_get(&line, sign);
    if (got < 0 && errno == ENOMEM)
        *rc = err_set(err, ERR_NOMEM, "standard input: out of memory");
    while (got > 0 && (line[got - 1] == '\n' || line[got - 1] == '\r'))
        got--;
    char *more = got < 0 ? NULL : realloc(*out, *n + (size_t)got + 1);
    if (more) {
        memcpy(more + *n, line, (size_t)got);
        *n += (size_t)got;
        more[*n] = '\0';
        *out = more;
    } else if (got >= 0) {
        *rc = err_set(err, ERR_NOMEM, "standard input: out of memory");
    }
    free(line);
    return more;
}

bool prompt_input_line(char **out, size_t *n, bool asks, int *rc, struct err *err)
{
    const char *sign = "> ";
    *n = 0;
    for (;;) {
        if (!prompt_input_append_line(out, n, asks ? sign : NULL, rc, err)) {
            if (asks)
                fputs("\n", stderr);
            if (*rc == OK && interrupted)
                *rc = ERR_STOP;
            return false;
        }
        if (!*n || (*out)[*n - 1] != '\\')
            return true;
        (*out)[*n - 1] = '\n';
        sign = ". ";
    }
}

int conversation_add(struct conversation *c, const char *role, const char *text, size_t n,
                     struct err *err)
{
    struct mizzle_message *more = realloc(c->messages, (c->n + 1) * sizeof(*more));
    char *copy = more ? malloc(n + 1) : NULL;
    if (more)
        c->messages = more;
    if (!copy)
        return err_set(err, ERR_NOMEM, "conversation: out of memory");
    if (n)
        memcpy(copy, text, n);
    copy[n] = '\0';
    c->messages[c->n++] = (struct mizzle_message){ .role = role, .text = copy, .text_size = n };
    return OK;
}

void answer_text_begin(struct answer_text *a, const char *const *stops)
{
    a->text.n = 0;
    a->ended = false;
    stops_begin(&a->stops, stops, NULL);
}

bool answer_text_add(struct answer_text *a, const char *bytes, size_t n)
{
    size_t at, length, before = a->text.n;
    if (a->ended)
        return true;
    if (!buf_add(&a->text, bytes, n))
        return false;
    a->ended = n && stops_feed(&a->stops, bytes, n, &at, &length);
    if (a->ended)
        a->text.n = before + at - length;
    return true;
}

void conversation_cut(struct conversation *c, size_t n)
{
    while (c->n > n)
        free((char *)c->messages[--c->n].text);
    if (n == 0) {
        free(c->messages);
        c->messages = NULL;
    }
}

bool prompt_input_no_command(const char *line, size_t n)
{
    bool word = line[0] == '/' &&
                strspn(line + 1, "?abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") == n - 1;
    if (word)
        fprintf(stderr, "mizzle run: %.40s: expected /clear (starts again) or /quit (ends)\n",
                line);
    return word;
}
