#include "tools/lab/machine/limits.h"
#include "tools/lab/explain/explain.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/model.h"
#include "model/text/chat.h"
#include "model/text/tokenizer.h"
#include "router/router.h"
#include "tools/cli/progress.h"
#include "tools/cli/setup.h"
#include "tools/lab/eval/routed.h"

const char *explain_source_name(enum explain_source s)
{
    static const char *const names[] = { "edge", "cloud", "fallback", "prompt" };
    return names[s];
}

/* Return the number of layers whose rows are whole. */
static size_t explain_whole(const struct explain *x)
{
    return x->layers.to - x->layers.from + 1;
}

size_t explain_row_at(const struct explain *x, size_t pos, size_t layer, size_t head)
{
    size_t heads = x->engine.model->config.heads, rows = explain_whole(x) * heads;
    return rows * (pos * (pos + 1) / 2) + ((layer - x->layers.from) * heads + head) * (pos + 1);
}

const struct explain_layer *explain_layer(const struct explain *x, size_t pos, size_t layer)
{
    return &x->layer[pos * x->engine.model->config.layers + layer];
}

const struct explain_head *explain_head(const struct explain *x, size_t pos, size_t layer,
                                        size_t head)
{
    const struct model_config *c = &x->engine.model->config;
    return &x->head[(pos * c->layers + layer) * c->heads + head];
}

const float *explain_row(const struct explain *x, size_t pos, size_t layer, size_t head)
{
    bool chosen = layer >= x->layers.from && layer <= x->layers.to;
    return chosen ? x->rows + explain_row_at(x, pos, layer, head) : NULL;
}

/* Make the choice of layers definite. */
static int explain_layers(struct explain *x, size_t n, struct err *err)
{
    x->layers = x->o.layers;
    if (x->layers.from == SIZE_MAX)
        x->layers.from = x->layers.to = n - 1;
    if (x->layers.from <= x->layers.to && x->layers.to < n)
        return OK;
    return err_set(err, ERR_ARG, "--layers: expected 0:%zu or a part of it, found %zu:%zu", n - 1,
                   x->layers.from, x->layers.to);
}

/* Compute what is kept of so many positions; false if it does not fit into a size_t. The counts of
 * a model are far below where their products overflow. */
static bool explain_bytes(size_t *bytes, const struct explain *x, size_t positions)
{
    const struct model_config *c = &x->engine.model->config;
    size_t each =
        sizeof(struct explain_position) + sizeof(struct explain_token) +
        sizeof(struct explain_pass) + sizeof(uint32_t) +
        c->layers * (sizeof(struct explain_layer) + c->heads * sizeof(struct explain_head));
    size_t row = explain_whole(x) * c->heads * sizeof(float), rows;
    return size_mul(&rows, positions + 1, positions) && size_mul(&rows, rows / 2, row) &&
           size_mul(bytes, positions, each) && size_add(bytes, *bytes, rows);
}

/* Allocate all arrays, for the prompt and as many tokens as may be written. */
static int explain_allocate(struct explain *x, const uint32_t *prompt, struct err *err)
{
    const struct model_config *c = &x->engine.model->config;
    size_t most, bytes, all;
    if (!size_add(&all, x->prompt, x->o.max_tokens) || all > c->context)
        all = c->context;
    if (x->prompt > c->context)
        return err_set(err, ERR_ARG,
                       "the prompt: expected at most %zu tokens, the context that the model was "
                       "made for, found %zu",
                       c->context, x->prompt);
    most = all > x->prompt ? all : x->prompt;
    if (!explain_bytes(&bytes, x, most) || bytes >> 20 >= EXPLAIN_MOST_MB)
        return err_set(err, ERR_ARG,
                       "expected a text of which at most %d MiB are kept, found %zu tokens with "
                       "%zu MiB; choose fewer --layers, or write less (-n)",
                       EXPLAIN_MOST_MB, most, bytes >> 20);
    x->ids = calloc(most + 1, sizeof(*x->ids));
    x->tokens = calloc(most + 1, sizeof(*x->tokens));
    x->passes = calloc(most, sizeof(*x->passes));
    x->at = calloc(most, sizeof(*x->at));
    x->layer = calloc(most * c->layers, sizeof(*x->layer));
    x->head = calloc(most * c->layers * c->heads, sizeof(*x->head));
    x->rows = calloc(explain_row_at(x, most, x->layers.from, 0), sizeof(*x->rows));
    if (!x->ids || !x->tokens || !x->passes || !x->at || !x->layer || !x->head || !x->rows)
        return err_set(err, ERR_NOMEM, "out of memory");
    for (size_t i = 0; i < x->prompt; i++) {
        x->ids[i] = prompt[i];
        x->tokens[i] = (struct explain_token){ .id = prompt[i], .source = EXPLAIN_PROMPT };
    }
    x->n = x->prompt;
    return session_open(&x->session, x->engine.batch, most, x->kv, err);
}

