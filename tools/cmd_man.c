/* cmd_man.c - `mizzle man`: print the manual page, made from the same tables as --help. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "router/mizzle.h"
#include "tools/command.h"

enum { SHARED = 32 };

/* Print s[n] as roff text: escape backslashes, hyphens, and dots and quotes at the beginning of a
 * line. */
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
    cmd_man_put(s, strlen(s), true);
}

/* Print paragraphs. Lines that begin with two blanks are examples and are printed unfilled. */
static void cmd_man_put_text(const char *text)
{
    bool kept = false, parted = false; /* in an example; behind a blank line */
    while (*text) {
        size_t n = strcspn(text, "\n");
        bool keep = text[0] == ' ';
        if (n && kept && !keep)
            puts(".fi");
        if (n && (parted || (keep && !kept)))
            puts(".PP");
        if (n && keep)
            fputs(kept ? "\\&  " : ".nf\n\\&  ", stdout);
        if (n) {
            cmd_man_put(text + (keep ? 2 : 0), n - (keep ? 2 : 0), !keep);
            putchar('\n');
            kept = keep;
        }
        parted = n == 0;
        text += n + (text[n] == '\n');
    }
    if (kept)
        puts(".fi");
}

/* Print the rows of a group as tagged paragraphs. */
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

/* True for groups that several commands share; the page describes them once, at the end. */
static bool is_shared(const struct option_group *g)
{
    size_t n = 0;
    for (size_t i = 0; commands[i]; i++)
        for (size_t k = 0; commands[i]->groups && commands[i]->groups[k]; k++)
            n += commands[i]->groups[k] == g;
    return n > 1;
}

/* Print these groups, each where it occurs first. */
static void put_shared(void)
{
    const struct option_group *done[SHARED];
    size_t n = 0;
    for (size_t i = 0; commands[i]; i++)
        for (size_t k = 0; commands[i]->groups && commands[i]->groups[k]; k++) {
            const struct option_group *g = commands[i]->groups[k];
            bool seen = !is_shared(g);
            for (size_t d = 0; d < n; d++)
                seen = seen || done[d] == g;
            if (seen || n == SHARED)
                continue;
            put_options(g);
            done[n++] = g;
        }
}

/* Print the section of one command. */
static void put_command(const struct command *cmd)
{
    printf(".SS mizzle %s [options]%s%s\n", cmd->name, cmd->args ? " " : "",
           cmd->args ? cmd->args : "");
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
    printf(".PP\nAlso, as described under SHARED OPTIONS:");
    for (size_t g = 0; cmd->groups[g]; g++)
        if (is_shared(cmd->groups[g]))
            printf(" %s.", cmd->groups[g]->title);
    putchar('\n');
}

static int cmd_man_main(int n, char **args, struct err *err)
{
    (void)n, (void)args, (void)err;
    puts(".TH MIZZLE 1 \"\" \"mizzle " MIZZLE_VERSION "\" \"User Commands\"\n.SH NAME\n"
         "mizzle \\- a small language model that asks a large one token by token\n"
         ".SH SYNOPSIS\n.B mizzle\n.I command\n[options]\n.SH DESCRIPTION\n"
         "Mizzle runs a Qwen2.5 or Qwen3 model on this machine. A small network reads the hidden "
         "state and\n"
         "scores every next token; the few tokens that the model would get wrong are requested\n"
         "from a large model, over HTTP or in the same process.\n"
         "Without \\fB\\-m\\fR, Mizzle uses the demo pair, whose large model is in the same "
         "process.\n"
         ".SH COMMANDS");
    for (size_t i = 0; commands[i]; i++)
        put_command(commands[i]);
    puts(".SH SHARED OPTIONS");
    put_shared();
    puts(".SH ENVIRONMENT\n.TP\n\\fBMIZZLE_CLOUD_URL\\fR\nThe server of the large model.\n.TP\n"
         "\\fBMIZZLE_API_KEY\\fR, \\fBOPENAI_API_KEY\\fR\nIts API key; the first one that is "
         "set counts. The second is sent only over https.\n.TP\n\\fBhttp_proxy\\fR, "
         "\\fBhttps_proxy\\fR, "
         "\\fBall_proxy\\fR, \\fBno_proxy\\fR\nProxies for the cloud, as in curl.\n"
         ".TP\n\\fBSSL_CERT_FILE\\fR\nA PEM file: trust these certificate authorities alone, for "
         "the cloud.\n"
         ".TP\n\\fBMIZZLE_SERVE_KEY\\fR\nThe key that serve and cloud require of their clients.\n"
         ".TP\n\\fBMIZZLE_ISA\\fR\nThe kernel set to use, as in avx2; for experiments also how "
         "products walk the weights, as in avx2,panels=1,run=1048576,ahead=0 (see \\fBmizzle "
         "info\\fR).\n.TP\n\\fBMIZZLE_DEMO\\fR\n"
         "The folder of the demo pair.\n.TP\n\\fBNO_COLOR\\fR\nUse no colour on the terminal.\n"
         ".SH EXIT STATUS\n.TP\n0\nSuccess.\n.TP\n1\nFailure.\n.TP\n2\nWrong usage.\n.TP\n3\n"
         "A file cannot be read or written, or its contents are invalid.\n.TP\n4\n"
         "The cloud is required and not available.\n.TP\n130\nInterrupted. "
         "After SIGTERM, serve and cloud end with 0.");
    if (isatty(STDOUT_FILENO))
        fputs("mizzle man: this is roff; to read it: mizzle man | man -l -\n", stderr);
    return EXIT_FINE;
}

static const struct option_group *const groups[] = { NULL };

const struct command cmd_man = {
    .name = "man",
    .summary = "print the manual page",
    .description =
        "Prints mizzle(1) as roff source for man, made from the same tables as every --help. "
        "`make install` installs it.\n\n"
        "  mizzle man | man -l -\n"
        "  mizzle man >mizzle.1 && man ./mizzle.1",
    .groups = groups,
    .run = cmd_man_main,
};
