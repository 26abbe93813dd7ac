/* eval_describe.c - what makes the demo world hard or easy to route: which places its answers have,
 * where the two models differ, and how well confidence tells. Teacher-forced on the reference
 * answers. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/math.h"
#include "kernels/sys/base.h"
#include "model/batch.h"
#include "model/session.h"
#include "model/text/tokenizer.h"
#include "router/engine.h"
#include "router/learn/samples.h"
#include "tools/cli/demo_files.h"
#include "tools/cli/setup.h"
#include "tools/cli/shared_options.h"
#include "tools/demo/world.h"
#include "tools/eval/eval.h"
#include "tools/eval/eval_origin.h"

enum { QUESTIONS = 1000, CONTEXT = 512, MARKS = WORLD_FREE + 1, VALUE = 32 };

/* A model that reads the answers. */
struct describe_reader {
    struct engine engine;
    struct session *session;
    enum kvcache kv;
    size_t size;
    uint32_t best[CONTEXT]; /* of each token of the latest text, as foreseen */
    float likely[CONTEXT];  /* ln of the probability of best */
};

struct describe {
    const struct eval_options *o;
    struct world_filter filter;
    struct describe_reader edge, cloud;
    bool pair; /* there is a cloud */
    size_t tokens[MARKS], wrong[MARKS], differ[MARKS], harmful, facts, room;
    float *score;         /* [room] of each fact, used or idle: max-prob */
    unsigned char *label; /* [room] the edge foresees it */
};

static int describe_reader_open(struct describe_reader *r, const char *path, struct err *err)
{
    int rc = setup_engine(&r->engine, path, true, err);
    if (rc == OK)
        rc = setup_kv(&r->kv, engine_best_kv(&r->engine), err);
    if (rc == OK)
        rc = session_open(&r->session, r->engine.batch, CONTEXT, r->kv, err);
    if (rc == OK)
        r->size = tokenizer_size(r->engine.tokenizer);
    return rc;
}

static void describe_reader_close(struct describe_reader *r)
{
    session_close(r->session);
    engine_close(&r->engine);
}

/* Read ids[n] and find what the model foresees of each but the first. */
static int describe_read(struct describe_reader *r, const uint32_t *ids, size_t n, struct err *err)
{
    session_rewind(r->session, 0);
    for (size_t at = 0; at + 1 < n;) {
        size_t m = n - 1 - at < BATCH_ROWS ? n - 1 - at : BATCH_ROWS;
        int rc = session_eval(r->session, ids + at, m, &interrupted, err);
        if (rc != OK)
            return rc;
        for (size_t i = 0; i < m; i++) {
            size_t best;
            const float *logits = session_logits(r->session, m - 1 - i);
            uint32_t top = (uint32_t)r->engine.kernels.argmax_f32(logits, r->size);
            r->best[at + i + 1] = top;
            r->likely[at + i + 1] =
                -(float)eval_surprise(&best, logits, r->size, top, &r->engine.kernels);
        }
        at += m;
    }
    return OK;
}

/* Count one token of an answer. */
static int describe_token(struct describe *d, size_t i, uint32_t id, unsigned mark, struct err *err)
{
    bool wrong = d->edge.best[i] != id;
    d->tokens[mark]++;
    d->wrong[mark] += wrong;
    if (d->pair) {
        d->differ[mark] += d->edge.best[i] != d->cloud.best[i];
        d->harmful += wrong && (mark == WORLD_FACT || mark == WORLD_FORM) && d->cloud.best[i] == id;
    }
    if (mark != WORLD_FACT && mark != WORLD_IDLE)
        return OK;
    if (d->facts == d->room) {
        size_t room = d->room ? 2 * d->room : 1024;
        float *score = realloc(d->score, room * sizeof(*score));
        d->score = score ? score : d->score;
        unsigned char *label = realloc(d->label, room);
        d->label = label ? label : d->label;
        if (!score || !label)
            return err_set(err, ERR_NOMEM, "describe: out of memory");
        d->room = room;
    }
    d->score[d->facts] = d->edge.likely[i];
    d->label[d->facts++] = !wrong;
    return OK;
}

/* Let both models read question i with its answer, and count the tokens of the answer. */
static int describe_question(struct describe *d, const struct world *w, uint64_t i, struct err *err)
{
    struct world_question q;
    const struct tokenizer *tok = d->edge.engine.tokenizer;
    uint32_t *ids = NULL, *answer = NULL, all[CONTEXT];
    size_t n = 0, m = 0, bytes = 0, len;
    world_question(&q, w, d->filter, world_test_stream(d->o->seed), i);
    int rc = tokenizer_encode(tok, &ids, &n, q.prompt, strlen(q.prompt), false, err);
    if (rc == OK)
        rc = tokenizer_encode(tok, &answer, &m, q.answer, strlen(q.answer), false, err);
    if (rc == OK && n + m > CONTEXT)
        rc = err_set(err, ERR_ARG, "describe: expected at most %d tokens, found %zu", CONTEXT,
                     n + m);
    if (rc == OK) {
        memcpy(all, ids, n * sizeof(*ids));
        memcpy(all + n, answer, m * sizeof(*ids));
        rc = describe_read(&d->edge, all, n + m, err);
    }
    if (rc == OK && d->pair)
        rc = describe_read(&d->cloud, all, n + m, err);
    for (size_t j = 0; rc == OK && j < m; j++) {
        bytes += tokenizer_bytes(tok, answer[j], &len) ? len : 0;
        rc = describe_token(d, n + j, answer[j], q.mark[bytes - 1], err);
    }
    free(ids);
    free(answer);
    return rc;
}

