#include "tools/run/prompt_input.h"

#include <errno.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#ifdef HAVE_EDIT
#include <histedit.h>
#endif

#include "kernels/sys/text.h"
#include "tools/cli/setup.h"

static bool prompt_input_begun; /* Ctrl-C came behind a part of a line */

/* A terminal that is asked to (DECSET 2004) puts these around a text that is pasted. */
static const char *const paste_mark[] = { "\033[200~", "\033[201~" };
enum { PASTE_MARK = 6 };
static bool prompt_input_pasting; /* the first has come, the second has not */

#ifdef HAVE_EDIT
static const char *prompt_input_sign;

static const char *prompt_input_shown(EditLine *e)
{
    return e ? prompt_input_sign : "";
}

/* Key function: take what is pasted into the line, with its newlines. */
static unsigned char prompt_input_paste(EditLine *e, int key)
{
    wchar_t c[2] = { 0 };
    (void)key;
    for (size_t met = 0; met < PASTE_MARK && !interrupted && el_wgetc(e, c) == 1;) {
        if (*c == (wchar_t)paste_mark[1][met]) {
            met++;
            continue;
        }
        met = *c == '\033'; /* what only began like the end is no text */
        *c = *c == '\r' ? '\n' : *c;
        if (!met && el_winsertstr(e, c) != 0)
            break;
    }
    return interrupted ? CC_EOF : CC_REFRESH;
}

/* Return the next line as getline does; it can be edited, and those before can be had again. */
static ssize_t prompt_input_edited(char **line)
{
    static EditLine *e;
    static History *past;
    HistEvent event;
    int n;
    if (!e) {
        if (!setlocale(LC_CTYPE, "C.UTF-8")) /* else only ASCII could be typed */
            setlocale(LC_CTYPE, "");
        e = el_init("mizzle", stdin, stderr, stderr);
        past = history_init();
        if (!e || !past)
            return -1;
        history(past, &event, H_SETSIZE, 1000);
        el_set(e, EL_PROMPT, prompt_input_shown);
        el_set(e, EL_EDITOR, "emacs");
        el_set(e, EL_SIGNAL, 1);
        el_set(e, EL_ADDFN, "mizzle-paste", "Paste", prompt_input_paste);
        el_set(e, EL_BIND, paste_mark[0], "mizzle-paste", NULL);
        el_set(e, EL_HIST, history, past);
        el_source(e, NULL);
    }
    const char *got = el_gets(e, &n);
    prompt_input_begun = !got && el_line(e)->lastchar > el_line(e)->buffer;
    if (got && *got != '\n')
        history(past, &event, H_ENTER, got);
    *line = got ? strdup(got) : NULL;
    return *line ? (ssize_t)strlen(*line) : -1;
}
#endif

/* Return the next line as getline does, of a terminal an edited one. */
static ssize_t prompt_input_get(char **line, const char *sign)
{
    size_t cap = 0;
#ifdef HAVE_EDIT
    prompt_input_sign = sign;
    if (sign && isatty(STDIN_FILENO) && isatty(STDERR_FILENO))
        return prompt_input_edited(line);
#endif
    if (sign)
        fputs(sign, stderr);
    ssize_t got = getline(line, &cap, stdin);
    static bool begun;
    size_t mark = begun || got < 0 ? 0 : text_mark(*line, (size_t)got);
    begun = true;
    if (mark)
        memmove(*line, *line + mark, (size_t)got + 1 - mark);
    return got - (ssize_t)mark;
}

/* Append one line without its end to *out; false at the end of the input or without memory. */
static bool prompt_input_append_line(char **out, size_t *n, const char *sign, int *rc,
                                     struct err *err)
{
    char *line = NULL;
    errno = 0;
    const char *term =
        sign && isatty(STDIN_FILENO) && isatty(STDERR_FILENO) ? getenv("TERM") : NULL;
    pasting = term && strcmp(term, "dumb") != 0;
    fputs(pasting ? "\033[?2004h" : "", stderr);
    ssize_t got = prompt_input_get(&line, sign);
    fputs(pasting ? "\033[?2004l" : "", stderr);
    pasting = 0;
    if (got < 0 && errno == ENOMEM)
        *rc = err_set(err, ERR_NOMEM, "standard input: out of memory");
    while (got > 0 && (line[got - 1] == '\n' || line[got - 1] == '\r'))
        got--;
    for (char *mark; sign && got > 0 && (mark = strstr(line, paste_mark[prompt_input_pasting]));) {
        memmove(mark, mark + PASTE_MARK, strlen(mark + PASTE_MARK) + 1);
        got -= PASTE_MARK;
        prompt_input_pasting = !prompt_input_pasting;
    }
    char *more = got < 0 ? NULL : realloc(*out, *n + (size_t)got + 2);
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
    bool warned = false;
    *n = 0;
    for (;;) {
        if (prompt_input_append_line(out, n, asks ? sign : NULL, rc, err)) {
            if (prompt_input_pasting)
                (*n)++;
            else if (!*n || (*out)[*n - 1] != '\\')
                return true;
            memcpy(*out + *n - 1, "\n", 2);
            sign = ". ";
            continue;
        }
        if (asks)
            fputs("\n", stderr);
        bool begun = *n || prompt_input_begun; /* where lines are not edited, nobody knows */
        if (*rc != OK || interrupted != SIGINT || !isatty(STDIN_FILENO) || (warned && !begun))
            break;
        if (asks && !begun)
            fputs("(Ctrl-C again, Ctrl-D or /quit ends)\n", stderr);
        warned = !begun;
        prompt_input_pasting = false;
        clearerr(stdin);
        interrupted = 0;
        *n = 0;
        sign = "> ";
    }
    if (*rc == OK && interrupted)
        *rc = ERR_STOP;
    return false;
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
