#include "tools/lab/eval/asking.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/math.h"
#include "kernels/sys/base.h"
#include "kernels/sys/os.h"
#include "kernels/sys/pool.h"
#include "kernels/sys/text.h"
#include "model/model.h"
#include "model/sample.h"
#include "model/text/tokenizer.h"
#include "net/answers/answers.h"
#include "router/local_cloud.h"
#include "router/policy.h"
#include "router/texts/texts.h"
#include "tools/cli/setup.h"
#include "tools/lab/eval/asking_internal.h"
#include "tools/lab/eval/routed.h"

enum {
    AHEAD = 4 /* answers in flight for each that is written, so that a long one holds up no other */
};

/* True if the options need a cloud: for a policy, for that of a router beside the model if none is
 * named. */
static bool asking_needs_cloud(const struct asking_options *o, const struct engine *e)
{
    char beside[ROUTING_PATH];
    struct routing_options all;
    struct err err;
    if (o->policy || shared_options.policy)
        return strcmp(o->policy ? o->policy : shared_options.policy, "never") != 0;
    return setup_options(&all, &err) == OK &&
           (all.router || routing_find_router(beside, &all, e, POLICY_MLP));
}

int asking_open(struct asking *a, const struct asking_options *o, struct err *err)
{
    const struct sample_params greedy = { .top_p = 1, .repeat_penalty = 1 };
    *a = (struct asking){ .max_tokens = o->max_tokens, .seed = o->seed, .rate = o->lose };
    int rc = setup_engine(&a->engine, true, err);
    if (rc == OK && !o->keeps && asking_needs_cloud(o, &a->engine))
        shared_options.cloud = "required";
    if (rc == OK && o->policy)
        shared_options.policy = o->policy;
    if (rc == OK)
        rc = routed_open(&a->routing, &a->engine, err);
    if (rc != OK) {
        engine_close(&a->engine);
        *a = (struct asking){ 0 };
        return rc;
    }
    rc = sampler_open(&a->sampler, &greedy, tokenizer_size(a->engine.tokenizer), &a->engine.kernels,
                      err);
    const char *alone = asking_alone(a);
    if (rc == OK && alone && shared_parallel > 1)
        rc = err_set(err, ERR_ARG, "--parallel %zu: expected 1 with %s", shared_parallel, alone);
    if (rc != OK)
        asking_close(a);
    return rc;
}

void asking_close(struct asking *a)
{
    asking_many_close(a);
    buf_free(&a->trace);
    buf_free(&a->scores);
    buf_free(&a->text);
    sampler_close(a->sampler);
    session_close(a->session);
    if (a->engine.model)
        routed_close(&a->routing);
    engine_close(&a->engine);
    *a = (struct asking){ 0 };
}

void asking_form(struct task *t, const struct engine *e)
{
    static bool told;
    struct err note;
    if (!task_settle(t, e->chat, &note) && !told) {
        told = true;
        setup_print_typed(&note);
    }
    if (task_form(t) == TASK_CHAT)
        routed_chat_note(e);
}

/* Find how many ids the longest of the prompts has. */
static int asking_longest(size_t *longest, const struct asking *a, struct task *t,
                          const size_t *items, size_t n, struct err *err)
{
    *longest = 0;
    asking_form(t, &a->engine);
    for (size_t i = 0; i < n; i++) {
        struct task_item item;
        uint32_t *ids = NULL;
        size_t count = 0;
        if (interrupted)
            return err_set(err, ERR_STOP, "interrupted");
        int rc = task_item(&item, t, items[i], err);
        if (rc == OK)
            rc = task_encode(&ids, &count, t, &item, a->engine.tokenizer, a->engine.chat, err);
        free(ids);
        if (rc != OK)
            return rc;
        *longest = count > *longest ? count : *longest;
    }
    return OK;
}

