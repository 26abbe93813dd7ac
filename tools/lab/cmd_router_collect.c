/* cmd_router_collect.c - `mizzle router collect`: make samples that a router is trained on. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "kernels/sys/base.h"
#include "kernels/sys/buf.h"
#include "kernels/sys/os.h"
#include "kernels/sys/sha256.h"
#include "model/fingerprint.h"
#include "model/model.h"
#include "model/text/chat.h"
#include "model/text/tokenizer.h"
#include "router/learn/collect.h"
#include "router/learn/sample_files.h"
#include "router/local_cloud.h"
#include "router/mizzle.h"
#include "router/router.h"
#include "router/texts/texts.h"
#include "tools/cli/progress.h"
#include "tools/cli/setup.h"
#include "tools/command.h"
#include "tools/lab/eval/asking.h"
#include "tools/lab/eval/routed.h"
#include "tools/lab/tasks/task_options.h"

/* A text and its answer have at most this many tokens, unless the model has fewer positions. */
enum { CONTEXT = 4096, QUESTIONS = 3000, TOKENS = 512, TOKENS_MILLI = 96 };
enum { PIECE_MS = 60000 }; /* nobody reads along, so prompts are read in the largest pieces */

static struct collect_options options = { .labels = COLLECT_CITER,
                                          .calls = COLLECT_CALLS,
                                          .max_tokens = SIZE_MAX, /* not given */
                                          .rollouts = SAMPLE_FILES_NO_LIMIT };
static struct task_options task_options;
static size_t questions = SIZE_MAX; /* not given */
static const char *folder, *labels_name = "citer";
static bool quiet;

static const struct option_group collect_opts = {
    "Samples",
    (const struct option[]){
        { "--output", "-o", OPTION_STR, &folder, "DIR",
          "Write the samples to this folder; a collection that was interrupted continues" },
        { "--questions", NULL, OPTION_SIZE, &questions, "N",
          "Use the first N questions (default: all; milli: 3000)" },
        { "--labels", NULL, OPTION_STR, &labels_name, "KIND",
          "Decide by this rule if a token is acceptable: match, citer, divergent or gain (default: "
          "citer)" },
        { "--rollouts", NULL, OPTION_U64, &options.rollouts, "N",
          "Complete the answer for at most N tokens, drawn evenly from all texts; other tokens "
          "that would need this are left out (default: no limit)" },
        { "--parallel", NULL, OPTION_SIZE, &options.calls, "N",
          "Keep up to N calls of the cloud in flight, at most 64 (default: 32)" },
        { "--n-predict", "-n", OPTION_SIZE, &options.max_tokens, "N",
          "Limit the rest of an answer to N tokens (default: 512; milli: 96)" },
        { "--router", NULL, OPTION_STR, &shared_options.router, "FILE",
          "With labels citer and gain, write answers with this router and the cloud (default: by "
          "the small model alone)" },
        { "--threshold", NULL, OPTION_REAL, &shared_options.threshold, "T",
          "With --router, route at scores below T (default: the router's own, else 0.5)" },
        OPTION_ROW_QUIET(&quiet),
        OPTION_END,
    },
};

static const struct option_group *const groups[] = { &collect_opts,        &task_option_rows,
                                                     &chat_option_rows,    &engine_option_rows,
                                                     &cloud_option_rows,   &cloud_call_option_rows,
                                                     &answers_option_rows, NULL };

/* Return what is wrong with the options, or NULL. */
static const char *cmd_router_collect_check(void)
{
    task_options = shared_task;
    task_options.stream = TASK_TRAIN;
    if (!folder)
        return "expected -o DIR";
    if (!collect_labels_parse(&options.labels, labels_name))
        return "--labels: expected match, citer, divergent or gain";
    if (!questions || !options.max_tokens || !options.calls || options.calls > TEXTS_SLOTS)
        return "--questions, --n-predict: expected at least 1, --parallel 1 to 64";
    if (shared_options.router && options.labels != COLLECT_CITER && options.labels != COLLECT_GAIN)
        return "--router: expected --labels citer or gain";
    if (!shared_options.router && !isnan(shared_options.threshold))
        return "--threshold: expected only with --router";
    if (options.labels == COLLECT_MATCH && options.rollouts != SAMPLE_FILES_NO_LIMIT)
        return "--rollouts: expected --labels citer, divergent or gain, as match writes no answers";
    if (strcmp(shared_options.cloud, "required") != 0 &&
        (strcmp(shared_options.cloud, "off") != 0 || options.labels != COLLECT_MATCH))
        return "--cloud: expected required, or off with --labels match";
    return NULL;
}

