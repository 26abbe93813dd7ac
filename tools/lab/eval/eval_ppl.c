/* eval_ppl.c - measures perplexity: how well a model predicts a text, token by token. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/kernels.h"
#include "kernels/sys/base.h"
#include "kernels/sys/os.h"
#include "kernels/math.h"
#include "model/batch.h"
#include "model/model.h"
#include "model/session.h"
#include "model/text/tokenizer.h"
#include "router/engine.h"
#include "router/policy.h"
#include "tools/lab/bench/row.h"
#include "tools/lab/eval/eval.h"
#include "tools/cli/input_file.h"
#include "tools/cli/progress.h"
#include "tools/cli/setup.h"
#include "tools/lab/demo/world.h"

enum { DEFAULT_QUESTIONS = 200, DEFAULT_CONTEXT = 512, MIN_CONTEXT = 8 };
enum { MAX_TEXT = 1 << 27 }; /* bytes */

struct ppl {
    const struct eval_options *o;
    struct engine engine;
    struct session *session;
    enum kvcache kv;
    size_t context, size; /* window in tokens; ids in use */
    double sum;           /* of -ln p over the scored tokens */
    size_t tokens, bytes; /* scored so far */
    size_t hits;          /* tokens that the model thought the most likely ones */
    size_t texts;         /* answers, or the one text */
};

/* Return -ln p of one token, in double, and set *best to the most likely one of size. */
static double eval_ppl_surprise(size_t *best, const float *logits, size_t size, uint32_t id,
                                const struct kernels *k)
{
    *best = k->argmax_f32(logits, size);
    return policy_logsum(logits, size, k) - (double)logits[id];
}

/* Evaluate ids[n] from an empty session and score the tokens from `first` (at least 1) on. */
static int eval_ppl_score(struct ppl *p, const uint32_t *ids, size_t n, size_t first,
                          struct err *err)
{
    session_rewind(p->session, 0);
    for (size_t at = 0; at + 1 < n;) {
        size_t m = n - 1 - at < BATCH_ROWS ? n - 1 - at : BATCH_ROWS;
        int rc = session_eval(p->session, ids + at, m, &interrupted, err);
        if (rc != OK)
            return rc;
        for (size_t i = 0; i < m; i++) {
            size_t next = at + i + 1, len, best;
            if (next < first)
                continue;
            p->sum += eval_ppl_surprise(&best, session_logits(p->session, m - 1 - i), p->size,
                                        ids[next], &p->engine.kernels);
            p->hits += best == ids[next];
            p->tokens++;
            p->bytes += tokenizer_bytes(p->engine.tokenizer, ids[next], &len) ? len : 0;
        }
        at += m;
    }
    return OK;
}

/* Score a text in windows of `context` tokens that overlap by half. The first window scores all but
 * its first token, the others what the one before did not reach, so every token but the first is
 * scored once. */
static int score_windows(struct ppl *p, const uint32_t *ids, size_t n, struct err *err)
{
    size_t half = p->context / 2;
    struct progress_count shown = { .what = "ppl, tokens", .since = os_now_ns() };
    int rc = OK;
    for (size_t at = 0; rc == OK && (at == 0 || at + half < n); at += half) {
        size_t len = n - at < p->context ? n - at : p->context;
        rc = eval_ppl_score(p, ids + at, len, at ? p->context - half : 1, err);
        if (!p->o->quiet)
            progress_counted(&shown, at + len, n);
        if (at + len == n)
            break;
    }
    progress_wipe(&shown);
    return rc;
}

/* Score the text of --data. */
static int score_file(struct ppl *p, struct err *err)
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
    p->texts = 1;
    if (rc == OK)
        rc = score_windows(p, ids, count, err);
    free(ids);
    free(text);
    return rc;
}

