/* cmd_explain.c - `mizzle explain`: one text, seen from inside. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tools/command.h"
#include "tools/cli/output_file.h"
#include "tools/cli/demo_files.h"
#include "tools/cli/setup.h"
#include "tools/lab/explain/explain.h"

static struct explain_options o = {
    .max_tokens = SIZE_MAX, .at = SIZE_MAX, .layers = { SIZE_MAX, SIZE_MAX }, .seed = 1
};
static const char *layers, *html;
static size_t question = SIZE_MAX;
static bool json;

static const struct option_group text_rows = {
    "Text",
    (const struct option[]){
        { "--prompt", "-p", OPTION_STR, &o.prompt, "TEXT",
          "Continue this text, or answer it with --chat" },
        { "--question", NULL, OPTION_SIZE, &question, "N",
          "Ask question N of the demo's 1,000 (0 to 999; with --seed, one drawn from them; "
          "default: none)" },
        { "--chat", NULL, OPTION_FLAG, &o.chat, NULL,
          "Write the prompt as a message in the model's chat template (default: off)" },
        { "--n-predict", "-n", OPTION_SIZE, &o.max_tokens, "N",
          "Write at most N tokens (default: 16; 256 with --question, whose answer ends before)" },
        { "--seed", "-s", OPTION_U64, &o.seed, "N",
          "Seed for policy random and for --question (default: 1)" },
        OPTION_END,
    },
};

static const struct option_group show_rows = {
    "What is shown",
    (const struct option[]){
        { "--at", NULL, OPTION_SIZE, &o.at, "POS",
          "Show the page of this position, counted from 0 (default: where the cloud was asked with "
          "the lowest score; if it was not, where the score was lowest)" },
        { "--layers", NULL, OPTION_STR, &layers, "A:B",
          "Keep the whole attention of layers A to B, counted from 0 (default: the last layer; "
          "--layers 0:2 keeps all of the demo pair)" },
        { "--span-of", NULL, OPTION_STR, &o.span_of, "TEXT",
          "Show which heads look at TEXT: their attention, summed over the tokens of all its "
          "places (default: none)" },
        { "--json", NULL, OPTION_FLAG, &json, NULL,
          "Print everything about all positions as one JSON object (default: a page)" },
        { "--output", "-o", OPTION_STR, &html, "FILE",
          "Write all of it as one HTML file for a browser, which needs no network, and print no "
          "page; - writes it to stdout (default: none)" },
        OPTION_END,
    },
};

static const struct option_group *const groups[] = { &text_rows,
                                                     &show_rows,
                                                     &engine_option_rows,
                                                     &route_option_rows,
                                                     &cloud_option_rows,
                                                     &cloud_call_option_rows,
                                                     &cloud_limit_option_rows,
                                                     &answers_option_rows,
                                                     NULL };

/* Parse "A:B", or "A" for one layer. */
static int parse_layers(struct explain_range *out, const char *text, struct err *err)
{
    char from[10] = "", to[10] = "";
    int one = 0, both = 0;
    sscanf(text, "%9[0-9]%n:%9[0-9]%n", from, &one, to, &both);
    if (!one || text[both ? both : one])
        return err_set(err, ERR_ARG, "--layers: expected A:B, found %s", text);
    out->from = strtoul(from, NULL, 10);
    out->to = strtoul(both ? to : from, NULL, 10);
    return OK;
}

/* Return why writing failed; errno has the reason of the system, or 0. */
static int cmd_explain_failed(const char *what, int why, struct err *err)
{
    if (interrupted)
        return err_set(err, ERR_STOP, "interrupted");
    if (!why || why == ENOMEM)
        return err_set(err, ERR_NOMEM, "out of memory");
    return err_set(err, ERR_IO, "%s cannot be written: %s", what, strerror(why));
}