/* What one run has open. */
struct collecting {
    struct engine engine;
    struct routing routing;
    struct task *task;
    struct sample_meta meta;
    struct sample_files files;
    struct collect collect;
    struct sample_counts counts;
    struct buf text; /* of the answer that is judged */
    size_t texts, done, made;
    uint64_t since;            /* os_now_ns */
    struct progress *progress; /* or NULL */
    bool logs;                 /* a line is due without a terminal */
    bool thinks;               /* prompts may begin with thoughts, where a run-on is none */
};

/* Say how far the collection is, on the terminal or in a log. */
static void collecting_progress(void *arg, const struct collect_stats *stats)
{
    struct collecting *c = arg;
    struct err line;
    char left[48];
    if (!c->progress && !c->logs)
        return;
    size_t done = c->done - c->made + stats->texts;
    progress_left(left, c->since, stats->texts, stats->texts + c->texts - done);
    err_set(&line, OK, "collect: %zu of %zu texts, %llu rollouts, %llu calls, %llu tokens%s", done,
            c->texts, (unsigned long long)stats->rollouts, (unsigned long long)stats->calls,
            (unsigned long long)(stats->tokens + stats->written), left);
    progress_say(c->progress, line.msg);
    if (c->logs)
        fprintf(stderr, "%s\n", line.msg);
}

/* Put the text of a generated answer together, and judge it. */
static int collecting_judge(void *arg, enum collect_verdict *verdict, size_t text,
                            const uint32_t *ids, size_t n, bool ended, struct err *err)
{
    struct collecting *c = arg;
    const struct tokenizer *tok = c->engine.tokenizer;
    struct task_item item;
    bool fits = true;
    c->text.n = 0;
    for (size_t i = 0; fits && i < n; i++) {
        size_t size;
        const char *bytes =
            tokenizer_is_eog(tok, ids[i]) ? NULL : tokenizer_bytes(tok, ids[i], &size);
        fits = !bytes || buf_add(&c->text, bytes, size);
    }
    if (!fits || !buf_add(&c->text, "", 1))
        return err_set(err, ERR_NOMEM, "collect: out of memory");
    const char *answer = c->text.p;
    task_cut(c->task, c->text.p);
    int rc = task_item(&item, c->task, text, err);
    *verdict = COLLECT_OPEN;
    if (rc == OK && (ended || (!c->thinks && task_decided(c->task, answer))))
        *verdict = task_right(c->task, &item, answer) ? COLLECT_RIGHT : COLLECT_WRONG;
    return rc;
}

/* Encode an item: its prompt, then its reference answer and end-of-text if it has one. */
static int collecting_encode(struct collect_text *out, struct collecting *c, size_t i,
                             struct err *err)
{
    const struct tokenizer *tok = c->engine.tokenizer;
    struct task_item item;
    uint32_t *gold = NULL, eos;
    size_t n = 0, all, bytes;
    int rc = task_item(&item, c->task, i, err);
    if (rc == OK)
        rc = task_encode(&out->ids, &out->prompt, c->task, &item, tok, c->engine.chat, err);
    if (rc != OK)
        return rc;
    out->n = out->prompt;
    out->subject = (uint32_t)crc32_z(0, (const Bytef *)item.subject, strlen(item.subject));
    const char *text = item.gold;
    if (!text)
        return OK;
    text += task_form(c->task) == TASK_CHAT && *text == ' '; /* the template ends with a newline */
    if (!tokenizer_eos(tok, &eos))
        return err_set(err, ERR_ARG, "the model names no end-of-text token");
    rc = tokenizer_encode_part(tok, &gold, &n, text, strlen(text), false, err);
    if (rc != OK)
        return rc;
    uint32_t *ids = size_add(&all, out->n, n + 1) && size_mul(&bytes, all, sizeof(*ids))
                        ? realloc(out->ids, bytes)
                        : NULL;
    if (ids) {
        memcpy(ids + out->n, gold, n * sizeof(*ids));
        ids[all - 1] = eos;
        out->ids = ids;
        out->n = all;
    }
    free(gold);
    return ids ? OK : err_set(err, ERR_NOMEM, "collect: out of memory");
}