/* Encode the prompt, as a message in the model's chat template if o.chat is set. */
static int explain_encode(struct explain *x, uint32_t **ids, struct err *err)
{
    const struct explain_options *o = &x->o;
    const struct chat_message message = { "user", o->prompt, strlen(o->prompt) };
    if (o->chat) {
        routed_chat_note(&x->engine);
        return chat_encode(x->engine.chat, ids, &x->prompt, &message, 1, CHAT_THINK_AUTO, err);
    }
    int rc = tokenizer_encode(x->engine.tokenizer, ids, &x->prompt, o->prompt, strlen(o->prompt),
                              true, err);
    return rc != OK || x->prompt ? rc : err_set(err, ERR_ARG, "the prompt is empty");
}

/* Open everything that the text needs. */
static int explain_prepare(struct explain *x, struct err *err)
{
    uint32_t *prompt = NULL;
    int rc = setup_engine(&x->engine, true, err);
    if (rc != OK)
        return rc;
    rc = setup_check_policy(err);
    if (rc == OK)
        rc = routed_open(&x->routing, &x->engine, err);
    if (rc == OK)
        rc = setup_kv(&x->kv, engine_best_kv(&x->engine), err);
    if (rc == OK)
        rc = explain_layers(x, x->engine.model->config.layers, err);
    if (rc == OK)
        rc = explain_encode(x, &prompt, err);
    if (rc == OK)
        rc = explain_allocate(x, prompt, err);
    free(prompt);
    return rc;
}

/* Refuse a text of so many positions if it does not reach the one asked for. */
static int explain_reach(const struct explain *x, size_t positions, struct err *err)
{
    if (x->o.at == SIZE_MAX || x->o.at < positions)
        return OK;
    return err_set(err, ERR_ARG, "--at: expected 0 to %zu, found %zu", positions - 1, x->o.at);
}

int explain_open(struct explain *x, const struct explain_options *o, struct err *err)
{
    *x = (struct explain){ .o = *o };
    int rc = explain_prepare(x, err);
    doubt_look(&x->others);
    if (rc == OK)
        rc = explain_reach(x, x->prompt + (o->max_tokens ? o->max_tokens - 1 : 0), err);
    if (rc == OK)
        rc = explain_write(x, err);
    if (rc == OK)
        rc = explain_reach(x, x->positions, err);
    if (rc == OK && o->span_of)
        rc = explain_span(x, err);
    if (rc == OK)
        rc = explain_look(x, err);
    if (rc != OK || !o->measured)
        return rc;
    doubt_look(&x->others);
    double took = x->others.took;
    struct progress *progress = progress_begin("measuring", "the machine");
    rc = op_limits_measure(&x->limits, &x->engine, err);
    progress_end(progress);
    doubt_look(&x->others);
    x->others.took = took > x->others.took ? took : x->others.took;
    return rc;
}

void explain_close(struct explain *x)
{
    for (size_t i = 0; i < x->n; i++)
        free(x->tokens[i].fault);
    free(x->ids);
    free(x->tokens);
    free(x->passes);
    free(x->at);
    free(x->layer);
    free(x->head);
    free(x->rows);
    session_close(x->session);
    if (x->engine.model)
        routed_close(&x->routing);
    engine_close(&x->engine);
    *x = (struct explain){ .n = 0 };
}

void explain_why(char out[EXPLAIN_WHY], const struct explain *x, size_t pos)
{
    const struct explain_token *t = &x->tokens[pos];
    const char *policy = routing_scorer(&x->routing);
    double score = (double)(pos ? x->at[pos - 1].score : NAN),
           limit = (double)x->routing.how.threshold;
    if (t->source == EXPLAIN_PROMPT)
        snprintf(out, EXPLAIN_WHY, "it is part of the prompt");
    else if (t->source == EXPLAIN_FALLBACK)
        snprintf(out, EXPLAIN_WHY, "the cloud should have written it, but (%s) %s", t->reason,
                 t->fault ? t->fault : "");
    else if (isnan(score))
        snprintf(out, EXPLAIN_WHY, "the policy is %s", policy);
    else
        snprintf(out, EXPLAIN_WHY, "%s scores %.4f, which is %sbelow %.4f", policy, score,
                 t->source == EXPLAIN_CLOUD ? "" : "not ", limit);
}

