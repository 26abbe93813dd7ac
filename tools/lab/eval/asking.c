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
#include "model/text/tokenizer.h"
#include "net/answers/answers.h"
#include "router/local_cloud.h"
#include "router/policy.h"
#include "router/texts/texts.h"
#include "tools/cli/setup.h"
#include "tools/lab/eval/routed.h"

enum {
    AHEAD = 4,       /* answers in flight for each that is written, so a long one delays no other */
    EACH_THREAD = 8, /* answers written at once; */
    MOST = 32,       /* beyond, the products of a pass gain little */
    PIECE_MS = 60000,  /* nobody reads along, so prompts are read in the largest pieces */
    MILLI_TOKENS = 96, /* of an answer */
    FILE_TOKENS = 512
};

struct asking_sent { /* an answer in flight */
    struct asking *a;
    struct task *task;
    size_t item;
    struct asking_how how;
    enum policy policy;         /* of query, once its score is known: always or never */
    const char *slot;           /* or NULL */
    float score;                /* of query */
    struct decode_stats before; /* what that took */
    const struct cloud_port *port;
    uint32_t *ids; /* [prompt] */
    size_t prompt;
    bool left_out; /* longer than the context */
    struct text *text;
    /* Set while its tokens are read. */
    size_t warm; /* ids at the beginning that the cloud's prefix cache holds */
    size_t call; /* prefix of the latest call, 0: none; `asks` tokens were asked for */
    size_t asks;
    bool unbroken; /* all tokens since that call are the cloud's */
};

int asking_open(struct asking *a, struct eval_list *l, size_t max_tokens, uint64_t seed,
                struct err *err)
{
    *a = (struct asking){ .max_tokens = max_tokens, .seed = seed };
    int rc = setup_engine(&a->engine, true, err);
    if (rc == OK && l)
        rc = eval_list_open(l, &a->engine, err);
    bool asks = !l || eval_list_asks(l);
    shared_options.policy = !l ? NULL : policy_name(asks ? POLICY_RANDOM : POLICY_NEVER);
    if (!asks)
        shared_options.cloud = "auto";
    if (rc == OK)
        rc = routed_open(&a->routing, &a->engine, err);
    if (rc == OK)
        return OK;
    engine_close(&a->engine);
    *a = (struct asking){ 0 };
    return rc;
}

/* Let go of the answer that was sent first. */
static void asking_drop(struct asking *a)
{
    struct asking_sent *s = &a->sent[a->oldest];
    text_drop(s->text);
    free(s->ids);
    a->oldest = (a->oldest + 1) % a->window;
    a->flying--;
}

static void asking_close_texts(struct asking *a)
{
    while (a->flying)
        asking_drop(a);
    text_drop(a->taken);
    texts_close(a->texts);
    free(a->sent);
    a->taken = NULL;
    a->texts = NULL;
    a->sent = NULL;
}

void asking_close(struct asking *a)
{
    asking_close_texts(a);
    buf_free(&a->scores);
    buf_free(&a->text);
    if (a->engine.model)
        routed_close(&a->routing);
    engine_close(&a->engine);
    *a = (struct asking){ 0 };
}

