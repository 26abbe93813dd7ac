/* cmd_run.c - `mizzle run`: answers one prompt, or holds a conversation, routed token by token. It
 * uses the library through router/mizzle.h, as any other program would. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernels/sys/buf.h"
#include "kernels/sys/os.h"
#include "router/decode/decode.h"
#include "router/mizzle.h"
#include "tools/command.h"
#include "tools/cli/demo_files.h"
#include "tools/cli/input_file.h"
#include "tools/cli/progress.h"
#include "tools/run/signs.h"
#include "tools/run/json_events.h"
#include "tools/run/prompt_input.h"
#include "tools/cli/setup.h"
#include "tools/run/token_view.h"

static struct {
    const char *prompt, *system;
    struct option_list stops;
    size_t question;
    bool chat, json, plain, quiet;
} options = { .question = SIZE_MAX };
static struct mizzle_options handle; /* the library's; the shared options are added at the end */

static const struct option_group text_opts = {
    "Text",
    (const struct option[]){
        { "--prompt", "-p", OPTION_STR, &options.prompt, "TEXT",
          "Continue this text, or answer it with --chat (default: standard input)" },
        { "--question", NULL, OPTION_SIZE, &options.question, "N",
          "Ask question N of the demo's 1,000 (0 to 999; with --seed, one drawn from them), and "
          "show the reference answer (default: none)" },
        { "--chat", NULL, OPTION_FLAG, &options.chat, NULL,
          "Write the prompt as a message in the model's chat template; without a prompt, hold a "
          "conversation line by line (/clear starts again, /quit or Ctrl-D ends; default: off)" },
        { "--system", NULL, OPTION_STR, &options.system, "TEXT",
          "Set the system message of --chat (default: that of the model's chat template, if any)" },
        { "--n-predict", "-n", OPTION_LENGTH, &handle.max_tokens, "N",
          "Write at most N tokens per answer (-1: no limit but the context, as with --chat; "
          "default: 256)" },
        { "--context", "-c", OPTION_COUNT, &handle.context, "N",
          "Keep a context of N tokens for prompt and answer (default: 4096, or the model's maximum "
          "if that is less)" },
        { "--stop", NULL, OPTION_LIST, &options.stops, "TEXT",
          "End the answer before this text; may be given 16 times (default: none)" },
        OPTION_END,
    },
};

static const struct option_group sample_opts = {
    "Sampling of the small model's tokens (the cloud is always greedy)",
    (const struct option[]){
        { "--temp", NULL, OPTION_REAL, &handle.temp, "T",
          "Sample with this temperature, after the filters below; tokens less likely than 0.05 "
          "times the most likely one are dropped (0: take the most likely token; default: 0)" },
        { "--top-k", NULL, OPTION_SIZE, &handle.top_k, "K",
          "Sample from the K most likely tokens (0: no limit; default: 40)" },
        { "--top-p", NULL, OPTION_REAL, &handle.top_p, "P",
          "Sample from the most likely tokens whose probabilities add up to P (1: no limit; "
          "0: the most likely one alone; default: 0.95)" },
        { "--seed", "-s", OPTION_U64, &handle.seed, "N",
          "Seed for sampling, for policy random and for --question (default: 1)" },
        OPTION_END,
    },
};

static const struct option_group output_opts = {
    "Output",
    (const struct option[]){
        { "--json", NULL, OPTION_FLAG, &options.json, NULL,
          "Print one JSON object per token, and a summary as the last line (default: text)" },
        { "--plain", NULL, OPTION_FLAG, &options.plain, NULL,
          "Print the text without marking the cloud's tokens (default: marked)" },
        { "--quiet", "-q", OPTION_FLAG, &options.quiet, NULL,
          "Print only errors and warnings at the start to stderr (default: also notes and a "
          "summary)" },
        OPTION_END,
    },
};

static const struct option_brief brief[] = {
    { "--prompt", "Continue this text, or answer it with --chat" },
    { "--question", "Ask question N of the demo's 1,000" },
    { "--chat", "Answer in the model's chat template, or converse" },
    { "--n-predict", "Write at most N tokens (256; with --chat no limit)" },
    { "--temp", "Sample with this temperature (0: the likeliest)" },
    { "--seed", "Seed of all random draws (1)" },
    { "--json", "Print a JSON object per token, and a summary" },
    OPTION_BRIEF_MODELS,
    { "--policy", "Source of the scores; --help all lists them" },
    { "--threshold", "Route tokens that score below T (the router's)" },
    { "--max-routed", "Route at most this share of an answer" },
    { "--max-cloud-tokens", "Request at most N tokens in all" },
    { NULL, NULL },
};

