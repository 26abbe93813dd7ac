/* cmd_man.c - `mizzle man`: the manual page, from the same tables as --help. */
#include <stdio.h>

#include "tools/command.h"

/* Text for roff: backslashes and leading dots and quotes are escaped, "-" stays a plain minus. */
static void cmd_man_put(const char *s, size_t n, bool line_start)
{
    for (size_t i = 0; i < n; i++) {
        if (line_start && (s[i] == '.' || s[i] == '\''))
            fputs("\\&", stdout);
        line_start = s[i] == '\n';
        if (s[i] == '\\')
            fputs("\\e", stdout);
        else if (s[i] == '-')
            fputs("\\-", stdout);
        else
            putchar(s[i]);
    }
}

static void put_string(const char *s)
{
    size_t n = 0;
    while (s[n])
        n++;
    cmd_man_put(s, n, true);
}

/* Paragraphs; lines that begin with two blanks are examples, kept as they are. */
static void cmd_man_put_text(const char *text)
{
    bool kept = false;
    while (*text) {
        size_t n = 0;
        while (text[n] && text[n] != '\n')
            n++;
        bool keep = text[0] == ' ';
        if (keep != kept)
            puts(keep ? ".PP\n.nf" : ".fi");
        if (n == 0)
            puts(kept ? "" : ".PP");
        else if (keep)
            printf("\\&  ");
        if (n) {
            cmd_man_put(text + (keep ? 2 : 0), n - (keep ? 2 : 0), !keep);
            putchar('\n');
        }
        if (n)
            kept = keep;
        else if (kept)
            kept = true;
        text += n + (text[n] == '\n');
    }
    if (kept)
        puts(".fi");
}

static void put_options(const struct option_group *group)
{
    printf(".PP\n%s:\n", group->title);
    for (const struct option *o = group->opts; o->name; o++) {
        printf(".TP\n\\fB");
        if (o->alt) {
            put_string(o->alt);
            printf("\\fR, \\fB");
        }
        put_string(o->name);
        printf("\\fR");
        if (o->arg)
            printf(" \\fI%s\\fR", o->arg);
        putchar('\n');
        put_string(o->help);
        putchar('\n');
    }
}

static bool is_shared(const struct option_group *g)
{
    return g == &engine_option_rows || g == &cloud_option_rows || g == &opt_check ||
           g == &keep_option_rows || g == &route_option_rows;
}

static void put_command(const struct command *cmd)
{
    printf(".SS mizzle %s [options]%s%s\n", cmd->name, *cmd->args ? " " : "", cmd->args);
    cmd_man_put_text(cmd->description);
    bool shared = false;
    for (size_t g = 0; cmd->groups && cmd->groups[g]; g++) {
        if (is_shared(cmd->groups[g]))
            shared = true;
        else
            put_options(cmd->groups[g]);
    }
    if (!shared)
        return;
    printf(".PP\nAnd these, see SHARED OPTIONS:");
    for (size_t g = 0; cmd->groups[g]; g++)
        if (is_shared(cmd->groups[g]))
            printf(" %s.", cmd->groups[g]->title);
    putchar('\n');
}

static int cmd_man_main(int argc, char **argv)
{
    int nargs, status = options_parse(&cmd_man, argc, argv, &nargs);
    if (status >= 0)
        return status;
    if (nargs) {
        struct err err;
        return command_fail("man", err_set(&err, ERR_ARG, "expected no arguments"), &err);
    }
    puts(".TH MIZZLE 1 \"\" \"mizzle " MIZZLE_VERSION "\" \"User Commands\"\n.SH NAME\n"
         "mizzle \\- a small language model that asks a large one token by token\n"
         ".SH SYNOPSIS\n.B mizzle\n.I command\n[options]\n.SH DESCRIPTION\n"
         "Mizzle runs a Qwen2.5 model on this machine, scores every next token with a small "
         "network\nthat reads the hidden state, and asks a large model behind HTTP for the few "
         "tokens that\nthe small one would get wrong.\n"
         "Without \\fB\\-m\\fR the demo pair is used, with a stand\\-in cloud on this machine.\n"
         ".SH COMMANDS");
    for (size_t i = 0; commands[i]; i++)
        put_command(commands[i]);
    puts(".SH SHARED OPTIONS");
    put_options(&engine_option_rows);
    put_options(&route_option_rows);
    put_options(&cloud_option_rows);
    put_options(&keep_option_rows);
    puts(".SH ENVIRONMENT\n.TP\n\\fBMIZZLE_CLOUD_URL\\fR\nserver of the large model\n.TP\n"
         "\\fBMIZZLE_API_KEY\\fR, \\fBOPENAI_API_KEY\\fR\nits API key, the first that is set; "
         "the second one goes over https or to this machine alone\n"
         ".TP\n\\fBMIZZLE_ISA\\fR\nkernel set to use\n.TP\n\\fBMIZZLE_DEMO\\fR\n"
         "folder of the demo pair\n.TP\n\\fBNO_COLOR\\fR\nno colour on the terminal\n"
         ".SH EXIT STATUS\n.TP\n0\nfine\n.TP\n1\nfailed\n.TP\n2\nwrong usage\n.TP\n3\n"
         "a file that cannot be read or written, or whose bytes are wrong\n.TP\n4\n"
         "the cloud is required and not available\n.TP\n130\ninterrupted");
    return EXIT_FINE;
}

static const struct option_group *const groups[] = { NULL };

const struct command cmd_man = {
    .name = "man",
    .summary = "print the manual page",
    .args = "",
    .description = "Prints mizzle(1) for man, made from the same tables as every --help. `make "
                   "install` installs it.\n\n  mizzle man >mizzle.1 && man ./mizzle.1",
    .groups = groups,
    .run = cmd_man_main,
};