/* Make a shard, or its hidden states if it exists, and write it. */
static int collecting_make(struct sample_shard *s, struct collecting *c, struct err *err)
{
    struct collect_text texts[SAMPLE_FILES_TEXTS] = { { 0 } };
    int rc = OK;
    for (size_t k = 0; rc == OK && k < s->ntexts; k++)
        rc = collecting_encode(&texts[k], c, s->first + k, err);
    if (rc == OK && s->no_states)
        rc = collect_states(s, &c->collect, texts, err);
    else if (rc == OK)
        rc = collect_shard(s, &c->collect, texts, c->counts.rollouts, err);
    for (size_t k = 0; k < s->ntexts; k++)
        free(texts[k].ids);
    if (rc != OK)
        return rc;
    c->made += s->ntexts;
    return sample_files_write(s, err);
}

/* Refuse a collection without a sample, and say where the texts have gone. */
static int collecting_check(const struct collecting *c, struct err *err)
{
    const struct sample_counts *n = &c->counts;
    const char *why = c->collect.refusal.msg;
    if (n->samples)
        return OK;
    return err_set(err, n->refused ? ERR_REMOTE : ERR_ARG,
                   "%s: expected samples, found none in %zu texts: %llu refused by the cloud"
                   "%s%s, %llu too long, %llu tokens left out; delete the folder to begin again",
                   folder, c->texts, (unsigned long long)n->refused, *why ? ": " : "", why,
                   (unsigned long long)n->too_long, (unsigned long long)n->left_out);
}

/* Keep the shards that are there, make the others, and finish the collection. */
static int collecting_all(struct collecting *c, struct err *err)
{
    int rc = OK;
    c->since = os_now_ns();
    c->progress = quiet ? NULL : progress_begin("collect:", "the first texts");
    for (size_t i = 0; rc == OK && i < sample_files_shards(&c->meta); i++) {
        struct sample_shard s;
        bool exists;
        rc = interrupted ? err_set(err, ERR_STOP, "interrupted")
                         : sample_files_shard(&s, &exists, &c->files, i, err);
        if (rc != OK)
            break;
        if (!exists || s.no_states)
            rc = collecting_make(&s, c, err);
        c->done += rc == OK ? s.ntexts : 0;
        c->logs = rc == OK && !exists && !quiet && !c->progress && c->done < c->texts;
        if (c->logs)
            collecting_progress(c, &c->collect.stats);
        c->logs = false;
        sample_counts_add(&c->counts, &s.counts);
        samples_close(&s.samples);
    }
    progress_end(c->progress);
    c->progress = NULL;
    if (rc != ERR_NET && rc != ERR_REMOTE)
        return rc == OK ? collecting_check(c, err) : rc;
    const struct err why = *err;
    return err_set(
        err, rc,
        "%.300s; a token was not given, after %zu of %zu texts; the same command continues",
        why.msg, c->done, c->texts);
}

/* Print what was collected. */
static void collecting_print(const struct collecting *c)
{
    const struct sample_counts *n = &c->counts;
    const struct collect_stats *stats = &c->collect.stats;
    double seconds = (double)(os_now_ns() - c->since) / 1e9;
    printf("model         %s, keys and values in %s\n", c->meta.edge, c->meta.kv);
    printf("texts         %llu of %zu; %llu too long, %llu refused by the cloud, %llu answered by "
           "the cloud\n",
           (unsigned long long)n->texts, c->texts, (unsigned long long)n->too_long,
           (unsigned long long)n->refused, (unsigned long long)n->written);
    printf("samples       %llu, %.2f %% of them with label 1\n", (unsigned long long)n->samples,
           n->samples ? 100 * (double)n->right / (double)n->samples : 0);
    printf("rollouts      %llu; %llu tokens left out\n", (unsigned long long)n->rollouts,
           (unsigned long long)n->left_out);
    printf("this run      %zu texts, %llu tokens, %.1f tokens/s; %llu calls, %llu tokens of the "
           "cloud, %llu of them without a call of their own\n",
           c->made, (unsigned long long)stats->tokens,
           seconds > 0 ? (double)stats->tokens / seconds : 0, (unsigned long long)stats->calls,
           (unsigned long long)stats->written, (unsigned long long)stats->known);
}

/* True when the options or the items need a cloud. */
static int collecting_needs_cloud(bool *needs, struct collecting *c, struct err *err)
{
    *needs = options.labels != COLLECT_MATCH;
    int rc = OK;
    for (size_t i = 0; rc == OK && !*needs && i < c->texts; i++) {
        struct task_item item;
        rc = task_item(&item, c->task, i, err);
        *needs = rc == OK && !item.gold;
    }
    return rc;
}