uint64_t asking_subject(const struct task_item *item)
{
    uint64_t h = 0;
    for (const char *p = item->subject; *p; p++)
        h = rand_u64(h, (unsigned char)*p);
    return h;
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

/* Set *ids to the prompt of an item, malloc'ed. */
static int asking_encode(uint32_t **ids, size_t *n, const struct asking *a, struct task *t,
                         size_t item, struct err *err)
{
    struct task_item read;
    int rc = task_item(&read, t, item, err);
    return rc == OK ? task_encode(ids, n, t, &read, a->engine.tokenizer, a->engine.chat, err) : rc;
}

/* Find how many ids the longest of the prompts has. */
static int asking_longest(size_t *longest, const struct asking *a, struct task *t,
                          const size_t *items, size_t n, struct err *err)
{
    *longest = 0;
    asking_form(t, &a->engine);
    for (size_t i = 0; i < n; i++) {
        uint32_t *ids = NULL;
        size_t count = 0;
        int rc = interrupted ? err_set(err, ERR_STOP, "interrupted")
                             : asking_encode(&ids, &count, a, t, items[i], err);
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
    size_t most = a->engine.model->config.context, longest, context;
    if (!a->max_tokens)
        a->max_tokens = task_size(t) == SIZE_MAX ? MILLI_TOKENS : FILE_TOKENS;
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
    asking_close_texts(a);
    a->context = context;
    rc = asking_parallel(&a->parallel, a, context, err);
    a->window = a->parallel > 1 ? AHEAD * a->parallel : 1;
    a->sent = calloc(a->window, sizeof(*a->sent));
    a->busy_ns = 0;
    if (rc == OK && !a->sent)
        rc = err_set(err, ERR_NOMEM, "eval: out of memory");
    const struct texts_options o = { .engine = &a->engine,
                                     .routing = &a->routing,
                                     .slots = a->parallel,
                                     .queue = a->window,
                                     .context = context,
                                     .kv = a->kv,
                                     .piece_ms = PIECE_MS,
                                     .stop = &interrupted };
    return rc == OK ? texts_open(&a->texts, &o, err) : rc;
}

void asking_begin(struct asking *a, bool timed)
{
    answers_forget(a->routing.answers);
    if (timed)
        texts_forget(a->texts);
    if (a->routing.local && timed)
        texts_forget(local_cloud_texts(a->routing.local));
}

bool asking_has_room(const struct asking *a)
{
    return a->flying < a->window;
}

/* Ask for the text of s or, with `scored`, for its first token, written by the small model. */
static int asking_text(struct text **out, struct asking_sent *s, bool scored, struct err *err)
{
    const struct asking *a = s->a;
    const struct eval_entry *e = s->how.entry;
    float threshold = s->how.threshold;
    /* With policy always, a guess would only tell what the small model would have said. */
    bool guesses = a->routing.how.ahead && (s->policy != POLICY_ALWAYS || e->query);
    const struct text_routing routing = { .policy = s->policy,
                                          .router = e->router,
                                          .threshold = scored             ? 0
                                                       : isnan(threshold) ? 0.5f
                                                                          : threshold,
                                          .tie = scored ? 0 : s->how.tie,
                                          .ahead = guesses && !scored,
                                          .max_cloud_tokens = UINT64_MAX };
    const struct text_wish wish = {
        .prompt = s->ids,
        .n = s->prompt,
        .max = scored || s->slot ? 1 : a->max_tokens,
        .sample = { .top_p = 1, .repeat_penalty = 1, .seed = rand_u64(a->seed, s->item) },
        .stops = scored ? NULL : task_stops(s->task),
        .apart = true,
        .routing = &routing,
        .slot = -1
    };
    return texts_ask(a->texts, out, &wish, err);
}

/* Wait for the end of a text. */
static struct text_view asking_wait(struct text *t)
{
    struct text_view view = text_wait(t, 0);
    while (!view.finished)
        view = text_wait(t, view.n);
    return view;
}

/* Decide for the whole answer of policy query. */
static int asking_decide(struct asking_sent *s, struct err *err)
{
    const struct asking_how *how = &s->how;
    struct text *t;
    int rc = asking_text(&t, s, true, err);
    if (rc != OK)
        return rc;
    const struct text_view view = asking_wait(t);
    s->before = view.stats;
    if (view.n)
        s->score = view.tokens[0].t.score;
    else
        rc = err_set(err, view.rc, "%s", view.why);
    text_drop(t);
    bool equal = !(s->score < how->threshold) && !(s->score > how->threshold);
    bool cloud = s->score < how->threshold ||
                 (equal && policy_draw_tie(rand_u64(s->a->seed, s->item), s->prompt) < how->tie);
    s->policy = cloud ? POLICY_ALWAYS : POLICY_NEVER;
    return rc;
}

/* Find how many ids the prompt shares with that of the item before it. */
static int asking_share(struct asking_sent *s, struct err *err)
{
    uint32_t *before = NULL;
    size_t n = 0;
    int rc = s->item ? asking_encode(&before, &n, s->a, s->task, s->item - 1, err) : OK;
    while (rc == OK && s->warm < s->prompt && s->warm < n && s->ids[s->warm] == before[s->warm])
        s->warm++;
    free(before);
    return rc;
}

/* Put the text of a slot behind the prompt. What a model writes never changes the ids before it, so
 * the text is encoded by itself. */
static int asking_put_slot(struct asking_sent *s, struct err *err)
{
    const char *text = s->slot;
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
    struct asking_sent *s = &a->sent[(a->oldest + a->flying) % a->window];
    *s = (struct asking_sent){ .a = a,
                               .task = t,
                               .item = i,
                               .how = *how,
                               .policy = how->entry->policy,
                               .slot = how->entry->slot ? shared_options.place : NULL,
                               .port = routing_port(&a->routing) };
    int rc = asking_encode(&s->ids, &s->prompt, a, t, i, err);
    if (rc == OK && s->slot)
        rc = asking_put_slot(s, err);
    s->left_out = s->prompt > a->context;
    if (rc == OK && !s->left_out && how->entry->query)
        rc = asking_decide(s, err);
    if (rc == OK && !s->left_out && s->port)
        rc = asking_share(s, err);
    if (rc == OK && !s->left_out)
        rc = asking_text(&s->text, s, false, err);
    if (rc != OK)
        free(s->ids);
    else if (!a->flying++)
        a->taken_ns = os_now_ns();
    return rc;
}

/* Count what the cloud computes for one of its tokens, which follows a prefix of `at` ids. */
static void asking_count_work(struct asked_work *w, struct asking_sent *s, size_t at)
{
    if (s->call && s->unbroken && at - s->call < s->asks)
        return; /* the call before it has brought this token, too */
    size_t cached = s->warm < at ? s->warm : at;
    s->asks = s->port->info(s->port->arg).tokens;
    s->call = s->warm = at;
    s->unbroken = true;
    w->calls++;
    w->cached += cached;
    w->prefilled += at - cached;
    w->decoded += s->asks;
}

/* Add a token to text, hash and work. False: an allocation failed. */
static bool asking_take_token(struct asked *out, struct asking_sent *s,
                              const struct decode_token *t)
{
    struct asking *a = s->a;
    size_t n = 0;
    const char *bytes = t->eog ? NULL : tokenizer_bytes(a->engine.tokenizer, t->id, &n);
    out->hash = rand_u64(rand_u64(out->hash, t->id), t->source);
    s->unbroken = s->unbroken && t->source == SOURCE_CLOUD;
    if (t->source == SOURCE_CLOUD)
        asking_count_work(&out->work, s, s->prompt + t->pos);
    return buf_add(&a->text, bytes, bytes ? n : 0) &&
           buf_add(&a->scores, s->how.entry->query ? &s->score : &t->score, sizeof(t->score));
}

/* Set the times of an answer. */
static void asking_time(struct decode_stats *stats, const struct asking_sent *s)
{
    struct asking *a = s->a;
    uint64_t now = os_now_ns(), busy = texts_count(a->texts).busy_ns;
    stats->ttft_ms += s->before.total_ms;
    stats->total_ms += s->before.total_ms;
    stats->edge_ms += stats->router_ms + s->before.edge_ms + s->before.router_ms;
    if (a->parallel > 1) {
        stats->total_ms = (double)(now - a->taken_ns) / 1e6;
        stats->edge_ms = (double)(busy - a->busy_ns) / 1e6;
    }
    a->taken_ns = now;
    a->busy_ns = busy;
}

/* Wait for the text and fill in all of *out but the judgement. */
static int asking_read(struct asked *out, struct asking_sent *s, struct err *err)
{
    struct asking *a = s->a;
    const struct text_view view = asking_wait(s->text);
    if (view.rc != OK) /* the time goes to the next one that is complete */
        return err_set(err, view.rc, "%s", view.why);
    bool fine = buf_str(&a->text, s->slot ? s->slot : ""); /* which the answer begins with */
    for (size_t i = 0; fine && i < view.n; i++)
        fine = asking_take_token(out, s, &view.tokens[i].t);
    if (!fine || !buf_add(&a->text, "", 1))
        return err_set(err, ERR_NOMEM, "eval: out of memory");
    out->stats = view.stats;
    asking_time(&out->stats, s);
    out->trace = view.tokens;
    out->scores = (const void *)a->scores.p;
    out->text = a->text.p;
    text_drop(a->taken);
    a->taken = s->text;
    s->text = NULL;
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
    out->subject = asking_subject(&item);
    if (s->left_out)
        return OK;
    task_cut(s->task, s->a->text.p);
    task_extract(out->answer, s->task, &item, out->text);
    text_line(out->answer);
    out->right = task_right(s->task, &item, out->text);
    out->citer = task_right_citer(s->task, &item, out->text);
    out->truncated = out->stats.finish == FINISH_LENGTH && !s->slot;
    return OK;
}

int asking_take(struct asked *out, struct asking *a, struct err *err)
{
    struct asking_sent *s = &a->sent[a->oldest];
    *out = (struct asked){ .left_out = s->left_out };
    a->text.n = a->scores.n = 0;
    int rc = s->left_out ? OK : asking_read(out, s, err);
    if (rc == OK)
        rc = asking_judge(out, s, err);
    asking_drop(a);
    return rc;
}
