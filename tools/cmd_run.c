/* cmd_run.c - `mizzle run`: one prompt, or a conversation, routed token by token. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernels/sys/base.h"
#include "kernels/sys/os.h"
#include "model/text/chat.h"
#include "model/sample.h"
#include "router/decode.h"
#include "tools/command.h"
#include "tools/cli/progress.h"
#include "tools/run/json_events.h"
#include "tools/run/prompt_input.h"
#include "tools/cli/setup.h"
#include "tools/run/token_view.h"
#include "tools/demo/world.h"

enum { CONTEXT = 4096 };

static struct {
    const char *prompt, *file, *system;
    struct option_list stops;
    size_t max_tokens, context, question;
    bool chat, json, plain, quiet;
    struct sample_params sample;
} options = { .max_tokens = 256,
              .question = SIZE_MAX,
              .sample = {
                  .top_k = 40, .top_p = 0.95f, .min_p = 0.05f, .repeat_penalty = 1, .seed = 1 } };

static const struct option_group text_opts = {
    "Text",
    (const struct option[]){
        { "--prompt", "-p", OPTION_STR, &options.prompt, "TEXT", "what to continue, or to ask" },
        { "--file", "-f", OPTION_STR, &options.file, "FILE",
          "the prompt from a file, - for standard input" },
        { "--question", NULL, OPTION_SIZE, &options.question, "N",
          "ask test question N of the demo world (drawn with --seed) and show its answer" },
        { "--chat", NULL, OPTION_FLAG, &options.chat, NULL,
          "ChatML; without a prompt a conversation, line by line (/quit, /clear, Ctrl-D)" },
        { "--system", NULL, OPTION_STR, &options.system, "TEXT",
          "set the system message of --chat (default: what the model's chat template says, else "
          "Qwen2.5's)" },
        { "--n-predict", "-n", OPTION_SIZE, &options.max_tokens, "N",
          "longest answer in tokens (default: 256)" },
        { "--context", "-c", OPTION_SIZE, &options.context, "N",
          "room for prompt and answer in tokens (default: 4096, at most the model's)" },
        { "--stop", NULL, OPTION_LIST, &options.stops, "TEXT",
          "end the answer where this text would appear; may be given several times" },
        { NULL, NULL, OPTION_FLAG, NULL, NULL, NULL },
    },
};

static const struct option_group sample_opts = {
    "Sampling of the small model's tokens (the cloud is always greedy)",
    (const struct option[]){
        { "--temp", NULL, OPTION_FLOAT, &options.sample.temp, "T",
          "temperature, applied after the filters below; 0 takes the likeliest (default: 0)" },
        { "--top-k", NULL, OPTION_SIZE, &options.sample.top_k, "K",
          "of the K likeliest; 0: off (default: 40)" },
        { "--top-p", NULL, OPTION_FLOAT, &options.sample.top_p, "P",
          "of the likeliest that make up P; 1: off (default: 0.95)" },
        { "--min-p", NULL, OPTION_FLOAT, &options.sample.min_p, "P",
          "at least P of the likeliest; 0: off (default: 0.05)" },
        { "--repeat-penalty", NULL, OPTION_FLOAT, &options.sample.repeat_penalty, "X",
          "penalty of tokens that were there; 1: off (default: 1)" },
        { "--seed", "-s", OPTION_U64, &options.sample.seed, "N",
          "of sampling, of policy random and of --question (default: 1)" },
        { NULL, NULL, OPTION_FLAG, NULL, NULL, NULL },
    },
};

static const struct option_group output_opts = {
    "Output",
    (const struct option[]){
        { "--json", NULL, OPTION_FLAG, &options.json, NULL,
          "one JSON object a token, and a summary as the last line" },
        { "--plain", NULL, OPTION_FLAG, &options.plain, NULL,
          "the text alone, without showing who wrote what" },
        { "--quiet", "-q", OPTION_FLAG, &options.quiet, NULL, "nothing on stderr but errors" },
        { NULL, NULL, OPTION_FLAG, NULL, NULL, NULL },
    },
};

static const struct option_group *const groups[] = { &text_opts,         &sample_opts,
                                                     &output_opts,       &engine_option_rows,
                                                     &route_option_rows, &cloud_option_rows,
                                                     &keep_option_rows,  NULL };

struct run {
    struct engine engine;
    struct routing routing;
    struct stand_in *server; /* the one this process started, or NULL */
    struct session *session;
    struct sampler *sampler;
    struct token_view show;
    struct json_events json;
    struct answer_text answer;      /* of a conversation */
    struct progress_count progress; /* of reading the prompt */
    double start_ms;                /* waited for the cloud before the first answer; then 0 */
    struct err fault;               /* the first one */
};