struct run {
    struct mizzle *m;
    struct token_view show;
    struct json_events json;
    struct buf answer;              /* as it is shown, for the next turn of a conversation */
    struct stops stops;             /* of the answer */
    struct progress_count progress; /* while the prompt is evaluated */
    struct err fault, note;         /* the first fault of an answer; the latest note */
    struct signs signs;
    bool judges; /* of the policy: shares are signs */
};

/* Callback of mizzle_generate: show how much of the prompt is evaluated. */
static void on_reading(void *arg, size_t done, size_t all)
{
    struct run *r = arg;
    if (!options.quiet)
        progress_counted(&r->progress, done, all);
    if (done == all)
        progress_wipe(&r->progress);
}

/* Callback of mizzle_generate: show a token, and keep the text of a conversation. */
static bool cmd_run_on_token(void *arg, const struct mizzle_token *t)
{
    struct run *r = arg;
    if (t->fault && !r->fault.msg[0])
        err_set(&r->fault, OK, "%s", t->fault);
    if (r->judges && !isnan(t->score)) /* the policy had a choice */
        signs_token(&r->signs, t->source == MIZZLE_CLOUD, t->has_edge, t->edge_id == t->id);
    if (options.chat && !stops_append(&r->stops, &r->answer, t->piece, t->piece_size))
        return false;
    return options.json ? json_events_token(&r->json, t) : token_view_token(&r->show, t);
}

/* Take the pending notes of the library and, if says is true, print them. */
static void cmd_run_notes(struct run *r, bool says)
{
    struct mizzle_error note = { .size = sizeof(note) };
    while (mizzle_note(r->m, &note)) {
        options_as_typed(&r->note, &cmd_run, note.message);
        if (says)
            fprintf(stderr, "mizzle: %s\n", r->note.msg);
    }
}

/* Print "COUNT WHAT" after *sep, unless count is 0; what is next follows a comma. */
static void summary_part(const char **sep, uint64_t count, const char *what)
{
    if (!count)
        return;
    fprintf(stderr, "%s%" PRIu64 " %s", *sep, count, what);
    *sep = ", ";
}

/* Print the second line of the summary: the calls and what became of them. */
static void summary_ledger(const struct mizzle_stats *s, bool offline)
{
    const char *sep = ": ";
    fprintf(stderr, "%s: %" PRIu64 " call%s", offline ? "offline" : "cloud", s->calls,
            s->calls == 1 ? "" : "s");
    summary_part(&sep, s->committed, "answered");
    summary_part(&sep, s->failed, "failed");
    sep = "; ";
    summary_part(&sep, s->retries, s->retries == 1 ? "retry" : "retries");
    if (s->bytes_up + s->bytes_down && !offline) {
        fprintf(stderr, "%s%.1f KB up, %.1f KB down", sep, (double)s->bytes_up / 1e3,
                (double)s->bytes_down / 1e3);
        sep = ", ";
    }
    sep = "; known without a call: ";
    summary_part(&sep, s->memo, "memo");
    summary_part(&sep, s->store, "store");
    sep = "; fallback: ";
#define X(member, name, words) summary_part(&sep, s->held.member, words);
    JSON_EVENTS_HELD(X)
#undef X
    fprintf(stderr, "\n");
}

/* Print tokens, their sources and speed, and the calls wherever one failed or a token is a
 * fallback. */
static void summary(const struct mizzle_stats *s, bool offline)
{
    double share = s->tokens ? 100 * (double)s->cloud / (double)s->tokens : 0;
    double speed = json_events_speed(s);
    fprintf(stderr, "%zu token%s, %zu from the cloud (%.*f %%)", s->tokens,
            s->tokens == 1 ? "" : "s", s->cloud, share > 0 && share < 1, share);
    if (s->fallback)
        fprintf(stderr, ", %zu fallback", s->fallback);
    fprintf(stderr, ", %.*f tokens/s\n", speed < 10, speed);
    if (s->failed + s->fallback)
        summary_ledger(s, offline);
}