const char *explain_sums(const struct explain *x)
{
    return router_net(x->routing.router).gain
               ? "the sum under P(spoils) less the one under P(mends), the mean of all members"
           : router_net(x->routing.router).members > 1 ? "the mean of the sums of all members"
                                                       : NULL;
}

float explain_threshold(const struct explain_position *at)
{
    return logf((1 - at->threshold) / at->threshold);
}

bool explain_decided(char out[EXPLAIN_WHY], const struct explain *x, size_t pos)
{
    enum policy p = x->routing.how.policy;
    char who[80] = "the threshold";
    if (!policy_reads_network(p) || explain_sums(x))
        return false;
    const struct explain_position *at = &x->at[pos];
    const struct explain_unit *u = at->routed ? at->down : at->up;
    float adds[] = { explain_threshold(at), x->bias, at->others,
                     (at->routed ? at->ndown : at->nup) ? u->adds : 0 };
    size_t width = router_net(x->routing.router).width, best = 0;
    for (size_t i = 1; i < 4; i++)
        if (at->routed ? adds[i] < adds[best] : adds[i] > adds[best])
            best = i;
    if (best == 3)
        snprintf(who, sizeof(who), "hidden unit %u of %zu", (unsigned)u->unit, width);
    else if (best == 2)
        snprintf(who, sizeof(who), "the other %zu hidden units together",
                 width - at->nup - at->ndown);
    snprintf(out, EXPLAIN_WHY, "The largest share for %s is that of %s: %.3f.",
             at->routed ? "the cloud" : "the small model",
             best == 1 ? "the bias, which is the same everywhere" : who, (double)adds[best]);
    return isfinite(adds[0]);
}

size_t explain_telling(const struct explain *x, const char **why)
{
    size_t best = x->prompt - 1;
    bool asked = false;
    float least = 0;
    if (x->n == x->prompt) {
        *why = "the last one of the prompt";
        return best;
    }
    for (size_t pos = x->prompt - 1; pos < x->positions; pos++) {
        const struct explain_position *at = &x->at[pos];
        float sure = isnan(at->score) ? at->top[0].p : at->score;
        bool cloud = x->tokens[pos + 1].source != EXPLAIN_EDGE;
        if (pos + 1 == x->prompt || cloud > asked || (cloud == asked && sure < least)) {
            best = pos;
            asked = cloud;
            least = sure;
        }
    }
    bool scored = !isnan(x->at[best].score);
    *why = !asked   ? scored ? "where the score was lowest; the cloud was not asked"
                             : "where the small model was least sure; the cloud was not asked"
           : scored ? "where the cloud was asked with the lowest score"
                    : "where the cloud was asked and the small model was least sure";
    return best;
}

bool explain_cut(char out[EXPLAIN_WHY], const struct explain *x)
{
    size_t written = x->n - x->prompt;
    if (x->stats.finish != FINISH_LENGTH || !written)
        return false;
    snprintf(out, EXPLAIN_WHY, "Stopped after %zu token%s, before the text ended: %s", written,
             written == 1 ? "" : "s",
             written < x->o.max_tokens ? "the context is full" : "-n N writes more");
    return true;
}

struct explain_times explain_times(const struct explain *x, bool reading)
{
    struct explain_times t = { .operations = reading ? &x->reading : &x->writing };
    size_t first = reading ? x->prompt : x->prompt + 1, end = reading ? first + 1 : x->n;
    for (size_t i = 0; i < x->npasses; i++)
        if ((x->passes[i].at < x->prompt) == reading) {
            t.passes++;
            t.rows += x->passes[i].rows;
        }
    for (size_t i = first; i < end && i < x->n; i++, t.tokens++) {
        t.ms += x->tokens[i].ms;
        t.router_ms += x->tokens[i].router_ms;
        t.cloud_ms += x->tokens[i].cloud_ms;
    }
    if (reading && !t.tokens)
        t.ms = x->stats.total_ms;
    return t;
}