/* Open the cloud if it is needed; it must answer. */
static int collecting_open_cloud(struct collecting *c, struct err *err)
{
    bool needs;
    int rc = collecting_needs_cloud(&needs, c, err);
    if (rc != OK || !needs || !strcmp(shared_options.cloud, "off"))
        return rc;
    shared_options.policy = shared_options.router ? "mlp" : "always";
    shared_options.cloud = "required";
    if (!shared_options.cloud_tokens) /* whole answers are written where no router decides */
        shared_options.cloud_tokens = shared_options.router ? 1 : CLOUD_MAX_TOKENS;
    rc = routed_open(&c->routing, &c->engine, err);
    options.router = shared_options.router ? c->routing.router : NULL;
    options.threshold = c->routing.how.threshold;
    options.turn = c->routing.turn;
    /* A file of answers keeps those of calls. */
    if (rc == OK && c->routing.local && !shared_options.answers)
        c->collect.large = local_cloud_texts(c->routing.local);
    return rc;
}

/* Open what writes answers, if there is a cloud. */
static int collecting_open_texts(struct collecting *c, enum kvcache kv, struct err *err)
{
    const struct texts_options o = { .engine = &c->engine,
                                     .routing = &c->routing,
                                     .slots = TEXTS_SLOTS,
                                     .queue = TEXTS_SLOTS,
                                     .context = session_context(c->collect.session),
                                     .kv = kv,
                                     .piece_ms = PIECE_MS,
                                     .turn = c->routing.turn,
                                     .stop = &interrupted };
    return routing_port(&c->routing) ? texts_open(&c->collect.texts, &o, err) : OK;
}

/* Copy a string into a setting. */
#define KEEP(field, text) snprintf(field, sizeof(field), "%s", text)

/* Describe the collection. */
static int collecting_describe(struct sample_meta *m, struct collecting *c, enum kvcache kv,
                               struct err *err)
{
    const struct engine *e = &c->engine;
    bool milli = task_size(c->task) == SIZE_MAX;
    *m = (struct sample_meta){ .round = shared_options.router ? 2 : 1,
                               .max_rollouts = options.rollouts,
                               .max_tokens = options.max_tokens,
                               .seed = milli ? task_options.seed : 0,
                               .world = milli ? task_options.world : 0,
                               .questions = c->texts,
                               .model = model_fingerprint(e->model, e->tokenizer),
                               .exact = model_exact_fingerprint(e->model, e->pool),
                               .tokenizer = tokenizer_fingerprint(e->tokenizer),
                               .context = session_context(c->collect.session),
                               .dim = e->model->config.hidden,
                               .vocab = tokenizer_size(e->tokenizer) };
    KEEP(m->task, task_name(c->task));
    KEEP(m->data, task_digest(c->task));
    KEEP(m->prompt, task_form_name(c->task));
    KEEP(m->kind, !milli ? "" : task_options.kind ? task_options.kind : "all");
    KEEP(m->wording, !milli ? "" : task_options.wording ? task_options.wording : "all");
    KEEP(m->labels, collect_labels_name(options.labels));
    KEEP(m->tap, "final");
    KEEP(m->kv, kvcache_name(kv));
    KEEP(m->edge, e->name);
    KEEP(m->weights, e->weights);
    struct cloud_identity cloud;
    routed_identity(&cloud, &c->routing, e);
    KEEP(m->cloud, cloud.name);
    KEEP(m->cloud_url, cloud.url);
    KEEP(m->cloud_says, cloud.says);
    KEEP(m->kernels, routed_exactness(e));
    KEEP(m->template, task_form(c->task) == TASK_CHAT ? chat_form(e->chat) : "");
    c->thinks = !strcmp(m->template, "qwq") || !strcmp(m->template, "qwen3");
    KEEP(m->think, task_form(c->task) == TASK_CHAT && shared_options.engine.think
                       ? shared_options.engine.think
                       : "");
    KEEP(m->mizzle, MIZZLE_VERSION);
    if (!shared_options.router)
        return OK;
    snprintf(m->threshold, sizeof(m->threshold), "%.9g", (double)c->routing.how.threshold);
    return sha256_file(m->router, shared_options.router)
               ? OK
               : err_set(err, ERR_IO, "%s: cannot be read", shared_options.router);
}