/* Score the reference answers of the demo world, each after its question, which is not scored. */
static int score_world(struct ppl *p, struct err *err)
{
    struct world *w;
    size_t questions = p->o->questions ? p->o->questions : DEFAULT_QUESTIONS;
    int rc = world_open(&w, p->o->task.world, err);
    p->texts = questions;
    for (size_t i = 0; rc == OK && i < questions; i++) {
        struct world_question q;
        uint32_t *ids = NULL, *answer = NULL;
        size_t n, m = 0;
        world_question(&q, w, (struct world_filter){ WORLD_TOPICS, WORLD_WORDINGS },
                       world_test_stream(p->o->task.seed), i);
        rc =
            tokenizer_encode(p->engine.tokenizer, &ids, &n, q.prompt, strlen(q.prompt), false, err);
        if (rc == OK)
            rc = tokenizer_encode_part(p->engine.tokenizer, &answer, &m, q.answer, strlen(q.answer),
                                       false, err);
        uint32_t *all = rc == OK ? realloc(ids, (n + m) * sizeof(*ids)) : NULL;
        if (all) {
            ids = all;
            memcpy(ids + n, answer, m * sizeof(*ids));
            rc = eval_ppl_score(p, ids, n + m, n, err);
        } else if (rc == OK) {
            rc = err_set(err, ERR_NOMEM, "ppl: out of memory");
        }
        free(ids);
        free(answer);
    }
    world_close(w);
    return rc;
}

/* Print the result as a line of text or JSON. */
static int eval_ppl_print(const struct ppl *p, struct err *err)
{
    double nll = p->sum / (double)p->tokens, ppl = exp_f64(nll), n = (double)p->tokens;
    double bits = p->bytes ? p->sum / (double)p->bytes / log_f64(2) : 0;
    const char *what = p->o->task.data ? "text" : "answers";
    if (!p->o->json) {
        printf("perplexity %.4f (%s, %zu tokens scored, %.4f bits a byte, %.1f %% guessed, context "
               "%zu%s)\n",
               ppl, what, p->tokens, bits, 100 * (double)p->hits / n, p->context,
               p->o->task.data ? ", windows overlap by half" : ", each question on its own");
        return OK;
    }
    struct row r = { .format = "jsonl", .flags = JSON_COMPACT | JSON_REAL_PRECISION(9) };
    row_text(&r, "task", NULL, "ppl");
    row_text(&r, "of", NULL, what);
    row_put(&r, "ppl", ppl, 6);
    row_put(&r, "nll", nll, 9);
    row_put(&r, "bits_per_byte", bits, 6);
    row_put(&r, "accuracy", (double)p->hits / n, 6);
    row_put(&r, "questions", (double)p->texts, 0);
    row_put(&r, "tokens", n, 0);
    row_put(&r, "context", (double)p->context, 0);
    row_text(&r, "model", NULL, p->engine.name);
    row_text(&r, "weights", NULL, p->engine.weights);
    row_text(&r, "kv", NULL, kvcache_name(p->kv));
    return row_print(&r, err);
}

int eval_ppl(const struct eval_options *o, struct err *err)
{
    struct ppl p = { .o = o, .context = o->context ? o->context : DEFAULT_CONTEXT };
    int rc = setup_engine(&p.engine, true, err);
    if (rc != OK)
        return rc;
    size_t most = model_config(p.engine.model)->context;
    if (!o->context && most < p.context)
        p.context = most;
    p.size = tokenizer_size(p.engine.tokenizer);
    if (p.context < MIN_CONTEXT || p.context > most)
        rc = err_set(err, ERR_ARG, "--context: expected %d to %zu, found %zu", MIN_CONTEXT, most,
                     p.context);
    if (rc == OK)
        rc = setup_kv(&p.kv, engine_best_kv(&p.engine), err);
    if (rc == OK)
        rc = session_open(&p.session, p.engine.batch, p.context, p.kv, err);
    if (rc == OK)
        rc = o->task.data ? score_file(&p, err) : score_world(&p, err);
    if (rc == OK && !isfinite(p.sum))
        rc = err_set(err, ERR_FORMAT, "ppl: the model's logits are not finite");
    if (rc == OK)
        rc = eval_ppl_print(&p, err);
    session_close(p.session);
    engine_close(&p.engine);
    return rc;
}