/* Print the summary of an answer, and add it to the signs. */
static void cmd_run_summary(struct run *r, const struct mizzle_stats *s)
{
    struct err why;
    if (strcmp(s->finish, "length") == 0 && !interrupted)
        fprintf(stderr, "mizzle: stopped after %zu token%s, before the text ended: %s\n", s->tokens,
                s->tokens == 1 ? "" : "s",
                s->tokens < handle.max_tokens ? "the context is full; -c N keeps more"
                                              : "-n N writes more");
    options_as_typed(&why, &cmd_run, r->fault.msg);
    if (why.msg[0]) /* which the note on opening the cloud may have said */
        fprintf(stderr, "mizzle: kept %zu token%s of the small model: %s\n", s->fallback,
                s->fallback == 1 ? "" : "s",
                strstr(r->note.msg, r->fault.msg) ? "no answer from the cloud" : why.msg);
    summary(s, shared_options.offline);
    r->signs.ms += s->total_ms;
    r->signs.waited_ms += s->cloud_ms;
}

/* Answer one prompt and show the answer. The caller sets one of p's text, ids and messages. */
static int cmd_run_answer(struct run *r, struct mizzle_prompt *p, struct err *err)
{
    struct mizzle_stats stats = { .size = sizeof(stats) };
    struct mizzle_error e = { .size = sizeof(e) };
    const char *const *stops = options.stops.n ? options.stops.at : NULL;
    p->size = sizeof(*p);
    p->on_reading = on_reading;
    token_view_begin(&r->show, stdout, options.plain ? TOKEN_VIEW_PLAIN : token_view_style(stdout),
                     stops);
    r->json = (struct json_events){ 0 };
    r->fault.msg[0] = '\0';
    r->progress =
        (struct progress_count){ .what = "reading the prompt, tokens", .since = os_now_ns() };
    r->answer.n = 0;
    stops_begin(&r->stops, stops, NULL);
    setup_stop_on_interrupt(r->m);
    int rc = mizzle_generate(r->m, p, cmd_run_on_token, r, &stats, &e);
    setup_stop_on_interrupt(NULL);
    progress_wipe(&r->progress);
    if (options.json)
        json_events_done(&r->json, &stats, shared_options.offline);
    else
        token_view_end(&r->show);
    if (!options.quiet && !options.json && stats.tokens)
        cmd_run_summary(r, &stats);
    cmd_run_notes(r, !options.quiet);
    if (rc == MIZZLE_OK && interrupted)
        return ERR_STOP;
    return rc == MIZZLE_OK ? OK : err_set(err, -rc, "%s", e.message);
}

/* Answer one turn of a conversation. The answer enters the conversation as it was shown, even if it
 * was interrupted. */
static int answer_chat(struct run *r, struct conversation *c, const char *text, size_t n,
                       struct err *err)
{
    int rc = conversation_add(c, "user", text, n, err);
    struct mizzle_prompt p = { .messages = c->messages, .n_messages = c->n };
    if (rc == OK)
        rc = cmd_run_answer(r, &p, err);
    if (rc != OK && rc != ERR_STOP)
        return rc;
    int kept = conversation_add(c, "assistant", r->answer.p, r->answer.n, err);
    return kept == OK ? rc : kept;
}

/* Answer one prompt; c is used with --chat alone. */
static int answer_line(struct run *r, struct conversation *c, const char *line, size_t n,
                       struct err *err)
{
    struct mizzle_prompt p = { .text = line, .text_size = n };
    return options.chat ? answer_chat(r, c, line, n, err) : cmd_run_answer(r, &p, err);
}

/* Answer line by line until the input ends. The library does not evaluate again what a prompt
 * shares with the text before, so a conversation costs only its new messages. */
static int converse(struct run *r, struct conversation *c, struct err *err)
{
    char *line = NULL;
    size_t n, first = c->n;
    int rc = OK;
    bool stopped = false, person = isatty(STDIN_FILENO);
    if (person && !options.quiet)
        fprintf(stderr, "%s; /quit or Ctrl-D ends%s\n",
                options.chat ? "Say something" : "Begin a text; a line that ends in \\ continues",
                options.chat ? ", /clear starts again" : "");
    while (rc == OK && prompt_input_line(&line, &n, person, &rc, err)) {
        if (strcmp(line, "/quit") == 0)
            break;
        if (strcmp(line, "/clear") == 0)
            conversation_cut(c, first);
        if (!n || strcmp(line, "/clear") == 0 || prompt_input_no_command(line, n))
            continue;
        size_t before = c->n;
        rc = answer_line(r, c, line, n, err);
        if (rc == ERR_ARG && person) { /* too long: the user may continue with less */
            struct err said;
            options_as_typed(&said, &cmd_run, err->msg);
            fprintf(stderr, "mizzle run: %s%s\n", said.msg,
                    options.chat ? " (/clear starts again)" : "");
            conversation_cut(c, before);
            rc = OK;
        }
        if (rc == ERR_STOP && (person || !stopped)) { /* ends this answer; from a file, only once */
            stopped = true;
            interrupted = 0;
            rc = OK;
        }
    }
    free(line);
    return rc;
}

