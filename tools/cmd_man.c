/* cmd_man.c - `mizzle man`: print the manual page, which shows every --help. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "router/mizzle.h"
#include "tools/command.h"

/* Print lines as roff text: escape backslashes, hyphens, and dots and quotes that begin a line. */
static void cmd_man_put(const char *s)
{
    for (bool begins = true; *s; begins = *s++ == '\n') {
        if (begins && (*s == '.' || *s == '\''))
            fputs("\\&", stdout);
        if (*s == '\\')
            fputs("\\e", stdout);
        else if (*s == '-')
            fputs("\\-", stdout);
        else
            putchar(*s);
    }
}

/* Print the section of one command: all of its help, as it is. */
static int put_command(const struct command *cmd, struct err *err)
{
    char *text = NULL;
    size_t n;
    FILE *f = open_memstream(&text, &n);
    if (f)
        options_help(f, cmd, true);
    if (!f || fclose(f) != 0) {
        free(text);
        return err_set(err, ERR_NOMEM, "out of memory");
    }
    printf(".SS mizzle %s [options]%s%s\n.nf\n", cmd->name, cmd->args ? " " : "",
           cmd->args ? cmd->args : "");
    cmd_man_put(text);
    puts(".fi");
    free(text);
    return OK;
}

static int cmd_man_main(int n, char **args, struct err *err)
{
    int rc = OK;
    (void)n, (void)args;
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
    for (size_t i = 0; rc == OK && commands[i]; i++)
        rc = put_command(commands[i], err);
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
    return rc;
}

const struct command cmd_man = {
    .name = "man",
    .summary = "print the manual page",
    .description = "Prints mizzle(1) as roff source for man, which shows every --help. "
                   "`make install` installs it.\n\n"
                   "  mizzle man | man -l -\n"
                   "  mizzle man >mizzle.1 && man ./mizzle.1",
    .run = cmd_man_main,
};