static void on_reading(void *arg, size_t done, size_t all)
{
    struct run *r = arg;
    if (!options.quiet)
        progress_counted(&r->progress, done, all);
    if (done == all)
        progress_wipe(&r->progress);
}

static bool cmd_run_on_token(void *arg, const struct decode_token *t)
{
    struct run *r = arg;
    if (t->fault && !r->fault.msg[0])
        err_set(&r->fault, OK, "%s", t->fault);
    if (options.chat && !answer_text_add(&r->answer, r->engine.tokenizer, t->id))
        return false;
    return options.json ? json_events_token(&r->json, t) : token_view_token(&r->show, t);
}

/* What was asked for, and what came of it. */
static void cmd_run_ledger(const struct decode_stats *s)
{
    char cost[CAPS_AMOUNT];
    const char *sep = "; fallback: ";
    caps_amount(cost, s->cost);
    fprintf(stderr, "%s: %zu calls: %zu answered, %zu failed, %zu wasted",
            (keep_opts.replay != NULL) ? "replay, without a network" : "cloud", s->calls,
            s->committed, s->failed, s->wasted);
    if (!(keep_opts.replay != NULL))
        fprintf(stderr, "; %" PRIu64 " retries, %.1f KB up, %.1f KB down", s->retries,
                (double)s->bytes_up / 1e3, (double)s->bytes_down / 1e3);
    if (s->cost)
        fprintf(stderr, ", cost %s", cost);
    fprintf(stderr, "; known without a call: %zu memo, %zu store", s->memo_hits, s->store_hits);
    for (int i = GATE_OPEN + 1; i < GATE_REASONS; i++)
        if (s->reasons[i]) {
            fprintf(stderr, "%s%zu %s", sep, s->reasons[i], gate_name((enum gate_reason)i));
            sep = ", ";
        }
    fprintf(stderr, "\n");
}

static void summary(const struct run *r, const struct decode_stats *s)
{
    if (r->fault.msg[0])
        fprintf(stderr, "mizzle: kept %zu tokens of the small model: %s\n", s->fallback,
                r->fault.msg);
    fprintf(stderr, "%zu tokens, %zu from the cloud (%.1f %%)", s->tokens, s->cloud,
            s->tokens ? 100 * (double)s->cloud / (double)s->tokens : 0);
    if (s->fallback)
        fprintf(stderr, ", %zu fallback", s->fallback);
    fprintf(stderr, ", %.1f tokens/s, first after %.0f ms", json_events_speed(s), s->ttft_ms);
    if (r->start_ms >= 1)
        fprintf(stderr, ", %.0f ms waited for the cloud at the start", r->start_ms);
    if (s->cloud)
        fprintf(stderr, ", %.1f ms waited for each of the cloud", s->cloud_ms / (double)s->cloud);
    else if (s->cloud_ms >= 1)
        fprintf(stderr, ", %.0f ms waited for the cloud in vain", s->cloud_ms);
    fprintf(stderr, "\n");
    if (s->calls + s->memo_hits + s->store_hits + s->fallback)
        cmd_run_ledger(s);
}

static int check_length(const struct run *r, size_t count, struct err *err)
{
    size_t room = session_context(r->session), most = model_config(r->engine.model)->context;
    if (count <= room)
        return OK;
    return err_set(err, ERR_ARG, "prompt: expected at most %zu tokens%s, found %zu", room,
                   room < most ? " (-c makes more room)" : ", as the model was made for", count);
}

/* Answer one prompt. */
static int answer_ids(struct run *r, const uint32_t *ids, size_t count, struct err *err)
{
    struct decode_stats stats = { .finish = FINISH_ERROR };
    const char *const *stops = options.stops.n ? options.stops.at : NULL;
    const struct decode_options o = { .policy = r->routing.policy,
                                      .threshold = r->routing.threshold,
                                      .ahead = r->routing.ahead,
                                      .gate = &r->routing.gate,
                                      .cloud_required = r->routing.required,
                                      .max_tokens = options.max_tokens,
                                      .seed = options.sample.seed,
                                      .stops = stops,
                                      .stop = &interrupted,
                                      .reading = on_reading,
                                      .emit = cmd_run_on_token,
                                      .arg = r };
    int rc = check_length(r, count, err);
    token_view_begin(&r->show, stdout, options.plain ? TOKEN_VIEW_PLAIN : token_view_style(stdout),
                     r->engine.tokenizer, stops);
    r->json = (struct json_events){ .tok = r->engine.tokenizer };
    r->fault.msg[0] = '\0';
    r->progress = (struct progress_count){ "reading the prompt, tokens", os_now_ns(), false };
    answer_text_begin(&r->answer, stops);
    if (rc == OK)
        rc = decode_run(&stats, r->session, r->engine.tokenizer, r->sampler, r->routing.router,
                        routing_teller(&r->routing), ids, count, &o, err);
    progress_wipe(&r->progress);
    if (options.json)
        json_events_done(&stats, r->start_ms, (keep_opts.replay != NULL));
    else
        token_view_end(&r->show);
    if (!options.quiet && !options.json && stats.tokens)
        summary(r, &stats);
    r->start_ms = 0;
    return rc;
}

