/* eval_ppl.c - measures perplexity: how well a model predicts a text, token by token. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/kernels.h"
#include "kernels/math.h"
#include "kernels/sys/base.h"
#include "kernels/sys/os.h"
#include "model/batch.h"
#include "model/model.h"
#include "model/session.h"
#include "model/text/tokenizer.h"
#include "router/engine.h"
#include "router/policy.h"
#include "tools/cli/input_file.h"
#include "tools/cli/progress.h"
#include "tools/cli/setup.h"
#include "tools/lab/bench/row.h"
#include "tools/lab/demo/world.h"
#include "tools/lab/eval/eval.h"

enum {
    DEFAULT_QUESTIONS = 200,
    DEFAULT_CONTEXT = 512,
    MIN_CONTEXT = 8,
    MAX_TEXT = 1 << 27 /* bytes */
};

struct ppl {
    const struct eval_options *o;
    struct engine engine;
    struct session *session;
    enum kvcache kv;
    size_t context;       /* of a window, in tokens */
    double sum;           /* of -ln p over the scored tokens */
    size_t tokens, bytes; /* scored so far */
    size_t hits;          /* tokens that the model thought the most likely ones */
};

/* Evaluate ids[n] from an empty session and score the tokens from `first` (at least 1) on. */
static int ppl_score(struct ppl *p, const uint32_t *ids, size_t n, size_t first, struct err *err)
{
    const struct kernels *k = &p->engine.kernels;
    size_t size = tokenizer_size(p->engine.tokenizer), len;
    session_rewind(p->session, 0);
    for (size_t at = 0, m; at + 1 < n; at += m) {
        m = n - 1 - at < BATCH_ROWS ? n - 1 - at : BATCH_ROWS;
        int rc = session_eval(p->session, ids + at, m, &interrupted, err);
        if (rc != OK)
            return rc;
        for (size_t next = at + 1; next <= at + m; next++) {
            if (next < first)
                continue;
            const float *logits = session_logits(p->session, at + m - next);
            p->sum += policy_logsum(logits, size, k) - (double)logits[ids[next]];
            p->hits += k->argmax_f32(logits, size) == ids[next];
            p->tokens++;
            p->bytes += tokenizer_bytes(p->engine.tokenizer, ids[next], &len) ? len : 0;
        }
    }
    return OK;
}

/* Score a text in windows that overlap by half. The first window scores all but its first token,
 * the others what the one before did not reach, so every token but the first is scored once. */
static int ppl_windows(struct ppl *p, const uint32_t *ids, size_t n, struct err *err)
{
    size_t half = p->context / 2;
    struct progress_count shown = { .what = "ppl, tokens", .since = os_now_ns() };
    int rc = OK;
    for (size_t at = 0; rc == OK && (at == 0 || at + half < n); at += half) {
        size_t len = n - at < p->context ? n - at : p->context;
        rc = ppl_score(p, ids + at, len, at ? p->context - half : 1, err);
        if (!p->o->quiet)
            progress_counted(&shown, at + len, n);
        if (at + len == n)
            break;
    }
    progress_wipe(&shown);
    return rc;
}

/* Score the text of --data. */
static int ppl_file(struct ppl *p, struct err *err)
{
    char *text = NULL;
    uint32_t *ids = NULL;
    size_t n = 0, count = 0;
    int rc = input_file_read(&text, &n, p->o->task.data, MAX_TEXT, err);
    if (rc == OK)
        rc = tokenizer_encode(p->engine.tokenizer, &ids, &count, text, n, false, err);
    if (rc == OK && count < 2)
        rc = err_set(err, ERR_FORMAT, "%s: expected a text of at least 2 tokens, found %zu",
                     p->o->task.data, count);
    if (rc == OK)
        rc = ppl_windows(p, ids, count, err);
    free(ids);
    free(text);
    return rc;
}

/* Score the reference answers of the demo world, each after its question, which is not scored. */
static int ppl_world(struct ppl *p, struct err *err)
{
    struct world *w;
    const struct tokenizer *tok = p->engine.tokenizer;
    const struct world_filter every = { WORLD_TOPICS, WORLD_WORDINGS };
    size_t questions = p->o->questions ? p->o->questions : DEFAULT_QUESTIONS;
    int rc = world_open(&w, p->o->task.world, err);
    for (size_t i = 0; rc == OK && i < questions; i++) {
        struct world_question q;
        char text[WORLD_PROMPT + WORLD_ANSWER];
        uint32_t *ids = NULL, *all = NULL;
        size_t n, m;
        world_question(&q, w, every, world_test_stream(p->o->task.seed), i);
        int len = snprintf(text, sizeof(text), "%s%s", q.prompt, q.answer);
        rc = tokenizer_encode(tok, &ids, &n, q.prompt, strlen(q.prompt), false, err);
        if (rc == OK) /* no id has bytes of both */
            rc = tokenizer_encode(tok, &all, &m, text, (size_t)len, false, err);
        if (rc == OK)
            rc = ppl_score(p, all, m, n, err);
        free(ids);
        free(all);
    }
    world_close(w);
    return rc;
}

/* Print the result as a table or a line of JSON. */
static int ppl_print(const struct ppl *p, struct err *err)
{
    double n = (double)p->tokens, nll = p->sum / n;
    double bits = p->bytes ? p->sum / (double)p->bytes / log_f64(2) : 0;
    struct row r = { .format = p->o->json ? "jsonl" : "md",
                     .flags = JSON_COMPACT | JSON_REAL_PRECISION(9) };
    row_text(&r, "task", NULL, "ppl");
    row_put(&r, "ppl", exp_f64(nll), 4);
    row_named(&r, "nll", NULL, nll, 9);
    row_named(&r, "bits_per_byte", "bits/byte", bits, 4);
    row_named(&r, "accuracy", "foreseen", (double)p->hits / n, 3);
    row_put(&r, "tokens", n, 0);
    row_put(&r, "context", (double)p->context, 0);
    row_text(&r, "model", "model", p->engine.name);
    row_text(&r, "weights", "weights", p->engine.weights);
    row_text(&r, "kv", "kv", kvcache_name(p->kv));
    return row_print(&r, err);
}

int eval_ppl(const struct eval_options *o, struct err *err)
{
    struct ppl p = { .o = o };
    int rc = setup_engine(&p.engine, true, err);
    if (rc != OK)
        return rc;
    size_t most = p.engine.model->config.context;
    p.context = o->context ? o->context : most < DEFAULT_CONTEXT ? most : DEFAULT_CONTEXT;
    if (p.context < MIN_CONTEXT || p.context > most)
        rc = err_set(err, ERR_ARG, "--context: expected %d to %zu, found %zu", MIN_CONTEXT, most,
                     p.context);
    if (rc == OK)
        rc = setup_kv(&p.kv, engine_best_kv(&p.engine), err);
    if (rc == OK)
        rc = session_open(&p.session, p.engine.batch, p.context, p.kv, err);
    if (rc == OK)
        rc = o->task.data ? ppl_file(&p, err) : ppl_world(&p, err);
    if (rc == OK && !isfinite(p.sum))
        rc = err_set(err, ERR_FORMAT, "ppl: the model's logits are not finite");
    if (rc == OK)
        rc = ppl_print(&p, err);
    session_close(p.session);
    engine_close(&p.engine);
    return rc;
}