/* Answer a question of the demo world and show the reference answer. */
static int ask_world(struct run *r, struct err *err)
{
    json_t *question;
    int rc = demo_question(&question, options.question, handle.seed, err);
    if (rc != OK)
        return rc;
    const char *prompt = demo_question_text(question, "prompt");
    bool says = !options.quiet && !options.json;
    if (says)
        fprintf(stderr, "%s\n", prompt);
    rc = answer_line(r, NULL, prompt, strlen(prompt), err);
    if (rc == OK && says)
        fprintf(stderr, "reference:%s\n", demo_question_text(question, "answer"));
    json_decref(question);
    return rc;
}

/* Read the prompt from standard input. The newline that `echo` puts behind a text is no part of it.
 */
static int read_prompt(char **text, size_t *n, struct err *err)
{
    int rc = input_file_read(text, n, "-", INPUT_FILE_USUAL, err);
    if (rc != OK || !*n || (*text)[*n - 1] != '\n')
        return rc;
    *n -= *n > 1 && (*text)[*n - 2] == '\r' ? 2 : 1;
    if (!options.quiet)
        fputs("mizzle: dropped the newline at the end of the prompt (-p keeps it)\n", stderr);
    return OK;
}

/* Answer what the options ask for: a question, a prompt or a conversation. */
static int answer_all(struct run *r, struct err *err)
{
    struct conversation c = { 0 };
    char *text = NULL;
    size_t n = 0;
    int rc = OK;
    bool converses = !options.prompt && (options.chat || isatty(STDIN_FILENO));
    if (options.question != SIZE_MAX)
        return ask_world(r, err);
    if (!converses && !options.prompt)
        rc = read_prompt(&text, &n, err);
    const char *prompt = options.prompt ? options.prompt : text;
    n = options.prompt ? strlen(options.prompt) : n;
    if (rc == OK && options.chat && options.system)
        rc = conversation_add(&c, "system", options.system, strlen(options.system), err);
    if (rc == OK)
        rc = converses ? converse(r, &c, err) : answer_line(r, &c, prompt, n, err);
    conversation_cut(&c, 0);
    free(text);
    return rc;
}

/* Reject arguments and options that contradict each other. */
static int cmd_run_check(int n, char **args, struct err *err)
{
    if (n)
        return err_set(err, ERR_ARG, "unexpected argument %s (give a prompt with -p)", args[0]);
    if (options.prompt && options.question != SIZE_MAX)
        return err_set(err, ERR_ARG, "expected -p or --question, found both");
    if (options.chat && options.question != SIZE_MAX)
        return err_set(err, ERR_ARG, "--question does not work with --chat");
    const char *only = options.system                        ? "--system"
                       : shared_options.engine.chat_template ? "--chat-template"
                       : shared_options.engine.think         ? "--think"
                                                             : NULL;
    if (only && !options.chat)
        return err_set(err, ERR_ARG, "%s: only works with --chat", only);
    for (size_t i = options.stops.n; i--;) /* an empty text is none */
        if (!*options.stops.at[i])
            memmove(&options.stops.at[i], &options.stops.at[i + 1],
                    (options.stops.n-- - i) * sizeof(options.stops.at[0]));
    return OK;
}