/* A prompt that is no conversation may name special tokens. */
static int cmd_run_answer(struct run *r, const char *text, size_t n, struct err *err)
{
    uint32_t *ids;
    size_t count;
    int rc = tokenizer_encode(r->engine.tokenizer, &ids, &count, text, n, true, err);
    if (rc == OK)
        rc = answer_ids(r, ids, count, err);
    free(ids);
    return rc;
}

/* The conversation goes on with the answer as it was shown, even if it was interrupted. */
static int answer_chat(struct run *r, struct conversation *c, const char *text, size_t n,
                       struct err *err)
{
    uint32_t *ids;
    size_t count;
    int rc = conversation_add(c, "user", text, n, err);
    if (rc != OK)
        return rc;
    rc = chat_encode(r->engine.tokenizer, &ids, &count, c->messages, c->n, err);
    if (rc == OK)
        rc = answer_ids(r, ids, count, err);
    free(ids);
    if (rc != OK && rc != ERR_STOP)
        return rc;
    int kept = conversation_add(c, "assistant", r->answer.text, r->answer.n, err);
    return kept == OK ? rc : kept;
}

static int answer_line(struct run *r, struct conversation *c, const char *line, size_t n,
                       struct err *err)
{
    return options.chat ? answer_chat(r, c, line, n, err) : cmd_run_answer(r, line, n, err);
}

/* Line by line; the session keeps what the conversation shares with what was evaluated before. */
static int converse(struct run *r, struct conversation *c, struct err *err)
{
    char *line = NULL;
    size_t n, first = c->n;
    int rc = OK;
    bool stopped = false, person = isatty(STDIN_FILENO), asks = person && !options.quiet;
    if (asks)
        fprintf(stderr, "%s; /quit or Ctrl-D ends%s\n",
                options.chat ? "Say something" : "Begin a text; a line that ends in \\ goes on",
                options.chat ? ", /clear begins anew" : "");
    while (rc == OK && prompt_input_line(&line, &n, asks, &rc, err)) {
        if (strcmp(line, "/quit") == 0)
            break;
        if (strcmp(line, "/clear") == 0)
            conversation_cut(c, first);
        if (!n || strcmp(line, "/clear") == 0)
            continue;
        size_t before = c->n;
        rc = answer_line(r, c, line, n, err);
        if (rc == ERR_ARG && person) { /* too long: the person may go on with less */
            fprintf(stderr, "mizzle run: %s%s\n", err->msg,
                    options.chat ? " (/clear begins anew)" : "");
            conversation_cut(c, before);
            rc = OK;
        }
        if (rc == ERR_STOP && (person || !stopped)) { /* Ctrl-C stops this answer alone */
            stopped = true;
            interrupted = 0;
            setup_catch_interrupts();
            rc = OK;
        }
    }
    free(line);
    return rc;
}

static int ask_world(struct run *r, struct err *err)
{
    struct world *w;
    struct world_question q;
    int rc = world_open(&w, WORLD_SEED, err);
    if (rc != OK)
        return rc;
    world_question(&q, w, world_test_stream(options.sample.seed), options.question);
    world_close(w);
    bool says = !options.quiet && !options.json;
    if (says)
        fprintf(stderr, "%s\n", q.prompt);
    rc = cmd_run_answer(r, q.prompt, strlen(q.prompt), err);
    if (rc == OK && says)
        fprintf(stderr, "reference:%s\n", q.answer);
    return rc;
}

/* Qwen2.5's system prompt may be wrong for a model whose file does not say. */
static int say_system(const struct run *r, struct err *err)
{
    char *text;
    bool guessed;
    int rc = chat_system(r->engine.tokenizer, &text, &guessed, err);
    if (rc == OK && guessed)
        fprintf(stderr, "mizzle: the model has no chat template: its system prompt is Qwen2.5's; "
                        "--system names another\n");
    free(text);
    return rc;
}