/* Set *out to the number of texts at once: --parallel, else what cores and memory carry. */
static int asking_parallel(size_t *out, const struct asking *a, size_t context, struct err *err)
{
    enum { EACH_THREAD = 8, MOST = 32 }; /* beyond, the products of a pass gain little */
    size_t fit, threads = a->engine.pool ? pool_threads(a->engine.pool) : 1;
    *out = shared_parallel;
    if (*out > TEXTS_SLOTS)
        return err_set(err, ERR_ARG, "--parallel: expected 1 to %d, found %zu", TEXTS_SLOTS, *out);
    if (*out)
        return OK;
    int rc = texts_fit(&fit, &a->engine, context, a->kv, err);
    *out = threads * EACH_THREAD < MOST ? threads * EACH_THREAD : (size_t)MOST;
    *out = fit < *out ? fit : *out;
    return rc;
}

int asking_prepare(struct asking *a, struct task *t, const size_t *items, size_t n, struct err *err)
{
    size_t most = model_config(a->engine.model)->context, longest, context;
    int rc = setup_kv(&a->kv, engine_best_kv(&a->engine), err);
    if (rc == OK)
        rc = asking_longest(&longest, a, t, items, n, err);
    if (rc != OK)
        return rc;
    size_t slot =
        shared_options.place ? strlen(shared_options.place) : 0; /* no fewer than its ids */
    if (!size_add(&context, longest, a->max_tokens) || !size_add(&context, context, slot) ||
        context > most)
        context = most;
    if (a->context >= context)
        return OK;
    asking_many_close(a);
    session_close(a->session);
    a->session = NULL;
    a->context = context;
    a->parallel = 1;
    if (!asking_alone(a))
        rc = asking_parallel(&a->parallel, a, context, err);
    a->window = a->parallel > 1 ? AHEAD * a->parallel : 1;
    a->sent = calloc(a->window, sizeof(*a->sent));
    if (rc == OK && !a->sent)
        rc = err_set(err, ERR_NOMEM, "eval: out of memory");
    if (rc != OK)
        return rc;
    return a->parallel > 1 ? asking_many_open(a, err)
                           : session_open(&a->session, a->engine.batch, context, a->kv, err);
}

void asking_begin(struct asking *a, bool timed)
{
    answers_forget(a->routing.answers);
    if (a->texts && timed)
        texts_forget(a->texts);
    if (a->routing.local && timed)
        texts_forget(local_cloud_texts(a->routing.local));
}

/* Count what the cloud computes for one of its tokens, which follows a prefix of `at` ids. */
static void asking_count_work(struct asking_sent *w, size_t at)
{
    if (w->call && w->unbroken && at - w->call < w->asks)
        return; /* the call before it has brought this token, too */
    size_t cached = w->warm < at ? w->warm : at;
    w->asks = w->port->info(w->port->arg).tokens;
    w->call = w->warm = at;
    w->unbroken = true;
    w->work.calls++;
    w->work.cached += cached;
    w->work.prefilled += at - cached;
    w->work.decoded += w->asks;
}

bool asking_take_token(void *arg, const struct decode_token *t)
{
    struct asking_sent *w = arg;
    struct asking *a = w->a;
    size_t n = 0;
    const char *slot = w->how.slot && !w->tokens ? w->how.slot : ""; /* the answer begins with it */
    const char *bytes = t->eog ? NULL : tokenizer_bytes(a->engine.tokenizer, t->id, &n);
    const struct asked_token k = { .ms = t->ms,
                                   .source = t->source,
                                   .has_edge = t->has_edge,
                                   .agrees = t->has_edge && t->edge_id == t->id };
    w->full = !buf_str(&a->text, slot) || !buf_add(&a->text, bytes, bytes ? n : 0) ||
              !buf_add(&a->trace, &k, sizeof(k)) ||
              !buf_add(&a->scores, w->how.query ? &w->score : &t->score, sizeof(t->score));
    if (w->full)
        return false;
    w->hash = rand_u64(rand_u64(w->hash, t->id), t->source);
    w->unbroken = w->unbroken && t->source == SOURCE_CLOUD;
    if (t->source == SOURCE_CLOUD)
        asking_count_work(w, w->prompt + t->pos);
    w->tokens++;
    return true;
}