/* Write part/all, in percent but for JSON; or that there is none: without a cloud nothing differs,
 * and no token has a share. */
static const char *describe_share(char out[VALUE], const struct describe *d, size_t part,
                                  size_t all, bool has)
{
    if (!has || !all)
        snprintf(out, VALUE, "%s", d->o->json ? "null" : "-");
    else if (d->o->json)
        snprintf(out, VALUE, "%.6f", (double)part / (double)all);
    else
        snprintf(out, VALUE, "%.2f %%", 100 * (double)part / (double)all);
    return out;
}

static void describe_print(const struct describe *d, size_t questions, double auc)
{
    static const char *const names[MARKS] = { "form", "fact", "idle", "free" };
    size_t all = 0, differ = 0, right = 0;
    char a[VALUE], b[VALUE], c[VALUE];
    const struct engine *cloud = d->pair ? &d->cloud.engine : NULL;
    for (size_t i = 0; i < MARKS; i++) {
        all += d->tokens[i];
        right += d->tokens[i] - d->wrong[i];
        differ += d->differ[i];
    }
    if (!d->o->json)
        printf("place     tokens     share     wrong    differ\n");
    for (size_t i = 0; i < MARKS; i++) {
        printf(d->o->json ? "{\"task\":\"milli\",\"place\":\"%s\",\"tokens\":%zu,\"share\":%s,"
                            "\"wrong\":%s,\"differ\":%s"
                          : "%-6s %9zu  %8s  %8s  %8s\n",
               names[i], d->tokens[i], describe_share(a, d, d->tokens[i], all, true),
               describe_share(b, d, d->wrong[i], d->tokens[i], true),
               describe_share(c, d, d->differ[i], d->tokens[i], d->pair));
        if (d->o->json)
            eval_origin_end(&d->edge.engine, d->edge.kv, cloud, NULL);
    }
    describe_share(a, d, differ, all, d->pair);
    describe_share(b, d, d->harmful, all, d->pair);
    snprintf(c, sizeof(c), "%s", d->o->json ? "null" : "-");
    if (!isnan(auc))
        snprintf(c, sizeof(c), d->o->json ? "%.6f" : "%.4f", auc);
    if (d->o->json) {
        printf(
            "{\"task\":\"milli\",\"accuracy\":%.6f,\"routed\":0,\"questions\":%zu,\"tokens\":%zu,"
            "\"threshold\":null,\"pgr\":null,\"differ\":%s,\"harmful\":%s,\"auc\":%s",
            (double)right / (double)all, questions, all, a, b, c);
        eval_origin_end(&d->edge.engine, d->edge.kv, cloud, NULL);
    } else
        printf("%zu tokens: %s differ, %s harmful; AUC of max-prob among facts: %s\n", all, a, b,
               c);
}

int eval_describe(const struct eval_options *o, struct err *err)
{
    struct describe *d = calloc(1, sizeof(*d));
    struct world *w = NULL;
    double auc = (double)NAN;
    size_t questions = o->questions ? o->questions : (size_t)QUESTIONS;
    const char *cloud = cloud_option_values.model;
    if (!d)
        return err_set(err, ERR_NOMEM, "describe: out of memory");
    d->o = o;
    if (!cloud && !engine_options.model)
        cloud = demo_files_path("cloud.gguf");
    d->pair = cloud != NULL;
    int rc = world_topic_parse(&d->filter.topic, o->kind ? o->kind : "all", err);
    if (rc == OK)
        rc = world_wording_parse(&d->filter.wording, o->wording ? o->wording : "all", err);
    if (rc == OK)
        rc = describe_reader_open(&d->edge, NULL, err);
    if (rc == OK && d->pair)
        rc = describe_reader_open(&d->cloud, cloud, err);
    if (rc == OK)
        rc = world_open(&w, o->world, err);
    for (size_t i = 0; rc == OK && i < questions; i++)
        rc = describe_question(d, w, i, err);
    if (rc == OK)
        rc = samples_auc(&auc, d->score, d->label, d->facts, err);
    if (rc == OK)
        describe_print(d, questions, auc);
    world_close(w);
    describe_reader_close(&d->edge);
    describe_reader_close(&d->cloud);
    free(d->score);
    free(d->label);
    free(d);
    return rc;
}