static int answer_all(struct run *r, struct err *err)
{
    struct conversation c = { 0 };
    char *text = NULL;
    size_t n = 0;
    int rc = OK;
    bool converses = !options.prompt && !options.file && (options.chat || isatty(STDIN_FILENO));
    if (options.question != SIZE_MAX)
        return ask_world(r, err);
    if (!converses && !options.prompt)
        rc = prompt_input_read(&text, &n, options.file ? options.file : "-", err);
    const char *prompt = options.prompt ? options.prompt : text;
    if (options.prompt)
        n = strlen(options.prompt);
    if (rc == OK && options.chat && !options.system && !options.quiet && !options.json)
        rc = say_system(r, err);
    if (rc == OK && options.chat && options.system)
        rc = conversation_add(&c, "system", options.system, strlen(options.system), err);
    if (rc == OK)
        rc = converses      ? converse(r, &c, err)
             : options.chat ? answer_chat(r, &c, prompt, n, err)
                            : cmd_run_answer(r, prompt, n, err);
    conversation_cut(&c, 0);
    free(text);
    return rc;
}

static int cmd_run_check(int nargs, char **argv, struct err *err)
{
    int sources =
        (options.prompt != NULL) + (options.file != NULL) + (options.question != SIZE_MAX);
    enum kvcache kv;
    if (nargs)
        return err_set(err, ERR_ARG, "unexpected argument %s (a prompt is given with -p)", argv[1]);
    if (sources > 1)
        return err_set(err, ERR_ARG, "expected one of -p, -f and --question, found %d", sources);
    if (options.chat && options.question != SIZE_MAX)
        return err_set(err, ERR_ARG, "--question is no conversation: leave --chat out");
    return setting_kv(&kv, KVCACHE_F32, err);
}

static int open_session(struct run *r, struct err *err)
{
    size_t most = model_config(r->engine.model)->context;
    size_t context = options.context ? options.context : most < CONTEXT ? most : CONTEXT;
    bool plain = model_layer(r->engine.model, 0)->down.type == P_F32;
    enum kvcache kv;
    if (context > most)
        return err_set(err, ERR_ARG,
                       "--context: expected at most %zu, as the model was made for, "
                       "found %zu",
                       most, context);
    int rc = setting_kv(&kv, plain ? KVCACHE_F32 : KVCACHE_F16, err);
    if (rc == OK)
        rc = session_open(&r->session, r->engine.model, r->engine.pool, context, kv, err);
    return rc == OK ? sampler_open(&r->sampler, &options.sample,
                                   tokenizer_size(r->engine.tokenizer), &r->engine.kernels, err)
                    : rc;
}

static int cmd_run_main(int argc, char **argv)
{
    struct err err = { "" };
    struct run r = { 0 };
    int nargs = 0, status = options_parse(&cmd_run, argc, argv, &nargs);
    if (status >= 0)
        return status;
    setup_catch_interrupts();
    int rc = cmd_run_check(nargs, argv, &err);
    if (rc == OK)
        rc = setting_engine(&r.engine, NULL, true, &err);
    if (rc != OK)
        return command_fail("run", rc, &err);
    rc = setting_routing(&r.routing, &r.server, &r.engine, &err);
    r.start_ms = r.routing.start_ms;
    if (rc == OK) {
        rc = open_session(&r, &err);
        if (rc == OK)
            rc = answer_all(&r, &err);
        sampler_close(r.sampler);
        session_close(r.session);
        int end = setting_routing_end(&r.routing, r.server, rc == OK ? &err : NULL);
        rc = rc == OK ? end : rc;
    }
    engine_close(&r.engine);
    free(r.answer.text);
    return rc == OK ? EXIT_FINE : command_fail("run", rc, &err);
}

const struct command cmd_run = {
    .name = "run",
    .summary = "continue a prompt or converse, token by token here or in the cloud",
    .args = "",
    .description =
        "Writes the answer to stdout as it comes. On a terminal a token from the cloud is "
        "underlined and coloured, one that the cloud should have written but could not is shown "
        "in reverse; elsewhere, and with NO_COLOR or TERM=dumb, they stand as [cloud: word] and "
        "[fallback: word]. The summary goes to stderr. With neither -p nor -f the prompt is read "
        "from standard input; on a terminal line by line, each begins a text of its own.\n\n"
        "  mizzle run --question 1\n"
        "  mizzle run -m qwen2.5-0.5b.gguf --cloud-url http://server:8080 --chat\n"
        "  mizzle run -m model.gguf -p \"Once upon a time\" -n 64 --temp 0.8 --json",
    .groups = groups,
    .run = cmd_run_main,
};