/* Find how many ids the prompt shares with that of the item before it. */
static int asking_share(struct asking_sent *s, struct err *err)
{
    const struct asking *a = s->a;
    struct task_item item;
    uint32_t *before = NULL;
    size_t count = 0;
    if (!s->item)
        return OK;
    int rc = task_item(&item, s->task, s->item - 1, err);
    if (rc == OK)
        rc = task_encode(&before, &count, s->task, &item, a->engine.tokenizer, a->engine.chat, err);
    while (rc == OK && s->warm < s->prompt && s->warm < count && s->ids[s->warm] == before[s->warm])
        s->warm++;
    free(before);
    return rc;
}

bool asking_ahead(const struct asking_sent *s)
{
    bool alone = s->how.policy == POLICY_ALWAYS && !s->how.query;
    return s->a->routing.how.ahead && !alone;
}

/* Write the answer, alone. */
static int asking_write(struct decode_stats *stats, struct asking_sent *s, struct err *err)
{
    struct asking *a = s->a;
    const struct asking_how *how = &s->how;
    struct decode_options o = a->routing.how;
    o.policy = how->policy;
    o.max_routed = 0; /* a router's own limit would say more of its calibration than of it */
    o.threshold = isnan(how->threshold) ? 0.5f : how->threshold;
    o.tie = how->tie;
    o.ahead = asking_ahead(s);
    o.cloud_required = o.cloud_required && !(a->rate > 0);
    o.max_tokens = how->slot ? 1 : a->max_tokens;
    o.stops = task_stops(s->task);
    o.seed = rand_u64(a->seed, s->item);
    o.stop = &interrupted;
    o.emit = asking_take_token;
    o.arg = s;
    a->routing.gate.breaker = (struct breaker){ 0 };
    if (s->port && a->rate > 0) {
        lose_begin(&a->lose, s->port, a->rate, a->seed);
        s->port = &a->lose.port;
    }
    int rc = decode_run(stats, a->session, a->engine.tokenizer, a->sampler,
                        how->router ? how->router : a->routing.router, s->port, s->ids, s->prompt,
                        &o, err);
    stats->ttft_ms += s->before.total_ms;
    stats->total_ms += s->before.total_ms;
    stats->edge_ms += s->before.edge_ms;
    stats->router_ms += s->before.router_ms;
    return rc;
}

/* Callback of the loop: keep the score. */
static bool asking_take_score(void *arg, const struct decode_token *t)
{
    struct asking_sent *s = arg;
    s->score = t->score;
    return false;
}

/* Find the score of the first token, alone. */
static int asking_score(struct asking_sent *s, struct err *err)
{
    struct asking *a = s->a;
    const struct asking_how *how = &s->how;
    const struct decode_options o = { .policy = how->policy,
                                      .max_tokens = 1,
                                      .stop = &interrupted,
                                      .emit = asking_take_score,
                                      .arg = s };
    return decode_run(&s->before, a->session, a->engine.tokenizer, a->sampler,
                      how->router ? how->router : a->routing.router, NULL, s->ids, s->prompt, &o,
                      err);
}

/* Decide for the whole answer of policy query. */
static int asking_decide(struct asking_sent *s, struct err *err)
{
    struct asking_how *how = &s->how;
    int rc = s->a->texts ? asking_many_score(s, err) : asking_score(s, err);
    bool equal = !(s->score < how->threshold) && !(s->score > how->threshold);
    bool cloud = s->score < how->threshold ||
                 (equal && policy_draw_tie(rand_u64(s->a->seed, s->item), s->prompt) < how->tie);
    how->policy = cloud ? POLICY_ALWAYS : POLICY_NEVER;
    return rc;
}