/* Write the file of --output. */
static int cmd_explain_html(const struct explain *x, struct err *err)
{
    struct output_file to;
    int rc = output_file_open(&to, html, err);
    if (rc == OK && to.part.f) /* the prompt is nobody else's business */
        (void)!fchmod(fileno(to.f), 0600);
    if (rc != OK)
        return rc;
    errno = 0;
    bool written = explain_html(to.f, x);
    int why = errno;
    rc = output_file_close(&to, written, err);
    return rc != OK || written ? rc : cmd_explain_failed(html, why, err);
}

/* Show what was asked for. */
static int cmd_explain_show(const struct explain *x, struct err *err)
{
    int rc = html ? cmd_explain_html(x, err) : OK;
    if (rc != OK || (html && !json))
        return rc;
    errno = 0;
    if (json)
        return explain_json(stdout, x) ? OK : cmd_explain_failed("the output", errno, err);
    explain_page(x);
    return fflush(stdout) == 0 ? OK : cmd_explain_failed("the output", errno, err);
}

/* Write the text, look at it, and show it. */
static int cmd_explain_text(struct err *err)
{
    static struct explain x;
    o.measured = json || html;
    int rc = explain_open(&x, &o, err);
    if (rc == OK)
        rc = cmd_explain_show(&x, err);
    explain_close(&x);
    return rc;
}

static int cmd_explain_check(int n, char **args, struct err *err)
{
    if (n)
        return err_set(err, ERR_ARG, "unexpected argument %s (give a prompt with -p)", args[0]);
    if ((o.prompt != NULL) + (question != SIZE_MAX) != 1)
        return err_set(err, ERR_ARG, "expected either -p or --question");
    if (o.chat && !o.prompt)
        return err_set(err, ERR_ARG, "--chat: expected -p, found --question");
    if ((html || json) && o.at != SIZE_MAX)
        return err_set(err, ERR_ARG, "--at: expected no --%s, which has all positions",
                       html ? "output" : "json");
    if (html && json && !strcmp(html, "-"))
        return err_set(err, ERR_ARG, "--output: expected a file beside --json, found -");
    int rc = output_file_check(html, err);
    return rc == OK && layers ? parse_layers(&o.layers, layers, err) : rc;
}

static int cmd_explain_main(int n, char **args, struct err *err)
{
    json_t *asked = NULL;
    setup_catch_interrupts();
    int rc = cmd_explain_check(n, args, err);
    if (o.max_tokens == SIZE_MAX)
        o.max_tokens = question == SIZE_MAX ? 16 : 256;
    if (rc == OK && question != SIZE_MAX)
        rc = demo_question(&asked, question, o.seed, err);
    if (rc == OK && asked) {
        o.prompt = demo_question_text(asked, "prompt");
        o.reference = demo_question_text(asked, "answer");
    }
    if (rc == OK)
        rc = cmd_explain_text(err);
    json_decref(asked);
    return rc;
}

const struct command cmd_explain = {
    .name = "explain",
    .summary = "show a text from inside: layers, attention, router",
    .description =
        "Writes a text as mizzle run would, in step and without drafts, and shows what happened: "
        "for one position the residual stream and what attention and MLP add to it, what each "
        "layer would write if it were the last (the logit lens), where the heads look, what the "
        "router says and why, and what the head would write.\n\n"
        "With --json, all that is known of all positions is printed as one object, which "
        "tools/lab/explain/README.md describes. It also has calls, time, bytes and operations of "
        "each kind of operation, beside what this machine can do. What is kept takes at most 256 "
        "MiB: whole rows of attention grow with the square of the text, and --layers says for "
        "which layers they are kept. With --output, the same becomes a page for a browser, where "
        "each token can be chosen; --json and --output may be given together.\n\n"
        "  mizzle explain --question 2\n"
        "  mizzle explain --question 2 --output explain.html\n"
        "  mizzle explain --question 2 --span-of hirukudi\n"
        "  mizzle explain -m qwen2.5-0.5b.gguf --chat -p \"Why is the sky blue?\" --json",
    .groups = groups,
    .run = cmd_explain_main,
    .most = COMMAND_ANY,
};