/* Open the library from all options. */
static int open_handle(struct run *r, struct err *err)
{
    struct routing_options from;
    struct mizzle_error e = { .size = sizeof(e) };
    struct kernels k; /* for its note */
    int rc = setup_check_policy(err);
    if (rc == OK)
        rc = setup_kernels(&k, err);
    if (rc == OK)
        rc = setup_options(&from, err);
    if (rc == OK)
        rc = setup_large_model(&from, err);
    if (rc != OK)
        return rc;
#define X(type, name) handle.name = from.engine.name;
    ENGINE_OPTIONS(X)
#undef X
#define X(type, name) handle.name = from.name;
    ROUTING_OPTIONS(X)
#undef X
    if (options.chat && !handle.think)
        handle.think = "auto"; /* notes about conversations come before the first one */
    if (options.chat && !options_given("--n-predict"))
        handle.max_tokens = SIZE_MAX;
    handle.stops = options.stops.n ? options.stops.at : NULL;
    struct progress *progress = setup_open_begin("loading", handle.model);
    rc = mizzle_open(&r->m, &handle, &e);
    setup_open_end(progress);
    return rc == MIZZLE_OK ? OK : err_set(err, -rc, "%s", e.message);
}

static void cmd_run_begin(void)
{
    mizzle_options_init(&handle, sizeof(handle));
}

static int cmd_run_main(int n, char **args, struct err *err)
{
    const char *policy = shared_options.policy;
    enum policy p;
    char sign[SIGNS_LINE];
    struct run r = { .judges = !policy || (policy_parse(&p, policy) && policy_judges(p)) };
    setup_catch_interrupts();
    int rc = cmd_run_check(n, args, err);
    if (rc == OK)
        rc = open_handle(&r, err);
    if (rc == OK) {
        cmd_run_notes(&r, true);
        if (options.chat && !shared_options.engine.model)
            fputs("mizzle: the demo pair was not taught to chat; a text without --chat suits it\n",
                  stderr);
        rc = answer_all(&r, err);
        cmd_run_notes(&r, !options.quiet);
        if (!options.quiet && !options.json && signs_tell(sign, &r.signs))
            fprintf(stderr, "%s\n", sign);
        int end = mizzle_close(r.m);
        if (rc == OK && end != MIZZLE_OK)
            rc = err_set(err, -end, "%s", r.note.msg); /* the last note says why */
    }
    buf_free(&r.answer);
    return rc;
}

const struct command cmd_run = {
    .name = "run",
    .summary = "continue a prompt or converse, routed token by token",
    .description =
        "Writes the answer to stdout as it is generated. On a terminal, a token from the cloud is "
        "underlined and coloured. A fallback, the small model's token where the cloud failed, is "
        "shown in reverse. Elsewhere, and with NO_COLOR or TERM=dumb, these tokens are printed as "
        "[cloud: word] and [fallback: word]. Notes and a summary go to stderr.\n\n"
        "Without -p, the prompt is read from standard input, without the newline at its end. On a "
        "terminal, each line or pasted text is a separate prompt, or with --chat a turn of the "
        "conversation. There, Ctrl-C ends only the current answer, or drops the typed line. On an "
        "empty line, a second Ctrl-C ends the program.\n\n"
        "With --json each token is a line with pos, id, text, source (edge, cloud or fallback), "
        "score (low ones go to the cloud; null with the policies always and never), edge_id and "
        "ms. edge_id is the small model's own token. Unless the policy reads that model's logits, "
        "edge_id is null for cloud tokens with --ahead 0, and for cloud tokens from an earlier "
        "reply or from --answers. A fallback also has a reason and a message. The last line is a "
        "summary: among others prompt_ms, ttft_ms, start_ms (to open the cloud, before the rest), "
        "router_ms, edge_ms and cloud_ms (scoring, the small model, waiting), passes (of the small "
        "model after the prompt), and drafted tokens evaluated (drafted) and used (accepted). "
        "tok_s excludes the reading of the prompt. The number of drafts differs from run to run, "
        "since it depends on when replies arrive; the text does not differ. If the answer ends "
        "inside a character, the last line has a text, U+FFFD.\n\n"
        "If routing shows a sign of failure, the last line on stderr says so, as in `mizzle "
        "eval`.\n\n"
        "  mizzle run --question 2\n"
        "  mizzle run -m qwen2.5-0.5b.gguf --cloud-url http://server:8080 --chat\n"
        "  mizzle run -m model.gguf -p \"Once upon a time\" -n 64 --temp 0.8 --json",
    .brief = brief,
    .groups = (const struct option_group *const[]){ &text_opts, &sample_opts, &output_opts,
                                                    ROUTED_OPTION_ROWS, NULL },
    .begin = cmd_run_begin,
    .run = cmd_run_main,
    .most = COMMAND_ANY,
};