/* Open everything but the folder. */
static int collecting_open(struct collecting *c, struct err *err)
{
    enum kvcache kv;
    int rc = task_open(&c->task, &task_options, err);
    if (rc != OK)
        return rc;
    bool milli = task_size(c->task) == SIZE_MAX;
    c->texts = questions < SIZE_MAX ? questions : milli ? QUESTIONS : task_size(c->task);
    c->texts = c->texts < task_size(c->task) ? c->texts : task_size(c->task);
    if (options.max_tokens == SIZE_MAX)
        options.max_tokens = milli ? TOKENS_MILLI : TOKENS;
    options.texts = c->texts;
    rc = setup_engine(&c->engine, true, err);
    c->collect.tok = c->engine.tokenizer;
    if (rc == OK)
        asking_form(c->task, &c->engine);
    if (rc == OK && task_form(c->task) == TASK_CHAT)
        rc = chat_check(c->engine.chat, err);
    options.stops = task_stops(c->task);
    if (rc == OK)
        rc = collecting_open_cloud(c, err);
    if (rc == OK)
        rc = setup_kv(&kv, engine_best_kv(&c->engine), err);
    if (rc != OK)
        return rc;
    size_t context = c->engine.model->config.context;
    rc = session_open(&c->collect.session, c->engine.batch, context < CONTEXT ? context : CONTEXT,
                      kv, err);
    if (rc == OK)
        rc = collecting_open_texts(c, kv, err);
    if (rc == OK)
        rc = collecting_describe(&c->meta, c, kv, err);
    return rc == OK ? sample_files_open(&c->files, &c->meta, folder, err) : rc;
}

/* Close what is open. */
static void collecting_close(struct collecting *c)
{
    sample_files_close(&c->files);
    texts_close(c->collect.texts);
    session_close(c->collect.session);
    if (c->engine.model)
        routed_close(&c->routing);
    task_close(c->task);
    engine_close(&c->engine);
    buf_free(&c->text);
}

static void cmd_router_collect_begin(void)
{
    shared_options.cloud = "required";
    shared_options.cloud_tokens = 0; /* not given */
}

static int cmd_router_collect_main(int n, char **args, struct err *err)
{
    const char *bad = cmd_router_collect_check();
    (void)n, (void)args;
    if (bad)
        return err_set(err, ERR_ARG, "%s; see mizzle router collect --help", bad);
    struct collecting c = { .files.lock = -1, .collect.o = &options };
    options.stop = &interrupted;
    options.judge = collecting_judge;
    options.progress = collecting_progress;
    options.arg = &c;
    setup_catch_interrupts();
    int rc = task_form_parse(&task_options, task_options.prompt, err);
    if (rc == OK)
        rc = collecting_open(&c, err);
    if (rc == OK)
        rc = collecting_all(&c, err);
    if (rc == OK)
        collecting_print(&c);
    collecting_close(&c);
    if (rc == ERR_STOP)
        fprintf(stderr, "mizzle router collect: interrupted; the same command continues\n");
    return rc;
}

const struct command cmd_router_collect = {
    .name = "router collect",
    .summary = "collect samples that a router is trained on, from any pair and task",
    .description =
        "Runs the small model over reference answers. Each token gives a sample: the hidden state "
        "before it, and a label, 1 if the small model's own token may stand there.\n\n"
        "Labels match: 1 if the token is the reference's. Labels citer: if the small model's and "
        "the cloud's tokens are both wrong, the small model continues from its own; 1 if the final "
        "answer is right. Labels divergent: where the two models differ, the cloud continues from "
        "the small model's token; 1 unless that spoils the final answer.\n\n"
        "Labels gain: the small model writes the answer itself. Where the two models differ, it "
        "also continues from the large model's token. The label is 1 unless that token mends the "
        "final answer. Each sample has the large model's gain: 1, 0 or -1. Of the tokens in which "
        "both models agree, one in ten is kept. Reference answers are not used.\n\n"
        "With reference answers, the cloud is asked only where the small model is wrong. Where the "
        "cloud writes whole answers, a call asks for 64 tokens unless --cloud-tokens is given. The "
        "samples are the same for any number of calls in flight. If an item has no reference "
        "answer, the cloud writes one. Texts longer than the model's context, or 4096 tokens, are "
        "left out and counted.\n\n"
        "The folder holds one safetensors file for every 16 texts. An interrupted collection "
        "continues when the same command is run again, and ends with the same bytes.\n\n"
        "  mizzle router collect -o samples\n"
        "  mizzle router collect -m edge.gguf --task csqa --data train_mlp.json \\\n"
        "      --cloud-url http://server:30000 -o samples",
    .groups = groups,
    .begin = cmd_router_collect_begin,
    .run = cmd_router_collect_main,
};
