#include "tools/cli/options.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tools/command.h"

enum { WIDTH = 80, HELP_COLUMN = 28, EXAMPLES = 3 };

/* Return the row of cmd whose name or short name is s[n], or NULL. */
static const struct option *options_find(const struct command *cmd, const char *s, size_t n)
{
    for (size_t g = 0; cmd && cmd->groups && cmd->groups[g]; g++)
        for (const struct option *o = cmd->groups[g]->opts; o->name; o++)
            if ((strlen(o->name) == n && memcmp(o->name, s, n) == 0) ||
                (o->alt && strlen(o->alt) == n && memcmp(o->alt, s, n) == 0))
                return o;
    return NULL;
}

void options_as_typed(struct err *out, const struct command *cmd, const char *line)
{
    char text[sizeof(out->msg)], name[32] = "--";
    size_t used = 0;
    for (size_t i = 0; line[i] && used < sizeof(text) - sizeof(name);) {
        size_t n = strspn(line + i, "abcdefghijklmnopqrstuvwxyz_");
        bool option =
            n && n < sizeof(name) - 2 && (memchr(line + i, '_', n) || (i == 0 && line[n] == ':'));
        for (size_t k = 0; option && k < n; k++)
            name[2 + k] = line[i + k] == '_' ? '-' : line[i + k];
        if (!option || !options_find(cmd, name, n + 2)) {
            n = n ? n : 1;
            n = n < sizeof(text) - used ? n : sizeof(text) - used - 1;
            memcpy(text + used, line + i, n);
            used += n;
        } else {
            memcpy(text + used, name, n + 2);
            used += n + 2;
        }
        i += n;
    }
    text[used] = '\0';
    err_set(out, OK, "%s", text);
}

/* Say which commands have an option of the name s[n]; nothing if none has. */
static void options_elsewhere(struct err *out, const char *s, size_t n)
{
    const char *has[3];
    size_t found = 0;
    for (size_t i = 0; commands[i] && found < 3; i++)
        if (options_find(commands[i], s, n))
            has[found++] = commands[i]->name;
    out->msg[0] = '\0';
    if (found == 1)
        err_set(out, OK, "an option of %s", has[0]);
    else if (found)
        err_set(out, OK, "an option of %s%s%s%s", has[0], found > 2 ? ", " : " and ", has[1],
                found > 2 ? " and others" : "");
}

size_t edit_distance(const char *a, const char *b)
{
    size_t row[33], nb = strlen(b);
    if (nb > 32 || strlen(a) > 32)
        return SIZE_MAX;
    for (size_t j = 0; j <= nb; j++)
        row[j] = j;
    for (size_t i = 0; a[i]; i++) {
        size_t diagonal = row[0];
        row[0] = i + 1;
        for (size_t j = 0; j < nb; j++) {
            size_t best = diagonal + (a[i] != b[j]),
                   least = row[j] < row[j + 1] ? row[j] : row[j + 1];
            diagonal = row[j + 1];
            row[j + 1] = best <= least ? best : least + 1;
        }
    }
    return row[nb];
}

/* Return the option of cmd for which other programs have the name s[n], or NULL. */
static const char *options_of_others(const struct command *cmd, const char *s, size_t n)
{
    static const char *const names[][2] = {
        { "--max-tokens", "--n-predict" }, { "--max-new-tokens", "--n-predict" },
        { "--ctx-size", "--context" },     { "--max-model-len", "--context" },
        { "--base-url", "--cloud-url" },   { "--system-prompt", "--system" },
        { "--temperature", "--temp" },     { "--model-path", "--model" },
        { "--cache-type-k", "--kv" },      { "--api-key", "--cloud-key-file" },
        { "--interactive", "--chat" },     { "--conversation", "--chat" },
        { "--ctx", "--context" },          { "--tokens", "--n-predict" },
    };
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        if (strlen(names[i][0]) == n && memcmp(names[i][0], s, n) == 0 &&
            options_find(cmd, names[i][1], strlen(names[i][1])))
            return names[i][1];
    return NULL;
}

/* Report an unknown option s, whose name has n bytes. Say which commands have it, and suggest the
 * nearest name of cmd's own, if that is at most three letters off, fewer of a short name, one if
 * others have it, or what other programs call so. */