/* Fill in all of *out but the judgement, once its text is written. */
static int asking_fill(struct asked *out, struct asking_sent *s, struct err *err)
{
    struct asking *a = s->a;
    struct decode_stats *stats = &out->stats;
    if (s->full || !buf_add(&a->text, "", 1))
        return err_set(err, ERR_NOMEM, "eval: out of memory");
    out->work = s->work;
    stats->prompt_tokens = s->prompt;
    stats->edge_ms += stats->router_ms;
    out->hash = s->hash;
    out->trace = (const void *)a->trace.p;
    out->scores = (const void *)a->scores.p;
    out->text = a->text.p;
    return OK;
}

bool asking_has_room(const struct asking *a)
{
    return a->flying < a->window;
}

/* Put the text of a slot behind the prompt. What a model writes never changes the ids before it, so
 * the text is encoded by itself. */
static int asking_put_slot(struct asking_sent *s, struct err *err)
{
    const char *text = s->how.slot;
    uint32_t *ids = NULL, *all = NULL;
    size_t n;
    int rc =
        tokenizer_encode_part(s->a->engine.tokenizer, &ids, &n, text, strlen(text), false, err);
    if (rc == OK && !(all = realloc(s->ids, (s->prompt + n) * sizeof(*all))))
        rc = err_set(err, ERR_NOMEM, "eval: out of memory");
    if (rc == OK) {
        memcpy(all + s->prompt, ids, n * sizeof(*all));
        s->ids = all;
        s->prompt += n;
    }
    free(ids);
    return rc;
}

int asking_send(struct asking *a, struct task *t, size_t i, const struct asking_how *how,
                struct err *err)
{
    struct task_item item;
    struct asking_sent *s = &a->sent[(a->oldest + a->flying) % a->window];
    *s = (struct asking_sent){
        .a = a, .task = t, .item = i, .how = *how, .port = routing_port(&a->routing)
    };
    int rc = task_item(&item, t, i, err);
    if (rc == OK)
        rc = task_encode(&s->ids, &s->prompt, t, &item, a->engine.tokenizer, a->engine.chat, err);
    if (rc == OK && how->slot)
        rc = asking_put_slot(s, err);
    s->left_out = s->prompt > a->context;
    if (rc == OK && !s->left_out && how->query && a->texts)
        rc = asking_decide(s, err);
    if (rc == OK && !s->left_out && s->port)
        rc = asking_share(s, err);
    if (rc == OK && !s->left_out && a->texts)
        rc = asking_many_send(s, err);
    if (rc != OK) {
        free(s->ids);
        return rc;
    }
    if (!a->flying++)
        a->taken_ns = os_now_ns();
    return OK;
}

/* Judge the answer, if there is one, and tell whose it is. */
static int asking_judge(struct asked *out, const struct asking_sent *s, struct err *err)
{
    struct task_item item;
    int rc = task_item(&item, s->task, s->item, err);
    if (rc != OK)
        return rc;
    out->id = item.id;
    if (s->left_out)
        return OK;
    task_cut(s->task, s->a->text.p);
    task_extract(out->answer, s->task, &item, out->text);
    text_line(out->answer);
    out->right = task_right(s->task, &item, out->text);
    out->citer = task_right_citer(s->task, &item, out->text);
    out->truncated = out->stats.finish == FINISH_LENGTH && !s->how.slot;
    return OK;
}

int asking_take(struct asked *out, struct asking *a, struct err *err)
{
    struct asking_sent *s = &a->sent[a->oldest];
    *out = (struct asked){ .left_out = s->left_out };
    a->text.n = a->trace.n = a->scores.n = 0;
    int rc = OK;
    if (!s->left_out && s->how.query && !s->text)
        rc = asking_decide(s, err);
    if (rc == OK && !s->left_out)
        rc = s->text ? asking_many_take(&out->stats, s, err) : asking_write(&out->stats, s, err);
    if (rc == OK && !s->left_out)
        rc = asking_fill(out, s, err);
    if (rc == OK)
        rc = asking_judge(out, s, err);
    free(s->ids);
    a->oldest = (a->oldest + 1) % a->window;
    a->flying--;
    return rc;
}