static int options_unknown(const struct command *cmd, const char *s, size_t n)
{
    struct err line, other, hint;
    char dashed[64]; /* as it would be here */
    snprintf(dashed, sizeof(dashed), "%.*s", (int)(n < sizeof(dashed) ? n : 0), s);
    for (char *p = dashed; *p; p++)
        *p = *p == '_' ? '-' : *p;
    const char *near = options_of_others(cmd, dashed, strlen(dashed));
    options_elsewhere(&other, s, n);
    hint = other;
    size_t least = near ? 0 : other.msg[0] ? 2 : n < 8 ? n / 2 : 4;
    for (size_t g = 0; cmd->groups && cmd->groups[g]; g++)
        for (const struct option *o = cmd->groups[g]->opts; o->name; o++)
            if (edit_distance(dashed, o->name) < least) {
                least = edit_distance(dashed, o->name);
                near = o->name;
            }
    err_set(&line, ERR_ARG, "unknown option %s", s);
    if (near)
        err_set(&hint, OK, "%s%sdid you mean %s?", other.msg, other.msg[0] ? "; " : "", near);
    fprintf(stderr, "mizzle %s: %s%s%s%s; see mizzle %s --help\n", cmd->name, line.msg,
            hint.msg[0] ? " (" : "", hint.msg, hint.msg[0] ? ")" : "", cmd->name);
    return EXIT_USAGE;
}

/* Parse a decimal number of at most max; digits only, so no sign and no blanks. */
static bool options_number(const char *s, uint64_t max, uint64_t *out)
{
    uint64_t n = 0;
    if (!*s)
        return false;
    for (; *s; s++) {
        if (*s < '0' || *s > '9')
            return false;
        uint64_t digit = (uint64_t)(*s - '0');
        if (n > (max - digit) / 10)
            return false;
        n = n * 10 + digit;
    }
    *out = n;
    return true;
}

/* Parse value and store it where the row points. Return NULL, or what was expected instead. */
static const char *options_store(const struct option *o, const char *value)
{
    uint64_t n = 0;
    bool fine;
    switch (o->type) {
    case OPTION_FLAG:
        *(bool *)o->to = true;
        return NULL;
    case OPTION_STR:
        *(const char **)o->to = value;
        return NULL;
    case OPTION_SIZE:
    case OPTION_COUNT:
    case OPTION_LENGTH:
        fine = options_number(value, SIZE_MAX, &n);
        if (o->type == OPTION_LENGTH && strcmp(value, "-1") == 0)
            n = SIZE_MAX;
        else if (!fine || (o->type == OPTION_COUNT && !n))
            return o->type == OPTION_COUNT    ? "a whole number of at least 1"
                   : o->type == OPTION_LENGTH ? "a whole number, or -1"
                                              : "a whole number";
        *(size_t *)o->to = (size_t)n;
        return NULL;
    case OPTION_U64:
        if (!options_number(value, UINT64_MAX, (uint64_t *)o->to))
            return "a whole number";
        return NULL;
    case OPTION_FLOAT:
    case OPTION_REAL:
    case OPTION_AMOUNT: {
        char *end;
        float f = strtof(value, &end);
        if (end == value || *end || !(fabsf(f) < INFINITY))
            return "a number";
        if (o->type == OPTION_AMOUNT && !(f > 0))
            return "a number above 0";
        if (o->type == OPTION_FLOAT)
            *(float *)o->to = f;
        else
            *(double *)o->to = (double)f;
        return NULL;
    }
    case OPTION_LIST: {
        struct option_list *list = o->to;
        if (list->n + 1 >= sizeof(list->at) / sizeof(list->at[0]))
            return "at most 16 of them";
        list->at[list->n++] = value;
        return NULL;
    }
    }
    return "another type";
}

/* Report what an option expected and, unless found is NULL, what it got. */
static int options_usage(const struct command *cmd, const char *name, const char *what,
                         const char *found)
{
    struct err err;
    err_set(&err, ERR_ARG, "%s: expected %s%s%s", name, what, found ? ", found " : "",
            found ? (*found ? found : "nothing") : "");
    fprintf(stderr, "mizzle %s: %s; see mizzle %s --help\n", cmd->name, err.msg, cmd->name);
    return EXIT_USAGE;
}

const struct command *options_command;

enum { GIVEN = 128 };
static const struct option *given[GIVEN]; /* [ngiven], each once */
static size_t ngiven;

bool options_given(const char *name)
{
    for (size_t i = 0; i < ngiven; i++)
        if (!strcmp(given[i]->name, name))
            return true;
    return false;
}

int options_parse(const struct command *cmd, int argc, char **argv, int *nargs)
{
    bool options = true;
    options_command = cmd;
    *nargs = 0;
    ngiven = 0;
    for (int i = 1; i < argc; i++) {
        char *arg = argv[i];
        if (!options || arg[0] != '-' || !arg[1]) {
            argv[1 + (*nargs)++] = arg;
            continue;
        }
        if (strcmp(arg, "--") == 0) {
            options = false;
            continue;
        }
        if (strcmp(arg, "--help") == 0 || strcmp(arg, "-h") == 0 || !strcmp(arg, "--help=all")) {
            const char *how = arg[1] == '-' && arg[6] ? arg + 7 : argv[i + 1];
            options_help(stdout, cmd, how && strcmp(how, "all") == 0);
            return EXIT_FINE;
        }
        const char *equals = arg[1] == '-' ? strchr(arg, '=') : NULL;
        size_t n = equals ? (size_t)(equals - arg) : strlen(arg);
        const struct option *o = options_find(cmd, arg, n);
        if (!o)
            return options_unknown(cmd, arg, n);
        const char *value = equals ? equals + 1 : NULL;
        if (o->type == OPTION_FLAG && value)
            return options_usage(cmd, o->name, "no value", value);
        if (o->type != OPTION_FLAG && !value) {
            if (++i == argc)
                return options_usage(cmd, o->name, o->arg, "nothing");
            value = argv[i];
        }
        const char *expected = options_store(o, value);
        if (expected)
            return options_usage(cmd, o->name, expected, value);
        if (ngiven < GIVEN && !options_given(o->name))
            given[ngiven++] = o;
    }
    return -1;
}

/* Print the words of text[n] from column `at` on, with line breaks before column 80. Further lines
 * are indented. */
static void options_wrap_words(FILE *to, const char *text, size_t n, int indent, int at)
{
    for (size_t i = 0; i < n;) {
        size_t len = 0;
        while (i + len < n && text[i + len] != ' ' && text[i + len] != '\n')
            len++;
        if (at > indent && at + 1 + (int)len > WIDTH) {
            fprintf(to, "\n%*s", indent, "");
            at = indent;
        } else if (at > indent) {
            fputc(' ', to);
            at++;
        }
        fwrite(text + i, 1, len, to);
        at += (int)len;
        for (i += len; i < n && (text[i] == ' ' || text[i] == '\n'); i++)
            ;
    }
    fputc('\n', to);
}

/* Print text in indented lines of at most 80 columns. Lines that begin with a blank are printed as
 * they are; an empty line ends a paragraph. */
static void options_wrap(FILE *to, const char *text, int indent)
{
    while (*text) {
        const char *end = text;
        if (*text == ' ' || *text == '\n') { /* print the line as it is */
            end = strchr(text, '\n') ? strchr(text, '\n') : text + strlen(text);
            fprintf(to, "%*s%.*s\n", *text == '\n' ? 0 : indent, "", (int)(end - text), text);
        } else {
            while (*end && !(end[0] == '\n' && (end[1] == '\n' || end[1] == ' ' || !end[1])))
                end++;
            fprintf(to, "%*s", indent, "");
            options_wrap_words(to, text, (size_t)(end - text), indent, indent);
        }
        text = *end ? end + 1 : end;
    }
}

/* Print the names of an option, and its help from HELP_COLUMN on. */
static void options_help_row(FILE *to, const struct option *o, const char *help)
{
    int at = fprintf(to, "  %s%s%s%s%s", o->alt ? o->alt : "", o->alt ? ", " : "    ", o->name,
                     o->arg ? " " : "", o->arg ? o->arg : "");
    if (at >= HELP_COLUMN) {
        fputc('\n', to);
        at = 0;
    }
    fprintf(to, "%*s", HELP_COLUMN - at, "");
    options_wrap_words(to, help, strlen(help), HELP_COLUMN, HELP_COLUMN);
}

/* Print what many use of a command, and its examples. */
static void options_help_brief(FILE *to, const struct command *cmd)
{
    size_t n = 0;
    for (size_t i = 0; cmd->brief[i].name; i++)
        options_help_row(to, options_find(cmd, cmd->brief[i].name, strlen(cmd->brief[i].name)),
                         cmd->brief[i].help);
    for (size_t g = 0; cmd->groups[g]; g++)
        for (const struct option *o = cmd->groups[g]->opts; o->name; o++)
            n++;
    putc('\n', to);
    const char *line = strstr(cmd->description, "\n  ");
    for (size_t i = 0; line && i < EXAMPLES; i++, line = strchr(line + 1, '\n'))
        fprintf(to, "%.*s\n", (int)strcspn(line + 1, "\n"), line + 1);
    fprintf(to, "\nAll %zu options, and more: mizzle %s --help all\n", n, cmd->name);
}

void options_help(FILE *to, const struct command *cmd, bool all)
{
    int at = fprintf(to, "mizzle %s:", cmd->name);
    options_wrap_words(to, cmd->summary, strlen(cmd->summary), 0, at);
    fprintf(to, "\nUsage: mizzle %s [options]%s%s\n", cmd->name, cmd->args ? " " : "",
            cmd->args ? cmd->args : "");
    if (cmd->brief && !all) {
        options_help_brief(to, cmd);
        return;
    }
    fputs("If an option is given twice, the last one counts unless it says otherwise.\n\n", to);
    options_wrap(to, cmd->description, 0);
    for (size_t g = 0; cmd->groups && cmd->groups[g]; g++) {
        fprintf(to, "\n%s:\n", cmd->groups[g]->title);
        for (const struct option *o = cmd->groups[g]->opts; o->name; o++)
            options_help_row(to, o, o->help);
    }
    fprintf(to, "\nOther:\n%*s%s\n", -HELP_COLUMN,
            cmd->brief ? "  -h, --help [all]" : "  -h, --help",
            cmd->brief ? "Print what many use, or all of this" : "Print this text");
}
